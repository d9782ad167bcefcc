"""The pods of a TiDB cluster: when they are ready, who they are, what each says, and their books as one."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pymysql
import sqlalchemy

from benchbook.core.errors import SiteError
from benchbook.sites import lab as labs
from benchbook.sites import sql
from benchbook.sites.engines.postgresql_dialect import ADMIN
from benchbook.sites.engines.tidb import CRASH
from benchbook.sites.hosts import through_agent
from benchbook.sites.kube import wait
from benchbook.sites.kube.api import Cluster
from benchbook.sites.kube.namespace import LOOPBACK, StudyNamespace
from benchbook.sites.kube.pods import HOME
from benchbook.sites.kube.tidb import COMPONENT, INSTANCE, PARTS
from benchbook.sites.machine.contract import Request
from benchbook.sites.tidb import config, data
from benchbook.sites.tidb.status import METRICS, Placement, Status, flat, pool_seconds

# Ports that the operator gives them, and the administrator of a new cluster.
PORT, STATUS, PD, TIKV_STATUS = 4000, 10080, 2379, 20180
FIRST = "root"
SETTLED_S = 5.0
NOT_SHOWN = "not available: PD's own port does not answer"


class Parts:
    """The pods of one cluster as they were when it was ready, by part."""

    def __init__(self, space: StudyNamespace, name: str, pods: dict[str, list[Any]]) -> None:
        self.space, self.name, self.pods = space, name, pods
        self.statuses = [Status(pod.metadata.name, STATUS, space) for pod in pods["tidb"]]

    @property
    def first(self) -> Any:
        """The first TiDB."""
        return self.pods["tidb"][0]

    @property
    def all(self) -> list[Any]:
        """Every PD, TiKV and TiDB."""
        return [pod for part in PARTS for pod in self.pods[part]]

    @property
    def addresses(self) -> list[str]:
        """Where the TiDBs are reached, sorted."""
        return sorted(str(pod.status.pod_ip) for pod in self.pods["tidb"])

    def reached(self, pod: Any = None) -> tuple[StudyNamespace, str, int]:
        """Return where a TiDB (None: the first) listens: a port of its pod."""
        return self.space, (pod or self.first).metadata.name, PORT

    def are_alive(self) -> bool:
        """Say whether every pod is the one it was: neither made again nor restarted."""
        return all(_tells(pod) == self._now(pod) for pod in self.all)

    def identity(self) -> dict[str, Any]:
        """Return every pod as the cluster sees it now, and what each TiDB answers to who it is."""
        found: dict[str, Any] = {pod.metadata.name: self._now(pod) for pod in self.all}
        for status in self.statuses:
            try:
                said = status.who()
            except (OSError, ValueError) as error:
                raise SiteError(f"{status.address}: the server does not answer: {error}") from None
            found |= {"version": said["version"], f"{status.address}_git_hash": said["git_hash"]}
        return found

    def connected(self) -> int:
        """Return how many sessions are open on all TiDBs."""
        return sum(status.connected() for status in self.statuses)

    def books(self) -> tuple[dict[str, int], float]:
        """Return the added counters of all TiDBs, once only our session is left, and the shortest uptime."""
        deadline = time.monotonic() + SETTLED_S
        while self.connected() > 1 and time.monotonic() < deadline:
            time.sleep(0.05)
        return data.added(self.statuses)

    def facts(self, asked: config.Asked, engine: Any, variables: dict[str, str]) -> dict[str, Any]:
        """Return versions, placement and settings; SettingsDiffer if one of the TiDBs did not take them."""
        read = [asked.taken(engine.settings, self._items(pod), variables) for pod in self.pods["tidb"]]
        nodes = {pod.metadata.name: pod.spec.node_name for pod in self.all}
        version = self.statuses[0].who()["version"].partition("TiDB-v")[2] or None
        storage = f"{len(self.pods['tikv'])} TiKV, {len(self.pods['pd'])} PD, by TiDB Operator"
        return data.facts(version, storage, read[0], variables, Path(HOME)) | {
            "parts": {
                part: {
                    "pods": len(self.pods[part]),
                    "images": sorted({_image(pod) for pod in self.pods[part]}),
                }
                for part in PARTS
            },
            "stores": self._stores(),
            "nodes": nodes,
            "data": "loaded once and taken as they are: no copy can be put back",
        }

    def threads(self) -> list[dict[str, float]] | None:
        """Return the processor time of each thread pool of each TiKV; None if one does not tell."""
        found = []
        for pod in self.pods["tikv"]:
            try:
                told = self.space.request(pod.metadata.name, TIKV_STATUS, Request(METRICS))
                found.append(pool_seconds(told))
            except (OSError, ValueError):
                return None
        return found

    def look(self) -> dict[str, Any]:
        """Return stores and leaders as PD has them, or `reason`; `ended` are pods that are others now."""
        ended = [pod.metadata.name for pod in self.all if _tells(pod) != self._now(pod)]
        pods = {str(pod.status.pod_ip): pod.metadata.name for pod in self.pods["tikv"]}
        try:
            placed = PodPlacement(self.pods["pd"][0].metadata.name, PD, pods, self.space)
            return {**vars(placed.state()), "ended": ended}
        except (SiteError, OSError, ValueError, KeyError) as error:
            return {"ended": ended, "reason": f"PD does not tell: {type(error).__name__}"}

    def log_errors(self, since_s: float) -> list[str]:
        """Return the lines of the last seconds in every pod's log that tell of an error or a crash."""
        found = []
        read = self.space.cluster.core.read_namespaced_pod_log
        for pod in self.all:
            name = pod.metadata.name
            said = self.space.cluster.ask(read, name, self.space.namespace, since_seconds=int(since_s) + 1)
            found += [f"{name}: {line}" for line in str(said or "").splitlines() if CRASH.search(line)]
        return found

    def _items(self, pod: Any) -> dict[str, Any]:
        """Return the settings of a TiDB's file by dotted name, over SQL: old ones tell them nowhere else."""
        said = ask(*self.reached(pod), "SELECT @@tidb_config", SETTLED_S)
        if said is None:
            raise SiteError(f"{pod.metadata.name}: does not tell its settings")
        return flat(json.loads(said))

    def _stores(self) -> Any:
        """Return version and state of every TiKV as PD knows them."""
        pod = self.pods["pd"][0].metadata.name
        try:
            stores = json.loads(self.space.request(pod, PD, Request("/pd/api/v1/stores")))["stores"]
        except (OSError, ValueError, KeyError):
            return NOT_SHOWN
        known = [(one["store"].get("version"), one["store"].get("state_name")) for one in stores]
        return [f"{version} {state}" for version, state in sorted(known, key=str)]

    def _now(self, pod: Any) -> dict[str, Any]:
        found = wait.look(self.space.cluster, self.space.namespace, pod.metadata.name)
        return _tells(found) if found is not None else {"pod": "gone"}


