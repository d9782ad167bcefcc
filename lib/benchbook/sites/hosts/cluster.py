"""A TiDB cluster on hosts, made by `tiup` from the control host: deployed once, then started and stopped.

Its parts are services of their hosts and go on without our agent, so what ends them is written down on the
control host before they are made. Its tables have no copy: what runs changed is loaded again.
"""

from __future__ import annotations

import hashlib
import json
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import PurePath
from typing import Any

import pymysql
import sqlalchemy

from benchbook.core import applied
from benchbook.core.engines import engine_of
from benchbook.core.errors import SettingsDiffer, SiteError
from benchbook.core.study import Study
from benchbook.core.study_hosts import Numa
from benchbook.sites import settings as values
from benchbook.sites import sql
from benchbook.sites.agent.facts import Look
from benchbook.sites.engines.tidb import CRASH
from benchbook.sites.hosts import through_agent, tiup
from benchbook.sites.hosts.arrange import PD_AT, TIKV_AT, Part, Place
from benchbook.sites.hosts.host import Host
from benchbook.sites.hosts.machine import READ_S, OnHost
from benchbook.sites.hosts.tiup import Commands
from benchbook.sites.lab import ADMIN, Lab
from benchbook.sites.machine.contract import Request
from benchbook.sites.machine.supervised import Made
from benchbook.sites.tidb import data
from benchbook.sites.tidb import data as accounts
from benchbook.sites.tidb.status import METRICS, Status, pool_seconds

LOOK_S = 1.0
REFUSED = 1045


