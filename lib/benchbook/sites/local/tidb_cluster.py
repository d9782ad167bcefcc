"""A TiDB cluster on this machine: PD, stores that replicate by Raft, and TiDB, each a program of its own.

The store is unistore, which its makers call a research program: it speaks TiKV's protocol to PD and TiDB and
keeps its data in badger, so it shows what replication, distance and several TiDB do, not how fast TiKV is.
"""

import abc
import contextlib
import json
import os
import re
import signal
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePath
from typing import Any

import pymysql

from benchbook.core.study.study_cluster import Cluster as Asked
from benchbook.core.study.study_cluster import Event
from benchbook.core.util import files
from benchbook.core.util.errors import SettingsDiffer, SiteError, require_value
from benchbook.core.util.numeric_equality import flatten_mapping
from benchbook.sites import settings
from benchbook.sites import workspace as labs
from benchbook.sites.local.network import ClusterZones, DelayRelay
from benchbook.sites.machine import concurrent_steps, data_snapshots
from benchbook.sites.machine.contract import Request
from benchbook.sites.machine.local_machine import LocalMachine
from benchbook.sites.machine.supervised_process import Supervised
from benchbook.sites.settings import Value, format_value, not_taken
from benchbook.sites.tidb import build, config, data, status
from benchbook.sites.tidb.cluster import TidbServers
from benchbook.sites.tidb.status import PlacementDriver, Status

STORAGE = "unistore, not TiKV: {stores} stores, each row on {replicas}, replicated by Raft"
READY_S, SETTLE_S, LOOK_S = 240.0, 60.0, 0.1
# PD begins to move leaders some seconds after the last region has told of itself.
QUIET_S, STILL_S = 3.0, 0.3
# PD moves a leader where two stores differ by more, and is waited for so long to have done it.
EVEN, EVEN_S = 2, 30.0
TRIES = 4
CRASH = re.compile(r"\[FATAL\]|^panic: |^fatal error: |^SIG[A-Z]+: |No space left", re.ASCII)
# Lines of the settings files that say where a part is.
PLACES = frozenset({"pd-addr", "store-addr", "status-addr", "db-path", "temp-dir", "tmp-storage-path"})
# The short times of a store, after which the others elect another leader of its regions (`defaults.yaml`).
ELECTION = ("raftstore.raft-base-tick-interval", "raftstore.raft-store-max-leader-lease")


class ClusterMember(Supervised, abc.ABC):
    """One part of a `UnistoreCluster`: `kind` as the monitor's tables name it, `name` as the cluster does."""

    kind: str
    program: str
    config_name = "config.toml"
    crash = CRASH
    stop_s, start_s = 60.0, 120.0

    def __init__(
        self, cluster: "UnistoreCluster", name: str, place: labs.PartLocation, requests: Mapping[str, Value]
    ) -> None:
        super().__init__(cluster.machine, replace(place, name=f"{cluster.role}-{name}"), cluster.user)
        self.cluster, self.name, self.asked = cluster, name, requests
        self.binary = cluster.programs[self.program]
        self.what, self.at = f"{self.role} of the cluster", f"{place.address}:{place.port}"
        self.env = {"HOME": str(self.folder), "TMPDIR": str(self.folder)}

    @property
    def data(self) -> PurePath:
        return self.cluster.folder / self.cluster.lies_in / self.name

    @property
    def config_text(self) -> str:
        lines = (self.machine.read(f"{self.role}/{self.config_name}") or "").splitlines()
        return "\n".join(line for line in lines if line.partition("=")[0].strip() not in PLACES)

    def identity(self) -> dict[str, Any]:
        """Marks that tell this very process from any other, or that it has ended."""
        if not self.is_up or self.child is None:
            return {"ended": True}
        return self.seen()

    def starting(self) -> concurrent_steps.Steps:
        """Start it unless it runs, and yield until it answers."""
        if self.is_up:
            return
        self._must_have_ports(self.place.port, self.place.port + 1)
        self._configure(self._toml())
        yield from self._start_in_steps(self._argv(), self._is_ready_now, self.env)

    def _toml(self) -> str:
        return config.render_toml(self.asked)

    @abc.abstractmethod
    def _argv(self) -> list[str]:
        """Command line that it is started with."""

    @abc.abstractmethod
    def _is_ready_now(self) -> bool:
        """True if it answers, asked again until it does; OSError or KeyError until then."""


