"""A server in a pod: the engine's own class, on its pod as the machine."""

from __future__ import annotations

from typing import Any

from benchbook.core import traits
from benchbook.core.errors import SiteError
from benchbook.sites import lab as labs
from benchbook.sites import load
from benchbook.sites.kube import layout, manifests, wait
from benchbook.sites.kube.agent import PodHost
from benchbook.sites.kube.layout import SERVICE_PORT, Chain, Part, pod_of, service_of
from benchbook.sites.kube.machine import OnPod
from benchbook.sites.kube.namespace import StudyNamespace


class Server:
    """One server in its pod. Nothing is asked of the cluster before `ensure`.

    What is not said here, the engine's server says (`one`).
    """

    def __init__(self, space: StudyNamespace, part: Part) -> None:
        self.space, self.part, self.port = space, part, part.port
        self._found: Any = None
        self._host: PodHost | None = None
        self._one: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.one, name)

    @property
    def one(self) -> Any:
        """The engine's server on the pod as it is now, made at need; not started."""
        host = self.space.host(self._found or self.pod())
        if host is not self._host:
            machine = OnPod(self.space.cluster, host, self.space.lab)
            machine.end_left()
            peers = [labs.ANYWHERE_AT, *([labs.OVER_SOCKET] if self.space.here.client_in == "server" else [])]
            place = labs.Place("server", self.address(host.pod), self.port, peers=lambda: peers)
            engine = self.space.study.engine
            self._one = load(traits.engine(engine.name).code)(machine, engine, place)
            self._host = host
        return self._one

    @property
    def child(self) -> Any:
        """Its process, None of one that is asleep or was never started."""
        return self._one.child if self._one is not None else None

    def find(self) -> None:
        """Find its pod again, made if need be, where that or its container is another one now."""
        if not self.is_alive():
            self.pod()

    def ensure(self) -> Any:
        """Bring pod and server up unless they are, prove that the server is ours, and return the pod."""
        self.find()
        one = self.one
        if self.space.here.split_cores and not one.is_up:
            self._keep_to_half()
        one.ensure()
        return self._found

    def pod(self) -> Any:
        """Make the server's pod, or find it, and return it running; the server in it may be asleep."""
        space = self.space
        made = manifests.of_server(space.study, space.names, self.part)
        space.apply(self.part.name, made)
        digest = made[-1]["spec"]["template"]["metadata"]["annotations"][wait.DIGEST]
        pod = wait.running(space.cluster, space.namespace, pod_of(self.part), digest, space.here.wait_s)
        wanted = self.part.where.room.qos_class
        if pod.status.qos_class != wanted:
            raise SiteError(
                f"{pod_of(self.part)}: asked for {wanted}, the cluster made it {pod.status.qos_class}; "
                "look for a LimitRange or a webhook that changes requests"
            )
        self._found = pod
        return pod

    def address(self, pod: Any) -> str:
        """Return where the pod is reached: its own address, or its node's."""
        return str(pod.status.pod_ip)

    def service(self, name: str) -> tuple[str, list[str], int]:
        """Return the Service of a name, the addresses to which it must lead, and its port."""
        pod = wait.look(self.space.cluster, self.space.namespace, pod_of(self.part))
        return name, [self.address(pod)] if pod is not None else [], SERVICE_PORT

    def balancer(self, chain: Chain) -> dict[str, Any]:
        """Return the manifest of the Service by which it is reached from outside."""
        return manifests.service(self.space.names, self.part, service_of(chain))

    def watched(self) -> list[tuple[str, str, int]]:
        """Return what is watched of it as (part, pod, number of the main process)."""
        return [("server", pod_of(self.part), self.one.running().pid)]

    def identity(self) -> dict[str, Any]:
        """Return what tells this very server from any other."""
        pod = wait.look(self.space.cluster, self.space.namespace, pod_of(self.part))
        if pod is None or self.child is None:
            raise SiteError(f"{pod_of(self.part)}: the server does not run; call site.up(arm) first")
        status = pod.status.container_statuses[0]
        last = status.last_state.terminated
        return {
            **self.one.identity(),
            "pod": pod.metadata.uid,
            "node": pod.spec.node_name,
            "container": status.container_id,
            "image": status.image_id or status.image,
            "qos": pod.status.qos_class,
            "restarts": status.restart_count,
            "last_end": f"{last.reason} at {last.finished_at}" if last is not None else "none",
        }

    def facts(self) -> dict[str, Any]:
        return {**self.one.facts(), "image": self.space.here.images.server}

    def is_alive(self) -> bool:
        """Say whether pod and container are those that were found."""
        pod = wait.look(self.space.cluster, self.space.namespace, pod_of(self.part))
        return pod is not None and self._found is not None and wait.same(pod, self._found)

    def run(self, *argv: str) -> str:
        return self.space.cluster.must(self.space.namespace, pod_of(self.part), argv)

    def _keep_to_half(self) -> None:
        """Keep the pod's first process, and the server it will start, to the servers' half of the cores."""
        if (cores := int(self.run("nproc", "--all"))) > 1:
            self.run("taskset", "-acp", layout.listed(layout.halves(cores)["server"]), "1")
