"""Base of servers, proxies and hops on every machine: one process, proven ready, then ended."""

import contextlib
import re
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any

from benchbook.core.artifacts import applied_config
from benchbook.core.util.errors import SiteError
from benchbook.sites import settings, workspace
from benchbook.sites.machine import concurrent_steps
from benchbook.sites.machine.contract import Machine

Address = tuple[str, int]
LAST_LINES = 5
IN_USE = re.compile(r"[Aa]ddress already in use")
TRIES, TRY_AGAIN_S = 5, 0.5
GIVEN_AWAY = "net/ipv4/ip_local_port_range"


class Component:
    """A part at a site, a process or a whole cluster; the defaults are those of one process.

    With `has_children` processes that it starts do its work. With `has_probes` it asks servers whether they
    live, with `pools_sessions` it opens their sessions unasked. With `has_copies` its data can be copied;
    `is_sparse` says that most of their files is set aside, `is_untried` that it has not started from them
    since they were put back. `hops` hold bytes back between a cluster's parts.
    """

    has_children = has_probes = pools_sessions = is_sparse = is_cluster = is_untried = False
    has_copies = True
    hops: Mapping[str, "Supervised"] = MappingProxyType({})

    @property
    def members(self) -> Sequence[Any]:
        """The parts that it consists of, in the order of their start."""
        return [self]

    @property
    def addresses(self) -> Sequence[Address]:
        """Its addresses, if it has several."""
        return ()

    def addresses_at(self, port: int, rank: int) -> Sequence[Address]:
        """The `addresses` that it would have in the place of another one."""
        return ()

    @property
    def below(self) -> Mapping[str, Sequence[Address]]:
        """Addresses of the parts behind it, by kind."""
        return {}

    @property
    def processes(self) -> Mapping[str, Mapping[str, list[int]]]:
        """Its processes by kind (empty: its own) and host (empty: this machine)."""
        return {}

    def beside(self, record: dict[str, Any]) -> contextlib.AbstractContextManager[None]:
        """Do the tasks that belong to a run while the block runs; a run's record has them at its end."""
        return contextlib.nullcontext()

    def moment(self) -> dict[str, Any]:
        """Facts of a cluster that change from hour to hour."""
        return {}


