"""The parts of a TiDB cluster, each one supervised process, and a store that is killed as planned."""

from __future__ import annotations

import abc
import contextlib
import json
import os
import re
import signal
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from benchbook.core.canonical import flat
from benchbook.core.errors import SettingsDiffer, SiteError
from benchbook.core.study_cluster import Event
from benchbook.sites import lab as labs
from benchbook.sites.machine import steps
from benchbook.sites.machine.contract import Request
from benchbook.sites.machine.here import Here
from benchbook.sites.machine.supervised import Supervised
from benchbook.sites.settings import Value, same, text
from benchbook.sites.tidb import config
from benchbook.sites.tidb.status import Placement, Status

CRASH = re.compile(r"\[FATAL\]|^panic: |^fatal error: |^SIG[A-Z]+: |No space left", re.ASCII)
# What a cluster starts from unless the study says otherwise.
PD_DEFAULTS: dict[str, Value] = {
    "log.level": "error",
    # PD leads its own group of one after an election, too: etcd's own 1 s instead of PD's 3 s.
    "tick-interval": "100ms",
    "election-interval": "1s",
    # PD evens out how many regions each store leads; with its own tolerance of 5 few regions are never even,
    # and after an election that is soon over the store that was up first leads most.
    "schedule.tolerant-size-ratio": 1.0,
    # A leader that moves for its load would be one of the reasons to void a run.
    "schedule.hot-region-schedule-limit": 0,
    # PD changes several replicas at once where stores say that they are 5.0, and unistore can't follow.
    "schedule.enable-joint-consensus": False,
    # A region that PD moves off its only store ended unistore with a panic (tocommit is out of range).
    "schedule.region-schedule-limit": 0,
}
# Lines of the settings files that say where a part is.
PLACES = frozenset({"pd-addr", "store-addr", "status-addr", "db-path", "temp-dir", "tmp-storage-path"})
# Stores that are started have no leader until an election times out: after 10 to 20 s of unistore's own 1 s
# ticks, after 2 to 4 s of these. The lease must end before the soonest election.
ELECTION: dict[str, Value] = {
    "raftstore.raft-base-tick-interval": "200ms",
    "raftstore.raft-store-max-leader-lease": "1800ms",
}
STORE_DEFAULTS: dict[str, Value] = {"server.log-level": "error", **ELECTION}


class Member(Supervised, abc.ABC):
    """One part of a cluster: `kind` as the monitor's tables name it, `data` where its data lie."""

    kind = "server"
    config_name = "config.toml"
    crash = CRASH
    stop_s = 60.0
    start_s = 120.0

    def __init__(
        self,
        machine: Here,
        place: labs.Place,
        user: str | None,
        binary: Path,
        data: Path,
        asked: Mapping[str, Value],
    ) -> None:
        super().__init__(machine, place, user)
        self.lab = machine.lab
        self.binary, self.data, self.asked = binary, data, dict(asked)
        self.what = f"{place.name} of the cluster"

    @property
    def at(self) -> str:
        """Where it is reached, as ADDRESS:PORT."""
        return f"{self.place.address}:{self.place.port}"

    @property
    def config_text(self) -> str:
        lines = (self.machine.read(f"{self.role}/{self.config_name}") or "").splitlines()
        return "\n".join(line for line in lines if line.partition("=")[0].strip() not in PLACES)

    def identity(self) -> dict[str, Any]:
        """Return what tells this very process from any other, or that it has ended."""
        if not self.is_up or self.child is None:
            return {"ended": True}
        return self.seen()

    def start(self) -> None:
        """Start it unless it runs, and wait until it answers."""
        steps.walk(self.starting(), self.machine.look_s)

    def starting(self) -> steps.Steps:
        """Start it unless it runs, and yield until it answers."""
        if self.is_up:
            return
        self._must_have_ports(self.place.port, self.place.port + 1)
        self._configure(self._toml())
        yield from self._beginning(self._argv(), self._is_ready_now, self.env)

    @property
    def env(self) -> dict[str, str]:
        """What its program finds in its environment."""
        return {"HOME": str(self.folder), "TMPDIR": str(self.folder)}

    def _toml(self) -> str:
        return config.toml(self.asked)

    @abc.abstractmethod
    def _argv(self) -> list[str]:
        """Return the command line that it is started with."""

    @abc.abstractmethod
    def _is_ready_now(self) -> bool:
        """Say whether it answers, which it is asked until it does; OSError or KeyError until then."""


class PD(Member):
    """The placement driver; its peers' port is the one after its own."""

    kind = "pd"
    own_options = frozenset({"--client-urls", "--peer-urls", "--initial-cluster", "--data-dir"})

    def __init__(self, *given: Any, names: Mapping[str, str]) -> None:
        super().__init__(*given)
        self.placement = Placement(self.place.address, self.place.port, names, self.machine)

    def starting(self) -> steps.Steps:
        """Start it unless it runs, and set what it keeps with its data."""
        yield from super().starting()
        self.placement.set(self.asked)

    def settings(self) -> dict[str, tuple[Value, str | None]]:
        """Return asked and got of every setting."""
        return _read_back(self.asked, self.placement.config())

    def _argv(self) -> list[str]:
        client = f"http://{self.at}"
        peer = f"http://{self.place.address}:{self.place.port + 1}"
        places = [f"--client-urls={client}", f"--peer-urls={peer}", f"--initial-cluster=pd={peer}"]
        return [str(self.binary), f"--config={self.config}", "--name=pd", f"--data-dir={self.data}", *places]

    def _is_ready_now(self) -> bool:
        return self.placement.answers


