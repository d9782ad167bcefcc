"""Settings of nodes that GKE's own configuration does not take: kernel settings and open files. Pure.

A DaemonSet of ours makes them as root in its node's own namespaces, and reads each back: its pods are ready
only where a node has what was asked for.
"""

from __future__ import annotations

from typing import Any

from benchbook.core.study_gke import Gke
from benchbook.sites.gke import daemon
from benchbook.sites.kube.layout import Names

NAME = "node-settings"
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
    return daemon.on_nodes(NAME, tuple(asked.pools), names, image, f"set -eu\n{script}")
