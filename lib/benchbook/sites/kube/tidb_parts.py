"""The pods of a TiDB cluster: who they are, what each says, and the books of all TiDBs added up."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchbook.core.errors import SiteError
from benchbook.sites.engines.tidb import CRASH
from benchbook.sites.kube import connect, wait
from benchbook.sites.kube.namespace import StudyNamespace
from benchbook.sites.kube.pods import HOME
from benchbook.sites.kube.tidb import PARTS
from benchbook.sites.machine.contract import Request
from benchbook.sites.tidb import config, data
from benchbook.sites.tidb.placement import Placement
from benchbook.sites.tidb.status import METRICS, Status, flat, pool_seconds

# Ports that the operator gives them, and the administrator of a new cluster.
PORT, STATUS, PD, TIKV_STATUS = 4000, 10080, 2379, 20180
ADMIN = "root"
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
        said = connect.ask(*self.reached(pod), "SELECT @@tidb_config", SETTLED_S)
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
