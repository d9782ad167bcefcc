"""Common base of database servers on every machine, on top of that of supervised programs."""

import abc
import difflib
import re
import signal
import time
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

import sqlalchemy

from benchbook.core.study.descriptors import EngineDescriptor as Traits
from benchbook.core.study.study_cluster import ArmEvent
from benchbook.core.util.errors import SiteError
from benchbook.sites import settings, sql
from benchbook.sites.agent import files
from benchbook.sites.agent.facts import VERSION
from benchbook.sites.machine import data_snapshots, local_machine
from benchbook.sites.machine.capabilities import install_command
from benchbook.sites.machine.contract import Machine
from benchbook.sites.machine.supervised_process import Supervised
from benchbook.sites.workspace import PartLocation


class Server(Supervised, abc.ABC):
    """One server with its program (`binary`) and a data folder from `machine.data_snapshots`.

    A class says what it is in `traits`, and finds its version, which is to be `oldest` or newer, in what its
    program prints by `version_words`. It is made of a machine, the study's engine and a place; one that
    `encrypts` is given `tls_from` besides, a function that returns a client's machine.
    `starts_from` names those of `defaults.yaml` that its settings begin with, a relative's after its own.
    With the words `lists_settings` its program lists its settings as `listed` finds them, where it can.
    `word` is drawn at each start, for a server that can say it.
    """

    traits: Traits
    version_words = re.compile(VERSION)
    lists_settings: tuple[str, ...] = ()
    listed = re.compile(r"^([a-z][a-z0-9_-]+)[ \t]", re.M)
    oldest: tuple[int, ...] = ()
    starts_from: tuple[str, ...] = ()
    hints = ("(or check engine.settings)",)
    socket: str
    word = ""
    env: Mapping[str, str] | None = None

    def __init__(self, machine: Machine, engine: Any, place: PartLocation, user: str | None = None) -> None:
        super().__init__(machine, place, user or machine.account(self.traits.account))
        self.engine, self.lab, self.data = engine, machine.lab, self.folder / "data"
        self._admin: sqlalchemy.Engine | None = None
        self._opened = 0
        self.binary = self._find()
        self.version = self._version_of(self.binary)
        versions = (self.version, self.version.partition("-")[0])
        if not any(sql.is_version(text, engine.version) for text in versions):
            raise SiteError(
                f"engine.version: asked {engine.version}, {self.binary}{self._where} is {self.version}; "
                f"{self._name_remedy()} in that version, or name its program {self._key}"
            )
        settings.must_be_free(engine)

    def ensure(self) -> None:
        """Start the server unless it runs and answers, making its data at need; prove that it is ours."""
        if self.is_up and self._answers():
            return
        self.stop()
        self._must_have_ports(*range(self.place.port, self.place.port + self.traits.ports))
        data_snapshots.create_data(self)
        self.word = uuid.uuid4().hex
        self._write_config()
        started_s = time.monotonic()
        try:
            with data_snapshots.first_start(self):
                self._begin(self._command(), self._is_ready_now, self.env)
                self._admit(started_s)
        except BaseException:
            self.stop()
            raise

    def disturb(self, event: ArmEvent, record: dict[str, Any]) -> Iterator[float]:
        """End it and start it again, or set its variables and set them back; yield the seconds between."""
        if event.what == "set":
            with self.admin().connect() as connection:
                rows = {key: connection.exec_driver_sql(f"SELECT @@GLOBAL.{key}") for key in event.settings}
                was = {name: row.scalar_one() for name, row in rows.items()}
            record |= {"was": {name: str(value) for name, value in was.items()}, "killed_s": time.monotonic()}
            self._set_globally(event.settings)
            record["set_s"] = time.monotonic()
            yield event.back_after_s
            record["started_s"] = time.monotonic()
            self._set_globally(was)
            record["ready_s"] = time.monotonic()
            return
        record |= {"pid_before": self.running().pid, "killed_s": time.monotonic()}
        self.stop(signal.SIGKILL if event.what == "kill" else None)
        yield max(0.001, event.back_after_s - (time.monotonic() - record["killed_s"]))
        record["started_s"] = time.monotonic()
        self.ensure()
        record |= {"ready_s": time.monotonic(), "pid_after": self.running().pid}

    def _set_globally(self, values: Mapping[str, Any]) -> None:
        with self.admin().connect() as connection:
            for name, value in values.items():
                connection.exec_driver_sql(f"SET GLOBAL {name} = %s", (value,))

    @classmethod
    def obstacle(cls, engine: Any) -> str | None:
        """Reason that this machine can't make such a server, or None."""
        if engine.binary is not None or cls._find_program() is not None:
            return None
        return f"{cls.traits.programs[0]} is not installed; {cls._name_remedy()}"

    @classmethod
    def misspelt(cls, engine: Any) -> dict[str, str]:
        """Settings that the program does not list, with a similar one; extensions' are left out."""
        if not (listed := cls._list_settings(engine)):
            return {}
        keys = [key for key in engine.settings if "." not in key]
        odd = [key for key in keys if not {key, key.removeprefix("skip_")} & listed]
        near = {key: "".join(difflib.get_close_matches(key, listed, n=1, cutoff=0.85)) for key in odd}
        has_plugins = any(key.startswith("plugin") for key in keys)
        return {key: name for key, name in near.items() if name or not has_plugins}

    @classmethod
    def _list_settings(cls, engine: Any) -> set[str]:
        """Settings that an engine's program lists; none if it can't, is another's, or nobody asks for one."""
        program = engine.binary or cls._find_program()
        if not (program and engine.settings and cls.lists_settings) or engine.build:
            return set()
        # MariaDB's package gives its own server MySQL's name too.
        version = files.read_output([program, *cls.traits.version_by])
        if not cls.version_words.search(version):
            return set()
        listed = cls.listed.findall(files.read_output([program, *cls.lists_settings]))
        return {name.replace("-", "_") for name in listed}

    @classmethod
    def standing(cls) -> tuple[str | None, str]:
        """Version that this machine has, None if none, and the remedy that brings one."""
        path = cls._find_program()
        match = cls.version_words.search(files.read_output([path, *cls.traits.version_by])) if path else None
        return match[1] if match else None, cls._name_remedy()

    @classmethod
    def _find_program(cls) -> str | None:
        program = cls.traits.programs[0]
        return local_machine.find_program(program) or next(iter(files.find_programs(program)), None)

    @property
    @abc.abstractmethod
    def made_with(self) -> dict[str, Any]:
        """Values that a data folder depends on: another value needs another folder."""

    @abc.abstractmethod
    def create(self) -> None:
        """Make a new data folder that only its administrator can enter."""

    @abc.abstractmethod
    def admin(self) -> sqlalchemy.Engine:
        """Administrative account over the socket; each connection is new."""

    @abc.abstractmethod
    def identity(self) -> dict[str, Any]:
        """Marks that tell this very server from any other; costs one connection at the most."""

    @abc.abstractmethod
    def facts(self) -> dict[str, Any]:
        """Facts that the server tells; SettingsDiffer if it did not take a setting asked of it."""

    @abc.abstractmethod
    def seen_from(self, machine: Machine, address: str, port: int) -> bool:
        """True if the benchmark's account reaches this very server from a machine."""

    @abc.abstractmethod
    def _answers(self) -> bool:
        """True if it takes a connection now; one that is crashing or stopped does not."""

    def _is_ready_now(self) -> bool:
        return self._answers()

    @abc.abstractmethod
    def _write_config(self) -> None:
        """Write the files that it reads at its start."""

    @abc.abstractmethod
    def _command(self) -> list[str]:
        """Command line that it is started with."""

    @abc.abstractmethod
    def _admit(self, started_s: float) -> None:
        """Make the benchmark's account; SiteError if another server answers than the one just started."""

    def _must_be_the_one(
        self, got: Mapping[str, Any], wanted: Mapping[str, Any], word: str, uptime_s: float, started_s: float
    ) -> None:
        """Raise SiteError with each difference unless socket and port lead to the process just started."""
        place = self.place
        wrong = [f"its {key} is {got[key]}, not {wanted[key]}" for key in wanted if got[key] != wanted[key]]
        is_reached = self.machine.host is not None or self.seen_from(self.machine, place.address, place.port)
        if word != self.word or not is_reached:
            wrong.append("it was not started by us just now")
        if uptime_s > time.monotonic() - started_s + 2:
            wrong.append(f"it has been up for {uptime_s:.0f} s, longer than ours")
        self.must_be_ours(wrong)

    def _describe_silence(self, machine: Machine, address: str, port: int, statement: str) -> SiteError:
        """The error to raise if no server answers a machine at an address."""
        seen_by = "" if machine.host is None else f" {machine.host}"
        return SiteError(
            f"{address}:{port} does not answer{seen_by}: {statement}; look at the end of {self.log}, at "
            "firewalls between hosts, and at `address` in the inventory"
        )

    @property
    def socket_path(self) -> str:
        """Its Unix socket on its machine."""
        return self.machine.socket(self.socket)

    @classmethod
    def _name_remedy(cls) -> str:
        program = cls.traits.programs[0]
        return f"`{install_command(program)}`" if cls.traits.packages else "put it into the PATH"

    def _complete(self, requests: Mapping[str, settings.Value]) -> dict[str, settings.Value]:
        """Settings that a server is asked for; an engine of another package adds its own here."""
        return settings.complete_settings(requests, *self.starts_from)

    def _find(self) -> str:
        name, named = self.traits.programs[0], self.engine.binary
        if (result := self.machine.program(named or name)) is not None:
            return result
        if named is not None:
            raise SiteError(f"engine.binary: {named}: no program there; write the path of a {name}, or null")
        remedy = f"{self._name_remedy()}, or name its program {self._key}"
        raise SiteError(f"{name} is not installed{self._where}; {remedy}")

    def _version_of(self, path: str) -> str:
        """Version of a program; SiteError if it is another's, or too old."""
        answer, name = self.machine.says([path, *self.traits.version_by]), self.traits.product
        if (match := self.version_words.search(answer)) is None:
            fault = f"{path}{self._where} is not a {name} server (it says {answer.strip()[:80]!r})"
            raise SiteError(f"{fault}; name another program {self._key}")
        if tuple(map(int, re.findall("[0-9]+", match[1]))) < self.oldest:
            least = ".".join(map(str, self.oldest))
            raise SiteError(f"{path}{self._where} is {name} {match[1]}; version {least} or newer is needed")
        return match[1]

    @property
    def _key(self) -> str:
        """The place to name another program."""
        return "in engine.binary" if self.machine.host is None else self.machine.key
