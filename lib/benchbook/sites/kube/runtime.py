"""The parts of a study in a cluster while they run: each made when an arm first needs it."""

import contextlib
import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kubernetes import client

from benchbook.core.study.study_kubernetes import operator_versions
from benchbook.core.util.errors import SiteError, require_value
from benchbook.sites.hosts.host import Host
from benchbook.sites.hosts.load_client import RemoteClient, run_alongside
from benchbook.sites.hosts.watch import RemoteWatch
from benchbook.sites.kube import facts, manifests, placement, plan_output, tidb_manifests, wait
from benchbook.sites.kube.api import wait_for
from benchbook.sites.kube.external_clients import ExternalClients
from benchbook.sites.kube.namespace import StudyNamespace
from benchbook.sites.kube.placement import Chain, KubernetesPlacement, Part, pod_of, service_of
from benchbook.sites.kube.server import PodServer
from benchbook.sites.kube.tidb_cluster import TidbCluster
from benchbook.sites.topology import background_load
from benchbook.sites.topology.parts import number_role
from benchbook.sites.topology.runtime import ArmRuntime


class KubernetesRuntime(ArmRuntime[KubernetesPlacement]):
    """All parts of a study's arms by name; those that are alive are its servers."""

    def __init__(
        self, space: StudyNamespace, chains: Mapping[str, Chain], outside: ExternalClients | None = None
    ) -> None:
        super().__init__(space.study, space.lab, chains)
        self.space, self.outside = space, outside
        self._pods: dict[str, Any] = {}
        self.node = functools.cache(functools.partial(facts.describe_node, space.cluster))
        """Facts of a node by its name, asked once."""

    def obstacles(self, chain: Chain) -> list[str]:
        """Reasons against an arm in the cluster; those against any cluster come without asking it."""
        if infeasible_reasons := list(plan_output.infeasible_reasons(self.space.study, chain)):
            return infeasible_reasons
        request = (self._short_of_cores(chain), self._lacks_balancer(chain), self._operator_lacks())
        return [why for why in request if why is not None]

    def _short_of_cores(self, chain: Chain) -> str | None:
        """Reason that the nodes lack the cores that an arm's pods ask for, or None."""
        space, wanted = self.space, self.space.here.cpu_manager
        if wanted is not None:
            for name, policy in facts.cpu_managers(space.cluster, dict(chain.server.where.nodes)).items():
                if policy not in (wanted, None):
                    return f"site.kubernetes.cpu_manager: {wanted}: node {name} has {policy}"
        for part in placement.in_pods(chain):
            if part.where.resources.request_cpu and part.where.beside is None:
                request = (part.where.resources.request_cpu, dict(part.where.nodes), space.namespace)
                if why := facts.find_shortage(space.cluster, *request):
                    return f"{part.name}: {why}"
        return None

    def _lacks_balancer(self, chain: Chain) -> str | None:
        if chain.arm.access != "load_balancer":
            return None
        if not self._has_balancers:
            remedy = "use a cluster of a cloud, or install one such as MetalLB"
            return f"no provider behind this cluster gives load balancers; {remedy}"
        nodes = facts.list_addresses(self.space.cluster)
        return require_value(self.outside).lacking(placement.count_outside(chain), nodes)

    def _operator_lacks(self) -> str | None:
        """Reason that the cluster's operator, if any, can't make the study's TiDB, or None."""
        if (wanted := self.space.here.tidb) is None:
            return None
        if (operator := self._operator) is None:
            remedy = f"install TiDB Operator {wanted.operator_version}"
            otherwise = "leave out site.kubernetes.tidb for TiDB in one pod"
            return f"the cluster knows no TidbCluster; {remedy}, or {otherwise}"
        if operator and operator.rpartition(".")[0] not in operator_versions(wanted.version):
            why = f"with which its maker does not support TiDB {wanted.version}"
            return f"TiDB Operator {operator} is in the cluster, {why}; install {wanted.operator_version}"
        return None

    @functools.cached_property
    def _has_balancers(self) -> bool:
        return facts.has_balancers(self.space.cluster) is not False

    @functools.cached_property
    def _operator(self) -> str | None:
        """The version of the operator in the cluster; None: there is none, empty: it is not seen."""
        is_there = self.space.cluster.raw(f"/apis/{tidb_manifests.API}") is not None
        return facts.operator_version(self.space.cluster) or "" if is_there else None

    def _make(self, part: Part) -> Any:
        arm = next(name for name, chain in self.chains.items() if part in chain.servers)
        is_whole = self.space.here.tidb is not None
        return TidbCluster(self.space, part, arm) if is_whole else PodServer(self.space, part)

    def addresses(self, part: Part) -> list[tuple[str, int]]:
        return [(self.get(part).place.address, part.port)]

    def ensure(self, chain: Chain) -> tuple[str, int]:
        """Bring up all that an arm needs; returns the address for its client."""
        server = self.get(chain.server)
        pod, *_ = [self.get(part).ensure() for part in chain.servers]
        for part in filter(None, (*chain.clients, chain.neighbour)):
            self.pod(part)
        address = str(pod.status.pod_ip)
        if chain.proxy is not None:
            return self._through(chain.proxy, server, address), chain.proxy.port
        service = service_of(chain)
        if service is None:
            return address, server.port
        if chain.arm.access == "load_balancer":
            self.space.apply(service, [server.balancer(chain)])
        name, addresses, port = server.service(service)
        return self._service(name, addresses), port

    def _through(self, proxy: Part, server: Any, address: str) -> str:
        """Address of a proxy, once our account has reached this very server through it."""
        was = self._pods.get(proxy.name)
        place = str(self.pod(proxy, address).status.pod_ip)

        def leads_there() -> bool:
            with contextlib.suppress(SiteError):
                return bool(server.seen_from(server.machine, place, proxy.port))
            return False

        is_new = self._pods[proxy.name] is not was and isinstance(server, PodServer)
        if is_new and not wait_for(leads_there, self.space.here.wait_s):
            raise SiteError(f"{pod_of(proxy)}: does not lead to {pod_of(server.part)}; look at its log")
        return place

    def pod(self, part: Part, address: str | None = None) -> Any:
        """Pod of a client, neighbour or proxy, running; `address` is the proxy's target."""
        known = self._pods.get(part.name)
        if known is not None and (part.to is None or address is None or known[1] == address):
            now = self.space.look(pod_of(part))
            if now is not None and wait.is_same_pod(now, known[0]):
                return now
        space = self.space
        if part.kind == "proxy":
            objects = manifests.build_proxy(space.study, space.names, part, require_value(address))
        else:
            objects = [manifests.build_stateful(space.study, space.names, part)]
        pod = space.up(part, objects)
        if part.kind == "proxy" and (cores := self.cores_of("proxy", pod.spec.node_name)) is not None:
            space.run(pod_of(part), "taskset", "-acp", placement.format_cores(cores), "1")
        # Its agent takes time to begin, which a run would lack.
        space.host(pod)
        self._pods[part.name] = (pod, address)
        return pod

    def cores_of(self, kind: str, node: str) -> range | None:
        """Cores of a node that parts of a kind are kept to, None if they may use all."""
        cores = int(self.node(node).get("cores") or 0)
        return placement.halve_cores(cores)[kind] if self.space.here.split_cores and cores > 1 else None

    def cores_in_force(self, chain: Chain) -> dict[str, str]:
        """Cores that servers and proxy may use, as their pods say, and those that clients get."""
        requests = [(part, self.get(part).running().pid) for part in chain.servers]
        requests += [(chain.proxy, 1)] if chain.proxy is not None else []
        find = "grep Cpus_allowed_list /proc/{}/status"
        in_force = {
            part.name: self.space.run(pod_of(part), "sh", "-c", find.format(pid)).split()[-1]
            for part, pid in requests
        }
        for part in chain.clients:
            node = str(self.pod(part).spec.node_name)
            cores = self.cores_of("client", node)
            in_force[part.name] = placement.format_cores(cores) if cores is not None else "all"
        return in_force

    def stop(self) -> None:
        """Put every server to sleep; with its pod gone, one serves no more."""
        for server in self.alive.values():
            if server.child is not None:
                with contextlib.suppress(SiteError):
                    server.stop()

    def must_be_alive(self) -> None:
        """Raise SiteError if a part that is up is no longer the one it was."""
        for server in self.alive.values():
            if server.child is not None and not server.is_alive():
                events = wait.list_events(self.space.cluster, self.space.namespace, pod_of(server.part))
                raise SiteError(f"{pod_of(server.part)} ended by itself; its events: {'; '.join(events)}")
        for name, (pod, _) in self._pods.items():
            now = self.space.look(pod.metadata.name)
            if now is None or not wait.is_same_pod(now, pod):
                raise SiteError(f"{name} ended by itself")

    def _run_beside(self, arm: str, role: str, words: list[str]) -> background_load.Running:
        host = self.space.host(self.pod(require_value(self.chains[arm].neighbour)))
        return run_alongside(host, words, self.lab.run / f"{role}.out", 1.0)

    def describe_proxies(self, chain: Chain) -> dict[str, bool]:
        # Who asks whether a server is ready drops its connection before it logs in: the operator's pods are
        # asked so by the kubelet.
        is_asked = chain.arm.access == "load_balancer" or self.space.here.tidb is not None
        return {"has_probes": True} if is_asked else {}

    def watch(self, chain: Chain, clients: Sequence[RemoteClient], path: Path) -> RemoteWatch:
        """Watch of an arm's clients and pods; all parts of a TiDB cluster are the server too."""
        results = [item for part in chain.servers for item in self.get(part).watched()]
        results += [("proxy", self._pods[chain.proxy.name][0], 1)] if chain.proxy is not None else []
        roles: dict[str, Host] = {}
        pids: dict[str, dict[str, list[int]]] = {}
        families: dict[str, list[int]] = {}
        hops: dict[str, list[dict[str, Any]]] = {}
        ports = {pod_of(part): part.port for part in placement.in_pods(chain)}

        def add(part: str, host: Host) -> None:
            roles[number_role(part, sum(role.partition("-")[0] == part for role in roles))] = host

        for remote_client in clients:
            add("client", remote_client.host)
        for part, pod, pid in results:
            host = self.space.host(pod)
            add(part, host)
            whole = "proxy" if part == "proxy" else "server"
            if part in ("server", "proxy"):
                # Its own sockets: the kernel of its pod's network knows them, and no other.
                place = {"part": whole, "host": str(host.pod.status.pod_ip), "port": ports[host.name]}
                hops[host.name] = [{**place, "is_own": True}]
            for kind in {part, whole}:
                pids.setdefault(kind, {}).setdefault(host.name, []).append(pid)
            if part == "server" and self.get(chain.server).has_children:
                families[host.name] = [pid]
        return RemoteWatch(roles, pids, clients, path, hops, families)

    def _service(self, name: str, addresses: list[str]) -> str:
        """A Service's address, once it has one and leads to our server and to nothing else."""
        wait_s = self.space.here.wait_s
        if not wait_for(lambda: self.ends(name) == addresses, wait_s):
            there = self.ends(name)
            raise SiteError(f"Service {name}: leads to {there} after {wait_s} s, not to {addresses}")

        def given() -> str | None:
            read = self.space.cluster.core.read_namespaced_service
            result = self.space.cluster.ask(read, name, self.space.namespace)
            if result.spec.type != "LoadBalancer":
                return result.spec.cluster_ip
            ingress = (result.status.load_balancer and result.status.load_balancer.ingress) or []
            return next((item.ip or item.hostname for item in ingress), None)

        if not (host := wait_for(given, wait_s)):
            observed = "; ".join(wait.list_events(self.space.cluster, self.space.namespace, name))
            raise SiteError(f"Service {name}: no address after {wait_s} s. Its events: {observed or 'none'}")
        return str(host)

    def ends(self, service: str) -> list[str]:
        """Addresses of pods that a Service leads to now."""
        api = client.DiscoveryV1Api(self.space.cluster.api)
        label = f"kubernetes.io/service-name={service}"
        list_slices = api.list_namespaced_endpoint_slice
        result = self.space.cluster.ask(list_slices, self.space.namespace, label_selector=label)
        return sorted(
            address
            for item in result.items
            for end in item.endpoints or ()
            if end.conditions is None or end.conditions.ready is not False
            for address in end.addresses
        )
