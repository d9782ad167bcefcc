"""What the parts of a TiDB cluster on hosts say of themselves: processes, settings, versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from benchbook.core.errors import SettingsDiffer
from benchbook.core.study_hosts import Numa
from benchbook.sites import settings as values
from benchbook.sites import sql
from benchbook.sites.hosts.arrange import PD_AT, TIKV_AT, Part
from benchbook.sites.hosts.host import Host
from benchbook.sites.tidb import data
from benchbook.sites.tidb.status import Status

STORAGE = "TiKV, as tiup made it; no copy of the tables is kept"


def pids(hosts: Mapping[str, Host], part: Part, numa: Numa | None = None) -> dict[str, dict[str, list[int]]]:
    """Return the processes of `tidb`, `tikv` and `pd` by host: those that listen on the parts' ports."""
    base = part.where.places[0].port
    ports: dict[str, list[tuple[str, int]]] = {"tidb": [(one.host, one.port) for one in part.where.places]}
    for role, at, most in (("tikv", TIKV_AT, max(1, len((numa or Numa()).tikv))), ("pd", PD_AT, 1)):
        named = [host for what, host in part.where.others if what == role]
        ports[role] = [(host, base + at + 2 * rank) for host in named for rank in range(most)]
    found: dict[str, dict[str, list[int]]] = {}
    for role, places in ports.items():
        for host, port in places:
            there = [one["pid"] for one in hosts[host].call("listeners", port=port) if one["pid"]]
            found.setdefault(role, {}).setdefault(host, []).extend(there)
    return found


def facts(cluster: Any, shown: dict[str, Any]) -> dict[str, Any]:
    """Return what a cluster is; `shown` is what tiup says. SettingsDiffer where a setting was not taken."""
    told, differing = settings(cluster, cluster.statuses)
    if differing:
        raise SettingsDiffer(differing)
    variables = sql.variables(cluster.admin())
    with cluster.admin().connect() as connection:
        kept = data.stored(connection, cluster.configs)
    parts = [{key: one.get(key) for key in ("id", "role", "status")} for one in shown["instances"]]
    return data.facts(cluster.engine.version, STORAGE, told, variables, PurePath("DATA")) | {
        "config_hash": cluster.config_hash,
        "cluster": {
            "version": shown["cluster_meta"].get("cluster_version"),
            "topology_sha256": cluster.config_hash,
            "tiup": cluster.looks[cluster.control.name].facts["tiup"],
            "parts": parts,
            "stored": kept,
        },
    }


def settings(cluster: Any, statuses: Sequence[Status]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return asked and got of every setting of TiDB, and what any of them did not take."""
    asked = cluster.asked
    mine = {**cluster.engine.settings, **cluster.configs["tidb"]}
    told: dict[str, Any] = {}
    differing: dict[str, Any] = {}
    for number, status in enumerate(statuses):
        variables = sql.variables(cluster.admin(number))
        items = status.config()
        # A setting of ours, not the study's, that a version doesn't know is told and no fault.
        differing |= {
            key: pair
            for key, pair in asked.differences(items, variables).items()
            if key in mine or pair[1] is not None
        }
        for key, value in sorted((asked.items | asked.variables).items()):
            got = asked.got(key, items, variables)
            said = {"asked": values.text(value), "got": got if got is not None else data.NOT_READ}
            told.setdefault(key, said | {"from": "study" if key in mine else "benchbook"})
    return told, differing
