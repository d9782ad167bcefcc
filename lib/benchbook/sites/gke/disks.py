"""Local SSDs of a GKE cluster as volumes: formatted and mounted with a source's options, one a claim. Pure.

A DaemonSet of ours formats each SSD once and mounts it; a PersistentVolume for each mount lets a claim of
the storage class have it. Both carry the lab's labels and are removed with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchbook.core.study_gke import Gke
from benchbook.sites.gke import nodes as daemons
from benchbook.sites.kube.layout import Names

CLASS = "benchbook-local"
MOUNTS = "/mnt/disks"
# Where a node shows its local SSDs, by interface, as Google documents it: raw NVMe disks of
# `--local-nvme-ssd-block` on GKE's pages, SCSI disks of `--local-ssd-count` on Compute Engine's.
DEVICES = {
    "nvme": "/dev/disk/by-id/google-local-ssd-block[0-9]*",
    "scsi": "/dev/disk/by-id/google-local-ssd-[0-9]*",
}
# GKE has formatted and mounted SCSI disks already, without the source's options.
SCRIPT = """set -eu
number=0
for device in {devices}; do
  case $device in *-part*) continue ;; esac
  [ -b "$device" ] || continue
  at={mounts}/benchbook-$number
  number=$((number + 1))
  mkdir -p "$at"
  mountpoint -q "$at" && continue
  while mounted=$(findmnt -n -o TARGET --first-only "$(readlink -f "$device")"); do umount "$mounted"; done
  blkid "$device" >/dev/null || mkfs.ext4 -q -m 0 "$device"
  mount -t ext4 -o {options} "$device" "$at"
done
if [ "$number" -ne {count} ]; then
  echo "$number local SSDs at {devices}, {count} were asked for; look at /dev/disk/by-id" >&2
  exit 1
fi
grep " {mounts}/benchbook-" /proc/mounts
"""


def storage_class(names: Names) -> dict[str, Any]:
    """Return the storage class of these disks: a claim waits until its pod has a node."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": CLASS, "labels": dict(names.labels)},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
        "reclaimPolicy": "Delete",
    }


def mounting(asked: Gke, names: Names, image: str) -> list[dict[str, Any]]:
    """Return for each pool with local SSDs the DaemonSet that formats and mounts them."""
    made = []
    for name, pool in asked.pools.items():
        if pool.local_ssds:
            # It fails where a node shows another number of disks than was asked for.
            script = SCRIPT.format(
                devices=DEVICES[pool.ssd_interface],
                count=pool.local_ssds,
                mounts=MOUNTS,
                options=asked.ssd_options,
            )
            made.append(daemons.on_nodes(f"disks-{name}", (name,), names, image, script))
    return made


def volumes(
    asked: Gke, names: Names, nodes: Mapping[str, Sequence[str]], size_gib: int
) -> list[dict[str, Any]]:
    """Return a volume for each SSD; `nodes` maps a pool to the names of its nodes."""
    disks = [
        (node, disk)
        for pool, named in sorted(nodes.items())
        for node in sorted(named)
        for disk in range(asked.pools[pool].local_ssds)
    ]
    found = []
    for node, disk in disks:
        on_node = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
        spec = {
            "capacity": {"storage": f"{size_gib}Gi"},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Delete",
            "storageClassName": CLASS,
            "local": {"path": f"{MOUNTS}/benchbook-{disk}"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [on_node]}]}},
        }
        metadata = {"name": f"{names.namespace[:30]}-{node}-{disk}", "labels": dict(names.labels)}
        found.append({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": spec})
    return found
