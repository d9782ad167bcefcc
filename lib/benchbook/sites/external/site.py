"""An endpoint that others run, as a site: our clients, and our view of its server."""

import contextlib
import os
import ssl
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import sqlalchemy

from benchbook.core.study import custom_scripts, descriptors
from benchbook.core.study.engines import engine_of
from benchbook.core.study.model import Endpoint
from benchbook.core.study.study import StudySpec
from benchbook.core.util import files
from benchbook.core.util.errors import SiteError
from benchbook.sites import sql
from benchbook.sites import workspace as labs
from benchbook.sites.agent import microbenchmarks
from benchbook.sites.contract import Start, Taker
from benchbook.sites.external import server
from benchbook.sites.external.buffer_pools import describe_buffer_pools
from benchbook.sites.machine import facts as machine
from benchbook.sites.machine import local_machine
from benchbook.sites.processes import process, procfs
from benchbook.sites.processes.spawn import ProcessPlacement
from benchbook.sites.topology import background_load, turns
from benchbook.sites.topology.site import HeldSite

MARKS, PLACE = "existing.json", "place"
TLS_FILES = ("cacert.pem", "client-cert.pem", "client-key.pem")
NOT_SEEN = ("the server's log", "the server's host", "the server's processes")


class ExistingSite(HeldSite):
    """The endpoints of one study's arms. Nothing is started there; tables are made in one schema of ours."""

    needs_account = True

    def __init__(self, study: StudySpec, lab: Path) -> None:
        assert study.site.existing is not None
        super().__init__(study, lab)
        self.asked = study.site.existing
        self.database = self.asked.database
        self._theirs = {arm: choose_server(study, arm) for arm in study.arms}

    def _open(self) -> None:
        self._clients: list[process.Child] = []
        self._engines: dict[tuple[str, int], sqlalchemy.Engine] = {}
        self._opened: Counter[tuple[str, int]] = Counter()
        self._servers: dict[tuple[str, int], str] = {}
        self._marked: set[tuple[str, int]] = set()
        self._scratch = tempfile.TemporaryDirectory(dir=self.lab.run)
        drivers = sorted({their.driver for their in self._theirs.values()})
        self.secret = server.prepare_account(self.asked, self.lab, drivers)
        self._tls: ssl.SSLContext | None = None
        if self.asked.tls_folder is not None:
            # The certificates are put where sysbench wants them, too.
            folder = Path(self.asked.tls_folder).expanduser()
            for name in TLS_FILES:
                if not os.access(folder / name, os.R_OK):
                    raise SiteError(f"site.existing.tls_folder: {folder / name}: can't be read; put it there")
                (Path(self._scratch.name) / name).symlink_to((folder / name).resolve())
            self._tls = ssl.create_default_context(cafile=str(folder / TLS_FILES[0]))
            self._tls.check_hostname = False
            self._tls.load_cert_chain(folder / TLS_FILES[1], folder / TLS_FILES[2])

    def _close(self, error: BaseException | None) -> None:
        for child in self._clients:
            process.stop_child(child, grace_s=2.0)
        self._scratch.cleanup()

    @classmethod
    def needs(cls, name: str, study: StudySpec) -> str:
        """Load of this machine, and whether the data fit into the servers' buffer pools."""
        theirs = {arm: choose_server(study, arm) for arm in study.arms}
        return "\n".join([super().needs(name, study), *describe_buffer_pools(study, theirs)])

    @classmethod
    def foreseeable_obstacles(cls, study: StudySpec, arm: str) -> list[str]:
        """Without a password nobody is let in."""
        assert study.site.existing is not None
        return server.check_password(study.site.existing)

    def obstacles(self, arm: str) -> list[str]:
        host, port = self._place(arm)
        theirs, engine = self._theirs[arm], engine_of(self.study, arm)
        try:
            with self.admin(arm).connect() as connection:
                name, version = theirs.who(connection)
                if name != engine.name or not sql.is_version(version, engine.version):
                    want = f"{engine.name} {engine.version or ''}".strip()
                    return [f"{host}:{port} is {name} {version}, not {want}; write that as the arm's engine"]
                tokens = labs.read_tokens(self.lab.folder.parent)
                return [*filter(None, [server.check_ownership(theirs, connection, self.database, tokens)])]
        except sqlalchemy.exc.OperationalError as error:
            user = labs.read_secret(self.secret, theirs.driver)[0]
            why = " ".join(str(error.orig).split())
            return [f"{host}:{port} does not let {user} in: {why}; see site.existing, arms.{arm}.endpoint"]

    def endpoints(self, arm: str) -> list[Endpoint]:
        if why := self.missing(arm):
            raise SiteError(f"{arm}: {why}")
        host, port = self._place(arm)
        if (host, port) not in self._marked:
            with self._standing(arm) as connection:
                self._theirs[arm].enter(connection, self.database, self.lab.token)
            self._marked.add((host, port))
        driver = self._theirs[arm].driver
        endpoint = Endpoint(host, port, self.database, self.secret, tls=self.asked.tls, driver=driver)
        return [endpoint] * self.study.arms[arm].clients

    def down(self) -> None:
        """Leave everything as it is: none of it is ours to stop."""

    def remove(self) -> list[str]:
        """Drop the loaded tables of every schema that is ours; its mark goes with them."""
        report = []
        for arm in [group[0] for group in self.data_groups()]:
            host, port = self._place(arm)
            if (why := self.missing(arm)) is not None:
                report.append(f"{host}:{port}: left as it is: {why}")
                continue
            with self._standing(arm) as connection:
                has_scripts = bool(custom_scripts.load_scripts(self.study))
                dropped = server.drop_tables(self._theirs[arm], connection, self.database, has_scripts)
            report.append(f"{host}:{port}: {', '.join(dropped) or 'nothing'} removed from {self.database}")
        (self.lab.folder / MARKS).unlink(missing_ok=True)
        return report

    def facts(self, arm: str) -> dict[str, Any]:
        host, port = self._place(arm)
        with self.admin(arm).connect() as connection:
            results = self._theirs[arm].facts(connection, engine_of(self.study, arm).settings)
        return {
            "arm": arm,
            "access": self.study.arms[arm].access,
            "site": self.study.site.model_dump(include={"kind", "priority"})
            | self.asked.model_dump(include={"tls", "is_shared"}),
            **results,
            "network": "as it is there",
            "not_seen": list(NOT_SEEN),
            "machine": machine.collect_facts(),
            "moment": machine.read_moment(self.lab.folder) | {"endpoint": f"{host}:{port}"},
        }

    def identity(self, arm: str) -> dict[str, Any]:
        """The server's marks, and our clients' placement: they take over this process's place."""
        with self.admin(arm).connect() as connection:
            return {PLACE: procfs.describe_placement(os.getpid()), **self._theirs[arm].identity(connection)}

    def server_of(self, arm: str) -> str:
        name = " ".join(str(value) for key, value in self.identity(arm).items() if key != PLACE)
        self._servers[self._place(arm)] = name
        return name

    def admin(self, arm: str | None = None, server: int = 0) -> sqlalchemy.Engine:
        """The benchmark's own account at an endpoint, there is no other; each connection is new."""
        place = self._place(self.study.baseline if arm is None else arm)
        if place not in self._engines:
            theirs = self._theirs[self._arm(arm)]
            messages: dict[str, Any] = {"is_theirs": True, "opened": lambda: self._opened_at(place)}
            if self.asked.is_shared:
                messages["no_ledger"] = "others use the server too, as the study says"
                messages["only_user"] = labs.read_secret(self.secret, theirs.driver)[0]
            self._engines[place] = theirs.engine(lambda: self._connect(place, theirs), **messages)
        return self._engines[place]

    def allowance(self, arm: str) -> float:
        return float(len(os.sched_getaffinity(0)))

    def client(self, start: Start) -> process.Child:
        """Start a load client on this machine; with TLS beside its certificates, as sysbench wants it."""
        cwd = start.cwd
        if self._tls:
            cwd = Path(self._scratch.name)
            # A custom script finds its modules where it is started.
            for script in start.cwd.glob("*.lua") if start.cwd is not None else ():
                with contextlib.suppress(FileExistsError):
                    (cwd / script.name).symlink_to(script.resolve())
        # libpq would encrypt wherever the server can.
        env = {**(start.env or {}), "PGSSLMODE": "disable"}
        self._clients.append(background_load.start_client(self.lab, replace(start, cwd=cwd, env=env)))
        return self._clients[-1]

    def clock(self, takers: Mapping[str, Taker], requests: Mapping[str, Any]) -> turns.ClockProcess:
        """Start the clock of clients that take turns; the servers are not ours and never stopped."""
        parts: dict[str, dict[str, list[int]]] = {name: {} for name in takers}
        return turns.ClockProcess(self.lab, takers, parts, {**requests, "families": []}, ProcessPlacement())

    def machines(self) -> dict[str, Any]:
        """Figures of the client's machine: the server's can't be asked."""
        return {"probes": microbenchmarks.measure_here(self.lab.folder)}

    def watch(self, arm: str, clients: Sequence[process.Child], path: Path) -> local_machine.Monitor:
        pids = [child.pid for child in clients]
        return local_machine.Monitor({"client": pids}, path, *pids)

    @contextlib.contextmanager
    def during(self, arm: str) -> Iterator[dict[str, Any]]:
        yield {"not_seen": list(NOT_SEEN)}

    def log_mark(self, arm: str | None = None) -> int:
        """Always 0: the server's log can't be read, as facts and every run say."""
        return 0

    def log_errors(self, mark: int, arm: str | None = None) -> list[str]:
        """Nothing: the server's log can't be read, as facts and every run say."""
        return []

    def snapshot(self, label: str = "", arm: str | None = None) -> None:
        """Note that a server's tables are loaded; there is no copy of them."""
        files.write_json(self.lab.folder / MARKS, self._loaded() | {self.server_of(self._arm(arm)): label})

    def has_snapshot(self, label: str | None = None, arm: str | None = None) -> bool:
        loaded_label = self._loaded().get(self.server_of(self._arm(arm)))
        return loaded_label is not None and label in (None, loaded_label)

    def restore(self, label: str | None = None) -> None:
        """Take the tables as they are: reads leave them whole, and changed ones are loaded again."""
        for arm in (group[0] for group in self.data_groups()):
            if self.missing(arm) is None and not self.has_snapshot(label, arm):
                place = ":".join(map(str, self._place(arm)))
                raise SiteError(f"{place} holds no tables of this data set; run the prepare stage again")

    def data_groups(self) -> list[list[str]]:
        """Arms by the server behind their endpoints, whichever names it has."""
        groups: dict[str, list[str]] = {}
        for arm in self.study.arms:
            behind = self.server_of(arm) if self.missing(arm) is None else str(self._place(arm))
            groups.setdefault(behind, []).append(arm)
        return list(groups.values())

    def _loaded(self) -> dict[str, str]:
        """Name of the data set that was loaded into each server."""
        return labs.read_record(self.lab.folder / MARKS)

    def _arm(self, arm: str | None) -> str:
        return self.study.baseline if arm is None else arm

    def _place(self, arm: str | None) -> tuple[str, int]:
        place = self.study.arms[self._arm(arm)].endpoint or self.asked
        return place.host, place.port

    def _opened_at(self, place: tuple[str, int]) -> int:
        """Number of connections to the server behind a place, by any name it has."""
        its = self._servers.get(place)
        places = {place, *(other for other, name in self._servers.items() if name == its)}
        return sum(self._opened[other] for other in places)

    def _connect(self, place: tuple[str, int], theirs: server.ExternalServer) -> Any:
        self._opened[place] += 1
        return theirs.connect(place, labs.read_secret(self.secret, theirs.driver), self.database, self._tls)

    def _standing(self, arm: str) -> sqlalchemy.Connection:
        """Open a connection with every statement done at once."""
        return self.admin(arm).connect().execution_options(isolation_level="AUTOCOMMIT")


def choose_server(study: StudySpec, arm: str) -> server.ExternalServer:
    """The reader of an arm's server, by the protocol of its engine."""
    if descriptors.find_engine(engine_of(study, arm).name).driver == descriptors.MYSQL:
        return server.ExternalServer()
    from benchbook.sites.external.postgresql import ExternalPostgreSQL

    return ExternalPostgreSQL()
