"""A whole TiDB cluster as one server, made by TiDB Operator; its data are loaded once and never copied."""

import contextlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pymysql
from pymysql.constants import ER

from benchbook.core.util.errors import SiteError
from benchbook.sites import workspace as labs
from benchbook.sites.engines.tidb import CRASH
from benchbook.sites.hosts.machine import OnHost
from benchbook.sites.kube import tidb_manifests, wait
from benchbook.sites.kube.agent import LOOK
from benchbook.sites.kube.manifests import HOME
from benchbook.sites.kube.namespace import StudyNamespace
from benchbook.sites.kube.placement import Chain, Part
from benchbook.sites.kube.tidb_manifests import COMPONENT, INSTANCE, PARTS
from benchbook.sites.kube.wait import pod_identity
from benchbook.sites.machine.data_snapshots import Loaded
from benchbook.sites.machine.local_machine import LocalMachine
from benchbook.sites.tidb import config, data
from benchbook.sites.tidb.cluster import TidbServers
from benchbook.sites.tidb.status import PlacementDriver, Status, record_pools

PLURAL = "tidbclusters"
# Ports that the operator gives the parts.
PORT, STATUS, PD, TIKV_STATUS = tidb_manifests.MYSQL_PORT, 10080, 2379, 20180
LISTENING_S = 60.0
NOT_SHOWN = "not available: PD's own port does not answer"
NAMES = {"pd": "PD", "tikv": "TiKV", "tidb": "TiDB"}
# An operator that is there does something within this.
SILENT_S = 30.0
UNSEEN = "the operator takes no notice of it: does it run, and does it look at this namespace?"


