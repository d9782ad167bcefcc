"""Components of a study's parts on any kind of site: each made when an arm first needs it."""

import abc
import contextlib
import itertools
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Generic

from benchbook.core.study import client_sharding, descriptors
from benchbook.core.study.study import StudySpec
from benchbook.core.util.errors import require_value
from benchbook.sites import load
from benchbook.sites.machine import concurrent_steps
from benchbook.sites.machine.contract import Machine
from benchbook.sites.machine.supervised_process import Address
from benchbook.sites.proxies.proxy import NOTHING, Proxy
from benchbook.sites.topology import background_load
from benchbook.sites.topology.parts import Chain, ChainPart, Where
from benchbook.sites.workspace import Lab, PartLocation


class ArmRuntime(abc.ABC, Generic[Where]):
    """The components of one lab; `alive` has them by their parts' names, started or not."""

    def __init__(self, study: StudySpec, lab: Lab, chains: Mapping[str, Chain[Where]]) -> None:
        self.study, self.lab, self.chains = study, lab, chains
        self.alive: dict[str, Any] = {}

    def get(self, part: ChainPart[Where]) -> Any:
        """Component of a part, made but not started."""
        if part.name not in self.alive:
            self.alive[part.name] = self._make(part)
        return self.alive[part.name]

    @abc.abstractmethod
    def _make(self, part: ChainPart[Where]) -> Any:
        """New component of a part."""

    @abc.abstractmethod
    def addresses(self, part: ChainPart[Where]) -> list[Address]:
        """Addresses that a part is connected to; a cluster has several."""

    def stop(self) -> None:
        """Stop all parts, those nearest to the client first, and clusters at once."""
        for component in reversed([item for item in self.alive.values() if not item.is_cluster]):
            component.stop()
        concurrent_steps.at_once([item.stop for item in self.alive.values() if item.is_cluster])

    def identity(self, chain: Chain[Where]) -> dict[str, Any]:
        """Marks that tell an arm's parts from any others, with the placement of their processes."""
        identity: dict[str, Any] = {}
        for part in chain.parts:
            component = self.get(part)
            marks = component.identity()
            identity |= {part.name: marks} if part in chain.others else marks
            if (pid := getattr(component.child, "pid", None)) is not None:
                identity[f"{part.name}_place"] = component.machine.place(pid)
        return identity

    def processes(self, chain: Chain[Where]) -> dict[str, dict[str, list[int]]]:
        """Processes of an arm's parts by part and host; a cluster's are the server's too, hops a proxy's."""
        results: dict[str, dict[str, list[int]]] = {}
        for part in chain.parts:
            role = "server" if part.kind == "server" else "proxy"
            component = self.get(part)
            there = [(kind or role, role, by_host) for kind, by_host in component.processes.items()]
            there += [("proxy", "proxy", hop.processes.get("", {})) for hop in component.hops.values()]
            for *names, by_host in there:
                for name, (host, pids) in itertools.product(dict.fromkeys(names), by_host.items()):
                    results.setdefault(name, {}).setdefault(host, []).extend(pids)
        return results

    def families(self, chain: Chain[Where]) -> dict[str, list[int]]:
        """Processes of an arm's parts that leave their work to children, by host."""
        results: dict[str, list[int]] = {}
        for component in filter(lambda component: component.has_children, map(self.get, chain.parts)):
            for host, pids in component.processes.get("", {}).items():
                results.setdefault(host, []).extend(pids)
        return results

    @contextlib.contextmanager
    def run_alongside(self, arm: str) -> Iterator[dict[str, Any]]:
        """Keep up an arm's neighbour, load and capture while the block runs; the record has their results."""
        chain, record, run = self.chains[arm], dict[str, Any](), partial(self._run_beside, arm)
        with contextlib.ExitStack() as stack:
            if (neighbour := chain.arm.neighbour) is not None:
                record["neighbour"] = stack.enter_context(background_load.run_neighbour(neighbour, run))
            if (load := chain.arm.load) is not None:
                to = self.addresses(chain.entry)[0]
                driver = background_load.run_driver(load, to, self.lab, run, self._read_driver)
                record["load"] = stack.enter_context(driver)
            if chain.arm.capture and chain.proxy is not None:
                capture = background_load.capture_traffic(self.get(chain.proxy))
                record["capture"] = stack.enter_context(capture)
            yield record
        record |= self.describe_proxies(chain)

    @abc.abstractmethod
    def _run_beside(self, arm: str, role: str, words: list[str]) -> background_load.Running:
        """Run an arm's neighbour, a command line, or the driver of its load, whose arguments are given."""

    def _read_driver(self, driver: Any) -> str:
        """Output of a driver so far."""
        return background_load.driver_log(self.lab).read_text("utf-8", "replace")

    def describe_proxies(self, chain: Chain[Where]) -> dict[str, bool]:
        """Habits of proxies that are up: one probes an arm's servers, its own pools sessions."""
        proxies = [other.proxy for other in self.chains.values() if other.server in chain.servers]
        up = filter(None, (self.alive.get(proxy.name) for proxy in filter(None, proxies)))
        habits = {
            "pools_sessions": chain.proxy is not None and self.get(chain.proxy).pools_sessions,
            "has_probes": any(proxy.has_probes and proxy.child is not None for proxy in up),
        }
        return {name: True for name, is_so in habits.items() if is_so}

    @property
    def connections(self) -> int:
        """The most connections beside sysbench's in any arm: all proxies are set alike, and bear them."""
        loads = [chain.arm.load for chain in self.chains.values()]
        return max((load.connections for load in loads if load), default=0)

    def _make_proxy(self, part: ChainPart[Where], kind: str, machine: Machine, place: PartLocation) -> Proxy:
        """Proxy before its part's target, and before the arm's other servers if they stand by."""
        name, chain = next((name, chain) for name, chain in self.chains.items() if part in chain.hops)
        has_standby = client_sharding.has_standby(chain.arm.setting)
        targets = [require_value(part.to), *(chain.others if has_standby else ())]
        servers = [f"{host}:{port}" for target in targets for host, port in self.addresses(target)]
        made = load(require_value(descriptors.find_intermediary(kind)).code)
        proxy: Proxy = made(machine, place, servers, chain.arm.proxy or NOTHING, name)
        proxy.has_standby = has_standby
        return proxy
