"""A server's pod as a machine: files and connections by the agent beside it, programs in its container."""

from __future__ import annotations

import contextlib
import re
import shlex
import signal
from collections.abc import Sequence

from benchbook.core.errors import SiteError
from benchbook.sites.agent.facts import Look
from benchbook.sites.agent.files import OF_VERSIONS
from benchbook.sites.hosts.host import AgentGone
from benchbook.sites.hosts.machine import Job, OnHost
from benchbook.sites.kube.agent import PodHost
from benchbook.sites.kube.api import Cluster, wait_for
from benchbook.sites.lab import Lab
from benchbook.sites.machine.contract import Env
from benchbook.sites.processes.before_exec import Where

# What is asked of a host beforehand; a pod's programs are its image's, and it is all a server's.
LOOK = Look({"cores": 1}, {}, {}, "root", "/", True, "", 0.0, -1)
WANT, PID, ENDED = "run/want", "run/pid", "run/ended"
BEGIN_S, KILL_S, LOOK_S = 30.0, 30.0, 0.05
PATHS = " ".join(f"{folder}/$1" for folder in OF_VERSIONS)
FIND = f'for one in {PATHS} "$(command -v "$1")"; do [ ! -x "$one" ] || echo "$one"; done'


class Program(Job):
    """What the pod's first process runs."""

    @property
    def is_alive(self) -> bool:
        """Say whether it is what still runs there."""
        try:
            return bool(self.on.call("read", name=PID) == f"{self.pid} {self.started}\n")
        except AgentGone:
            return False


class OnPod(OnHost):
    """One pod. Its first process starts one program at a time and tells of it (`pod/server.sh`)."""

    key = "in site.kubernetes.images.server"

    def __init__(self, cluster: Cluster, host: PodHost, lab: Lab) -> None:
        super().__init__(host, LOOK, lab)
        self.cluster, self.pod = cluster, host

    def run(self, *argv: str) -> str:
        """Return what a command prints in the pod's own container; SiteError if it fails."""
        return self.cluster.must(self.pod.namespace, self.pod.name, argv)

    def account(self, name: str) -> str | None:
        # What has no user of its own in its image is root, who is nobody else there.
        has_own = name != "nobody" and self.says(["id", "-u", name]).strip().isdigit()
        return name if has_own else None

    def program(self, name: str) -> str | None:
        return self.says(["sh", "-c", 'command -v "$1"', "sh", name]).strip() or None

    def programs(self, name: str) -> list[str]:
        found = dict.fromkeys(self.says(["sh", "-c", FIND, "sh", name]).split())
        return sorted(found, key=lambda path: [int(part) for part in re.findall(r"\d+", path)], reverse=True)

    def says(self, argv: list[str]) -> str:
        done = self.cluster.run(self.pod.namespace, self.pod.name, argv)
        return (done.out + done.err).decode("utf-8", "replace") if done.code < 126 else ""

    def sha256(self, path: str) -> str | None:
        if path.startswith(f"{self.folder}/"):
            return super().sha256(path)
        return self.run("sha256sum", path).split()[0]

    def own(self, name: str, user: str | None = None) -> str:
        path = super().own(name)
        return self._give(path, user)

    def write(self, name: str, text: str, user: str | None = None) -> str:
        digest = super().write(name, text)
        self._give(f"{self.folder}/{name}", user)
        return digest

    def read(self, name: str, at: int = 0) -> str | None:
        try:
            return super().read(name, at)
        except AgentGone:
            # Its container was started again, and the volume is the same.
            return self.run("tail", "-c", f"+{at + 1}", f"{self.folder}/{name}")

    def strays(self, pid: int, allowed: str) -> list[str]:
        """Return none: who may come in is for the accounts, and for the cluster's own rules."""
        return []

    def start(self, role: str, argv: Sequence[str], user: str | None, where: Where, env: Env) -> Program:
        self.own("run")
        words = [f"{key}={shlex.quote(value)}" for key, value in (env or {}).items()]
        command = ["env", *words, shlex.join([*_as(user), *argv])]
        self.remove(ENDED)
        self.write(WANT, f"cd {self.folder}/{role} && exec {' '.join(command)}\n")
        said = None
        with contextlib.suppress(AgentGone):
            said = wait_for(lambda: self.on.call("read", name=PID), BEGIN_S, LOOK_S)
        if not said:
            last = self.run("tail", "-n", "5", f"{self.folder}/run/server.log")
            raise SiteError(f"{self.host}: {argv[0]} does not start:\n  {last}")
        pid, started = map(int, said.split())
        return Program(self.pod, role, pid, started)

    def stop(self, process: Job, grace_s: float, gentle: int = signal.SIGTERM) -> bool:
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

    def end_left(self) -> None:
        """End what an owner that is gone has left running."""
        if said := self.read(PID):
            self.stop(Program(self.pod, "", *map(int, said.split())), KILL_S)

    def work(self, argv: Sequence[str], wrong: str, most_s: float, user: str | None = None) -> None:
        # What is named by its path is a program of the image; all else works on files.
        if not argv[0].startswith("/"):
            return super().work(argv, wrong, most_s, user)
        done = self.cluster.run(self.pod.namespace, self.pod.name, [*_as(user), *argv])
        if done.code:
            said = "\n  ".join((done.out + done.err).decode("utf-8", "replace").splitlines()[-5:])
            raise SiteError(f"{self.host}: {wrong} (exit code {done.code}):\n  {said}")

    def _give(self, path: str, user: str | None) -> str:
        if user is not None:
            self.run("chown", user, path)
        return path


def _as(user: str | None) -> list[str]:
    """Return what comes before a command that a user is to run."""
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"] if user is not None else []
