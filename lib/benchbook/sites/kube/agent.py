"""A pod's agent: the same as on hosts; a pod without Python gets an ephemeral container beside it."""

import base64
import functools
import hashlib
import json
from pathlib import Path
from typing import Any

from kubernetes.client.exceptions import ApiException
from websocket import ABNF, WebSocketTimeoutException

from benchbook.core.study.inventory import Target
from benchbook.core.study.study_kubernetes import Kubernetes
from benchbook.core.util.errors import SiteError
from benchbook.sites.agent.facts import HostSnapshot
from benchbook.sites.hosts import agent_zipapp
from benchbook.sites.hosts.host import AgentGone, Host
from benchbook.sites.kube import wait
from benchbook.sites.kube.api import LOST, OUT, KubernetesCluster, wait_for
from benchbook.sites.kube.manifests import HOME, IDLE
from benchbook.sites.workspace import Lab, lab_id

# What is asked of a host beforehand; a pod's programs are its image's, and it is all a server's.
LOOK = HostSnapshot({"cores": 1}, {}, {}, "root", "/", True, "", 0.0, -1)
LEASE_S, PATIENCE_S, TIMEOUT_S, CARRY_S = 900.0, 300.0, 30.0, 7200.0
# The file comes as one line: not every API can end what a command reads.
INSTALL = """
import base64, os, sys
folder, name = os.path.split(sys.argv[1])
os.makedirs(folder, exist_ok=True)
with open(sys.argv[1], "wb") as file:
    file.write(base64.b64decode(sys.stdin.buffer.readline()))
"""


class Channel:
    """A command that runs in a pod, with the words of a socket; ConnectionError once the way is lost."""

    def __init__(self, opened: Any) -> None:
        self._opened = opened

    def settimeout(self, seconds: float) -> None:
        self._opened.sock.settimeout(seconds)

    def sendall(self, data: bytes) -> None:
        try:
            self._opened.write_stdin(data)
        except LOST as error:
            raise ConnectionError(str(error)) from None

    def recv(self, most: int) -> bytes:
        """Next output of the agent; nothing once it has ended."""
        while True:
            try:
                opcode, frame = self._opened.sock.recv_data_frame(True)
            except WebSocketTimeoutException as error:
                raise TimeoutError(str(error)) from None
            except LOST as error:
                raise ConnectionError(str(error)) from None
            if opcode == ABNF.OPCODE_CLOSE:
                return b""
            if opcode == ABNF.OPCODE_BINARY and frame.data[:1] == bytes([OUT]) and len(frame.data) > 1:
                return bytes(frame.data[1:])

    def close(self) -> None:
        self._opened.close()


