"""Remove the namespace that a lab has in a cluster, also by another process and later."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchbook.core.errors import SiteError
from benchbook.sites.kube.layout import RECORD

# A namespace, and a cluster that was made for a lab.
RECORDS = (RECORD, "gke.json")


def down(folder: Path, token: str | None, report: Any, purge: bool = False) -> None:
    """Remove the namespace that a lab has in a cluster; most labs have used none."""
    record = folder / RECORD
    if not record.is_file():
        return
    # The client of Kubernetes takes long to load.
    from benchbook.sites.kube import namespace

    try:
        report.removed += namespace.down(folder)
    except SiteError as error:
        report.elsewhere.append(f"{error} (if that cluster is no more, remove {record})")
