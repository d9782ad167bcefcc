"""A cluster on Google Kubernetes Engine, which `benchbook cluster STUDY up|down` makes or removes.

A study's section becomes steps, each one resource with the command that looks for it and the one that makes
it, so that all can be read before anything is asked for. What was not labelled by the same lab is never
removed. Nothing here knows a price.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchbook.core.errors import InputErrors, SiteError
from benchbook.core.study import Study
from benchbook.core.study_kubernetes import Gke, Pool
from benchbook.sites import lab as labs
from benchbook.sites.gke import nodes
from benchbook.sites.kube import layout, manifests, preview, wait
from benchbook.sites.kube.api import Cluster, wait_for

RECORD = "gke.json"
# Any image with `sh`, `sleep`, `touch` and `nsenter`; all else is done by the tools of the node.
NODE_IMAGE = "debian:bookworm-slim"
NODES_S = 600.0
GCLOUD = "gcloud"
LABEL = "benchbook-lab"
# Nodes that repair or upgrade themselves in the middle of a run would be another arm.
STEADY = ("--no-enable-autoupgrade", "--no-enable-autorepair")

# What asks for local SSDs, by interface.
SSDS = {"nvme": "--local-nvme-ssd-block=count={}", "scsi": "--local-ssd-count={}"}

# Runs a command with some additions to the environment; returns its exit code and what it printed.
Runner = Callable[[Sequence[str], dict[str, str]], tuple[int, str]]
RELEASE, NAMESPACE = "tidb-operator", "tidb-admin"
CHARTS = "https://charts.pingcap.org/"
TYPES = "https://raw.githubusercontent.com/pingcap/tidb-operator/v{version}/manifests/crd.yaml"
# GKE's clusters let only those in who have the plugin; without it a cluster would be made and not be reached.
REACHING, INSTALLING = ("gcloud", "gke-gcloud-auth-plugin"), ("kubectl", "helm")


@dataclass(frozen=True)
class Step:
    """One resource: `look` prints something if it is there, `make` makes it."""

    resource: str
    look: tuple[str, ...]
    make: tuple[str, ...]


def up(study: Study, folder: Path, run: Runner | None = None, which: Any = shutil.which) -> Path:
    """Make what is missing of a study's cluster, and TiDB Operator if needed; return the kubeconfig.

    SiteError if a program for that is not on this machine, before anything costs money.
    """
    asked, lab, tidb = _asked(study), labs.open_lab(folder), layout.asked(study).tidb
    needed = [*REACHING, *(INSTALLING if tidb is not None else ())]
    if absent := [name for name in needed if which(name) is None]:
        raise SiteError(
            f"{', '.join(absent)}: not found on this machine, and the cluster is made and reached with "
            f"{', '.join(needed)}; nothing was made"
        )
    record = {"gke": asked.model_dump(mode="json"), "id": lab.token[:8]}
    # Before the first command: what is half made must be found again.
    labs.write_private(folder / RECORD, json.dumps(record))
    tool = Gcloud(asked, lab.token[:8], lab.run, run)
    tool.up()
    if tidb is not None:
        tool.install(tidb.operator_version)
    return tool.kubeconfig


def summary(study: Study) -> list[str]:
    """Return, in lines for `plan`, what would be made and with which commands; the provider is not asked."""
    asked, tidb = _asked(study), layout.asked(study).tidb
    lines = [f"cluster     {asked.name} on GKE; no price is known here, look it up before you make it"]
    for pool, said in asked.pools.items():
        zones = said.zones or asked.zones
        many = f"{said.local_ssds} local SSD" if said.local_ssds == 1 else f"{said.local_ssds} local SSDs"
        disks = f", {many} each ({said.ssd_interface})" if said.local_ssds else ""
        lines.append(
            f"  pool      {pool}: {said.nodes * len(zones)} × {said.machine}, {said.image}, "
            f"in {', '.join(zones)}{disks}"
        )
    lines += [f"  command   {shlex.join(one.make)}" for one in steps(asked, preview.NO_TOKEN[:8], Path())]
    lines.append(f"  removed   {shlex.join(delete(asked))}")
    installed = operator_steps(tidb.operator_version) if tidb is not None else ()
    return lines + [f"  command   {shlex.join(step.make)}" for step in installed]


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


def down(folder: Path, ask: Callable[[str], str] = input, run: Runner | None = None) -> bool:
    """Remove the cluster that a lab made, once its name has been typed; say whether none is left."""
    known = recorded(folder)
    if known is None:
        return True
    asked, id = known
    name = ask(f"Remove the cluster {asked.name} with all its nodes and disks? Type its name: ").strip()
    if not Gcloud(asked, id, folder / "run", run).down(name):
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


def steps(asked: Gke, id: str, settings: Path) -> list[Step]:
    """Return the steps to a cluster, in order; `id` is the lab's, `settings` where `settings_file` writes."""
    create = of_cluster(asked, "create", "--quiet", "--enable-ip-alias")
    locations = (f"--node-locations={','.join(asked.zones)}",)
    version = (f"--cluster-version={asked.version}",) if asked.version is not None else ()
    # The pool that Kubernetes itself needs: small machines, so that nothing of it meets a benchmark.
    first = ("--num-nodes=1", "--machine-type=e2-standard-4", *STEADY)
    owner = (f"--labels={LABEL}={id}", "--release-channel=None")
    look = of_cluster(asked, "describe", "--format=value(status)")
    named = f"cluster {asked.name} in {place(asked)[-1].partition('=')[2]}"
    whole = Step(named, look, (*create, *locations, *version, *owner, *first))
    return [whole, *(_pool(asked, pool, said, settings) for pool, said in asked.pools.items())]


