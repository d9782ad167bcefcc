"""A study's needs and objects in a cluster, before anything is asked of one. Pure."""

from collections.abc import Iterable, Iterator
from typing import Any

from benchbook.core.study import descriptors
from benchbook.core.study.study import StudySpec
from benchbook.core.study.study_arm import Arm
from benchbook.sites.kube import manifests, placement, tidb_manifests
from benchbook.sites.kube.placement import Chain, Part, StudyNames, get_section
from benchbook.sites.settings import parse_version

# Stands for the lab's token, which is drawn when the lab is made.
NO_TOKEN = "0" * 32
GIB = 1 << 30
# What a row of sysbench's tables takes with both indexes, roughly: MariaDB's pages are not full.
ROW_BYTES = 250
# Stores that each row is on, as PD has it by itself.
REPLICAS = 3


def render_plan(name: str, study: StudySpec) -> str:
    """Needs and objects of a study in a cluster, in lines indented as the rest of the plan."""
    names, chains = placement.build_names(name, NO_TOKEN), placement.build_chains(study).values()
    results = ["needs", *_list_needs(study, chains)]
    results.append(f"makes in namespace {names.namespace[: -len(NO_TOKEN[:8])]}…")
    parts = {part.name: part for chain in chains for part in placement.in_pods(chain)}
    for manifest in list_manifests(study, names):
        kind, what = manifest["kind"], manifest["metadata"]["name"]
        results.append(f"  {kind:12}{what}{_describe_room(parts[what]) if kind == 'StatefulSet' else ''}")
    return "\n".join(f"  {line}" for line in results)


def _list_needs(study: StudySpec, chains: Iterable[Chain]) -> Iterator[str]:
    """What must be there before: a cluster, images, room, hosts outside, an operator, nodes."""
    here = get_section(study)
    context = f", context {here.context}" if here.context else ""
    yield f"  cluster   one that BENCHBOOK_KUBECONFIG, KUBECONFIG or ~/.kube/config names{context}"
    yield f"  images    {', '.join(_list_images(study))}"
    yield f"  data      {_describe_data(study)}"
    if here.outside is not None and any(map(placement.count_outside, chains)):
        yield f"  outside   hosts of the inventory {here.outside} with the role client"
    if here.tidb is not None:
        is_ours = "installed by `benchbook cluster`" if here.gke is not None else "in the cluster"
        version = f"{here.tidb.operator_version} for TiDB {here.tidb.version}"
        yield f"  operator  TiDB Operator {version}, {is_ours}"
    wanted = {item for arm in study.arms.values() for item in placement.select_nodes(here, arm).items()}
    for role, labels in sorted(wanted):
        yield f"  nodes     for {role}: {', '.join(map('='.join, labels))}"


def render_manifests(name: str, study: StudySpec) -> str:
    """All manifests of a study as YAML, with nothing of it secret."""
    return manifests.render_yaml(list_manifests(study, placement.build_names(name, NO_TOKEN)))


def list_manifests(study: StudySpec, names: StudyNames) -> list[dict[str, Any]]:
    """Everything a study applies, each once, with nothing of it secret."""
    results: dict[tuple[str, str], dict[str, Any]] = {}
    for name, chain in placement.build_chains(study).items():
        if get_section(study).tidb is not None:
            objects = tidb_manifests.build_arm(study, names, name, chain)
        else:
            objects = manifests.build_arm(study, names, chain)
        for manifest in objects:
            results.setdefault((manifest["kind"], manifest["metadata"]["name"]), manifest)
    return [*manifests.build_study(names), *results.values()]


def _list_images(study: StudySpec) -> list[str]:
    here, chains = get_section(study), placement.build_chains(study).values()
    clients = [here.images.client] if any(chain.clients for chain in chains) else []
    if here.tidb is not None:
        return [*(f"pingcap/{part}:{here.tidb.version}" for part in tidb_manifests.PARTS), *clients]
    proxies = [here.images.proxy] if any(chain.proxy is not None for chain in chains) else []
    return [here.images.server, *clients, *proxies]


def _describe_data(study: StudySpec) -> str:
    """Room that the tables take, and its place: no copy of a TiKV's is kept."""
    data, cluster = study.dataset, get_section(study).tidb
    whole = data.tables * data.table_size * ROW_BYTES / GIB
    if cluster is None:
        return f"about {max(1.0, whole):.0f} GiB for each server, twice with its copy"
    stores = cluster.tikv.replicas
    share = whole * min(stores, REPLICAS) / stores
    return f"about {max(1.0, share):.0f} GiB in each TiKV of a cluster, of which no copy is kept"


def _describe_room(part: Part) -> str:
    resources = part.where.resources
    room = [f", {resources.request_cpu:g} cores"] if resources.request_cpu else []
    room += [f", {resources.request_mib} MiB"] if resources.request_mib else []
    return f": {resources.qos_class}, {part.where.network} network{''.join(room)}"


OPERATOR_KEY = "kubernetes.tidb"


def infeasible_reasons(study: StudySpec, chain: Chain) -> Iterator[str]:
    """Reasons against an arm's parts in any cluster."""
    if get_section(study).tidb is None:
        yield from _check_version(study, chain.arm)
        return
    if OPERATOR_KEY not in descriptors.find_engine(study.engine.name).clusters_by:
        engines = descriptors.load_engines().values()
        fit = ", ".join(engine.name for engine in engines if OPERATOR_KEY in engine.clusters_by)
        yield f"site.{OPERATOR_KEY} goes with engine.name: {fit}"
    if chain.others:
        yield f"servers: {len(chain.servers)}: a TiDB cluster has as many as site.{OPERATOR_KEY} says"
    if chain.proxy is not None:
        yield "a TiDB cluster is reached by direct, service or load_balancer"


def _check_version(study: StudySpec, arm: Arm) -> Iterator[str]:
    asked = arm.engine or study.engine
    of = descriptors.find_engine(asked.name or study.engine.name)
    version = asked.version or study.engine.version
    if of.closed_since and version and parse_version(version) < parse_version(of.closed_since):
        yield (
            f"engine.version: {version}: before {of.closed_since} {of.product} lets anybody in before it "
            f"has accounts; write {of.closed_since} or a later one"
        )
