"""`benchbook cluster STUDY up|down`: make or remove the cluster that a study describes, when asked."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from benchbook.core.errors import InputErrors, SiteError
from benchbook.core.study import Study
from benchbook.core.study_gke import Gke
from benchbook.sites import lab as labs
from benchbook.sites.gke import disks, steps
from benchbook.sites.kube import layout
from benchbook.sites.kube.api import Cluster, wait_for

RECORD = "gke.json"
# Any image with `sh`, `sleep` and `nsenter`; the system's own tools format and mount.
DISKS_IMAGE = "debian:bookworm-slim"
MOUNT_S = 600.0


def up(study: Study, folder: Path, run: steps.Runner | None = None) -> Path:
    """Make what is missing of a study's cluster, and return the kubeconfig that reaches it."""
    asked, lab = _asked(study), labs.open_lab(folder)
    record = {"gke": asked.model_dump(mode="json"), "id": lab.token[:8]}
    # Before the first command: what is half made must be found again.
    labs.write_private(folder / RECORD, json.dumps(record))
    return steps.Gcloud(asked, lab.token[:8], lab.run, run).up()


def volumes(study: Study, folder: Path, kubeconfig: Path) -> list[str]:
    """Format and mount the local SSDs of a cluster and make a volume of each; return the volumes' names."""
    asked, lab, here = _asked(study), labs.open_lab(folder), layout.asked(study)
    if not any(pool.local_ssds for pool in asked.pools.values()):
        return []
    cluster, names = Cluster(None, kubeconfig), layout.names("benchbook", "disks", lab.token)
    space = {"apiVersion": "v1", "kind": "Namespace"}
    cluster.apply({**space, "metadata": {"name": names.namespace, "labels": dict(names.labels)}})
    cluster.apply(disks.storage_class(names))
    made = cluster.apply(disks.mounting(asked, names, DISKS_IMAGE))

    def mounted() -> bool:
        status = cluster.apply(disks.mounting(asked, names, DISKS_IMAGE)).status
        return bool(
            status and status.desiredNumberScheduled and status.numberReady == status.desiredNumberScheduled
        )

    if not wait_for(mounted, MOUNT_S, 5.0):
        raise SiteError(
            f"{made.metadata.name}: local SSDs are not mounted after {MOUNT_S:.0f} s; see its pods"
        )
    nodes: dict[str, list[str]] = {}
    for node in cluster.ask(cluster.core.list_node).items:
        pool = (node.metadata.labels or {}).get("benchbook-pool")
        if pool in asked.pools:
            nodes.setdefault(pool, []).append(node.metadata.labels["kubernetes.io/hostname"])
    made = disks.volumes(asked, names, nodes, here.storage.size_gib)
    for volume in made:
        cluster.apply(volume)
    return [volume["metadata"]["name"] for volume in made]


def down(folder: Path, ask: Callable[[str], str] = input, run: steps.Runner | None = None) -> bool:
    """Remove the cluster that a lab made, once its name has been typed; say whether none is left."""
    known = recorded(folder)
    if known is None:
        return True
    asked, id = known
    name = ask(f"Remove the cluster {asked.name} with all its nodes and disks? Type its name: ").strip()
    if not steps.Gcloud(asked, id, folder / "run", run).down(name):
        return False
    (folder / RECORD).unlink()
    return True


def recorded(folder: Path) -> tuple[Gke, str] | None:
    """Return the cluster that a lab made, with the lab's id, or None."""
    record = folder / RECORD
    if not record.is_file():
        return None
    found = json.loads(record.read_text(encoding="utf-8"))
    return Gke.model_validate_json(json.dumps(found["gke"])), str(found["id"])


def _asked(study: Study) -> Gke:
    asked = layout.asked(study).gke
    if asked is None:
        raise InputErrors(["site.kubernetes.gke: missing; describe the cluster, or use one that is there"])
    return asked
