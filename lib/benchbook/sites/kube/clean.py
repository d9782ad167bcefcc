"""Remove the namespace that a lab has in a cluster, also by another process and later."""

import json
from pathlib import Path
from typing import Any

from benchbook.core.util.errors import SiteError
from benchbook.sites.kube.placement import RECORD

# A namespace, and a cluster that was made for a lab.
RECORDS = (RECORD, "gke.sh")


def down(folder: Path, token: str | None, report: Any, purge: bool = False) -> None:
    """Remove the namespace that a lab has in a cluster; most labs have used none."""
    record = folder / RECORD
    if not record.is_file():
        return
    # The client of Kubernetes takes long to load.
    from benchbook.sites.kube import namespace
    from benchbook.sites.kube.api import KubernetesCluster

    record_data = json.loads(record.read_text(encoding="utf-8"))
    cluster = KubernetesCluster(record_data["context"], Path(record_data["kubeconfig"]))
    name = record_data["namespace"]
    try:
        was_there = namespace.find_namespace(cluster, name) is not None
        if not namespace.remove_namespace(cluster, name, record_data["token"]):
            raise SiteError(f"the namespace {name} does not end; look at its objects")
        record.unlink()
        report.removed += [f"namespace {name}"] if was_there else []
    except SiteError as error:
        report.elsewhere.append(f"{error} (if that cluster is no more, remove {record})")