class TidbCluster(TidbServers, Loaded):
    """One TidbCluster, made by `ensure`; `pods` are its pods by part as they were when it was ready."""

    port = PORT

    def __init__(self, space: StudyNamespace, part: Part, arm: str) -> None:
        self.space, self.part, self.arm, self.role, self.lab = space, part, arm, part.name, space.lab
        self.machine = self.notes = LocalMachine(space.lab)
        self.asked = tidb_manifests.build_settings(space.study, arm)
        self.child: str | None = None
        self.pods: dict[str, list[Any]] = {}
        # As they were when it was ready: no agent is begun in a pod that was made again in a run.
        self._machines: dict[str, OnHost] = {}

    @property
    def id(self) -> str | None:
        results = self._resource()
        return str(results["metadata"]["uid"]) if results is not None else None

    @property
    def first(self) -> Any:
        """The pod of the first TiDB; SiteError before `ensure`."""
        if not self.pods:
            raise SiteError(f"TidbCluster {self.role}: not made yet; call site.up(arm) first")
        return self.pods["tidb"][0]

    @property
    def all(self) -> list[Any]:
        return [pod for part in PARTS for pod in self.pods[part]]

    @property
    def leads_to(self) -> list[str]:
        return sorted(str(pod.status.pod_ip) for pod in self.pods["tidb"])

    def ensure(self) -> Any:
        """Bring the cluster up unless it is, set its accounts and variables; return its first pod."""
        if self.child is not None and self.is_alive():
            return self.first
        space = self.space
        space.apply(self.role, [tidb_manifests.build_cluster(space.study, space.names, self.arm)])
        self.pods = self._ready()
        self._machines = {pod.metadata.name: OnHost(self.space.host(pod), LOOK, self.lab) for pod in self.all}
        self.statuses = [Status(labs.LOOPBACK, STATUS, self._of(pod)) for pod in self.pods["tidb"]]
        self.ports = [PORT] * len(self.statuses)
        self._admins.clear()
        self.storage = f"{len(self.pods['tikv'])} TiKV, {len(self.pods['pd'])} PD, by TiDB Operator"
        self._close()
        data.admit_clients(self.connect, self.asked.variables, self.lab.password(), (labs.ANYWHERE_AT,))
        self.child = self.id
        return self.first

    def stop(self) -> bool:
        """Leave it as it is: it goes with the study's namespace."""
        return True

    def is_alive(self) -> bool:
        return bool(self.pods) and all(pod_identity(pod) == self._now(pod) for pod in self.all)

    def service(self, name: str) -> tuple[str, list[str], int]:
        return (f"{self.role}-tidb" if name == self.role else name), self.leads_to, PORT

    def balancer(self, chain: Chain) -> dict[str, Any]:
        return tidb_manifests.build_balancer(self.space.names, chain)

    def identity(self) -> dict[str, Any]:
        """Every pod as the cluster sees it now, and the identity that each TiDB answers."""
        pods = {pod.metadata.name: self._now(pod) for pod in self.all}
        results: dict[str, Any] = {"cluster": self.id} | pods
        for status in self.statuses:
            try:
                answer = status.who()
            except (OSError, ValueError) as error:
                raise SiteError(f"{status.by.host}: the server does not answer: {error}") from None
            results |= {"version": answer["version"], f"{status.by.host}_git_hash": answer["git_hash"]}
        return results

    def facts(self) -> dict[str, Any]:
        """Versions, placement and settings; SettingsDiffer if one of the TiDBs did not take them."""
        study, pods = self.space.study, self.pods
        configs = config.of_parts(self.space.here.tidb, study.arms[self.arm].parts)
        version = self.statuses[0].who()["version"].partition("TiDB-v")[2] or None
        stores: list[str] | str = NOT_SHOWN
        with contextlib.suppress(OSError, ValueError, KeyError):
            stores = self._placement.stores()
        images = {part: sorted({pod_identity(pod)["image"] for pod in pods[part]}) for part in PARTS}
        return self.read_facts(version, Path(HOME), study.engine.settings) | {
            "parts": {part: {"pods": len(pods[part]), "images": images[part]} for part in PARTS},
            "stores": stores,
            "nodes": {pod.metadata.name: pod.spec.node_name for pod in self.all},
            "data": "loaded once and taken as they are: no copy can be put back",
            "cluster": {"stored": data.read_stored(self.admin(), configs)},
        }

    def applied(self) -> list[tuple[str, str]]:
        """Nothing more than its manifests: they hold all its settings."""
        return []

    def watched(self) -> list[tuple[str, Any, int]]:
        return [(kind, pod, 1) for kind in ("tidb", "tikv", "pd") for pod in self.pods[kind]]

    @contextlib.contextmanager
    def beside(self, record: dict[str, Any]) -> Iterator[None]:
        """Look at stores, leaders and TiKV's thread pools before and after."""
        record["cluster"] = {"is_managed": True, "before": self.look()}
        with record_pools([(self._of(pod), labs.LOOPBACK, TIKV_STATUS) for pod in self.pods["tikv"]], record):
            yield
        record["cluster"]["after"] = self.look()

    def look(self) -> dict[str, Any]:
        """Stores and leaders as PD has them, or `reason`; `ended` are pods that are others now."""
        ended = [pod.metadata.name for pod in self.all if pod_identity(pod) != self._now(pod)]
        return self._placement.look(ended)

    def log_mark(self) -> float:
        """The present moment: its logs are asked for by time."""
        return time.monotonic()

    def log_errors(self, mark: float) -> list[str]:
        """Lines of every pod's log since a moment that tell of an error or a crash."""
        errors, since_s = [], int(time.monotonic() - mark) + 1
        read = self.space.cluster.core.read_namespaced_pod_log
        for pod in self.all:
            name = pod.metadata.name
            statement = self.space.cluster.ask(read, name, self.space.namespace, since_seconds=since_s)
            errors += [f"{name}: {line}" for line in str(statement or "").splitlines() if CRASH.search(line)]
        return errors

    def run(self, *argv: str) -> str:
        return self.space.run(self.first.metadata.name, *argv)

    def _resource(self) -> dict[str, Any] | None:
        return self.space.cluster.custom(tidb_manifests.API, PLURAL, self.space.namespace, self.role)

    def _of(self, pod: Any) -> OnHost:
        return self._machines[pod.metadata.name]

    def _close(self) -> None:
        """Let the administrator in from the pod itself alone, its agent's, and with a password."""
        deadline = time.monotonic() + LISTENING_S
        while True:
            refused = []
            for password in (None, ""):
                try:
                    with self.connect(password=password) as connection, connection.cursor() as cursor:
                        data.secure_admin(cursor, self.lab.admin_password(), (labs.LOOPBACK,))
                    return
                except pymysql.err.OperationalError as error:
                    refused.append(error.args)
            # Its pod is ready before its port answers, where nothing looks at that.
            if time.monotonic() > deadline or all(args[0] == ER.ACCESS_DENIED_ERROR for args in refused):
                raise SiteError(
                    f"TidbCluster {self.role} lets neither us nor its first administrator in: "
                    f"{refused[-1][-1]}; run `make down`, then the stage again"
                )
            time.sleep(0.5)

    @property
    def _placement(self) -> "PodPlacementDriver":
        pods = {str(pod.status.pod_ip): pod.metadata.name for pod in self.pods["tikv"]}
        return PodPlacementDriver(labs.LOOPBACK, PD, pods, self._of(self.pods["pd"][0]))

    def _now(self, pod: Any) -> dict[str, Any]:
        result = self.space.look(pod.metadata.name)
        return pod_identity(result) if result is not None else {"pod": "gone"}

    def _ready(self) -> dict[str, list[Any]]:
        """Pods by part, once ready; SiteError with reasons if for a whole wait no further one runs."""
        waiting, most = wait.Waiting(f"TidbCluster {self.role}", self.space.here.wait_s), -1
        while True:
            if (resource := self._resource()) is None:
                raise SiteError(f"{waiting.what} was removed by somebody else; run the stage again")
            results = self._list_pods()
            if (state := describe_lack(resource, results)) is None:
                return results
            running = sum(_count_running(resource["spec"], results).values())
            is_unseen = not resource.get("status") and waiting.lasted_s > min(SILENT_S, waiting.wait_s)
            states = (wait.describe_lack(pod) or "" for part in results.values() for pod in part)
            if is_unseen or waiting.is_over(state, any(map(wait.is_hopeless, states)), running > most):
                why = UNSEEN if is_unseen else self._explain_pods(results)
                raise SiteError(f"{waiting.what} is not ready after {waiting.lasted_s:.0f} s: {state}. {why}")
            most = max(most, running)

    def _list_pods(self) -> dict[str, list[Any]]:
        """Its pods by part as the cluster has them now, in order of their numbers."""
        cluster, label = self.space.cluster, f"{INSTANCE}={self.role}"
        listed = cluster.ask(cluster.core.list_namespaced_pod, self.space.namespace, label_selector=label)
        results: dict[str, list[Any]] = {part: [] for part in PARTS}
        for pod in listed.items:
            results.setdefault((pod.metadata.labels or {}).get(COMPONENT, "other"), []).append(pod)

        for pods in results.values():
            # Names of a part's pods are alike but for the number at their end.
            pods.sort(key=lambda pod: (len(pod.metadata.name), pod.metadata.name))
        return results

    def _explain_pods(self, results: dict[str, list[Any]]) -> str:
        """Every pod that does not run, with its reason and events, else the events of the whole."""
        messages = [
            f"{pod.metadata.name}: {state} (its events: {self._events(pod.metadata.name)})"
            for part in results.values()
            for pod in part
            if (state := wait.describe_lack(pod)) is not None
        ]
        return ". ".join(messages) or f"No pod of it is in trouble; its own events: {self._events(self.role)}"

    def _events(self, name: str) -> str:
        return "; ".join(wait.list_events(self.space.cluster, self.space.namespace, name)) or "none"