class PodHost(Host):
    """One pod as it is now; an agent beside it (`is_beside`) shares its limits, so pauses don't count."""

    def __init__(
        self, cluster: KubernetesCluster, pod: Any, lab: Lab, here: Kubernetes, is_beside: bool
    ) -> None:
        name = pod.metadata.name
        target = Target(name, name, name, (), 0, "root", None, Path(), HOME, LEASE_S, PATIENCE_S, TIMEOUT_S)
        super().__init__(target, lab_id(lab.token), lab.token)
        self.cluster, self.pod, self.here, self.is_whole = cluster, pod, here, not is_beside
        self.namespace = pod.metadata.namespace
        self._talks: Channel | None = None

    @property
    def folder(self) -> str:
        """The pod's volume, with a server's data in it too; nobody else's are."""
        return HOME

    @functools.cached_property
    def container(self) -> str:
        """The container that the agent is in, put beside the pod's own unless that has Python."""
        target = str(self.pod.spec.containers[0].name)
        if self.is_whole:
            return target
        cluster, image = self.cluster, self.here.images.client
        # One that has ended, with the container whose processes it saw, is never started again.
        restarts = self.pod.status.container_statuses[0].restart_count
        name = f"agent-{restarts}-{hashlib.sha256(image.encode()).hexdigest()[:6]}"
        # An operator's pod has no volume of ours.
        there = [mount.mount_path for mount in self.pod.spec.containers[0].volume_mounts or ()]
        mounts = [{"name": "data", "mountPath": HOME}] if HOME in there else []
        container: dict[str, Any] = {"name": name, "image": image, "imagePullPolicy": "IfNotPresent"}
        container |= {"command": IDLE, "targetContainerName": target, "volumeMounts": mounts}
        body = {"spec": {"ephemeralContainers": [container]}}
        patch = cluster.core.patch_namespaced_pod_ephemeralcontainers
        cluster.ask(patch, self.name, self.namespace, body)

        def state() -> Any:
            result = wait.find_pod(cluster, self.namespace, self.name)
            statuses = (result.status.ephemeral_container_statuses or ()) if result is not None else ()
            return next((status.state for status in statuses if status.name == name), None)

        if not wait_for(lambda: (now := state()) is not None and now.running, self.here.wait_s):
            raise SiteError(
                f"{self.name}: no container of {image} runs beside it after {self.here.wait_s} s: {state()}; "
                "see that its node can fetch site.kubernetes.images.client, whose user is to be root"
            )
        return name

    def _ready(self) -> None:
        """Raise AgentGone if the pod is not the same any more, ConnectionError if the API is silent."""
        try:
            now = wait.find_pod(self.cluster, self.namespace, self.name)
        except SiteError as error:
            raise ConnectionError(str(error)) from None
        if now is None or wait.pod_identity(now) != wait.pod_identity(self.pod):
            self.is_gone = True
            raise AgentGone(f"{self.name}: the pod is gone or was restarted, and what ran in it has ended")

    def _exec(self, *argv: str, stdin: bytes = b"") -> bytes:
        self._ready()
        try:
            done = self.cluster.run(self.namespace, self.name, argv, stdin, self.container)
        except SiteError as error:
            raise ConnectionError(str(error)) from None
        return done.out + (done.err if done.code else b"")

    def _talk(self) -> Any:
        if self._talks is None:
            self._ready()
            argv = self._argv("talk")
            try:
                opened = self.cluster.open(self.namespace, self.name, argv, True, self.container)
            except (*LOST, ApiException) as error:
                raise ConnectionError(str(error)) from None
            self._talks, self._heard = Channel(opened), b""
        return self._talks

    def _run(self, command: str, order: dict[str, Any] | None) -> str:
        path = self._argv(command)[1]
        file = base64.b64encode(agent_zipapp.pack_agent()) + b"\n"
        reply = self._exec("python3", "-c", INSTALL, path, stdin=file)
        reply += self._exec(*self._argv(command), stdin=json.dumps(order or {}).encode() + b"\n")
        return reply.decode("utf-8", "replace")

    def _argv(self, command: str) -> list[str]:
        return ["python3", f"{HOME}/{agent_zipapp.build_name()}", command, self.folder]

    def _get(self, path: str) -> bytes:
        return self._exec("cat", path)

    def send(self, name: str, other: Host) -> None:
        """Send a file of the volume to that of another pod, through us; the caller compares both."""
        assert isinstance(other, PodHost)
        size, path = int(self.call("size", name=name)), f"{HOME}/{name}"
        reading = self.cluster.open(self.namespace, self.name, ["cat", path], False, self.container)
        taking = ["sh", "-c", f"head -c {size} >{path}"]
        writing = self.cluster.open(other.namespace, other.name, taking, True, other.container)
        source, moved = Channel(reading), 0
        while moved < size and (data := source.recv(0)):
            writing.write_stdin(data)
            moved += len(data)
        writing.run_forever(timeout=CARRY_S)
        reading.close()

    def _lost(self, error: Exception, seconds: float) -> str:
        return f"{self.name}: its agent was not reached for {seconds:.0f} s: {error or type(error).__name__}"

    def _hang_up(self) -> None:
        if self._talks is not None:
            self._talks.close()
        self._talks, self._heard = None, b""
