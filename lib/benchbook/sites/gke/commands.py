"""`benchbook cluster STUDY up|down`: make or remove the cluster that a study describes, when asked."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchbook.core.errors import InputErrors, SiteError
from benchbook.core.study import Study
from benchbook.core.study_kubernetes import Gke
from benchbook.sites import lab as labs
from benchbook.sites.gke import nodes, steps
from benchbook.sites.gke.steps import Step
from benchbook.sites.kube import layout, manifests, preview, wait
from benchbook.sites.kube.api import Cluster, wait_for

RECORD = "gke.json"
# Any image with `sh`, `sleep`, `touch` and `nsenter`; all else is done by the tools of the node.
NODE_IMAGE = "debian:bookworm-slim"
NODES_S = 600.0


def up(study: Study, folder: Path, run: steps.Runner | None = None, which: Any = shutil.which) -> Path:
    """Make what is missing of a study's cluster, and TiDB Operator if needed; return the kubeconfig."""
    asked, lab, tidb = _asked(study), labs.open_lab(folder), layout.asked(study).tidb
    version = None if tidb is None else tidb.operator_version
    must_have_programs(version is not None, which)
    record = {"gke": asked.model_dump(mode="json"), "id": lab.token[:8]}
    # Before the first command: what is half made must be found again.
    labs.write_private(folder / RECORD, json.dumps(record))
    tool = steps.Gcloud(asked, lab.token[:8], lab.run, run)
    kubeconfig = tool.up()
    for number, step in enumerate(operator_steps(version) if version is not None else ()):
        code, said = tool.run(step.look, tool.reached)
        there = installed_operator(said) if number == 1 and code == 0 else None
        if there not in (None, version):
            raise SiteError(
                f"TiDB Operator {there} is in the cluster and {version} was asked for; remove it with "
                f"`helm uninstall {RELEASE} --namespace {NAMESPACE}`"
            )
        if there or (number == 0 and code == 0):
            print(f"{step.resource}: there already")
            continue
        print(f"{step.resource}: {shlex.join(step.make)}")
        tool.must(step.make, f"{step.resource}: could not be installed", tool.reached)
    return kubeconfig


def summary(study: Study) -> list[str]:
    """Return, in lines for `plan`, what makes a study's cluster; none where it names no cluster to make."""
    here = layout.asked(study)
    if here.gke is None:
        return []
    installed = operator_steps(here.tidb.operator_version) if here.tidb is not None else []
    return steps.summary(here.gke, preview.NO_TOKEN[:8]) + [
        f"  command   {shlex.join(step.make)}" for step in installed
    ]


def prepare_nodes(study: Study, folder: Path, kubeconfig: Path) -> list[str]:
    """Make settings and disks of the nodes, each read back on every node, and return the volumes of disks."""
    asked, lab, here = _asked(study), labs.open_lab(folder), layout.asked(study)
    names = layout.names("disks", lab.token)
    settings, mounts = nodes.settings(asked, names, NODE_IMAGE), nodes.mounting(asked, names, NODE_IMAGE)
    if settings is None and not mounts:
        return []
    cluster = Cluster(None, kubeconfig)
    cluster.apply(manifests.of_study(names)[0])
    for made in filter(None, (settings, *mounts)):
        _on_all_nodes(cluster, made)
    if not mounts:
        return []
    cluster.apply(nodes.storage_class(names))
    of_pool: dict[str, list[str]] = {}
    for node in cluster.ask(cluster.core.list_node).items:
        pool = (node.metadata.labels or {}).get("benchbook-pool")
        if pool in asked.pools:
            of_pool.setdefault(pool, []).append(node.metadata.labels["kubernetes.io/hostname"])
    volumes = nodes.volumes(asked, names, of_pool, here.storage.size_gib)
    for volume in volumes:
        cluster.apply(volume)
    return [volume["metadata"]["name"] for volume in volumes]