class PD(ClusterMember):
    """The placement driver; its peers' port is the one after its own."""

    kind, program = "pd", "pd-server"
    own_options = frozenset({"--client-urls", "--peer-urls", "--initial-cluster", "--data-dir"})

    @property
    def placement(self) -> PlacementDriver:
        names = {store.at: store.name for store in self.cluster.stores.values()}
        return PlacementDriver(self.place.address, self.place.port, names, self.machine)

    def starting(self) -> concurrent_steps.Steps:
        """Start it unless it runs, and set those settings that it keeps with its data."""
        yield from super().starting()
        self.placement.set(self.asked)

    def read_config(self) -> dict[str, Any]:
        return self.placement.config()

    def _argv(self) -> list[str]:
        client = f"http://{self.at}"
        peer = f"http://{self.place.address}:{self.place.port + 1}"
        places = [f"--client-urls={client}", f"--peer-urls={peer}", f"--initial-cluster=pd={peer}"]
        return [str(self.binary), f"--config={self.config}", "--name=pd", f"--data-dir={self.data}", *places]

    def _is_ready_now(self) -> bool:
        return self.placement.answers


class Store(ClusterMember):
    """A store; its status port is the one after its own."""

    kind, program = "tikv", "unistore-server"
    own_options = frozenset({"-listen", "-peers"})

    def read_config(self) -> dict[str, Any]:
        text = self.machine.request(self.place.address, self.place.port + 1, Request("/config"))
        return flatten_mapping(json.loads(text))

    def _toml(self) -> str:
        place = f"{self.place.address}:{self.place.port + 1}"
        addresses = {"pd-addr": self.cluster.pd.at, "store-addr": self.at, "status-addr": place}
        items: dict[str, Value] = {f"server.{key}": value for key, value in addresses.items()}
        items["server.raft"] = True
        # With so short ticks a new store that gets its first snapshot ended by a panic every other time.
        left_out = ELECTION if self.cluster.lies_in == "new" else ()
        requests = {key: value for key, value in self.asked.items() if key not in left_out}
        return config.render_toml({**requests, **items, "engine.db-path": str(self.data)})

    def _argv(self) -> list[str]:
        peers = ",".join(store.at for store in self.cluster.stores.values())
        return [str(self.binary), f"-config={self.config}", f"-listen={self.at}", f"-peers={peers}"]

    def _is_ready_now(self) -> bool:
        return bool(self.read_config())


class TidbMember(ClusterMember):
    """A TiDB; its status port is the one after its own, its socket in its own folder."""

    kind, program = "tidb", "tidb-server"
    leftovers = ("t.sock",)
    own_options = frozenset({"-host", "-P", "-advertise-address", "-path", "-status-host", "-status"})

    @property
    def status(self) -> Status:
        return Status(self.place.address, self.place.port + 1, self.machine)

    @property
    def socket(self) -> Path:
        return Path(self.machine.socket(f"{self.role}/t.sock"))

    def private(self) -> list[str]:
        """Command line of the first start of all: nothing but its socket listens then."""
        self._configure(self._toml())
        return [*self._common(), "-P=0", "-report-status=false"]

    def _common(self) -> list[str]:
        storage = ["-store=tikv", f"-path={self.cluster.pd.at}", f"-socket={self.socket}"]
        return [str(self.binary), f"-config={self.config}", *storage]

    def _toml(self) -> str:
        places = {"temp-dir": str(self.folder), "tmp-storage-path": str(self.folder)}
        return config.render_toml({**places, **self.asked})

    def _argv(self) -> list[str]:
        address, port = self.place.address, self.place.port
        here = [f"-host={address}", f"-P={port}", f"-advertise-address={address}"]
        return [*self._common(), *here, f"-status-host={address}", f"-status={port + 1}"]

    def _is_ready_now(self) -> bool:
        return self.status.answers and self.socket.exists()


def verify_settings(member: PD | Store) -> dict[str, str | None]:
    """A member's values of all settings asked of it; SettingsDiffer if one is another."""
    messages = {
        key.replace("-", "").lower(): format_value(value) for key, value in member.read_config().items()
    }
    got = {key: messages.get(key.replace("-", "").lower()) for key in sorted(member.asked)}
    if wrong := not_taken(member.asked, got.get):
        raise SettingsDiffer({f"{member.role}: {key}": pair for key, pair in wrong.items()})
    return got


