"""A DaemonSet that does something once on each node of some pools, and stays as the proof of it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchbook.sites.kube.layout import Names

# Entered with all that a node has of its own; the script is the node's, and so are the tools in it.
ENTER = 'nsenter -t 1 -m -n -u -i -- sh -c "$0" && touch /tmp/done && exec sleep infinity'


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
