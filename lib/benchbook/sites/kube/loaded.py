"""Data that can't be copied: which tables were loaded into which TiDB cluster, kept in the lab.

A cluster that was made again is another one, and its tables are gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from benchbook.core import files
from benchbook.core.errors import SiteError
from benchbook.sites.kube.layout import Chain, Part
from benchbook.sites.kube.tidb_cluster import TidbCluster

FILE = "loaded.json"


def groups(chains: Mapping[str, Chain]) -> list[list[str]]:
    """Return the arms by the cluster that they share, those of the baseline first."""
    found: dict[Part, list[str]] = {}
    for arm, chain in chains.items():
        found.setdefault(chain.server, []).append(arm)
    return list(found.values())


def note(folder: Path, label: str, server: TidbCluster) -> None:
    """Note that the tables of a label are loaded."""
    path = folder / FILE
    known = files.read_json(path) if path.exists() else {}
    files.write_json(path, known | {server.part.name: {"label": label, "cluster": server.uid()}})


def has(folder: Path, label: str | None, server: TidbCluster) -> bool:
    """Say whether the tables of a label (None: of any) were loaded into the cluster that is there now."""
    path = folder / FILE
    known = (files.read_json(path) if path.exists() else {}).get(server.part.name)
    if known is None or known["cluster"] != server.uid():
        return False
    return label is None or known["label"] == label


def must_have(folder: Path, label: str | None, servers: Iterable[TidbCluster]) -> None:
    """Take the tables as they are: what reads left whole is whole, what was changed is loaded again."""
    for server in servers:
        if not has(folder, label, server):
            raise SiteError(
                f"TidbCluster {server.part.name} holds no tables of this data set; run the prepare stage"
            )
        server.ensure()
