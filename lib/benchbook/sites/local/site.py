"""This machine as a site: real servers and proxies, arranged as each arm asks, ended with their owner."""

import os
import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchbook.core.study import client_sharding, descriptors
from benchbook.core.study.engines import engine_of
from benchbook.core.study.model import Endpoint
from benchbook.core.study.study import StudySpec
from benchbook.core.util.errors import SiteError
from benchbook.sites import workspace as labs
from benchbook.sites.agent import microbenchmarks
from benchbook.sites.contract import Start, Taker
from benchbook.sites.local import obstacles, placement, runtime
from benchbook.sites.local.placement import LabPlacement
from benchbook.sites.local.runtime import LocalRuntime
from benchbook.sites.machine import data_snapshots, local_machine
from benchbook.sites.machine import facts as machine
from benchbook.sites.processes import process, procfs
from benchbook.sites.processes.spawn import ProcessPlacement
from benchbook.sites.topology import background_load, turns
from benchbook.sites.topology.site import ArrangedSite

PINGS = 21


class LocalSite(ArrangedSite[LabPlacement]):
    """The arms of one study on this machine; `cpus`: cores of server, proxy, client by default."""

    runtime: LocalRuntime

    def __init__(self, study: StudySpec, lab: Path) -> None:
        super().__init__(study, lab)
        self.cpus = placement.split_cpus(study.site.cpus, sorted(os.sched_getaffinity(0)))
        self._arms = dict(study.arms)
        self.chains = self._laid_out()

    def _open(self) -> None:
        self._looked = time.time()
        self.runtime = LocalRuntime(self.study, self.lab, self.chains)
        if runtime.list_leftovers(self.lab.token, self.lab.run):
            self.runtime.clear()
        me = process.identify_child("owner", os.getpid(), self.lab.token)
        process.write_pidfile(self.lab.pidfile("owner"), me)

    def _close(self, error: BaseException | None) -> None:
        try:
            self.down()
            if runtime.list_leftovers(self.lab.token, self.lab.run):
                self.runtime.clear()
        finally:
            self.lab.pidfile("owner").unlink(missing_ok=True)

    def change_places(self, block: int) -> None:
        """Effects of a place on a server, such as its data's spot on a disk, then meet each arm alike."""
        if len({chain.server for chain in self.chains.values()}) < 2 or not self.runtime.is_empty:
            return
        engines = [engine_of(self.study, arm) for arm in self.study.arms]
        # Arms of different engines stay where they are.
        if len({(engine.name, engine.version, engine.binary) for engine in engines}) == 1:
            self.chains = self._laid_out(block - 1)
            self.runtime.forget(self.chains, self._laid_out())

    def add_twin(self, name: str, arm: str) -> None:
        """Its data are the same prepared copy."""
        if name not in self._arms and self.runtime.is_empty:
            self._arms[name] = self.study.arms[arm]
            self.chains = self._laid_out()
            self.runtime.forget(self.chains, self.chains)

    @classmethod
    def foreseeable_obstacles(cls, study: StudySpec, arm: str) -> list[str]:
        """All obstacles: this machine needs no asking."""
        return cls(study, Path()).obstacles(arm)

    def obstacles(self, arm: str) -> list[str]:
        engine = engine_of(self.study, arm)
        return obstacles.infeasible_reasons(self.study.arms[arm], self._chain(arm), engine)

    def endpoints(self, arm: str) -> list[Endpoint]:
        chain, engine = self._chain(arm), engine_of(self.study, self.study.deployed(arm))
        if engine.cluster is not None and not self.runtime.get(chain.server).is_up:
            # Each waits as long alone, and none is to be loaded while fewer are up than for the others.
            data_snapshots.start_servers(self._servers())
        self.runtime.ensure(chain)
        others = () if client_sharding.has_standby(chain.arm.setting) else chain.others
        ends = [(self.runtime.address(part), self.runtime.get(part)) for part in (chain.entry, *others)]
        places = [(*at, part.socket_path if chain.by_socket else None) for at, part in ends]
        return self._share_out(arm, places)

    def clock(self, takers: Mapping[str, Taker], requests: Mapping[str, Any]) -> turns.ClockProcess:
        parts = {name: self.monitored(taker.arm) for name, taker in takers.items()}
        cpus = self._chain(next(iter(takers.values())).arm).client.cpus
        families = sorted({pid for taker in takers.values() for pid in self._families(taker.arm)})
        beside = {
            name: {background_load.NEIGHBOUR: [pid]}
            for name, taker in takers.items()
            if (pid := background_load.find_pid(self.lab, runtime.name_neighbour(taker.arm))) is not None
        }
        cores = {min(room) for role in ("server", "client") if (room := self.cpus.get(role))}
        more = {**requests, "families": families, "cores": sorted(cores) or [min(os.sched_getaffinity(0))]}
        return turns.ClockProcess(self.lab, takers, parts, more, ProcessPlacement(cpus=cpus), beside)

    def machines(self) -> dict[str, Any]:
        return {"probes": microbenchmarks.measure_here(self.lab.folder)}

    def facts(self, arm: str) -> dict[str, Any]:
        """Also of its hops, arrangement, machine and moment, by observation."""
        chain, parts, site = self._chain(arm), self.runtime, self.study.site
        facts = super().facts(arm)
        relay, service = chain.hop("relay"), chain.hop("service")
        made_by, far = "netem on both ends of the pod's cable", chain.server.where.latency_ms
        cable = None if far is None else {"latency_ms": far, "made_by": made_by}
        facts |= {
            "site": {"kind": "local", "port": site.port, "cpus": dict(self.cpus), "priority": site.priority},
            "service": parts.get(service).facts() if service is not None else None,
            "zones": parts.get(relay).facts() if relay is not None else cable,
            **chain.arm.model_dump(include={"qos", "neighbour"}),
            "cpu": {role: self._describe_cpu(part) for role, part in chain.by_role.items()},
            "kernel": _check_kernel(parts, chain.server) if chain.server.kernel is not None else None,
            "machine": machine.collect_facts(),
            "moment": machine.read_moment(self.lab.folder),
        }
        if relay is not None:
            ends = {"through the hop": relay, "beside it": chain.server}
            facts["moment"]["ping_ms"] = {name: _measure_ping(parts, part) for name, part in ends.items()}
        if cluster := parts.get(chain.server).moment():
            facts["moment"]["cluster"] = cluster
        host, port = parts.address(chain.entry)
        facts["moment"]["endpoint"] = "the server's socket" if chain.by_socket else f"{host}:{port}"
        return facts

    def _describe_cpu(self, part: placement.Part) -> dict[str, Any]:
        """Cores of a part, None if all, and the limits of its group if it has one."""
        group = self.runtime.group(part)
        cores = {"cores": list(part.cpus) if part.cpus else None}
        return cores | (group.in_force() if group is not None else {})

    def monitored(self, arm: str) -> dict[str, list[int]]:
        """Processes with the CPU and memory of an arm, by part; a delaying hop is a proxy."""
        by_part = self.runtime.processes(self._chain(arm))
        return {name: pids for name, by_host in by_part.items() for pids in by_host.values()}

    def _families(self, arm: str) -> list[int]:
        return [pid for pids in self.runtime.families(self._chain(arm)).values() for pid in pids]

    def allowance(self, arm: str) -> float:
        client = self._chain(arm).client
        cores = float(len(client.cpus or os.sched_getaffinity(0)))
        return cores if client.where.quota is None else min(cores, client.where.quota)

    def client(self, start: Start) -> process.Child:
        where = self.runtime.where(self._chain(start.arm).client)
        return background_load.start_client(self.lab, start, where)

    def watch(self, arm: str, clients: Sequence[process.Child], path: Path) -> local_machine.Monitor:
        driver, pids = background_load.find_pid(self.lab), [child.pid for child in clients]
        watched = {"client": pids, **self.monitored(arm)} | ({"driver": [driver]} if driver else {})
        hops, families = self.runtime.hops(self._chain(arm)), self._families(arm)
        return local_machine.Monitor(watched, path, *pids, hops=hops, families=families)

    def look(self) -> None:
        now = time.time()
        parts = self.runtime.alive.values()
        programs = [item for part in parts for item in (*part.members, *part.hops.values())]
        dead = [program for program in programs if program.child is not None and not program.child.is_alive]
        if dead:
            message = "; ".join(f"{item.role}{_describe_exit(item.child)}, see {item.log}" for item in dead)
            raise SiteError(
                f"ended by itself between {_format_clock(self._looked)} and {_format_clock(now)} UTC: "
                f"{message}; the same command makes again what is missing"
            )
        self._looked = now

    def _laid_out(self, first: int = 0) -> dict[str, placement.Chain]:
        twins = self._arms.keys() - self.study.arms.keys()
        has_netem, port = obstacles.has_netem(self.study.arms), self.study.site.port
        engines = {arm: engine_of(self.study, self.study.deployed(arm)) for arm in self._arms}
        ports = {arm: (of.cluster or descriptors.find_engine(of.name)).ports for arm, of in engines.items()}
        return placement.build_chains(self._arms, port, self.cpus, has_netem, first, ports, twins)


