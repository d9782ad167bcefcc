"""A Kubernetes cluster as a site: a namespace of the study's own, servers, proxies and clients in pods."""

import contextlib
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchbook.core.study import client_sharding
from benchbook.core.study.model import Endpoint
from benchbook.core.study.study import StudySpec
from benchbook.core.util.errors import SiteError, require_value
from benchbook.core.util.grouping import group_by
from benchbook.sites import workspace as labs
from benchbook.sites.contract import Site, Start, Taker
from benchbook.sites.hosts import machine
from benchbook.sites.hosts.load_client import RemoteClient
from benchbook.sites.hosts.watch import RemoteWatch
from benchbook.sites.kube import api, evidence, placement, plan_output
from benchbook.sites.kube.external_clients import ExternalClients
from benchbook.sites.kube.namespace import StudyNamespace
from benchbook.sites.kube.placement import KubernetesPlacement, count_inside, count_outside, pod_of
from benchbook.sites.kube.runtime import KubernetesRuntime
from benchbook.sites.machine import data_snapshots, lock
from benchbook.sites.topology import clock
from benchbook.sites.topology.site import ArrangedSite
from benchbook.sites.topology.turns import describe_arm, write_request

READY_S, END_S = 1.5, 10.0


class KubernetesSite(ArrangedSite[KubernetesPlacement]):
    """The arms of one study in a cluster; pods that hold data (`keep_data`) sleep when it is left."""

    runtime: KubernetesRuntime

    def __init__(self, study: StudySpec, lab: Path) -> None:
        super().__init__(study, lab)
        self.chains = placement.build_chains(study)
        # Each client is asked for over the API, and its node's clock is read.
        self.ready_s = READY_S * (1 + max(arm.clients for arm in study.arms.values()))

    def _is_here(self) -> bool:
        # A cluster whose API answers on this machine has a node here.
        return lock.is_local_address(api.KubernetesCluster(placement.get_section(self.study).context).host)

    def _open(self) -> None:
        self.space = StudyNamespace(self.study, self.lab)
        name, is_outside = self.space.here.outside, any(map(count_outside, self.chains.values()))
        self._outside = ExternalClients(self.study, self.lab, name) if name and is_outside else None
        self.runtime = KubernetesRuntime(self.space, self.chains, self._outside)
        self.space.prepare()
        # What a killed owner left: load that goes on, and pods of arms that are no more.
        self.space.sweep()

    def _close(self, error: BaseException | None) -> None:
        # Whoever ends us by a signal waits a few seconds only: then all is asked for, and not waited for.
        is_hurried = isinstance(error, SystemExit) and int(error.code or 0) > 128
        wait_s = 0.0 if is_hurried else 180.0
        try:
            if self.space.here.keep_data:
                self.space.sweep(wait_s)
                self.down()
                print(f"kept asleep in the cluster: namespace {self.space.namespace}; `make down` removes it")
            else:
                self.space.remove(wait_s)
        except SiteError as trouble:
            if error is None:
                raise
            print(f"not all was taken down: {trouble}; run `make down`")
        finally:
            self.space.end()
            if self._outside is not None:
                self._outside.end()

    @classmethod
    def needs(cls, name: str, study: StudySpec) -> str:
        return plan_output.render_plan(name, study)

    @classmethod
    def manifests(cls, name: str, study: StudySpec) -> str:
        return plan_output.render_manifests(name, study)

    @classmethod
    def foreseeable_obstacles(cls, study: StudySpec, arm: str) -> list[str]:
        return list(plan_output.infeasible_reasons(study, placement.build_chains(study)[arm]))

    def obstacles(self, arm: str) -> list[str]:
        return self.runtime.obstacles(self._chain(arm))

    def endpoints(self, arm: str) -> list[Endpoint]:
        chain = self._chain(arm)
        host, port = self.runtime.ensure(chain)
        if count_outside(chain):
            outside = require_value(self._outside)
            outside.must_reach(count_outside(chain), host, port, self.space.here.wait_s)
        others = [address for part in chain.others for address in self.runtime.addresses(part)]
        sockets = [server.socket_path if count_inside(chain) else None for server in self._servers_of(arm)]
        ends = zip([(host, port), *others], sockets, strict=True)
        return self._share_out(arm, [(*place, socket) for place, socket in ends])

    def clock(self, takers: Mapping[str, Taker], requests: Mapping[str, Any]) -> "PodClock":
        """Start it in the pod of all clients, beside the logs that it reads; it lets them begin."""
        return PodClock(self.lab, takers, requests)

    def facts(self, arm: str) -> dict[str, Any]:
        facts, chain = super().facts(arm), self._chain(arm)
        return facts | evidence.describe_arrangement(self.runtime, chain, facts.get("servers", {}))

    def _describe_proxy(self, chain: placement.Chain) -> dict[str, Any] | None:
        return evidence.describe_proxy(self.runtime, chain)

    def applied(self, arm: str) -> list[tuple[str, str]]:
        """Manifests, a file a part, without the contents of Secrets, and the settings of servers."""
        chain = self._chain(arm)
        servers = [self.runtime.get(part) for part in chain.servers]
        files = [pair for server in servers for pair in server.applied()]
        return [*evidence.list_manifests(self.runtime, chain), *files]

    def identity(self, arm: str) -> dict[str, Any]:
        return evidence.collect_identity(self.runtime, self._chain(arm))

    def allowance(self, arm: str) -> float:
        chain = self._chain(arm)
        if count_outside(chain):
            return require_value(self._outside).cores(count_outside(chain))
        limit = (chain.client if chain.clients else chain.server).where.resources.limit_cpu
        if limit:
            return limit * max(1, len(chain.clients))
        cores = self._count_cores(chain)
        return cores - cores // 2 if self.space.here.split_cores and cores > 1 else cores

    def _count_cores(self, chain: placement.Chain) -> float:
        """Cores of the nodes of an arm's clients, together; without pods of theirs those of the server's."""
        pods = [self.runtime.pod(part) for part in chain.clients]
        # A look alone: this is asked within a run, whose books a connection of ours would not be in.
        pods = pods or [*filter(None, [self.space.look(pod_of(chain.server))])]
        nodes = [self.runtime.node(name) for name in {pod.spec.node_name for pod in pods}]
        return sum(float(node.get("cores") or 1) for node in nodes) or 1.0

    def client(self, start: Start) -> RemoteClient:
        """With `begin_at` it begins by the clock of its node, with `held` when the clock of turns lets it."""
        chain = self._chain(start.arm)
        if count_outside(chain):
            return require_value(self._outside).client(start)
        if count_inside(chain):
            server = chain.servers[client_sharding.server_of(start.number, len(chain.servers))]
            return RemoteClient(self.runtime.get(server).machine.on, start)
        pod = self.runtime.pod(chain.clients[start.number])
        cores = self.runtime.cores_of("client", pod.spec.node_name)
        return RemoteClient(self.space.host(pod), start, None if cores is None else tuple(cores))

    def watch(self, arm: str, clients: Sequence[Any], path: Path) -> RemoteWatch:
        return self.runtime.watch(self._chain(arm), clients, path)

    def data_groups(self) -> list[list[str]]:
        """Arms by the data they share: each TiDB cluster has its own; they can't be copied."""
        if self.space.here.tidb is None:
            return super().data_groups()
        return list(group_by(self.chains, lambda arm: self.chains[arm].server).values())

    def has_snapshot(self, label: str | None = None, arm: str | None = None) -> bool:
        # A pod that was lost has lost its copy; a TiDB cluster has its own tables.
        servers = self._servers() if self.space.here.tidb is None else [self._server(arm)]
        return all(data_snapshots.is_kept(server, label) for server in servers)

    def chill(self, arm: str) -> None:
        # A pod's node has a memory of its own for files, which others use too.
        Site.chill(self, arm)

    def look(self) -> None:
        self.runtime.must_be_alive()

    def _servers(self) -> list[Any]:
        """Every server with its present pod, serving or asleep."""
        servers = super()._servers()
        for server in servers:
            if self.space.here.tidb is None:
                server.find()
        return servers


