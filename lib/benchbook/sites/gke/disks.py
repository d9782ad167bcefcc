"""Local SSDs of a GKE cluster as volumes: formatted and mounted with a source's options, one a claim. Pure.

A DaemonSet of ours formats each raw SSD once and mounts it; a PersistentVolume for each mount lets a claim of
the storage class have it. Both carry the lab's labels and are removed with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchbook.core.study_gke import Gke
from benchbook.sites.kube.layout import Names

CLASS = "benchbook-local"
MOUNTS = "/mnt/disks"
# GKE's own name of a raw local SSD.
DEVICES = "/dev/disk/by-id/google-local-nvme-ssd-block"
SCRIPT = """set -eu
for device in {devices}*; do
  [ -e "$device" ] || continue
  at={mounts}/benchbook-${{device##*block}}
  mkdir -p "$at"
  mountpoint -q "$at" && continue
  blkid "$device" >/dev/null || mkfs.ext4 -q -m 0 "$device"
  mount -t ext4 -o {options} "$device" "$at"
done
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


def mounting(asked: Gke, names: Names, image: str) -> dict[str, Any]:
    """Return the DaemonSet that formats and mounts the SSDs of every pool that has any.

    It enters its node's own namespaces, which needs a privileged container.
    """
    labels = dict(names.labels) | {"benchbook/part": "disks"}
    script = SCRIPT.format(devices=DEVICES, mounts=MOUNTS, options=asked.ssd_options)
    pools = [name for name, pool in asked.pools.items() if pool.local_ssds]
    container = {
        "name": "disks",
        "image": image,
        "command": ["sh", "-c", 'nsenter -t 1 -m -- sh -c "$0" && exec sleep infinity', script],
        "securityContext": {"privileged": True},
    }
    needed = {"key": "benchbook-pool", "operator": "In", "values": pools}
    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [needed]}]
            }
        }
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "disks", "namespace": names.namespace, "labels": labels},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "hostPID": True,
                    "automountServiceAccountToken": False,
                    "affinity": affinity,
                    "tolerations": [{"key": "benchbook", "operator": "Exists"}],
                    "containers": [container],
                },
            },
        },
    }


def volumes(
    asked: Gke, names: Names, nodes: Mapping[str, Sequence[str]], size_gib: int
) -> list[dict[str, Any]]:
    """Return a volume for each SSD; `nodes` maps a pool to the names of its nodes."""
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": f"{names.namespace[:30]}-{node}-{disk}", "labels": dict(names.labels)},
            "spec": {
                "capacity": {"storage": f"{size_gib}Gi"},
                "accessModes": ["ReadWriteOnce"],
                "persistentVolumeReclaimPolicy": "Delete",
                "storageClassName": CLASS,
                "local": {"path": f"{MOUNTS}/benchbook-{disk}"},
                "nodeAffinity": {
                    "required": {
                        "nodeSelectorTerms": [
                            {
                                "matchExpressions": [
                                    {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
                                ]
                            }
                        ]
                    }
                },
            },
        }
        for pool, named in sorted(nodes.items())
        for node in sorted(named)
        for disk in range(asked.pools[pool].local_ssds)
    ]
