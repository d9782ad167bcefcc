"""The parts of a TiDB cluster, each one supervised process, and a store that is killed as planned."""

import abc
import json
import os
import re
import signal
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any

from benchbook.core.study.study_cluster import Event
from benchbook.core.util.errors import SettingsDiffer
from benchbook.core.util.numeric_equality import flatten_mapping
from benchbook.sites import workspace as labs
from benchbook.sites.machine import concurrent_steps
from benchbook.sites.machine.contract import Request
from benchbook.sites.machine.supervised_process import Supervised
from benchbook.sites.settings import Value, format_value, not_taken
from benchbook.sites.tidb import config
from benchbook.sites.tidb.status import PlacementDriver, Status

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
        self, cluster: Any, name: str, place: labs.PartLocation, requests: Mapping[str, Value]
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
    messages = {_plain_name(key): format_value(value) for key, value in member.read_config().items()}
    got = {key: messages.get(_plain_name(key)) for key in sorted(member.asked)}
    if wrong := not_taken(member.asked, got.get):
        raise SettingsDiffer({f"{member.role}: {key}": pair for key, pair in wrong.items()})
    return got


def _plain_name(name: str) -> str:
    return name.replace("-", "").lower()


def kill_store(cluster: Any, event: Event, record: dict[str, Any]) -> Iterator[float]:
    """Kill the store that leads most regions, yield the seconds to wait, and start it again."""
    led = list(cluster.pd.placement.state().leaders.values())
    name = max(cluster.stores, key=led.count)
    store = cluster.stores[name]
    child = store.running()
    record |= {"store": name, "led": led.count(name), "regions": len(led), "pid_before": child.pid}
    os.kill(child.pid, signal.SIGKILL)
    record["killed_s"] = time.monotonic()
    yield event.back_after_s
    record["started_s"] = time.monotonic()
    concurrent_steps.run_steps(store.starting(), store.machine.look_s)
    record |= {"ready_s": time.monotonic(), "pid_after": store.running().pid}
