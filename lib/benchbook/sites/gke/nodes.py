"""What is done once on each node of some pools, and their local SSDs as volumes, one a claim. Pure.

It is done by a DaemonSet of ours, which stays as the proof of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchbook.core.study_kubernetes import Gke
from benchbook.sites.kube.layout import Names

NAME = "node-settings"
# Entered with all that a node has of its own; the script is the node's, and so are the tools in it.
ENTER = 'nsenter -t 1 -m -n -u -i -- sh -c "$0" && touch /tmp/done && exec sleep infinity'
SYSCTL = """sysctl -q -w {name}={value}
[ "$(sysctl -n {name})" = {value} ] || {{ echo "{name} is $(sysctl -n {name}), not {value}" >&2; exit 1; }}
"""
# Containers get the limit of containerd at their start; those that run now go on with theirs.
FILES = """[ "$(sysctl -n fs.nr_open)" -ge {most} ] || sysctl -q -w fs.nr_open={most}
folder=/etc/systemd/system/containerd.service.d
wanted='[Service]
LimitNOFILE={most}'
if [ "$(cat $folder/benchbook.conf 2>/dev/null)" != "$wanted" ]; then
  mkdir -p $folder
  echo "$wanted" >$folder/benchbook.conf
  systemctl daemon-reload
  systemctl restart containerd
fi
got=$(systemctl show -p LimitNOFILE --value containerd)
[ "$got" = {most} ] || {{ echo "open files of containers: $got, not {most}" >&2; exit 1; }}
"""


def settings(asked: Gke, names: Names, image: str) -> dict[str, Any] | None:
    """Return the DaemonSet that makes and checks settings on the nodes of all pools; None without any."""
    script = "".join(SYSCTL.format(name=name, value=value) for name, value in sorted(asked.by_hand.items()))
    # What GKE was asked for is looked at too: a node may not have it.
    for name, value in sorted(asked.by_configuration.items()):
        script += SYSCTL.format(name=name, value=value).partition("\n")[2]
    if asked.open_files is not None:
        script += FILES.format(most=asked.open_files)
    if not script:
        return None
    return on_nodes(NAME, tuple(asked.pools), names, image, f"set -eu\n{script}")


def on_nodes(name: str, pools: Sequence[str], names: Names, image: str, script: str) -> dict[str, Any]:
    """Return a DaemonSet that runs a script as root in the namespaces of each node of these pools."""
    needed = {"key": "benchbook-pool", "operator": "In", "values": list(pools)}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [needed]}]}
    container = {
        "name": "node",
        "image": image,
        "command": ["sh", "-c", ENTER, script],
        "securityContext": {"privileged": True},
        # Ready when the script has ended well, so that "all ready" says that every node is done.
        "readinessProbe": {"exec": {"command": ["test", "-e", "/tmp/done"]}, "periodSeconds": 2},
    }
    pod = {
        "hostPID": True,
        "automountServiceAccountToken": False,
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}},
        "tolerations": [{"key": "benchbook", "operator": "Exists"}],
        "containers": [container],
    }
    labels = dict(names.labels) | {"benchbook/part": name}
    spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}
    return names.manifest("DaemonSet", name, name, "apps/v1", spec=spec)


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
            made.append(on_nodes(f"disks-{name}", (name,), names, image, script))
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