class PodClock:
    """The clock of one group, in the pod of all clients; however it ends, all clients go on thereafter."""

    def __init__(self, lab: labs.Lab, takers: Mapping[str, Taker], requests: Mapping[str, Any]) -> None:
        self.clients: list[RemoteClient] = [job for taker in takers.values() for job in taker.clients]
        host = self.clients[0].host
        if others := {remote_client.host.name for remote_client in self.clients} - {host.name}:
            raise SiteError(f"clients that take turns are in {host.name} and in {', '.join(sorted(others))}")
        offset = machine.measure_offset(host)
        for client in self.clients:
            client.clock = offset
        self.ahead_s, self.stopped = offset.ahead_s, {name: ["client"] for name in takers}
        arms = [
            describe_arm(name, taker, [f"{host.folder}/{job.job}/out" for job in taker.clients])
            for name, taker in takers.items()
        ]
        request, self.result = write_request(lab, **requests, arms=arms, stops={})
        # It is started in a folder of its own, and what is there as `out` is brought back.
        argv = ["python3", "-I", "-S", str(clock.__file__), str(request), "out"]
        self.job = RemoteClient(host, Start(argv, self.result, lab.run / "clock.log"))

    @property
    def exit_code(self) -> int | None:
        return self.job.poll()

    def end(self) -> dict[str, Any]:
        """End the clock if it goes on; returns its record, by our monotonic clock, with its exit code."""
        if self.exit_code is None:
            with contextlib.suppress(SiteError):
                self.job.stop(END_S)
        for client in self.clients:
            with contextlib.suppress(SiteError):
                client.send_signal(signal.SIGCONT)
        record, ahead_us = labs.read_record(self.result), round(self.ahead_s * 1e6)
        if "turns" in record:
            record["turns"] = [(arm, begin - ahead_us, end - ahead_us) for arm, begin, end in record["turns"]]
        for key in {"started", "window"} & record.keys():
            record[key] = [moment - self.ahead_s for moment in record[key]]
        if "discarded" in record:
            record["discarded"] -= self.ahead_s
        return record | {"exit_code": self.exit_code, "stopped": self.stopped}