def _describe_exit(child: process.Child) -> str:
    code = child.popen.returncode if child.popen is not None else None
    if code is None:
        return ""
    return f" (by signal {-code})" if code < 0 else f" (exit code {code})"


def _format_clock(moment: float) -> str:
    return time.strftime("%H:%M:%S", time.gmtime(moment))


def _check_kernel(parts: LocalRuntime, server: placement.Part) -> dict[str, int]:
    """Present kernel settings made for a server, with the number of open files it may have."""
    kernel = dict(parts.kernel.get(server.name, {}))
    if server.kernel is not None and server.kernel.nofile is not None:
        pid = parts.get(server).child.pid
        allowed = procfs.open_files_limit(pid)
        if allowed != server.kernel.nofile:
            fault = f"kernel.nofile: asked {server.kernel.nofile}, the server may open {allowed} files"
            raise SiteError(f"{fault}; write a value it can hold")
        kernel["nofile"] = allowed
    return kernel


def _measure_ping(parts: LocalRuntime, part: placement.Part) -> float:
    """Median time of an empty command there and back, in milliseconds; costs one connection."""
    account: dict[str, Any] = {"user": labs.USER, "password": parts.lab.password(), "database": labs.SCHEMA}
    taken = []
    with parts.machine.connect(parts.address(part), read_timeout=30, **account) as connection:
        for _ in range(PINGS):
            begun = time.perf_counter()
            connection.ping(reconnect=False)
            taken.append(1000 * (time.perf_counter() - begun))
    return round(statistics.median(taken), 4)