def _on_all_nodes(cluster: Cluster, made: dict[str, Any]) -> None:
    """Wait until a DaemonSet has done its work on every node that it is for."""
    name, namespace = made["metadata"]["name"], made["metadata"]["namespace"]
    cluster.apply(made)

    def done() -> bool:
        status = cluster.apply(made).status
        wanted = status and status.desiredNumberScheduled
        return bool(wanted and status.numberReady == wanted)

    if not wait_for(done, NODES_S, 5.0):
        pods = cluster.ask(
            cluster.core.list_namespaced_pod, namespace, label_selector=f"benchbook/part={name}"
        ).items
        said = (wait.last_words(cluster, namespace, pod.metadata.name) for pod in pods)
        told = "; ".join(dict.fromkeys(filter(None, said))) or "see its pods"
        raise SiteError(f"{name}: not done on every node after {NODES_S:.0f} s: {told}")


def down(folder: Path, ask: Callable[[str], str] = input, run: steps.Runner | None = None) -> bool:
    """Remove the cluster that a lab made, once its name has been typed; say whether none is left."""
    known = recorded(folder)
    if known is None:
        return True
    asked, id = known
    name = ask(f"Remove the cluster {asked.name} with all its nodes and disks? Type its name: ").strip()
    if not steps.Gcloud(asked, id, folder / "run", run).down(name):
        return False
    (folder / RECORD).unlink()
    return True


def recorded(folder: Path) -> tuple[Gke, str] | None:
    """Return the cluster that a lab made, with the lab's id, or None."""
    record = folder / RECORD
    if not record.is_file():
        return None
    found = json.loads(record.read_text(encoding="utf-8"))
    return Gke.model_validate_json(json.dumps(found["gke"])), str(found["id"])


def _asked(study: Study) -> Gke:
    asked = layout.asked(study).gke
    if asked is None:
        raise InputErrors(["site.kubernetes.gke: missing; describe the cluster, or use one that is there"])
    return asked


RELEASE, NAMESPACE = "tidb-operator", "tidb-admin"
CHARTS = "https://charts.pingcap.org/"
TYPES = "https://raw.githubusercontent.com/pingcap/tidb-operator/v{version}/manifests/crd.yaml"
# GKE's clusters let only those in who have the plugin; without it a cluster would be made and not be reached.
REACHING, INSTALLING = ("gcloud", "gke-gcloud-auth-plugin"), ("kubectl", "helm")


def operator_steps(version: str) -> list[Step]:
    """Return the steps that install a version of the operator, as its maker has them; no scheduler."""
    types = TYPES.format(version=version)
    look = ("helm", "list", "--namespace", NAMESPACE, "--filter", f"^{RELEASE}$", "--output", "json")
    where = ("--repo", CHARTS, "--version", f"v{version}", "--namespace", NAMESPACE, "--create-namespace")
    chart = ("helm", "upgrade", "--install", RELEASE, RELEASE, *where, "--set", "scheduler.create=false")
    known = ("kubectl", "get", "--filename", types, "--output", "name")
    made = ("kubectl", "apply", "--server-side", "--force-conflicts", "--filename", types)
    return [
        Step(f"types of TiDB Operator {version}", known, made),
        Step(f"TiDB Operator {version}", look, (*chart, "--wait")),
    ]


def installed_operator(said: str) -> str | None:
    """Return the version of the operator by what `helm list` printed as JSON; None if there is none."""
    try:
        found: list[dict[str, Any]] = json.loads(said or "[]")
    except ValueError:
        return None
    return next((str(one["chart"]).removeprefix(f"{RELEASE}-v") for one in found), None)


def must_have_programs(is_installed: bool, which: Callable[[str], str | None]) -> None:
    """Raise SiteError if a program that makes and reaches a cluster is not on this machine, or one that
    installs the operator where `is_installed` says that it will be: before anything costs money."""
    needed = [*REACHING, *(INSTALLING if is_installed else ())]
    absent = [name for name in needed if which(name) is None]
    if absent:
        raise SiteError(
            f"{', '.join(absent)}: not found on this machine, and the cluster is made and reached with "
            f"{', '.join(needed)}; nothing was made"
        )
