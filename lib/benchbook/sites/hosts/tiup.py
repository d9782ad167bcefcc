"""Input of `tiup` for a TiDB cluster: its topology, from study and inventory alone; pure."""

import io
import itertools
from collections.abc import Mapping
from typing import Any

from ruamel.yaml import YAML

from benchbook.core.study.engines import engine_of
from benchbook.core.study.inventory import Target
from benchbook.core.study.study import StudySpec
from benchbook.core.study.study_hosts import Numa
from benchbook.core.util.errors import require_value
from benchbook.sites.hosts.placement import EXPORTERS_AT, PD_AT, TIKV_AT, Part
from benchbook.sites.tidb import config

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def build_settings(study: StudySpec, part: Part) -> config.TidbSettings:
    """Settings asked of each TiDB of a cluster: its items, and its variables."""
    engine = engine_of(study, part.arm)
    settings = {**engine.settings, **merge_configs(study, part.arm)["tidb"]}
    return config.complete_settings(settings, require_value(engine.version))


def merge_configs(study: StudySpec, arm: str) -> dict[str, dict[str, Any]]:
    """Settings of each part of an arm's cluster: the site's, with the arm's on top."""
    return config.of_parts(study.site.tiup, study.arms[arm].parts)


def build_topology(
    study: StudySpec,
    part: Part,
    targets: Mapping[str, Target],
    folders: Mapping[str, str],
    facts: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    """Topology of a cluster; `folders` are ours on the hosts, `facts` the hosts' own."""
    tiup, wanted = require_value(study.site.tiup), merge_configs(study, part.arm)
    numa = study.arms[part.arm].numa or Numa()
    of_role = {role: [host for what, host in part.where.others if what == role] for role in ("pd", "tikv")}
    base = part.where.places[0].port
    pd, exporters, items = base + PD_AT, base + EXPORTERS_AT, build_settings(study, part).items
    architecture = facts[part.where.host]["architecture"]

    def place(host: str, what: str, at: int, node: int | None = None, **ports: Any) -> dict[str, Any]:
        target, folder = targets[host], f"{folders[host]}/{part.name}/{what}-{at}"
        there = {"host": target.address, "ssh_port": target.port, "deploy_dir": folder}
        there |= {"log_dir": f"{folder}/log", **ports}
        there |= {} if what == "tidb" else {"data_dir": f"{folder}/data"}
        return there if node is None else {**there, "numa_node": str(node)}

    return {
        "global": {"user": tiup.user, "arch": ARCHITECTURES.get(architecture, architecture)},
        "monitored": {"node_exporter_port": exporters, "blackbox_exporter_port": exporters + 1},
        "server_configs": {"tidb": dict(items), "tikv": wanted["tikv"], "pd": wanted["pd"]},
        "pd_servers": [
            place(host, "pd", pd, name=f"pd-{rank}", client_port=pd, peer_port=pd + 1)
            for rank, host in enumerate(of_role["pd"], start=1)
        ],
        "tidb_servers": [
            place(end.host, "tidb", end.port, end.node, port=end.port, status_port=end.port + 1)
            | _limit_cores(facts[end.host], end.node)
            for end in part.where.places
        ],
        "tikv_servers": [
            place(host, "tikv", port, node, port=port, status_port=port + 1)
            for host in of_role["tikv"]
            for port, node in zip(itertools.count(base + TIKV_AT, 2), numa.tikv or (None,), strict=False)
        ],
    }


def topology_text(topology: Mapping[str, Any]) -> str:
    """Topology as YAML, the same for the same topology."""
    yaml, stream = YAML(), io.StringIO()
    yaml.width = 1000
    yaml.dump(dict(topology), stream)
    return stream.getvalue()


def _limit_cores(facts: Mapping[str, Any], node: int | None) -> dict[str, Any]:
    """Settings for the number of a NUMA node's cores, from the kernel's list of them, such as 0-9,20-29."""
    if not (listed := (facts.get("numa") or {}).get(f"node{node}")):
        return {}
    ends = [item.split("-") for item in listed.split(",")]
    cores = sum(int(end[-1]) - int(end[0]) + 1 for end in ends)
    return {"config": {"performance.max-procs": cores}}
