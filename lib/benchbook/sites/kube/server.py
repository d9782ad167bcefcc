"""A server in a pod: the engine's own class, with the pod's agent and container as its machine."""

import contextlib
import re
import shlex
import signal
from collections.abc import Iterator, Sequence
from typing import Any

from benchbook.core.study import descriptors
from benchbook.core.util.errors import SiteError
from benchbook.sites import load
from benchbook.sites import workspace as labs
from benchbook.sites.agent.files import OF_VERSIONS
from benchbook.sites.hosts.host import AgentGone
from benchbook.sites.hosts.machine import OnHost, RemoteProcess
from benchbook.sites.kube import manifests, placement, wait
from benchbook.sites.kube.agent import LOOK, PodHost
from benchbook.sites.kube.api import CommandResult, wait_for
from benchbook.sites.kube.namespace import StudyNamespace
from benchbook.sites.kube.placement import SERVICE_PORT, Chain, Part, pod_of, service_of
from benchbook.sites.machine.contract import Env
from benchbook.sites.processes import procfs
from benchbook.sites.processes.spawn import ProcessPlacement


class PodServer:
    """One server in its pod, made by `ensure`; what is not said here, `inner`, the engine's, says."""

    def __init__(self, space: StudyNamespace, part: Part) -> None:
        self.space, self.part, self.port = space, part, part.port
        self._pod: Any = None
        self._host: PodHost | None = None
        self._inner: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    @property
    def inner(self) -> Any:
        """The engine's server on the pod that was found last, made at need; not started."""
        if self._pod is None:
            self.find()
        host = self.space.host(self._pod)
        if host is not self._host:
            machine = PodMachine(host, LOOK, self.space.lab)
            if left := machine.read(PID):
                # What an owner that is gone left running.
                machine.stop(PodProgram(host, "", *map(int, left.split())), KILL_S)
            peers = [labs.ANYWHERE_AT, *([labs.OVER_SOCKET] if self.space.here.client_in == "server" else [])]
            place = labs.PartLocation("server", str(host.pod.status.pod_ip), self.port, peers=lambda: peers)
            engine = self.space.study.engine
            self._inner = load(descriptors.find_engine(engine.name).code)(machine, engine, place)
            self._host = host
        return self._inner

    @property
    def child(self) -> Any:
        """Its process, None of one that is asleep or was never started."""
        return self._inner.child if self._inner is not None else None

    def find(self) -> None:
        """Find its pod, made if need be; the server in it may be asleep."""
        if self.is_alive():
            return
        space = self.space
        pod = space.up(self.part, manifests.build_server(space.study, space.names, self.part))
        wanted, result = self.part.where.resources.qos_class, pod.status.qos_class
        if result != wanted:
            raise SiteError(
                f"{pod_of(self.part)}: asked for {wanted}, the cluster made it {result}; "
                "look for a LimitRange or a webhook that changes requests"
            )
        self._pod = pod

    def ensure(self) -> Any:
        """Bring pod and server up unless they are, prove that the server is ours, and return the pod."""
        self.find()
        server = self.inner
        is_split = self.space.here.split_cores and not server.is_up
        # The pod's first process, and the server that it will start, keep to the servers' half.
        if is_split and (cores := int(self.run("nproc", "--all"))) > 1:
            self.run("taskset", "-acp", placement.format_cores(placement.halve_cores(cores)["server"]), "1")
        server.ensure()
        return self._pod

    def service(self, name: str) -> tuple[str, list[str], int]:
        """Name of the Service, the addresses that it must lead to, and its port."""
        return name, [str(self._pod.status.pod_ip)], SERVICE_PORT

    def balancer(self, chain: Chain) -> dict[str, Any]:
        return manifests.build_service(self.space.names, self.part, service_of(chain))

    def watched(self) -> list[tuple[str, Any, int]]:
        """Watched parts of it as (part, pod, number of the main process)."""
        return [("server", self._pod, self.inner.running().pid)]

    def identity(self) -> dict[str, Any]:
        pod = self.space.look(pod_of(self.part))
        if pod is None or self.child is None:
            raise SiteError(f"{pod_of(self.part)}: the server does not run; call site.up(arm) first")
        status, qos = pod.status.container_statuses[0], pod.status.qos_class
        pod_facts = {"container": status.container_id, "image": status.image_id or status.image, "qos": qos}
        return {**self.inner.identity(), **wait.pod_identity(pod), **pod_facts}

    def facts(self) -> dict[str, Any]:
        return {**self.inner.facts(), "image": self.space.here.images.server}

    def is_alive(self) -> bool:
        pod = self.space.look(pod_of(self.part))
        return pod is not None and self._pod is not None and wait.is_same_pod(pod, self._pod)

    def run(self, *argv: str) -> str:
        return self.space.run(pod_of(self.part), *argv)

    @contextlib.contextmanager
    def beside(self, record: dict[str, Any]) -> Iterator[None]:
        """Record how its container's limit held it back."""
        before = self.throttled()
        yield
        # A container that was started again counts anew: how long it was held back in all is not known.
        if before is not None and self.is_alive() and (after := self.throttled()) is not None:
            record.setdefault("throttled", {})[self.part.name] = procfs.throttled_since(before, after)

    def throttled(self) -> dict[str, float | int] | None:
        """Count and time of its container's limit holding it back; None if that is not shown."""
        statement = self.run("sh", "-c", f"cat {' '.join(CPU_STATS)} 2>/dev/null || true")
        return procfs.parse_throttling(statement) if "nr_throttled" in statement else None


