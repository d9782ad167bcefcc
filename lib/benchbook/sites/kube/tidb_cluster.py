"""A whole TiDB cluster as one server: made by TiDB Operator, its settings and books those of all its TiDBs.

It is started and stopped by the operator alone. Its data are in its TiKVs, so no copy of them is kept or put
back: they are loaded once, and taken as they are.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pymysql
import sqlalchemy

from benchbook.core import files
from benchbook.core.errors import SiteError
from benchbook.sites import lab as labs
from benchbook.sites import sql
from benchbook.sites.engines.postgresql_dialect import ADMIN
from benchbook.sites.kube import tidb, tidb_parts
from benchbook.sites.kube.layout import Chain, Part
from benchbook.sites.kube.namespace import StudyNamespace
from benchbook.sites.kube.tidb_parts import FIRST, PORT, Parts
from benchbook.sites.tidb import config, data
from benchbook.sites.tidb.status import NOT_COUNTED

PLURAL = "tidbclusters"
LISTENING_S = 60.0
# ER_ACCESS_DENIED_ERROR, of a server that does answer.
DENIED = 1045
# The account of a new TiDB that anybody may use.
OPEN = "'root'@'%'"
# Which tables were loaded into which cluster: one that was made again is another, and its tables are gone.
LOADED = "loaded.json"


class TidbCluster:
    """One TidbCluster. Nothing is asked of the Kubernetes cluster before `ensure`."""

    port = PORT
    has_children = False

    def __init__(self, space: StudyNamespace, part: Part, arm: str) -> None:
        self.space, self.part, self.arm = space, part, arm
        self.asked = tidb.asked_of(space.study, arm)
        self.child: str | None = None
        self._parts: Parts | None = None

    @property
    def parts(self) -> Parts:
        """Its pods; SiteError before `ensure`."""
        if self._parts is None:
            raise SiteError(f"TidbCluster {self.part.name}: not made yet; call site.up(arm) first")
        return self._parts

    def ensure(self) -> Any:
        """Bring the cluster up unless it is, set its accounts and variables; return its first pod."""
        if self._parts is not None and self._parts.are_alive():
            return self._parts.first
        space, name = self.space, self.part.name
        space.apply(name, [tidb.cluster(space.study, space.names, self.arm)])
        found = tidb_parts.ready(space.cluster, space.namespace, name, self._look, space.here.wait_s)
        self._parts = Parts(space, name, found)
        for one in self._parts.all:
            space.host(one)
        self._admit()
        self._must_be_closed()
        with self.open() as connection, connection.cursor() as cursor:
            data.set_variables(cursor, self.asked.variables)
        self.child = self.uid()
        return self._parts.first

    def pod(self) -> Any:
        """Find it up: a cluster has no sleep."""
        return self.ensure()

    def stop(self) -> bool:
        """Leave it as it is: it goes with the study's namespace."""
        return True

    def is_alive(self) -> bool:
        return self._parts is not None and self._parts.are_alive()

    def service(self, name: str | None) -> tuple[str, list[str], int]:
        inside = f"{self.part.name}-tidb"
        return (inside if name in (None, self.part.name) else name), self.parts.addresses, PORT

    def balancer(self, chain: Any) -> dict[str, Any]:
        return tidb.balancer(self.space.names, chain)

    def address(self, pod: Any) -> str:
        return str(pod.status.pod_ip)

    def open(self) -> pymysql.Connection:
        """Return a connection of the administrator's, outside any engine."""
        return tidb_parts.open_one(*self.parts.reached())

    def admin(self) -> sqlalchemy.Engine:
        """Return the administrative account on the first TiDB; each connection is new, and tells of all."""
        engine = tidb_parts.engine(*self.parts.reached())
        sqlalchemy.event.listen(engine, "connect", self._inform)
        return engine

    def uid(self) -> str | None:
        """Return what tells this cluster from one that is made again; None if there is none."""
        found = self.space.cluster.custom(tidb.API, PLURAL, self.space.namespace, self.part.name)
        return str(found["metadata"]["uid"]) if found is not None else None

    def identity(self) -> dict[str, Any]:
        return {"cluster": self.uid(), **self.parts.identity()}

    def facts(self) -> dict[str, Any]:
        study, admin = self.space.study, self.admin()
        variables = sql.variables(admin)
        with admin.connect() as connection:
            kept = data.stored(connection, config.of_parts(self.space.here.tidb, study.arms[self.arm].parts))
        return self.parts.facts(self.asked, study.engine, variables) | {"cluster": {"stored": kept}}

    def applied(self) -> list[tuple[str, str]]:
        """Return nothing more than its manifests, which hold all its settings."""
        return []

    def watched(self) -> list[tuple[str, str, int]]:
        kinds = ("tidb", "tikv", "pd")
        return [(kind, pod.metadata.name, 1) for kind in kinds for pod in self.parts.pods[kind]]

    def threads(self) -> list[dict[str, float]] | None:
        """Return the processor time of each thread pool of each TiKV; None if one does not tell."""
        return self.parts.threads()

    def look(self) -> dict[str, Any]:
        """Return the state of its stores and leaders now."""
        return self.parts.look()

    def log_mark(self) -> float:
        """Return now: its logs are asked for by time."""
        return time.monotonic()

    def log_errors(self, mark: float) -> list[str]:
        return self.parts.log_errors(time.monotonic() - mark)

    def run(self, *argv: str) -> str:
        return self.space.cluster.must(self.space.namespace, self.parts.first.metadata.name, argv)

    def _look(self) -> dict[str, Any]:
        found = self.space.cluster.custom(tidb.API, PLURAL, self.space.namespace, self.part.name)
        if found is None:
            raise SiteError(f"TidbCluster {self.part.name} was removed by somebody else; run the stage again")
        return found

    def _admit(self) -> None:
        """Make schema and accounts over the new cluster's open administrator, who is gone thereafter."""
        if tidb_parts.ask(*self.parts.reached(), "SELECT 1") is not None:
            return
        statements = account_statements(self.space.lab.password(), self.space.admin_password())
        with self._first() as connection, connection.cursor() as cursor:
            for statement in statements.splitlines():
                cursor.execute(statement)

    def _must_be_closed(self) -> None:
        """Raise SiteError if the administrator of a new cluster can still enter without a password."""
        try:
            tidb_parts.open_one(*self.parts.reached(), "", user=FIRST).close()
        except pymysql.err.OperationalError as error:
            if error.args[0] == DENIED:
                return
            raise SiteError(f"TidbCluster {self.part.name} does not answer: {error.args[-1]}") from None
        raise SiteError(
            f"TidbCluster {self.part.name} lets {FIRST} in without a password; run `make down`, then the "
            "stage again"
        )

    def _first(self) -> pymysql.Connection:
        """Return a connection of a new cluster's administrator, as soon as its port answers."""
        deadline = time.monotonic() + LISTENING_S
        while True:
            try:
                return tidb_parts.open_one(*self.parts.reached(), "", user=FIRST)
            except pymysql.err.OperationalError as error:
                # Its pod is ready before its port answers, where nothing looks at that.
                if time.monotonic() > deadline or error.args[0] == DENIED:
                    raise SiteError(
                        f"TidbCluster {self.part.name} lets neither us nor its first administrator in: "
                        f"{error.args[-1]}; run `make down`, then the stage again"
                    ) from None
            time.sleep(0.5)

    def _inform(self, connection: Any, record: Any) -> None:
        tidb_parts.tell(connection, record)
        books: Callable[[], Any] = self.parts.books
        record.info.update(books=books, connected=self.parts.connected, **NOT_COUNTED)