@dataclass(frozen=True)
class PodPlacementDriver(PlacementDriver):
    """A PD in a pod; `names` are the pods of the stores by their addresses."""

    def _name(self, address: str) -> str:
        host = address.rpartition(":")[0]
        # The operator's stores are known by their pod's name in the network of the cluster.
        is_number = host.replace(".", "").isdigit()
        return self.names.get(host, host if is_number else host.partition(".")[0])


def describe_lack(resource: Mapping[str, Any], results: Mapping[str, list[Any]]) -> str | None:
    """Progress of a cluster, in words; None if it is ready and all its pods run."""
    spec, status = resource["spec"], resource.get("status") or {}
    wanted = {part: int(spec[part]["replicas"]) for part in PARTS}
    running = _count_running(spec, results)
    statements = {item["type"]: item for item in status.get("conditions") or ()}.get("Ready", {})
    if statements.get("status") == "True" and running == wanted and not _is_moving(status):
        return None
    counts = ", ".join(f"{NAMES[part]} {running[part]} of {wanted[part]}" for part in PARTS)
    word = statements.get("message") or statements.get("reason") or "nothing yet"
    return f"{counts}; the operator says: {word}"


def _is_moving(status: Mapping[str, Any]) -> bool:
    """True while pods are made again with other settings."""
    sets = [(status.get(part) or {}).get("statefulSet") or {} for part in PARTS]
    return any(each.get("currentRevision") != each.get("updateRevision") for each in sets)


def _count_running(spec: Mapping[str, Any], results: Mapping[str, list[Any]]) -> dict[str, int]:
    """Number of running pods of each part that were made by the present manifest."""

    def is_as_asked(pod: Any, requests: Mapping[str, Any]) -> bool:
        env = {item.name: item.value for container in pod.spec.containers for item in container.env or ()}
        is_made = all(env.get(item["name"]) == item["value"] for item in requests["env"])
        return is_made and wait.describe_lack(pod) is None

    return {part: sum(is_as_asked(pod, spec[part]) for pod in results[part]) for part in PARTS}