# Of the container's own control group, version 2 and 1.
CPU_STATS = ("/sys/fs/cgroup/cpu.stat", "/sys/fs/cgroup/cpu/cpu.stat")
WANT, PID, ENDED = "run/want", "run/pid", "run/ended"
BEGIN_S, KILL_S, LOOK_S = 30.0, 30.0, 0.05
PATHS = " ".join(f"{folder}/$1" for folder in OF_VERSIONS)
FIND = f'for one in {PATHS} "$(command -v "$1")"; do [ ! -x "$one" ] || echo "$one"; done'


class PodProgram(RemoteProcess):
    """Program that the pod's first process runs."""

    @property
    def is_alive(self) -> bool:
        try:
            return bool(self.on.call("read", name=PID) == f"{self.pid} {self.started}\n")
        except AgentGone:
            return False


class PodMachine(OnHost):
    """One pod. Its first process starts one program at a time and tells of it (`pod/server.sh`)."""

    key = "in site.kubernetes.images.server"

    on: PodHost

    def done(self, *argv: str) -> CommandResult:
        return self.on.cluster.run(self.on.namespace, self.on.name, argv)

    def run(self, *argv: str) -> str:
        return self.on.cluster.must(self.on.namespace, self.on.name, argv)

    def account(self, name: str) -> str | None:
        # What has no user of its own in its image is root, who is nobody else there.
        has_own = name != "nobody" and self.says(["id", "-u", name]).strip().isdigit()
        return name if has_own else None

    def program(self, name: str) -> str | None:
        return self.says(["sh", "-c", 'command -v "$1"', "sh", name]).strip() or None

    def programs(self, name: str) -> list[str]:
        paths = dict.fromkeys(self.says(["sh", "-c", FIND, "sh", name]).split())
        return sorted(paths, key=lambda path: [int(part) for part in re.findall(r"\d+", path)], reverse=True)

    def says(self, argv: list[str]) -> str:
        done = self.done(*argv)
        return (done.out + done.err).decode("utf-8", "replace") if done.code < 126 else ""

    def sha256(self, path: str) -> str | None:
        if path.startswith(f"{self.folder}/"):
            return super().sha256(path)
        return self.run("sha256sum", path).split()[0]

    def private_folder(self, name: str, user: str | None = None) -> str:
        return self._give_to_user(super().private_folder(name), user)

    def write(self, name: str, text: str, user: str | None = None) -> str:
        digest = super().write(name, text)
        self._give_to_user(f"{self.folder}/{name}", user)
        return digest

    def read(self, name: str, at: int = 0) -> str | None:
        try:
            return super().read(name, at)
        except AgentGone:
            # Its container was started again, and the volume is the same.
            return self.run("tail", "-c", f"+{at + 1}", f"{self.folder}/{name}")

    def strays(self, pid: int, allowed: str) -> list[str]:
        """Nothing: admission is a matter of the accounts, and of the cluster's own rules."""
        return []

    def start(
        self, role: str, argv: Sequence[str], user: str | None, where: ProcessPlacement, env: Env
    ) -> PodProgram:
        self.private_folder("run")
        words = [f"{key}={value}" for key, value in (env or {}).items()]
        command = shlex.join(["env", *words, *_build_prefix(user), *argv])
        self.remove(ENDED)
        self.write(WANT, f"cd {self.folder}/{role} && exec {command}\n")
        note = None
        with contextlib.suppress(AgentGone):
            note = wait_for(lambda: self.on.call("read", name=PID), BEGIN_S, LOOK_S)
        if not note:
            last = self.run("tail", "-n", "5", f"{self.folder}/run/server.log")
            raise SiteError(f"{self.host}: {argv[0]} does not start:\n  {last}")
        pid, started = map(int, note.split())
        return PodProgram(self.on, role, pid, started)

    def stop(self, process: RemoteProcess, grace_s: float, gentle: int = signal.SIGTERM) -> bool:
        with contextlib.suppress(AgentGone):
            if not process.is_alive:
                return False
            self.remove(WANT)
            for signum, wait_s in ((int(gentle), grace_s), (int(signal.SIGKILL), KILL_S)):
                with contextlib.suppress(SiteError):
                    self.run("sh", "-c", f"kill -{signum} {process.pid}")
                if wait_for(lambda: self.size(ENDED), wait_s, LOOK_S):
                    return signum != signal.SIGKILL
        return False

    def run_to_end(self, argv: Sequence[str], wrong: str, most_s: float, user: str | None = None) -> None:
        # What is named by its path is a program of the image; all else works on files.
        if not argv[0].startswith("/"):
            return super().run_to_end(argv, wrong, most_s, user)
        done = self.done(*_build_prefix(user), *argv)
        if done.code:
            statement = "\n  ".join((done.out + done.err).decode("utf-8", "replace").splitlines()[-5:])
            raise SiteError(f"{self.host}: {wrong} (exit code {done.code}):\n  {statement}")

    def _give_to_user(self, path: str, user: str | None) -> str:
        if user is not None:
            self.run("chown", user, path)
        return path


def _build_prefix(user: str | None) -> list[str]:
    """Words before a command that a user is to run."""
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"] if user is not None else []
