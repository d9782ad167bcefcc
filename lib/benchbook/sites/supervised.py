"""What servers, proxies and hops of a lab share: one supervised process, proven ready, known, ended."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchbook.core.errors import SiteError
from benchbook.sites import lab as labs
from benchbook.sites import ports, process, settings

LAST_LINES = 5
IN_USE = re.compile(r"[Aa]ddress already in use")
TRIES, TRY_AGAIN_S = 5, 0.5


class Supervised:
    """One process of a lab at one place, in a folder of its own. Nothing is started before `_begin`.

    `what` names it in messages. `keep` are file descriptors that it inherits, `user` whom it runs as (None:
    us). A class sets `config`, its settings file, if it has one, and `leftovers`, what goes when it ends.
    `gentle` is the signal that asks it to end; with `has_children`
    its work is done by processes that it begins.
    """

    what = "the server"
    start_s = 20.0
    stop_s = 5.0
    gentle = signal.SIGTERM
    has_children = False

    def __init__(
        self, lab: labs.Lab, place: labs.Place, keep: tuple[int, ...] = (), user: str | None = None
    ) -> None:
        self.lab, self.place, self.keep, self.user = lab, place, keep, user
        self.role = place.name
        self.child: process.Child | None = None
        self.folder = lab.own(self.role, user)
        self.log = lab.run / f"{self.role}.log"
        self.leftovers: tuple[Path, ...] = ()
        self.moved: dict[str, str] = {}
        self.config: Path

    @property
    def is_up(self) -> bool:
        """Say whether its process runs."""
        return self.child is not None and self.child.is_alive

    @property
    def config_hash(self) -> str:
        """SHA-256 of the settings file as it is on disk now, with the addresses of its first place (`moved`:
        address now to address then)."""
        return settings.hash_config(self.config, self.folder, self.moved)

    def stop(self) -> bool:
        """End it, and say whether it went by itself, so that what it wrote is whole."""
        if self.child is None:
            return True
        was_alive = self.child.is_alive
        clean = process.stop(self.child, grace_s=self.stop_s, gentle=self.gentle) and was_alive
        self.child = None
        for leftover in (self.lab.pidfile(self.role), *self.leftovers):
            leftover.unlink(missing_ok=True)
        return clean

    def running(self) -> process.Child:
        """Return its process; SiteError if it has ended."""
        if self.child is None or not self.child.is_alive:
            raise SiteError(f"{self.what} does not run; see {self.log}, then call site.up(arm) again")
        return self.child

    def log_mark(self) -> int:
        """Return a place in its log."""
        return self.log.stat().st_size if self.log.exists() else 0

    def log_since(self, mark: int) -> list[str]:
        """Return the lines of its log since a place."""
        if not self.log.exists():
            return []
        with self.log.open("rb") as file:
            file.seek(mark)
            return file.read().decode("utf-8", "replace").splitlines()

    def _must_have_ports(self, *numbers: int) -> None:
        """Raise SiteError if a process listens on our ports; a namespace of its own has all of them."""
        if self.place.is_here:
            for number in numbers:
                ports.must_be_free(number, self.what)

    def _holds_port(self) -> bool:
        """Say whether the port is its own, without connecting."""
        return self.child is not None and self.child.pid in ports.holders(self.place.port)

    def _begin(
        self, argv: Sequence[str], is_ready: Callable[[], bool], env: Mapping[str, str] | None = None
    ) -> None:
        """Start the process and wait until `is_ready`, which may raise OSError or KeyError until then.

        Where no process listens on its port and it is in use all the same, another connection goes out
        from it for a moment (the kernel gives such ports to any program): it is started again.
        """
        for tries_left in reversed(range(TRIES)):
            mark = self.log_mark()
            self._start(argv, env)
            try:
                self._wait(is_ready, mark)
                return
            except SiteError:
                is_borrowed = IN_USE.search("\n".join(self.log_since(mark)))
                self.stop()
                if not is_borrowed or ports.listeners(self.place.port):
                    raise
                if not tries_left:
                    raise SiteError(ports.borrowed(self.place.port, self.what)) from None
                time.sleep(TRY_AGAIN_S)
            except BaseException:
                self.stop()
                raise

    def _start(self, argv: Sequence[str], env: Mapping[str, str] | None) -> None:
        self.child = process.start(
            self.role,
            argv,
            token=self.lab.token,
            folder=self.lab.folder,
            out=self.log,
            pidfile=self.lab.pidfile(self.role),
            user=self.user,
            where=self.place.where,
            keep=self.keep,
            cwd=self.folder,
            env=env,
        )

    def _wait(self, is_ready: Callable[[], bool], mark: int) -> None:
        deadline = time.monotonic() + self.start_s
        while not self._is_ready(is_ready):
            if not self.is_up:
                raise SiteError(f"{self.what} did not start; see {self.log}:\n  {self._last_words(mark)}")
            if time.monotonic() > deadline:
                raise SiteError(f"{self.what} was not ready within {self.start_s:.0f} s; see {self.log}")
            time.sleep(0.02)
        self._must_listen_here()

    def _must_listen_here(self) -> None:
        """Raise SiteError if it listens where others could reach it: off loopback and its own address."""
        found = ports.strays(self.running().pid, self.place.address) if self.is_up else []
        if found:
            raise SiteError(
                f"{self.what} listens on {', '.join(found)}, and may on {self.place.address} alone; it was "
                "stopped before anything connected. Look for a setting that opens it, under engine.settings "
                "(bind_address, extra_port, status-host and their like are not a study's to set)"
            )

    def _is_ready(self, ask: Callable[[], bool]) -> bool:
        self._must_listen_here()
        try:
            return self.is_up and ask()
        except (OSError, KeyError):
            return False

    def _last_words(self, mark: int) -> str:
        """Return what the log says about why it ended."""
        return tail(self.log)


def tail(log: Path) -> str:
    """Return the last lines of a log, for a message."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n  ".join(lines[-LAST_LINES:])
    except OSError:
        return "(no log)"