@dataclass(frozen=True)
class PodPlacement(Placement):
    """A PD in a pod; `names` are the pods of the stores by their addresses."""

    def _name(self, address: str) -> str:
        host = address.rpartition(":")[0]
        # The operator's stores are known by their pod's name in the network of the cluster.
        is_number = host.replace(".", "").isdigit()
        return self.names.get(host, host if is_number else host.partition(".")[0])


def _tells(pod: Any) -> dict[str, Any]:
    """Return what tells a pod from any other, and from itself before a restart."""
    statuses = pod.status.container_statuses or ()
    ended = [one.last_state.terminated for one in statuses if one.last_state.terminated is not None]
    return {
        "pod": pod.metadata.uid,
        "node": pod.spec.node_name,
        "image": _image(pod),
        "restarts": sum(one.restart_count for one in statuses),
        "last_end": f"{ended[0].reason} at {ended[0].finished_at}" if ended else "none",
        "ending": pod.metadata.deletion_timestamp is not None,
    }


def _image(pod: Any) -> str:
    return str(pod.spec.containers[0].image)


NAMES = {"pd": "PD", "tikv": "TiKV", "tidb": "TiDB"}
PAUSE_S = 0.5
# An operator that is there does something within this.
SILENT_S = 30.0


def ready(
    cluster: Cluster,
    namespace: str,
    name: str,
    look: Callable[[], Mapping[str, Any]],
    wait_s: float,
) -> dict[str, list[Any]]:
    """Wait until a cluster is ready, and return its pods by part; `look` returns the custom resource.

    `wait_s` is the longest wait without one more pod that runs. SiteError names every pod that does not run,
    with its reason and events.
    """
    began = moved = told_at = time.monotonic()
    told, most, stuck_since = "", -1, None
    while True:
        resource = look()
        found = pods(cluster, namespace, name)
        state = lacking(resource, found)
        if state is None:
            return found
        now = time.monotonic()
        running = sum(_running(resource["spec"], found).values())
        if running > most:
            most, moved = running, now
        states = (wait.state(pod) or "" for part in found.values() for pod in part)
        stuck = any(state.partition(":")[0] in wait.HOPELESS for state in states)
        stuck_since = (stuck_since or now) if stuck else None
        is_unseen = not resource.get("status") and now - began > min(SILENT_S, wait_s)
        is_stuck = stuck_since is not None and now - stuck_since > wait.PATIENCE_S
        if is_unseen or is_stuck or now - moved > wait_s:
            why = _whys(cluster, namespace, name, found)
            if is_unseen:
                why = "the operator takes no notice of it: does it run, and does it look at this namespace?"
            raise SiteError(f"TidbCluster {name} is not ready after {now - began:.0f} s: {state}. {why}")
        if (state != told and now - began > 3) or now - told_at > wait.TOLD_EVERY_S:
            print(f"TidbCluster {name}: {state}, {now - began:.0f} s")
            told, told_at = state, now
        time.sleep(PAUSE_S)