class Cluster(Made):
    """One cluster. `hosts` are all of its hosts by name, `looks` what they are, `peers` as for a server."""

    has_copies = False

    def __init__(
        self,
        study: Study,
        part: Part,
        hosts: Mapping[str, Host],
        looks: Mapping[str, Look],
        lab: Lab,
        peers: Callable[[], list[str]],
        machine: OnHost,
    ) -> None:
        self.part, self.hosts, self.looks, self.lab, self.peers = part, hosts, looks, lab, peers
        self.role, self.host, self.machine = part.name, hosts[part.where.host], machine
        self.child: str | None = None
        self.control = hosts[dict(part.where.others)["control"]]
        self.engine = engine_of(study, part.arm)
        assert study.site.tiup is not None
        self.tiup = study.site.tiup
        self.asked, self.numa = tiup.settings(study, part), study.arms[part.arm].numa
        self.configs = tiup.configs(study, part.arm)
        folders = {name: host.folder for name, host in hosts.items()}
        facts = {name: look.facts for name, look in looks.items()}
        targets = {name: host.target for name, host in hosts.items()}
        self.topology = tiup.topology_text(tiup.topology(study, part, targets, folders, facts))
        self.config_text = self.topology
        for folder in folders.values():  # It is what it is wherever ours are.
            self.config_text = self.config_text.replace(folder, "FOLDER")
        self.config_hash = applied.digest(self.config_text)
        name, look = f"{self.control.lab}-{part.name}", looks[self.control.name]
        self.commands = Commands(self.control, look, self.tiup, name)
        self.statuses = [
            Status(one.address, one.port + 1, OnHost(hosts[one.host], looks[one.host], lab))
            for one in part.where.places
        ]
        self._admins: dict[int, sqlalchemy.Engine] = {}
        self.id = ""

    @property
    def version(self) -> str:
        """Its version as tiup names it."""
        return f"v{self.engine.version}"

    @property
    def is_up(self) -> bool:
        return self.child is not None and all(status.answers for status in self.statuses)

    @property
    def processes(self) -> dict[str, dict[str, list[int]]]:
        """The processes of its parts by host, found by their ports."""
        return pids_of(self.hosts, self.part, self.numa)

    def ensure(self) -> None:
        """Start it unless it runs, deploying it at need; nobody is left without a password."""
        if self.is_up:
            return
        self.control.call("own", name=self.role)
        made = {
            "version": self.version,
            "topology_sha256": hashlib.sha256(self.topology.encode()).hexdigest(),
            "locks": self.lab.locks(),
        }
        known = self._record("made.json")
        if {key: known.get(key) for key in made} != made:
            self._deploy(bool(known), made)
        else:
            self.id = known["id"]
            self.commands.note()
        self.commands.start()
        self._await()
        self.child = uuid.uuid4().hex
        try:
            for place in self.part.where.places:
                self._close(place)
                with self._connect(place) as connection, connection.cursor() as cursor:
                    accounts.set_variables(cursor, self.asked.variables)
                    accounts.admit(cursor, self.lab.password(), tuple(self.peers()))
        except BaseException:
            self.stop()
            raise

    def stop(self) -> bool:
        """Stop it, its data kept, and say that it went by itself."""
        if self.child is not None:
            self.child = None
            self.commands.stop()
        return True

    def running(self) -> str:
        """Return what stands for this start of it; SiteError if a TiDB does not answer."""
        for place, status in zip(self.part.where.places, self.statuses, strict=True):
            if self.child is None or not status.answers:
                raise SiteError(f"TiDB on {place.host}, port {place.port}, does not answer")
        return str(self.child)

    def admin(self, number: int | None = None) -> sqlalchemy.Engine:
        """Return the administrative account on one TiDB with its books; None: the first, with all books."""
        key = -1 if number is None else number
        if key not in self._admins:
            place = self.part.where.places[number or 0]
            statuses = self.statuses if number is None else [self.statuses[number]]
            self._admins[key] = accounts.admin(lambda: self._connect(place), statuses)
        return self._admins[key]

    def seen_from(self, machine: OnHost, address: str, port: int) -> bool:
        mine = [one for one in self.part.where.places if (one.address, one.port) == (address, port)]
        connects = [partial(self._connect, one) for one in (mine or self.part.where.places)]
        return accounts.is_seen(connects, machine, address, port)

    def identity(self) -> dict[str, Any]:
        self.running()
        said = [status.who() for status in self.statuses]
        versions = [{key: one[key] for key in ("version", "git_hash")} for one in said]
        known = {"host": self.host.name, "cluster": self.id, "port": self.part.port, **versions[0]}
        return known | {"servers": versions, "pids": self.processes, "config_hash": self.config_hash}

    def facts(self) -> dict[str, Any]:
        self.running()
        return facts_of(self, self.commands.shown())

    def applied(self) -> list[tuple[str, str]]:
        """Return the topology that it was made from, as a pair of name and text."""
        return [("topology.yaml", self.config_text)]

    def mark(self, label: str | None) -> None:
        """Note that its tables are loaded under a label; None: that they are not."""
        said = json.dumps({"label": label, "id": self.id})
        self.control.call("write", name=f"{self.role}/loaded.json", text=said)

    def is_marked(self, label: str | None) -> bool:
        """Say whether its tables were loaded under a label; None: under any."""
        known, made = self._record("loaded.json"), self._record("made.json")
        is_same = bool(known.get("label")) and known.get("id") == made.get("id")
        return is_same and label in (None, known.get("label"))

    def threads(self) -> list[dict[str, float]] | None:
        """Return the processor time of each thread pool of each TiKV; None if one does not tell."""
        base, most = self.part.where.places[0].port + TIKV_AT, max(1, len(self.numa.tikv) if self.numa else 1)
        found = []
        for role, name in self.part.where.others:
            for rank in range(most if role == "tikv" else 0):
                host, port = self.hosts[name], base + 2 * rank + 1
                try:
                    told = through_agent.request(host, host.target.address, port, Request(METRICS))
                except OSError:
                    return None
                found.append(pool_seconds(told))
        return found

    def log_mark(self) -> list[int]:
        places = self.part.where.places
        return [int(self.hosts[one.host].call("size", name=self._log(one)) or 0) for one in places]

    def log_errors(self, mark: list[int]) -> list[str]:
        found = []
        for one, at in zip(self.part.where.places, mark, strict=True):
            said = self.hosts[one.host].call("read", name=self._log(one), at=at) or ""
            found += [line for line in said.splitlines() if CRASH.search(line)]
        return found

    def _deploy(self, is_there: bool, made: Mapping[str, Any]) -> None:
        self.commands.note()
        if is_there:
            self.commands.destroy()
        self.id = uuid.uuid4().hex
        self.control.call("remove", name=f"{self.role}/loaded.json")
        self.control.call("write", name=f"{self.role}/topology.yaml", text=self.topology)
        path = f"{self.control.folder}/{self.role}/topology.yaml"
        self.commands.deploy(self.version, path)
        said = json.dumps({**made, "id": self.id})
        self.control.call("write", name=f"{self.role}/made.json", text=said)

    def _await(self) -> None:
        """Wait until every TiDB answers and tiup says of every part that it is up."""
        deadline = time.monotonic() + self.tiup.wait_s
        while True:
            if all(status.answers for status in self.statuses):
                down = [
                    f"{one['role']} {one['id']}: {one['status']}"
                    for one in self.commands.shown()["instances"]
                    if not str(one["status"]).startswith(("Up", "Healthy"))
                ]
                if not down:
                    return
            else:
                silent = [one for one in self.statuses if not one.answers]
                down = [f"tidb {one.address}:{one.port}: no answer" for one in silent]
            if time.monotonic() > deadline:
                raise SiteError(f"the cluster {self.commands.name} did not get up: {', '.join(down)}")
            time.sleep(LOOK_S)

    def _close(self, place: Place) -> None:
        """Give the administrator, whom a new cluster lets in without a password, the lab's."""
        try:
            with self._connect(place, "") as connection, connection.cursor() as cursor:
                cursor.execute(
                    f"ALTER USER '{ADMIN}'@'%%' IDENTIFIED BY %s",
                    (self.lab.admin_password(),),
                )
        except pymysql.err.OperationalError as error:
            if error.args[0] != REFUSED:
                raise SiteError(f"TiDB on {place.host} does not answer: {error.args[-1]}") from None

    def _connect(self, place: Place, password: str | None = None) -> pymysql.Connection:
        known = self.lab.admin_password() if password is None else password
        return through_agent.connect(
            *(self.hosts[place.host], (place.address, place.port)),
            **dict[str, Any](user=ADMIN, password=known, read_timeout=READ_S),
        )

    def _record(self, name: str) -> dict[str, Any]:
        try:
            return dict(json.loads(self.control.call("read", name=f"{self.role}/{name}") or "{}"))
        except ValueError:
            return {}

    def _log(self, one: Place) -> str:
        return f"{self.part.name}/tidb-{one.port}/log/tidb.log"


