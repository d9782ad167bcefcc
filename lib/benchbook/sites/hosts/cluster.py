"""A TiDB cluster on hosts, deployed once by `tiup` from the control host, whose agent ends it after us."""

import contextlib
import functools
import hashlib
import json
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Any

import pymysql
from pymysql.constants import ER

from benchbook.core.artifacts import applied_config
from benchbook.core.study.engines import engine_of
from benchbook.core.study.study import StudySpec
from benchbook.core.study.study_hosts import Numa
from benchbook.core.util.errors import SiteError, require_value
from benchbook.sites.engines.tidb import CRASH
from benchbook.sites.hosts import tiup
from benchbook.sites.hosts.machine import OnHost
from benchbook.sites.hosts.placement import PD_AT, TIKV_AT, HostEndpoint, Part
from benchbook.sites.machine import data_snapshots
from benchbook.sites.tidb import data
from benchbook.sites.tidb.cluster import TidbServers
from benchbook.sites.tidb.status import Status, record_pools
from benchbook.sites.workspace import ADMIN

LOOK_S = 1.0


class TiupCluster(TidbServers, data_snapshots.Loaded):
    """One cluster. `machines` are all of its hosts by name, `peers` as for a server."""

    storage = "TiKV, as tiup made it; no copy of the tables is kept"

    def __init__(
        self, study: StudySpec, part: Part, machines: Mapping[str, OnHost], peers: Callable[[], list[str]]
    ) -> None:
        self.part, self.machines, self.peers, self.role = part, machines, peers, part.name
        self.machine = machines[part.where.host]
        self.lab = self.machine.lab
        self.child: str | None = None
        self.notes = self.control = machines[dict(part.where.others)["control"]]
        self.engine = engine_of(study, part.arm)
        self.version = f"v{self.engine.version}"
        self.tiup = require_value(study.site.tiup)
        self.asked, self.numa = tiup.build_settings(study, part), study.arms[part.arm].numa or Numa()
        self.configs = tiup.merge_configs(study, part.arm)
        folders = {name: str(machine.folder) for name, machine in machines.items()}
        facts = {name: machine.look.facts for name, machine in machines.items()}
        targets = {name: machine.on.target for name, machine in machines.items()}
        self.topology = tiup.topology_text(tiup.build_topology(study, part, targets, folders, facts))
        self.config_text = self.topology
        for folder in folders.values():  # It is what it is wherever ours are.
            self.config_text = self.config_text.replace(folder, "FOLDER")
        self.config_hash = applied_config.digest_text(self.config_text)
        places = part.where.places
        self.statuses = [Status(place.address, place.port + 1, machines[place.host]) for place in places]
        self.ports = [place.port for place in places]
        self.name = f"{self.control.on.lab}-{part.name}"
        self.binary, self.env = str(self.control.program("tiup")), {"HOME": self.control.look.home}

    @property
    def id(self) -> str | None:
        return self._made.get("id")

    @property
    def _made(self) -> dict[str, Any]:
        return data_snapshots.read_record(self.notes, f"{self.role}/made.json")

    @property
    def is_up(self) -> bool:
        return self.child is not None and all(status.answers for status in self.statuses)

    @property
    def processes(self) -> dict[str, dict[str, list[int]]]:
        """The processes of `tidb`, `tikv` and `pd`: those that listen on the parts' ports."""
        ports = {"tidb": [(place.host, place.port) for place in self.part.where.places], "tikv": self._stores}
        pd = self.part.where.places[0].port + PD_AT
        ports["pd"] = [(host, pd) for role, host in self.part.where.others if role == "pd"]
        results: dict[str, dict[str, list[int]]] = {}
        for role, places in ports.items():
            for host, port in places:
                there = [listener["pid"] for listener in self.machines[host].listeners(port)]
                results.setdefault(role, {}).setdefault(host, []).extend(filter(None, there))
        return results

    @property
    def _stores(self) -> list[tuple[str, int]]:
        first, ranks = self.part.where.places[0].port + TIKV_AT, range(max(1, len(self.numa.tikv)))
        named = [host for role, host in self.part.where.others if role == "tikv"]
        return [(host, first + 2 * rank) for host in named for rank in ranks]

    def ensure(self) -> None:
        """Start it unless it runs, deploying it at need; nobody is left without a password."""
        if self.is_up:
            return
        self.control.private_folder(self.role)
        results = {
            "version": self.version,
            "topology_sha256": hashlib.sha256(self.topology.encode()).hexdigest(),
            "locks": self.lab.locks(),
        }
        # These end the cluster, also after our own end.
        end, purge = ([self.binary, "cluster", what, self.name, "--yes"] for what in ("stop", "destroy"))
        self.control.call("at_end", name=self.name, end=end, purge=purge, env=self.env)
        deployed = self._made
        if {key: deployed.get(key) for key in results} != results:
            if deployed:
                self._do("destroy", "--yes")
            self.control.remove(f"{self.role}/loaded.json")
            self.control.write(f"{self.role}/topology.yaml", self.topology)
            words = ["--user", self.tiup.login, "--yes"]
            if (key := self.tiup.identity_file) is not None:
                words += ["--identity_file", key.replace("~", self.env["HOME"], 1)]
            self._do("deploy", self.version, f"{self.control.folder}/{self.role}/topology.yaml", *words)
            self.control.write(f"{self.role}/made.json", json.dumps({**results, "id": uuid.uuid4().hex}))
        self._do("start", "--yes")
        self._await()
        self.child = uuid.uuid4().hex
        try:
            for number in range(len(self.statuses)):
                self._close(number)
                connect = functools.partial(self.connect, number)
                data.admit_clients(connect, self.asked.variables, self.lab.password(), self.peers())
        except BaseException:
            self.stop()
            raise

    def stop(self) -> bool:
        """Stop it, its data kept, and say that it went by itself."""
        if self.child is not None:
            self.child = None
            self._do("stop", "--yes")
        return True

    def running(self) -> str:
        """Id of this start of it; SiteError if a TiDB does not answer."""
        for place, status in zip(self.part.where.places, self.statuses, strict=True):
            if self.child is None or not status.answers:
                raise SiteError(f"TiDB on {place.host}, port {place.port}, does not answer")
        return str(self.child)

    def seen_from(self, machine: OnHost, address: str, port: int) -> bool:
        places = self.part.where.places
        mine = [rank for rank, place in enumerate(places) if (place.address, place.port) == (address, port)]
        connects = [functools.partial(self.connect, rank) for rank in mine or range(len(places))]
        return data.is_seen(connects, machine, address, port)

    def identity(self) -> dict[str, Any]:
        self.running()
        statements = [status.who() for status in self.statuses]
        versions = [{key: values[key] for key in ("version", "git_hash")} for values in statements]
        place = {"host": self.machine.host, "cluster": self.id, "port": self.part.port, **versions[0]}
        return place | {"servers": versions, "pids": self.processes, "config_hash": self.config_hash}

    def facts(self) -> dict[str, Any]:
        """SettingsDiffer if a setting of the study's was not taken."""
        self.running()
        mine = {**self.engine.settings, **self.configs["tidb"]}
        facts = self.read_facts(self.engine.version, PurePath("DATA"), mine, may_lack=True)
        shown = self._shown()
        parts = [{key: item.get(key) for key in ("id", "role", "status")} for item in shown["instances"]]
        cluster = {
            "version": shown["cluster_meta"].get("cluster_version"),
            "topology_sha256": self.config_hash,
            "tiup": self.control.look.facts["tiup"],
            "parts": parts,
            "stored": data.read_stored(self.admin(), self.configs),
        }
        return facts | {"config_hash": self.config_hash, "cluster": cluster}

    def applied(self) -> list[tuple[str, str]]:
        return [("topology.yaml", self.config_text)]

    def beside(self, record: dict[str, Any]) -> contextlib.AbstractContextManager[None]:
        """Record the processor time of TiKV's thread pools."""
        places = [(self.machines[name], port + 1) for name, port in self._stores]
        return record_pools([(there, there.on.target.address, port) for there, port in places], record)

    def log_mark(self) -> list[int]:
        return [self.machines[place.host].size(self._log(place)) or 0 for place in self.part.where.places]

    def log_errors(self, mark: list[int]) -> list[str]:
        errors = []
        for place, at in zip(self.part.where.places, mark, strict=True):
            statement = self.machines[place.host].read(self._log(place), at) or ""
            errors += [line for line in statement.splitlines() if CRASH.search(line)]
        return errors

    def _do(self, what: str, *words: str) -> str:
        argv, wrong = [self.binary, "cluster", what, self.name, *words], f"`tiup cluster {what}` failed"
        return self.control.printed(argv, wrong, self.tiup.wait_s, env=self.env)

    def _shown(self) -> dict[str, Any]:
        """State of it by `tiup`: `cluster_meta`, and `instances` with id, role and status."""
        statement = self._do("display", "--format", "json")
        # It may greet before that.
        display = json.loads(statement[statement.index("{") :]) if "{" in statement else {}
        return {"cluster_meta": {}, "instances": [], **display}

    def _await(self) -> None:
        deadline = time.monotonic() + self.tiup.wait_s
        while True:
            silent = [status for status in self.statuses if not status.answers]
            down = [f"tidb {status.address}:{status.port}: no answer" for status in silent] or [
                f"{item['role']} {item['id']}: {item['status']}"
                for item in self._shown()["instances"]
                if not str(item["status"]).startswith(("Up", "Healthy"))
            ]
            if not down:
                return
            if time.monotonic() > deadline:
                raise SiteError(f"the cluster {self.name} did not get up: {', '.join(down)}")
            time.sleep(LOOK_S)

    def _close(self, number: int) -> None:
        """Give the administrator, whom a new cluster lets in without a password, the lab's."""
        try:
            with self.connect(number, "") as connection, connection.cursor() as cursor:
                cursor.execute(f"ALTER USER '{ADMIN}'@'%%' IDENTIFIED BY %s", (self.lab.admin_password(),))
        except pymysql.err.OperationalError as error:
            if error.args[0] != ER.ACCESS_DENIED_ERROR:
                where = self.part.where.places[number].host
                raise SiteError(f"TiDB on {where} does not answer: {error.args[-1]}") from None

    def _log(self, host_endpoint: HostEndpoint) -> str:
        return f"{self.part.name}/tidb-{host_endpoint.port}/log/tidb.log"