class UnistoreCluster(TidbServers):
    """The parts of one cluster at ports from a place on; programs that are missing are built now."""

    is_cluster = True
    opened: int = 0
    hops: dict[str, DelayRelay]
    # Each store sets 512 MiB of logs aside, and a small study fills a few of them.
    is_sparse = True

    def __init__(
        self, machine: LocalMachine, engine: Any, place: labs.PartLocation, zones: ClusterZones | None = None
    ) -> None:
        lab = machine.lab
        self.machine, self.lab, self.engine, self.place = machine, lab, engine, place
        self.size: Asked = require_value(engine.cluster)
        self.programs = build.build_cluster(lab, engine.version)
        self.version = build.said_version(self.programs["tidb-server"])
        self.asked = config.complete_settings(engine.settings, self.version)
        self.user = data.choose_user(machine)
        self.role, self.folder = place.name, lab.private_folder(place.name, self.user)
        self.log = lab.run / f"{place.name}-tidb-1.log"
        self.lies_in, self.zones, self.hops = "data", zones, {}
        self._make()

    @staticmethod
    def obstacle(engine: Any) -> str | None:
        """Reason against such a cluster on this machine, or None; nothing is built for the answer."""
        return build.cluster_obstacle(engine.version)

    @staticmethod
    def misspelt(engine: Any) -> dict[str, str]:
        """Nothing: no program of it lists its settings."""
        return {}

    def _make(self) -> None:
        size, place, port = self.size, self.place, self.place.port
        pd_port = port + 2 * size.tidb
        zones = [self.zones.place(place, rank) if self.zones else place for rank in range(size.stores)]

        def at(zone: int, number: int) -> labs.PartLocation:
            return replace(zones[zone % size.stores], port=number)

        copies = {"replication.max-replicas": size.replicas}
        pd_asked = settings.complete_settings(size.pd_settings, "pd") | copies
        self.pd = PD(self, "pd", at(0, pd_port), pd_asked)
        store_asked = settings.complete_settings(size.store_settings, "unistore")
        self.stores: dict[str, Store] = {}
        for rank in range(size.stores):
            name, at_store = f"store-{rank + 1}", at(rank, pd_port + 2 * (rank + 1))
            self.stores[name] = Store(self, name, at_store, store_asked)
        self.servers = [
            TidbMember(self, f"tidb-{rank + 1}", at(rank, port + 2 * rank), self.asked.items)
            for rank in range(size.tidb)
        ]
        self.statuses = [server.status for server in self.servers]
        self.storage = STORAGE.format(stores=size.stores, replicas=size.replicas)
        if self.zones is not None:
            members = [(0, self.pd), *enumerate(self.stores.values())]
            for number, (zone, member) in enumerate(members):
                self.hops[member.name] = self.zones.hop(member, zone, number)

    @property
    def members(self) -> list[ClusterMember]:
        return [self.pd, *self.stores.values(), *self.servers]

    @property
    def child(self) -> Any:
        """The process of the first TiDB, or None."""
        return self.servers[0].child

    @property
    def is_up(self) -> bool:
        return all(member.is_up for member in (*self.members, *self.hops.values()))

    @property
    def addresses(self) -> list[tuple[str, int]]:
        return [(server.place.address, server.place.port) for server in self.servers]

    def addresses_at(self, port: int, rank: int) -> list[tuple[str, int]]:
        zones = replace(self.zones, rank=rank) if self.zones is not None else None
        return [
            (zones.address(number % self.size.stores) if zones else self.place.address, port + 2 * number)
            for number in range(self.size.tidb)
        ]

    @property
    def below(self) -> dict[str, list[tuple[str, int]]]:
        """Addresses of stores (`tikv`) and PD."""
        stores = [(store.place.address, store.place.port) for store in self.stores.values()]
        return {"tikv": stores, "pd": [(self.pd.place.address, self.pd.place.port)]}

    @property
    def processes(self) -> dict[str, dict[str, list[int]]]:
        results: dict[str, dict[str, list[int]]] = {}
        for member in filter(lambda member: member.is_up, self.members):
            results.setdefault(member.kind, {"": []})[""].append(member.child.pid)
        return results

    @property
    def made_with(self) -> dict[str, Any]:
        variables = {key: format_value(value) for key, value in self.asked.variables.items()}
        results: dict[str, Any] = {"engine": "tidb-cluster", "version": self.version, "settings": variables}
        results |= {"stores": self.size.stores, "replicas": self.size.replicas, "own_hosts": self._own_hosts}
        return results | {"store": self.size.store_settings, "locks": self.lab.locks()}

    def ensure(self) -> None:
        """Start the parts that don't run, in their order, making data at need; wait until it is whole."""
        concurrent_steps.run_steps(self.starting(), LOOK_S)

    def starting(self) -> concurrent_steps.Steps:
        """Start as `ensure` does, and yield while a part comes up or leaders move."""
        if self.is_up:
            return
        self.stop()
        yield from data_snapshots.create_stepwise(self)
        try:
            with data_snapshots.first_start(self):
                hops = (hop.starting() for hop in self.hops.values())
                yield from concurrent_steps.interleave_steps(self.pd.starting(), *hops)
                stores = (store.starting() for store in self.stores.values())
                yield from concurrent_steps.interleave_steps(*stores)
                # TiDB would wait for leaders as well, and say less of why.
                yield from self._resting(READY_S, 0.0)
                served = concurrent_steps.interleave_steps(*(tidb.starting() for tidb in self.servers))
                yield from concurrent_steps.interleave_steps(served, self._resting(READY_S, QUIET_S, EVEN_S))
                # Each port is proven to be of the TiDB that was started for it.
                requests, password = self.asked.variables, self.lab.password()
                data.admit_clients(self.connect, requests, password, self.place.peers())
                for number, server in enumerate(self.servers):
                    with self.connect(number) as connection, connection.cursor() as cursor:
                        cursor.execute("FLUSH PRIVILEGES")
                    data.verify_identity(server, partial(self.connect, number), self.pd.at)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> bool:
        """End all parts, TiDB first and PD last; True if all went by themselves."""
        went: list[bool] = []
        for parts in (self.servers, self.stores.values(), (self.pd, *self.hops.values())):
            went += concurrent_steps.at_once([part.stop for part in parts])
        return all(went)

    def disturb(self, event: Event, record: dict[str, Any]) -> Iterator[float]:
        """Kill the store that leads most regions, yield the seconds to wait, and start it again."""
        led = list(self.pd.placement.state().leaders.values())
        name = max(self.stores, key=led.count)
        store = self.stores[name]
        child = store.running()
        record |= {"store": name, "led": led.count(name), "regions": len(led), "pid_before": child.pid}
        os.kill(child.pid, signal.SIGKILL)
        record["killed_s"] = time.monotonic()
        yield event.back_after_s
        record["started_s"] = time.monotonic()
        concurrent_steps.run_steps(store.starting(), store.machine.look_s)
        record |= {"ready_s": time.monotonic(), "pid_after": store.running().pid}

    def running(self) -> Any:
        """Process of the first TiDB; SiteError if a part has ended."""
        for member in self.members:
            member.running()
        return self.child

    def identity(self) -> dict[str, Any]:
        child = self.servers[0].running()
        results: dict[str, Any] = {"pid": child.pid, "started": child.started, "port": self.place.port}
        # What goes with a part's place, such as its cores, is that of its cluster's first TiDB.
        parts = {member.name: member.identity() for member in self.members}
        hops = {f"hop-{name}": hop.identity() for name, hop in self.hops.items()}
        return results | {"cluster": parts | hops}

    def applied(self) -> list[tuple[str, str]]:
        """Settings files and command lines of its parts, each named for its part, as (name, text)."""
        texts = ((part.name, *pair) for part in self.members for pair in part.applied())
        return [(f"{part}{PurePath(name).suffix}", text) for part, name, text in texts]

    def facts(self) -> dict[str, Any]:
        self.running()
        size = self.size
        return self.read_facts(self.version, self.folder, self.engine.settings) | {
            "config_hash": self.servers[0].config_hash,
            "started_with": self.servers[0].started_with,
            "programs": {
                name: {"sha256": files.digest_file(path), **build.read_build(path)}
                for name, path in self.programs.items()
            },
            "cluster": {
                "pd": size.pd,
                "stores": size.stores,
                "tidb": size.tidb,
                "replicas": size.replicas,
                **({"event": size.event.model_dump()} if size.event is not None else {}),
                **({"zones": self.zones.facts([*self.stores], size.tidb)} if self.zones is not None else {}),
                "pd_settings": verify_settings(self.pd),
                "store_settings": [verify_settings(store) for store in self.stores.values()].pop(),
            },
        }

    def moment(self) -> dict[str, Any]:
        """Number of regions, also by number of stores, and the leaders of each store."""
        state = self.pd.placement.state()
        led = list(state.leaders.values())
        leaders = {name: led.count(name) for name in self.stores}
        return {"regions": len(led), "leaders": leaders, "regions_by_replicas": state.replicas}

    def look(self) -> dict[str, Any]:
        """State of stores and leaders now; `ended` are the parts with an ended process."""
        ended = [member.name for member in self.members if not member.is_up]
        ended += [f"hop-{name}" for name, hop in self.hops.items() if not hop.is_up]
        return self.pd.placement.look(ended)

    @contextlib.contextmanager
    def beside(self, record: dict[str, Any]) -> Iterator[None]:
        """Look at stores and leaders before and after."""
        with contextlib.suppress(SiteError):
            concurrent_steps.run_steps(self._resting(SETTLE_S, STILL_S), LOOK_S)
        record["cluster"] = {"before": self.look()}
        yield
        record["cluster"]["after"] = self.look()

    def log_mark(self) -> dict[str, int]:
        return {member.role: member.log_mark() for member in self.members}

    def log_errors(self, mark: dict[str, int]) -> list[str]:
        """Lines since a place that tell of a crash, each with the part that wrote it."""
        return [f"{part.name}: {line}" for part in self.members for line in part.log_errors(mark[part.role])]

    @property
    def _own_hosts(self) -> list[str]:
        """Apparent hosts of the administrator's sessions over a socket, in any place of the cluster."""
        if self.zones is None:
            return ["localhost"]
        used = {rank % self.size.stores for rank in range(self.size.tidb)}
        return ["localhost", *(address for zone in sorted(used) for address in self.zones.addresses(zone))]

    def creating(self) -> concurrent_steps.Steps:
        """Make new data, again (a few times) if a store ends by itself; yield while parts come up."""
        for tries_left in reversed(range(TRIES)):
            try:
                self.lies_in = "new"
                self.machine.remove(f"{self.role}/new")
                for member in (self.pd, *self.stores.values()):
                    for name in ("new", f"new/{member.name}"):
                        self.machine.private_folder(f"{self.role}/{name}", self.user)
                try:
                    # One after another: a store that joins asks PD for what the ones before it have made.
                    for hop in self.hops.values():
                        yield from hop.starting()
                    for member in (self.pd, *self.stores.values()):
                        yield from member.starting()
                    yield from self._resting(READY_S, QUIET_S)
                    first = self.servers[0]
                    data.first_start(first, first.private(), data.SOCKET, self._own_hosts)
                finally:
                    self.stop()
                    self.lies_in = "data"
                return
            except SiteError as error:
                # unistore may panic while a new store gets its first snapshots ("tocommit is out of range").
                if not tries_left or "does not run" not in str(error):
                    raise
                ended = f"{self.role}: a new cluster's store ended by itself"
                print(f"{ended}; making its data again", flush=True)

    def _resting(self, wait_s: float, still_s: float, even_s: float = 0.0) -> concurrent_steps.Steps:
        """Wait until nothing is missing and leaders rest, uneven if PD can't even them out in time."""
        begun, observations, since = time.monotonic(), None, 0.0
        while True:
            for member in (self.pd, *self.stores.values()):
                member.running()
            state, now = self.pd.placement.state(), time.monotonic()
            missing = status.find_faults(state, self.size.stores, self.size.replicas)
            led = list(state.leaders.values())
            counts = [led.count(name) for name in self.stores]
            # Where each region is on all stores, PD evens out whom they lead.
            is_uneven = self.size.replicas == self.size.stores and max(counts) - min(counts) > EVEN
            is_uneven &= now - begun < even_s
            if missing or is_uneven or state.leaders != observations:
                observations, since = state.leaders, now
            if not (missing or is_uneven) and now - since >= still_s:
                return
            if now - begun > wait_s:
                why = f"{'; '.join(missing) or 'leaders still move'}; see {self.pd.log}"
                raise SiteError(f"the cluster was not at rest within {wait_s:.0f} s: {why}")
            yield

    def connect(self, number: int = 0, password: str | None = None) -> pymysql.Connection:
        self.opened += 1
        return data.connect_admin(self.servers[number], password=password)