STORAGE = "TiKV, as tiup made it; no copy of the tables is kept"


def pids_of(
    hosts: Mapping[str, Host], part: Part, numa: Numa | None = None
) -> dict[str, dict[str, list[int]]]:
    """Return the processes of `tidb`, `tikv` and `pd` by host: those that listen on the parts' ports."""
    base = part.where.places[0].port
    ports: dict[str, list[tuple[str, int]]] = {"tidb": [(one.host, one.port) for one in part.where.places]}
    for role, at, most in (("tikv", TIKV_AT, max(1, len((numa or Numa()).tikv))), ("pd", PD_AT, 1)):
        named = [host for what, host in part.where.others if what == role]
        ports[role] = [(host, base + at + 2 * rank) for host in named for rank in range(most)]
    found: dict[str, dict[str, list[int]]] = {}
    for role, places in ports.items():
        for host, port in places:
            there = [one["pid"] for one in hosts[host].call("listeners", port=port) if one["pid"]]
            found.setdefault(role, {}).setdefault(host, []).extend(there)
    return found


def facts_of(cluster: Any, shown: dict[str, Any]) -> dict[str, Any]:
    """Return what a cluster is; `shown` is what tiup says. SettingsDiffer where a setting was not taken."""
    told, differing = settings_of(cluster, cluster.statuses)
    if differing:
        raise SettingsDiffer(differing)
    variables = sql.variables(cluster.admin())
    with cluster.admin().connect() as connection:
        kept = data.stored(connection, cluster.configs)
    parts = [{key: one.get(key) for key in ("id", "role", "status")} for one in shown["instances"]]
    return data.facts(cluster.engine.version, STORAGE, told, variables, PurePath("DATA")) | {
        "config_hash": cluster.config_hash,
        "cluster": {
            "version": shown["cluster_meta"].get("cluster_version"),
            "topology_sha256": cluster.config_hash,
            "tiup": cluster.looks[cluster.control.name].facts["tiup"],
            "parts": parts,
            "stored": kept,
        },
    }


def settings_of(cluster: Any, statuses: Sequence[Status]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return asked and got of every setting of TiDB, and what any of them did not take."""
    asked = cluster.asked
    mine = {**cluster.engine.settings, **cluster.configs["tidb"]}
    told: dict[str, Any] = {}
    differing: dict[str, Any] = {}
    for number, status in enumerate(statuses):
        variables = sql.variables(cluster.admin(number))
        items = status.config()
        # A setting of ours, not the study's, that a version doesn't know is told and no fault.
        differing |= {
            key: pair
            for key, pair in asked.differences(items, variables).items()
            if key in mine or pair[1] is not None
        }
        for key, value in sorted((asked.items | asked.variables).items()):
            got = asked.got(key, items, variables)
            said = {"asked": values.text(value), "got": got if got is not None else data.NOT_READ}
            told.setdefault(key, said | {"from": "study" if key in mine else "benchbook"})
    return told, differing