class Supervised(Component):
    """One process of a machine at one place, in a folder of its own. Nothing is started before `_begin`.

    `what` names it in messages. `user` is whom it runs as (None: us). A class names its settings file
    (`config_name`), the other files that it reads settings from (`config_files`), the options of its command
    line that say where it is or which start this is (`own_options`), how they write an address and its port
    (`addresses_as`), the signal that asks it to end
    (`gentle`), what goes when it ends (`leftovers`, files of its folder), what a line of its log holds that
    tells of an error (`crash`), and what else may be why it did not start (`hints`).
    """

    what = "the server"
    start_s = 20.0
    stop_s = 5.0
    gentle = signal.SIGTERM
    config_name = "config"
    config_files: tuple[str, ...] = ()
    own_options: frozenset[str] = frozenset()
    addresses_as: tuple[str, ...] = ("{}:{}",)
    leftovers: tuple[str, ...] = ()
    crash = re.compile(r"(?!)")
    hints: tuple[str, ...] = ()

    def __init__(self, machine: Machine, place: workspace.PartLocation, user: str | None = None) -> None:
        self.machine, self.place, self.user = machine, place, user
        self.role, self._log = place.name, f"run/{place.name}.log"
        self.folder, self.log = machine.folder / self.role, machine.folder / self._log
        self.config = self.folder / self.config_name
        self.child: Any = None
        self.argv: list[str] = []
        self.moved: dict[tuple[str, int], tuple[str, int]] = {}

    @property
    def is_up(self) -> bool:
        return self.child is not None and bool(self.child.is_alive)

    @property
    def config_text(self) -> str:
        """The settings file on disk, with neutral paths and the addresses of its first place."""
        return self.lasting(self.machine.read(f"{self.role}/{self.config_name}") or "")

    @property
    def config_hash(self) -> str:
        return applied_config.digest_text(self.config_text)

    @property
    def started_with(self) -> dict[str, str]:
        """Digests of the other files and the command line that it was started with, by name."""
        return {name: applied_config.digest_text(text) for name, text in self._list_settings_files()}

    def program_facts(self, binary: str) -> dict[str, Any]:
        """Its program by name, wherever it lies here, and the digests of its settings and command line."""
        marks = {"binary": PurePosixPath(binary).name, "binary_sha256": self.machine.sha256(binary)}
        return marks | {"config_hash": self.config_hash, "started_with": self.started_with}

    def applied(self) -> list[tuple[str, str]]:
        """Settings files and the command line that it was started with, as (name, text)."""
        files = [(self.config_name, text)] if (text := self.config_text) else []
        return files + self._list_settings_files()

    @property
    def processes(self) -> dict[str, dict[str, list[int]]]:
        return {"": {self.machine.host or "": [self.child.pid]}} if self.child is not None else {}

    def stop(self, signum: int | None = None) -> bool:
        """End it by a signal (None: `gentle`); True if it went by itself, so that its files are whole."""
        if self.child is None:
            return True
        child, self.child = self.child, None
        is_clean = self.machine.stop(child, self.stop_s, signum or self.gentle)
        with contextlib.suppress(SiteError):
            self._clear()
        return is_clean

    def running(self) -> Any:
        """Its process; SiteError with the last errors of its log if it has ended."""
        if not self.is_up:
            last = "; ".join(self.log_errors(0)[-2:])
            remedy = f"see {self.log}, then call site.up(arm) again"
            raise SiteError(f"{self._named} does not run{': ' + last if last else ''}; {remedy}")
        return self.child

    def log_mark(self) -> int:
        """Place in its log."""
        return self.machine.size(self._log) or 0

    def log_since(self, mark: int) -> list[str]:
        return (self.machine.read(self._log, mark) or "").splitlines()

    def log_errors(self, mark: int) -> list[str]:
        """Lines of its log since a place that tell of an error or a crash."""
        return [line for line in self.log_since(mark) if self.crash.search(line)]

    def seen(self, prefix: str = "") -> dict[str, Any]:
        """Facts that tell this very process from any other, with its settings."""
        child, host = self.running(), self.machine.host
        results: dict[str, Any] = {"host": host} if host is not None else {}
        results |= {"pid": child.pid, "started": child.started, "config_hash": self.config_hash}
        results["started_with"] = self.started_with
        return {f"{prefix}{key}": value for key, value in results.items()}

    @property
    def _named(self) -> str:
        return f"{self.what}{self._where}"

    @property
    def _where(self) -> str:
        return f" on {self.machine.host}" if self.machine.host is not None else ""

    def _list_settings_files(self) -> list[tuple[str, str]]:
        """Its other settings files and command line, with neutral paths, as (name, text)."""
        texts = [(name, self.machine.read(f"{self.role}/{name}") or "") for name in self.config_files]
        argv = [word for word in self.argv if word.partition("=")[0] not in self.own_options]
        if argv:
            texts.append((f"{PurePosixPath(argv[0]).name}.argv", "\n".join(argv)))
        return [(name, self.lasting(text)) for name, text in texts]

    def lasting(self, text: str) -> str:
        """A settings file's text with neutral paths and the addresses of its first place."""
        forms, pairs = self.addresses_as, self.moved.items()
        moved = {form.format(*now): form.format(*first) for form in forms for now, first in pairs}
        return settings.neutralize_text(text, self.folder, moved)

    def _configure(self, text: str) -> None:
        """Write its settings file, readable by its user alone."""
        self.machine.private_folder(self.role, self.user)
        self.machine.write(f"{self.role}/{self.config_name}", text, self.user)

    def _clear(self) -> None:
        for name in self.leftovers:
            self.machine.remove(f"{self.role}/{name}")

    def _must_have_ports(self, *numbers: int) -> None:
        """Refuse to start if another program listens, naming it; a namespace has all ports free."""
        for number in numbers if self.place.is_here else ():
            if taken := self.machine.listeners(number):
                who = ", ".join(
                    f"pid {values['pid']}: {values['command']}" if values["pid"] else values["command"]
                    for values in taken
                )
                raise SiteError(
                    f"{self.what}: port {number}{self._where} is taken by {who}; end that server yourself, "
                    "run `make down` if it is ours, or set another site.port in the study"
                )

    def holds_port(self) -> bool:
        """True if it alone listens on its port at its address; no connection is made."""
        pid, place = self.child.pid if self.child is not None else 0, self.place
        if not place.is_here:
            return (place.address, place.port) in self.machine.listening(pid)
        there = self.machine.listeners(place.port)
        return [(values["pid"], values["address"]) for values in there] == [(pid, place.address)]

    def must_be_ours(self, wrong: Sequence[str]) -> None:
        """Raise SiteError if anything is `wrong` with the process in its place, naming all of it."""
        if wrong:
            raise SiteError(
                f"{self.place.address}:{self.place.port}{self._where} leads to a server that is not ours "
                f"({'; '.join(wrong)}); end that server yourself, or set another site.port in the study"
            )

    def _begin(
        self, argv: Sequence[str], is_ready: Callable[[], bool], env: Mapping[str, str] | None = None
    ) -> None:
        """Start the process and wait until `is_ready`, as `_start_in_steps` does."""
        concurrent_steps.run_steps(self._start_in_steps(argv, is_ready, env), self.machine.look_s)

    def _start_in_steps(
        self, argv: Sequence[str], is_ready: Callable[[], bool], env: Mapping[str, str] | None = None
    ) -> concurrent_steps.Steps:
        """Start the process and yield until `is_ready`; OSError or KeyError mean not yet."""
        self.argv = list(argv)
        for tries_left in reversed(range(TRIES)):
            mark = self.log_mark()
            try:
                self.machine.private_folder(self.role, self.user)
                self._clear()
                self.child = self.machine.start(self.role, argv, self.user, self.place.where, env)
                yield from self._waiting(is_ready, mark)
                return
            except SiteError:
                is_borrowed = IN_USE.search("\n".join(self.log_since(mark)))
                self.stop()
                if not is_borrowed or self.machine.listeners(self.place.port):
                    raise
                if not tries_left:
                    low = self.machine.kernel_setting(GIVEN_AWAY).split()[0]
                    raise SiteError(
                        f"{self.what}: a connection goes out from port {self.place.port}{self._where}, so "
                        f"nothing can listen there; set a site.port below {low} in the study: the kernel "
                        "gives none of those to connections"
                    ) from None
                time.sleep(TRY_AGAIN_S)
            except BaseException:
                self.stop()
                raise

    def _waiting(self, is_ready: Callable[[], bool], mark: int) -> concurrent_steps.Steps:
        deadline = time.monotonic() + self.start_s
        while True:
            self._must_listen_here()
            with contextlib.suppress(OSError, KeyError):
                if self.is_up and is_ready():
                    break
            if not self.is_up:
                last = "\n  ".join([*self._last_errors(mark)[-LAST_LINES:], *self.hints])
                raise SiteError(f"{self._named} did not start; see {self.log}:\n  {last}")
            if time.monotonic() > deadline:
                raise SiteError(f"{self._named} was not ready within {self.start_s:.0f} s; see {self.log}")
            yield
        self._must_listen_here()

    def _must_listen_here(self) -> None:
        """Raise SiteError if it listens beyond loopback and its own address."""
        results = self.machine.strays(self.child.pid, self.place.address) if self.is_up else []
        if results:
            raise SiteError(
                f"{self._named} listens on {', '.join(results)}, and may on {self.place.address} alone; it "
                "was stopped before anything connected. Look for a setting that opens it: bind_address, "
                "extra_port, status-host and their like are not a study's to set"
            )

    def _last_errors(self, mark: int) -> list[str]:
        """Lines of its log that show at their end the reason for its end."""
        return self.log_errors(mark) or self.log_since(mark)


def read_tail(log: Path) -> str:
    """Last lines of a log, for a message."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n  ".join(lines[-LAST_LINES:])
    except OSError:
        return "(no log)"