def _pool(asked: Gke, name: str, said: Pool, settings: Path) -> Step:
    at = ("--cluster", asked.name, *place(asked))
    words = [
        f"--machine-type={said.machine}",
        f"--image-type={said.image}",
        f"--num-nodes={said.nodes}",
        f"--node-locations={','.join(said.zones or asked.zones)}",
        f"--node-labels=benchbook-pool={name}",
        # Nothing else is put there.
        f"--node-taints=benchbook={name}:NoSchedule",
    ]
    if said.local_ssds:
        words.append(SSDS[said.ssd_interface].format(said.local_ssds))
    if node_settings(asked, said):
        words.append(f"--system-config-from-file={settings_file(settings, said)}")
    pools = (GCLOUD, "container", "node-pools")
    look = (*pools, "describe", name, *at, "--format=value(status)")
    return Step(f"pool {name}", look, (*pools, "create", name, *at, "--quiet", *words, *STEADY))


def place(asked: Gke) -> tuple[str, ...]:
    """Return the words that say where a cluster is: project, and its zone or region."""
    project = (f"--project={asked.project}",) if asked.project is not None else ()
    zones = asked.zones
    return (*project, f"--location={zones[0] if len(zones) == 1 else asked.region}")


def of_cluster(asked: Gke, verb: str, *more: str) -> tuple[str, ...]:
    """Return a command about a cluster."""
    return (GCLOUD, "container", "clusters", verb, asked.name, *place(asked), *more)


def delete(asked: Gke) -> tuple[str, ...]:
    """Return the command that removes a cluster with all its nodes."""
    return of_cluster(asked, "delete", "--quiet")


def node_settings(asked: Gke, pool: Pool) -> str:
    """Return the file with a pool's kernel and kubelet settings for the provider's tool, or nothing."""
    lines = []
    if pool.cpu_manager != "none":
        lines += ["kubeletConfig:", f"  cpuManagerPolicy: {pool.cpu_manager}"]
    if asked.by_configuration:
        lines += ["linuxConfig:", "  sysctl:"]
        lines += [f"    {name}: '{value}'" for name, value in sorted(asked.by_configuration.items())]
    return "".join(f"{line}\n" for line in lines)


def settings_file(folder: Path, pool: Pool) -> Path:
    """Return where the settings of a pool are written: pools of one kind share a file."""
    return folder / ("nodes.yaml" if pool.cpu_manager == "none" else f"nodes-{pool.cpu_manager}.yaml")


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


