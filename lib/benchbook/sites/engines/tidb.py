"""TiDB as one server with its embedded storage (unistore): no replication, no Raft, writes not synced."""

import re
from pathlib import Path
from typing import Any

import pymysql
import sqlalchemy

from benchbook.core.util.errors import SiteError
from benchbook.sites import settings, sql, workspace
from benchbook.sites.descriptors.tidb import TRAITS
from benchbook.sites.engines.server import Server
from benchbook.sites.machine.contract import Machine
from benchbook.sites.machine.local_machine import LocalMachine
from benchbook.sites.tidb import build, config, data
from benchbook.sites.tidb.status import Status

STORAGE = "unistore, embedded: one process, writes not synced"
CRASH = re.compile(r"\[ERROR\]|\[FATAL\]|^panic: |^fatal error: |^SIG[A-Z]+: |No space left", re.ASCII)


class TiDB(Server):
    """One server, its status port the next. On this machine a program that is missing is built now."""

    traits = TRAITS
    version_words = build.SAID
    config_name, leftovers, crash = "tidb.toml", (data.SOCKET,), CRASH
    own_options = frozenset({"-host", "-P", "-status-host", "-status"})
    start_s, stop_s = 180.0, 60.0

    def __init__(self, machine: Machine, engine: Any, place: workspace.PartLocation) -> None:
        super().__init__(machine, engine, place, data.choose_user(machine))
        self.asked = config.complete_settings(engine.settings, self.version)
        self.status = Status(place.address, place.port + 1, machine)
        self.env = {"HOME": str(self.folder), "TMPDIR": str(self.folder / "tmp")}

    @classmethod
    def obstacle(cls, engine: Any) -> str | None:
        """Nothing is built to find out."""
        return build.find_obstacle(engine.version, engine.binary)

    @classmethod
    def standing(cls) -> tuple[str | None, str]:
        """The versions that it can build count as there."""
        refused = build.find_obstacle(None, None)
        return (build.describe_builds() if refused is None else None), (refused or "").partition("; ")[2]

    @property
    def made_with(self) -> dict[str, Any]:
        """Variables are kept with the data."""
        variables = {key: settings.format_value(value) for key, value in self.asked.variables.items()}
        results = {"engine": self.traits.name, "version": self.version, "settings": variables}
        elsewhere = self._own_hosts[1:]
        return results | {"locks": self.lab.locks()} | ({"own_hosts": elsewhere} if elsewhere else {})

    def _answers(self) -> bool:
        # It opens no session.
        return self.status.answers

    def _command(self) -> list[str]:
        here = [f"-host={self.place.address}", f"-P={self.place.port}"]
        here += [f"-status-host={self.place.address}", f"-status={self.status.port}"]
        return [*self._argv("data", data.SOCKET), *here]

    def _admit(self, started_s: float) -> None:
        data.admit_clients(self._connect, self.asked.variables, self.lab.password(), self.place.peers())
        data.verify_identity(self, self._connect, str(self.data))

    @property
    def _own_hosts(self) -> list[str]:
        """Apparent hosts of the administrator's sessions over the socket."""
        is_elsewhere = self.place.address != workspace.LOOPBACK and int(self.version.partition(".")[0]) < 6
        return ["localhost", self.place.address] if is_elsewhere else ["localhost"]

    def create(self) -> None:
        self._write_config()
        argv = [*self._argv("new", data.FIRST), "-P=0", "-report-status=false"]
        data.first_start(self, argv, data.FIRST, self._own_hosts)

    def admin(self) -> sqlalchemy.Engine:
        if self._admin is None:
            self._admin = data.open_admin(self._connect, [self.status], opened=lambda: self._opened)
        return self._admin

    def seen_from(self, machine: Machine, address: str, port: int) -> bool:
        return data.is_seen([self._connect], machine, address, port)

    def identity(self) -> dict[str, Any]:
        observations = self.seen()
        try:
            answer = self.status.who()
        except (OSError, ValueError) as error:
            raise SiteError(f"{self._named} does not answer: {error}; see {self.log}") from None
        version = {key: answer[key] for key in ("version", "git_hash")}
        return observations | version | {"datadir": str(self.data), "port": self.place.port}

    def facts(self) -> dict[str, Any]:
        self.running()
        variables = sql.read_variables(self.admin())
        read = self.asked.taken(self.engine.settings, self.status.config(), variables)
        is_here = self.machine.host is None
        built = {"built_with": build.read_build(Path(self.binary)).get("go")} if is_here else {}
        facts = data.collect_facts(self.version, STORAGE, read, variables, self.folder)
        return facts | {"name": self.traits.name} | self.program_facts(self.binary) | built

    def _connect(self) -> pymysql.Connection:
        self._opened += 1
        return data.connect_admin(self)

    def _find(self) -> str:
        if isinstance(self.machine, LocalMachine):
            return str(build.ensure_program(self.lab, self.engine.version, self.engine.binary))
        return super()._find()

    def _argv(self, store: str, socket: str) -> list[str]:
        places = [f"-path={self.folder / store}", f"-socket={self.machine.socket(f'{self.role}/{socket}')}"]
        return [self.binary, f"-config={self.config}", "-store=unistore", *places]

    def _is_ready_now(self) -> bool:
        if not self.status.answers:
            return False
        try:
            self._connect().close()
        except pymysql.err.OperationalError:
            return False
        return True

    def _write_config(self) -> None:
        """Write the settings file; unknown to old versions, the places of scratch files are ignored there."""
        places = {"temp-dir": str(self.folder / "tmp"), "tmp-storage-path": str(self.folder / "tmp")}
        self._configure(config.render_toml(places | self.asked.items))