def account_statements(password: str, admin_password: str) -> str:
    """Return the statements that make the schema and its two accounts, and remove the one that is open.

    The administrator is let in from the pod itself alone, where its agent is.
    """
    made = []
    for name, host, word, right in (
        (labs.USER, "%", password, f"ALL PRIVILEGES ON {labs.SCHEMA}.*"),
        (ADMIN, "127.0.0.1", admin_password, "ALL PRIVILEGES ON *.*"),
    ):
        further = " WITH GRANT OPTION" if name == ADMIN else ""
        account = f"'{name}'@'{host}'"
        made += [
            f"CREATE USER IF NOT EXISTS {account} IDENTIFIED BY '{word}';",
            f"ALTER USER {account} IDENTIFIED BY '{word}';",
            f"GRANT {right} TO {account}{further};",
        ]
    made.append(f"DROP USER IF EXISTS {OPEN};")
    return "\n".join([f"CREATE DATABASE IF NOT EXISTS {labs.SCHEMA};", *made]) + "\n"


def by_cluster(chains: Mapping[str, Chain]) -> list[list[str]]:
    """Return the arms by the cluster that they share, those of the baseline first."""
    found: dict[Part, list[str]] = {}
    for arm, chain in chains.items():
        found.setdefault(chain.server, []).append(arm)
    return list(found.values())


def note_loaded(folder: Path, label: str, server: TidbCluster) -> None:
    """Note that the tables of a label are loaded."""
    path = folder / LOADED
    known = files.read_json(path) if path.exists() else {}
    files.write_json(path, known | {server.part.name: {"label": label, "cluster": server.uid()}})


def is_loaded(folder: Path, label: str | None, server: TidbCluster) -> bool:
    """Say whether the tables of a label (None: of any) were loaded into the cluster that is there now."""
    path = folder / LOADED
    known = (files.read_json(path) if path.exists() else {}).get(server.part.name)
    if known is None or known["cluster"] != server.uid():
        return False
    return label is None or known["label"] == label


def must_be_loaded(folder: Path, label: str | None, servers: Iterable[TidbCluster]) -> None:
    """Take the tables as they are: what reads left whole is whole, what was changed is loaded again."""
    for server in servers:
        if not is_loaded(folder, label, server):
            raise SiteError(
                f"TidbCluster {server.part.name} holds no tables of this data set; run the prepare stage"
            )
        server.ensure()
