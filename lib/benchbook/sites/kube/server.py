"""A server in a pod: told to serve and to stop by the pod's first process, known by pod, pid and a word.

What differs between engines is in a class of each, which its traits name (`pod`).
"""

from __future__ import annotations

import re
import time
import uuid
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import sqlalchemy

from benchbook.core.errors import SiteError
from benchbook.sites import lab as labs
from benchbook.sites import sql
from benchbook.sites.hosts.machine import OnHost
from benchbook.sites.kube import connect, layout, manifests, wait
from benchbook.sites.kube.layout import SERVICE_PORT, Chain, Part, pod_of, service_of
from benchbook.sites.kube.namespace import StudyNamespace
from benchbook.sites.kube.pods import HOME, TOOLS

START_S = 300.0
SCRIPT = ("sh", f"{TOOLS}/server.sh")
LOG = "run/server.log"
# What is asked of a pod as a machine before anything is known of it; its programs are its image's.
LOOK: dict[str, Any] = {"facts": {"cores": 1}, "open_files": -1, "user": "root", "is_root": True, "tools": {}}


class Server(ABC):
    """One server in its pod. Nothing is asked of the cluster before `ensure`.

    With `has_children` its work is done by processes that it starts.
    """

    crash: re.Pattern[str]
    has_children = False
    has_copies = True
    # All of its volume is its own: data, the prepared copy, the log.
    role, user, log = ".", None, f"{HOME}/{LOG}"

    def __init__(self, space: StudyNamespace, part: Part) -> None:
        self.space, self.part = space, part
        self.word: str | None = None
        self._found: Any = None
        self.place = labs.Place("server", pod_of(part), part.port, prepared="copy")

    @classmethod
    @abstractmethod
    def files(cls, engine: Any, port: int) -> dict[str, str]:
        """Return the files of its ConfigMap: its settings, and `engine.sh` for the pod's first process.

        That gives two functions: `make_data`, and `serve WORD`, which becomes the server. The settings are
        those of the engine on one machine, but for where it lives.
        """

    @classmethod
    @abstractmethod
    def secret(cls, password: str, admin_password: str) -> dict[str, str]:
        """Return the files of the Secret from which it has its accounts."""

    @classmethod
    @abstractmethod
    def socket(cls, port: int) -> Path:
        """Return where it listens in its container, for a client that is in it."""

    @classmethod
    def foreseen(cls, engine: Any) -> list[str]:
        """Return why no pod can hold what is asked of the engine."""
        return []

    @property
    def made_of(self) -> dict[str, Any]:
        """Engine and image, on which each data folder depends."""
        return {"engine": self.space.study.engine.name, "image": self.space.here.images.server}

    @property
    @abstractmethod
    def made_with(self) -> dict[str, Any]:
        """What a data folder depends on: another value needs another folder."""

    @abstractmethod
    def said_word(self) -> str | None:
        """Return the word of the server that answers; None if none does."""

    @abstractmethod
    def who(self) -> dict[str, Any]:
        """Return what the server says it is, for its identity; SiteError if it does not answer."""

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """Return what the server says it is; SettingsDiffer if it did not take what was asked."""

    @abstractmethod
    def begun(self) -> None:
        """Do what is to be done on a server that has just been started."""

    def ensure(self) -> Any:
        """Bring pod and server up unless they are, prove that the server is ours, and return the pod."""
        if self.word is not None and self.is_alive() and self._answers():
            return self._found
        pod = self.pod()
        self.stop()
        # A pod has its own word for each start: whoever answers with another is not ours.
        word = uuid.uuid4().hex
        mark = self.log_mark()
        self._keep_to_half()
        self._do("start", word)
        began = time.monotonic()
        while (said := self.said_word()) != word:
            if not self.is_alive():
                raise SiteError(f"{pod_of(self.part)}: the server did not start:\n  {self._last_words(mark)}")
            if time.monotonic() - began > START_S:
                seen = "nothing" if said is None else "a server that is not ours"
                raise SiteError(
                    f"{pod_of(self.part)}: {seen} answers after {START_S:.0f} s:\n  {self._last_words(mark)}"
                )
            time.sleep(0.2)
        self.begun()
        self.word = word
        return pod

    @property
    def child(self) -> str | None:
        """What says that it serves."""
        return self.word

    @property
    def machine(self) -> OnHost:
        """Its pod, made if need be, as a machine whose files are asked and changed beside the server."""
        return OnHost(self.space.host(self._found or self.pod()), LOOK, self.space.lab)

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

    def stop(self) -> bool:
        """Shut the server down and say whether it went by itself, so that its files are clean."""
        self.word = None
        return self._do("stop") in ("", "0")

    def address(self, pod: Any) -> str:
        """Return where the pod is reached: its own address, or its node's."""
        return str(pod.status.pod_ip)

    @property
    def port(self) -> int:
        return self.part.port

    def service(self, name: str) -> tuple[str, list[str], int]:
        """Return the Service of a name, the addresses to which it must lead, and its port."""
        pod = wait.look(self.space.cluster, self.space.namespace, pod_of(self.part))
        return name, [self.address(pod)] if pod is not None else [], SERVICE_PORT

    def balancer(self, chain: Chain) -> dict[str, Any]:
        """Return the manifest of the Service by which it is reached from outside."""
        return manifests.service(self.space.names, self.part, service_of(chain))

    def applied(self) -> list[tuple[str, str]]:
        """Return the files of its settings folder as one, whose digest is an identity's `config_hash`."""
        held = self.files(self.space.study.engine, self.part.port)
        return [("server.conf", "".join(held[name] for name in sorted(held)))]

    def of_image(self, version: str | None, digest: str) -> dict[str, str]:
        """Return the image and its program's digest, by a command; SiteError if its version is another."""
        asked = self.space.study.engine.version
        if version is None or not sql.is_version(version.split("-")[0], asked):
            raise SiteError(f"engine.version: asked {asked}, the image has {version}")
        return {
            "image": self.space.here.images.server,
            "binary_sha256": self.run("sh", "-c", digest).split()[0],
        }

    def watched(self) -> list[tuple[str, str, int]]:
        """Return what is watched of it as (part, pod, number of the main process)."""
        return [("server", pod_of(self.part), self.pid())]

    @property
    def reached(self) -> tuple[StudyNamespace, str, int]:
        """Where it listens: a port of its pod."""
        return self.space, pod_of(self.part), self.part.port

    def admin(self) -> sqlalchemy.Engine:
        """Return the administrative account; each connection is new."""
        return connect.engine(*self.reached)

    def identity(self) -> dict[str, Any]:
        """Return what tells this very server from any other."""
        pod = wait.look(self.space.cluster, self.space.namespace, pod_of(self.part))
        if pod is None or self.word is None:
            raise SiteError(f"{pod_of(self.part)}: the server does not run; call site.up(arm) first")
        pid, started, digest = self._do("who").split()
        said = self.who()
        status = pod.status.container_statuses[0]
        last = status.last_state.terminated
        return {
            "pid": int(pid),
            "started": int(started),
            **said,
            "config_hash": digest,
            "pod": pod.metadata.uid,
            "node": pod.spec.node_name,
            "container": status.container_id,
            "image": status.image_id or status.image,
            "qos": pod.status.qos_class,
            "restarts": status.restart_count,
            "last_end": f"{last.reason} at {last.finished_at}" if last is not None else "none",
        }

    def pid(self) -> int:
        """Return the server's number in its pod."""
        return int(self._do("who").split()[0])

    def is_alive(self) -> bool:
        """Say whether pod and server are those that were started."""
        pod = wait.look(self.space.cluster, self.space.namespace, pod_of(self.part))
        return pod is not None and self._found is not None and wait.same(pod, self._found)

    def log_mark(self) -> int:
        return self.machine.size(LOG) or 0

    def log_errors(self, mark: int) -> list[str]:
        return [line for line in self._log_since(mark) if self.crash.search(line)]

    def _log_since(self, mark: int) -> list[str]:
        return (self.machine.read(LOG, mark) or "").splitlines()

    def run(self, *argv: str) -> str:
        return self.space.cluster.must(self.space.namespace, pod_of(self.part), argv)

    def _keep_to_half(self) -> None:
        """Keep the pod's first process, and the server it will start, to the servers' half of the cores."""
        cores = int(self.run("nproc", "--all")) if self.space.here.split_cores else 1
        if cores > 1:
            self.run("taskset", "-acp", layout.listed(layout.halves(cores)["server"]), "1")

    def _do(self, *words: str) -> str:
        return self.run(*SCRIPT, *words)

    def _answers(self) -> bool:
        return self.said_word() == self.word

    def _last_words(self, mark: int) -> str:
        try:
            lines = self._log_since(mark)
        except SiteError as error:
            return str(error)
        return "\n  ".join([line for line in lines if self.crash.search(line)][-6:] or lines[-6:])