class Gcloud:
    """The provider's tool for one section of a study; `run` is what runs commands."""

    def __init__(self, asked: Gke, id: str, folder: Path, run: Runner | None = None) -> None:
        self.asked, self.id, self.folder = asked, id, folder
        self.kubeconfig = folder / "kubeconfig"
        self._execute = run or execute

    def up(self, say: Callable[[str], None] = print) -> None:
        """Make what is missing, step by step, each shown first, and the kubeconfig of the cluster."""
        for pool in self.asked.pools.values():
            file = settings_file(self.folder, pool)
            file.write_text(node_settings(self.asked, pool), encoding="utf-8")
        for number, step in enumerate(steps(self.asked, self.id, self.folder)):
            self._make(step, there := self._there(step), say)
            if number == 0 and there:
                self._must_be_ours()
        credentials = of_cluster(self.asked, "get-credentials")
        self._must(credentials, f"cluster {self.asked.name}: no credentials for it")

    def install(self, version: str) -> None:
        """Install a version of TiDB Operator unless it is there; SiteError where another one is."""
        types, operator = operator_steps(version)
        there = installed_operator(self._there(operator))
        if there not in (None, version):
            raise SiteError(
                f"TiDB Operator {there} is in the cluster and {version} was asked for; remove it with "
                f"`helm uninstall {RELEASE} --namespace {NAMESPACE}`"
            )
        self._make(types, "known" if self._there(types) else "")
        self._make(operator, there or "")

    def down(self, confirmed: str, say: Callable[[str], None] = print) -> bool:
        """Remove the cluster if it is this lab's and `confirmed` is its name; say whether it is gone."""
        code, _ = self._run(steps(self.asked, self.id, self.folder)[0].look)
        if code != 0:
            return True
        self._must_be_ours()
        if confirmed != self.asked.name:
            say(f"cluster {self.asked.name}: kept; its name was not given")
            return False
        say(shlex.join(delete(self.asked)))
        self._must(delete(self.asked), f"cluster {self.asked.name}: could not be removed")
        return True

    def _there(self, step: Step) -> str:
        """Return what the provider says of what a step makes; empty where there is none of it."""
        code, said = self._run(step.look)
        return said.strip() if code == 0 else ""

    def _make(self, step: Step, there: str, say: Callable[[str], None] = print) -> None:
        """Make what one step makes and show how, unless something of it is there."""
        if there:
            say(f"{step.resource}: there already, {there}")
            return
        say(f"{step.resource}: {shlex.join(step.make)}")
        self._must(step.make, f"{step.resource}: could not be made")

    def _run(self, argv: Sequence[str]) -> tuple[int, str]:
        # Where all of them read credentials, and where gcloud writes them, already when it makes a cluster.
        return self._execute(argv, {"KUBECONFIG": str(self.kubeconfig)})

    def _must(self, argv: Sequence[str], wrong: str) -> None:
        """Run a command; SiteError with what is `wrong` and its last words if it fails."""
        code, said = self._run(argv)
        if code != 0:
            raise SiteError(f"{wrong}: {said.strip()[-800:]}")

    def _must_be_ours(self) -> None:
        owner = of_cluster(self.asked, "describe", f"--format=value(resourceLabels.{LABEL})")
        code, said = self._run(owner)
        if code != 0 or said.strip() != self.id:
            raise SiteError(
                f"cluster {self.asked.name}: there already, and not of this lab; "
                "set another site.kubernetes.gke.name, or leave gke out and name it in the kubeconfig"
            )


def execute(argv: Sequence[str], env: dict[str, str]) -> tuple[int, str]:
    """Run a command and return its exit code and all it printed; 127 if there is no such program."""
    try:
        done = subprocess.run(
            list(argv), env={**os.environ, **env}, capture_output=True, text=True, stdin=subprocess.DEVNULL
        )
    except OSError as error:
        return 127, f"{argv[0]}: {error.strerror}"
    return done.returncode, done.stdout + done.stderr