def pods(cluster: Cluster, namespace: str, name: str) -> dict[str, list[Any]]:
    """Return the pods of a cluster by part, in order of their numbers."""
    found: dict[str, list[Any]] = {part: [] for part in PARTS}
    label = f"{INSTANCE}={name}"
    for pod in cluster.ask(cluster.core.list_namespaced_pod, namespace, label_selector=label).items:
        found.setdefault((pod.metadata.labels or {}).get(COMPONENT, "other"), []).append(pod)
    return {part: sorted(some, key=_number) for part, some in found.items()}


def lacking(resource: Mapping[str, Any], found: Mapping[str, list[Any]]) -> str | None:
    """Return how far a cluster is, in words; None if it is ready and all its pods run."""
    spec, status = resource["spec"], resource.get("status") or {}
    wanted = {part: int(spec[part]["replicas"]) for part in PARTS}
    running = _running(spec, found)
    ready = (one for one in status.get("conditions") or () if one["type"] == "Ready")
    said: Mapping[str, Any] = next(ready, {})
    if said.get("status") == "True" and running == wanted and not _is_moving(status):
        return None
    counts = ", ".join(f"{NAMES[part]} {running[part]} of {wanted[part]}" for part in PARTS)
    return f"{counts}; the operator says: {said.get('message') or said.get('reason') or 'nothing yet'}"


def _running(spec: Mapping[str, Any], found: Mapping[str, list[Any]]) -> dict[str, int]:
    """Return how many pods of each part run that were made of what is asked now."""
    return {part: sum(_is_as_asked(pod, spec[part]) for pod in found[part]) for part in PARTS}


def _is_as_asked(pod: Any, asked: Mapping[str, Any]) -> bool:
    env = {one.name: one.value for container in pod.spec.containers for one in container.env or ()}
    return wait.state(pod) is None and all(env.get(one["name"]) == one["value"] for one in asked["env"])


def _is_moving(status: Mapping[str, Any]) -> bool:
    """Say whether pods are still being made again with other settings."""
    sets = [(status.get(part) or {}).get("statefulSet") or {} for part in PARTS]
    return any(one.get("currentRevision") != one.get("updateRevision") for one in sets)


def _whys(cluster: Cluster, namespace: str, name: str, found: Mapping[str, list[Any]]) -> str:
    """Name every pod that does not run, why, and what the cluster says of it; else what it says of all."""
    told = []
    for part in found.values():
        for pod in part:
            state = wait.state(pod)
            if state is not None:
                seen = "; ".join(wait.events(cluster, namespace, pod.metadata.name)) or "none"
                told.append(f"{pod.metadata.name}: {state} (its events: {seen})")
    of_all = "; ".join(wait.events(cluster, namespace, name)) or "none"
    return ". ".join(told) or f"No pod of it is in trouble; its own events: {of_all}"


def _number(pod: Any) -> tuple[int, str]:
    last = pod.metadata.name.rpartition("-")[2]
    return (int(last) if last.isdigit() else 0, pod.metadata.name)


READ_S = 600.0


def open_one(
    space: StudyNamespace,
    pod: str,
    port: int,
    password: str | None = None,
    read_timeout: float = 30.0,
    **account: Any,
) -> pymysql.Connection:
    """Return a connection to a port of a pod, the administrator's if no other account is named."""
    known = {"user": ADMIN, "password": space.admin_password() if password is None else password}
    try:
        host = space.host_of(pod)
    except ConnectionError as error:
        raise pymysql.err.OperationalError(through_agent.UNREACHABLE, str(error)) from None
    return through_agent.connect(host, (LOOPBACK, port), read_timeout=read_timeout, **known | account)


def engine(space: StudyNamespace, pod: str, port: int) -> sqlalchemy.Engine:
    """Return an engine whose connections are new each time."""
    return sql.engine(lambda: open_one(space, pod, port, None, READ_S, database=labs.SCHEMA))


def tell(connection: Any, record: Any) -> None:
    """Write a session's whole number into an engine's record."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT CONNECTION_ID()")
        record.info["session"] = int(cursor.fetchone()[0])


def ask(space: StudyNamespace, pod: str, port: int, question: str, timeout_s: float = 5.0) -> str | None:
    """Return the one value that a server answers over a connection of its own; None if none answers."""
    try:
        with open_one(space, pod, port, None, timeout_s) as connection, connection.cursor() as cursor:
            cursor.execute(question)
            return cursor.fetchone()[0]
    except (pymysql.err.Error, OSError):
        return None