class Store(Member):
    """A store; its status port is the one after its own."""

    kind = "tikv"
    own_options = frozenset({"-listen", "-peers"})
    # With so short ticks a new store that gets its first snapshot ended by a panic every other time.
    is_joining = False

    def __init__(self, *given: Any, pd: str, peers: Iterable[str]) -> None:
        super().__init__(*given)
        self.pd, self.peers = pd, tuple(peers)

    def settings(self) -> dict[str, tuple[Value, str | None]]:
        return _read_back(self.asked, flat(self._ask("config")))

    def _toml(self) -> str:
        place = f"{self.place.address}:{self.place.port + 1}"
        own = {"pd-addr": self.pd, "store-addr": self.at, "status-addr": place}
        items: dict[str, Value] = {f"server.{key}": value for key, value in own.items()}
        items["server.raft"] = True
        left_out = ELECTION if self.is_joining else {}
        asked = {key: value for key, value in self.asked.items() if key not in left_out}
        return config.toml({**asked, **items, "engine.db-path": str(self.data)})

    def _argv(self) -> list[str]:
        places = [f"-listen={self.at}", f"-peers={','.join(self.peers)}"]
        return [str(self.binary), f"-config={self.config}", *places]

    def _is_ready_now(self) -> bool:
        return bool(self._ask("config"))

    def _ask(self, what: str) -> Any:
        return json.loads(self.machine.request(self.place.address, self.place.port + 1, Request(f"/{what}")))


class Server(Member):
    """A TiDB; its status port is the one after its own, its socket in its own folder."""

    kind = "tidb"
    leftovers = ("t.sock",)
    own_options = frozenset({"-host", "-P", "-advertise-address", "-path", "-status-host", "-status"})

    def __init__(self, *given: Any, pd: str) -> None:
        super().__init__(*given)
        self.pd = pd
        self.status = Status(self.place.address, self.place.port + 1, self.machine)
        self.socket = Path(self.machine.socket(f"{self.role}/t.sock"))

    def private(self) -> list[str]:
        """Return the command line of the first start of all, on which nothing but its socket listens."""
        self._configure(self._toml())
        return [*self._common(), "-P=0", "-report-status=false"]

    def _common(self) -> list[str]:
        storage = ["-store=tikv", f"-path={self.pd}", f"-socket={self.socket}"]
        return [str(self.binary), f"-config={self.config}", *storage]

    def _toml(self) -> str:
        places = {"temp-dir": str(self.folder), "tmp-storage-path": str(self.folder)}
        return config.toml(places | self.asked)

    def _argv(self) -> list[str]:
        address, port = self.place.address, self.place.port
        here = [f"-host={address}", f"-P={port}", f"-advertise-address={address}"]
        return [*self._common(), *here, f"-status-host={address}", f"-status={port + 1}"]

    def _is_ready_now(self) -> bool:
        return self.status.answers and self.socket.exists()


def taken(member: PD | Store) -> dict[str, str | None]:
    """Return what a member took of every setting that was asked of it; SettingsDiffer where it is another."""
    told = member.settings()
    wrong = {
        f"{member.place.name}: {key}": pair
        for key, pair in told.items()
        if pair[1] is None or not same(pair[0], pair[1])
    }
    if wrong:
        raise SettingsDiffer(wrong)
    return {key: got for key, (_, got) in sorted(told.items())}


def _read_back(asked: Mapping[str, Value], told: Mapping[str, Any]) -> dict[str, tuple[Value, str | None]]:
    """Return asked and got of every setting; a store tells all of its own without dashes, PD some."""
    plain = {_plain(key): value for key, value in told.items()}
    return {
        key: (value, text(plain[_plain(key)]) if _plain(key) in plain else None)
        for key, value in asked.items()
    }


def _plain(name: str) -> str:
    return name.replace("-", "").lower()


@contextlib.contextmanager
def event(cluster: Any, asked: Event | None) -> Iterator[dict[str, Any] | None]:
    """Carry an event out while the block runs; the record says when each step was, or what went wrong.

    Moments are on the machine's monotonic clock, in seconds. None where nothing is asked for. A program dies
    with the thread that started it, so the steps are taken in the main thread, when a timer interrupts it.
    """
    if asked is None:
        yield None
        return
    if threading.current_thread() is not threading.main_thread():
        raise SiteError("engine.cluster.event: is carried out in the main thread; make the run there")
    record: dict[str, Any] = {"asked": asked.model_dump(), "error": "the run ended before it"}
    steps = _steps(cluster, asked, record)

    def step(*_: object) -> None:
        try:
            wait_s = next(steps, None)
        except (SiteError, OSError, ValueError, KeyError) as error:
            record["error"], wait_s = f"{type(error).__name__}: {error}", None
        if wait_s is not None:
            signal.setitimer(signal.ITIMER_REAL, wait_s)

    before = signal.signal(signal.SIGALRM, step)
    signal.setitimer(signal.ITIMER_REAL, asked.at_s)
    try:
        yield record
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _steps(cluster: Any, asked: Event, record: dict[str, Any]) -> Iterator[float]:
    """Kill the store that leads most regions, yield how long to wait, and start it again."""
    led = list(cluster.pd.placement.state().leaders.values())
    name = max(cluster.stores, key=led.count)
    store = cluster.stores[name]
    child = store.running()
    record |= {"store": name, "led": led.count(name), "regions": len(led), "pid_before": child.pid}
    os.kill(child.pid, signal.SIGKILL)
    record |= {"killed_s": time.monotonic(), "error": f"the run ended before {name} was started again"}
    yield asked.back_after_s
    record["started_s"] = time.monotonic()
    store.start()
    record |= {"ready_s": time.monotonic(), "pid_after": store.running().pid}
    del record["error"]
