"""What is done once on each node of some pools by a DaemonSet of ours, which stays as the proof of it. Pure.

Its pods are ready only where a node has what was asked for, such as the settings that GKE's own configuration
does not take: kernel settings and open files, made as root in a node's own namespaces, each read back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchbook.core.study_gke import Gke
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
