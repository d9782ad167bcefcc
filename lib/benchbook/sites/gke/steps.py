"""A cluster on Google Kubernetes Engine, made and taken down by the provider's own tool.

Pure up to `Gcloud`: a study's section becomes steps, each one resource with the command that looks for it and
the one that makes it, so that all can be read before anything is asked for. What was not labelled by the same
lab is never removed. Nothing here knows a price.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchbook.core.errors import SiteError
from benchbook.core.study_kubernetes import Gke, Pool

GCLOUD = "gcloud"
LABEL = "benchbook-lab"
# Nodes that repair or upgrade themselves in the middle of a run would be another arm.
STEADY = ("--no-enable-autoupgrade", "--no-enable-autorepair")

# What asks for local SSDs, by interface.
SSDS = {"nvme": "--local-nvme-ssd-block=count={}", "scsi": "--local-ssd-count={}"}

# Runs a command with some additions to the environment; returns its exit code and what it printed.
Runner = Callable[[Sequence[str], dict[str, str]], tuple[int, str]]


@dataclass(frozen=True)
class Step:
    """One resource: `look` prints something if it is there, `make` makes it, `is_made` names it in words."""

    resource: str
    look: tuple[str, ...]
    make: tuple[str, ...]


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


def summary(asked: Gke, id: str) -> list[str]:
    """Return what would be made and with which commands, in lines; nothing is asked of the provider."""
    lines = [f"cluster     {asked.name} on GKE; no price is known here, look it up before you make it"]
    for pool, said in asked.pools.items():
        zones = said.zones or asked.zones
        many = f"{said.local_ssds} local SSD" if said.local_ssds == 1 else f"{said.local_ssds} local SSDs"
        disks = f", {many} each ({said.ssd_interface})" if said.local_ssds else ""
        lines.append(
            f"  pool      {pool}: {said.nodes * len(zones)} × {said.machine}, {said.image}, "
            f"in {', '.join(zones)}{disks}"
        )
    lines += [f"  command   {shlex.join(step.make)}" for step in steps(asked, id, Path())]
    return [*lines, f"  removed   {shlex.join(delete(asked))}"]


class Gcloud:
    """The provider's tool for one section of a study; `run` is what runs commands."""

    def __init__(self, asked: Gke, id: str, folder: Path, run: Runner | None = None) -> None:
        self.asked, self.id, self.folder = asked, id, folder
        self.run = run or execute
        self.kubeconfig = folder / "kubeconfig"

    def up(self, say: Callable[[str], None] = print) -> Path:
        """Make what is missing, step by step, each shown first; return the kubeconfig of the cluster."""
        for pool in self.asked.pools.values():
            file = settings_file(self.folder, pool)
            file.write_text(node_settings(self.asked, pool), encoding="utf-8")
        for number, step in enumerate(steps(self.asked, self.id, self.folder)):
            code, said = self.run(step.look, {})
            if code == 0 and said.strip():
                say(f"{step.resource}: there already, {said.strip()}")
                if number == 0:
                    self._must_be_ours()
                continue
            say(f"{step.resource}: {shlex.join(step.make)}")
            self.must(step.make, f"{step.resource}: could not be made")
        # They go into the file that KUBECONFIG names.
        credentials = of_cluster(self.asked, "get-credentials")
        self.must(credentials, f"cluster {self.asked.name}: no credentials for it", self.reached)
        return self.kubeconfig

    @property
    def reached(self) -> dict[str, str]:
        """What leads other programs to the cluster."""
        return {"KUBECONFIG": str(self.kubeconfig)}

    def must(self, argv: Sequence[str], wrong: str, environment: Mapping[str, str] | None = None) -> None:
        """Run a command; SiteError with what is `wrong` and its last words if it fails."""
        code, said = self.run(argv, dict(environment or {}))
        if code != 0:
            raise SiteError(f"{wrong}: {said.strip()[-800:]}")

    def down(self, confirmed: str, say: Callable[[str], None] = print) -> bool:
        """Remove the cluster if it is this lab's and `confirmed` is its name; say whether it is gone."""
        code, _ = self.run(steps(self.asked, self.id, self.folder)[0].look, {})
        if code != 0:
            return True
        self._must_be_ours()
        if confirmed != self.asked.name:
            say(f"cluster {self.asked.name}: kept; its name was not given")
            return False
        say(shlex.join(delete(self.asked)))
        self.must(delete(self.asked), f"cluster {self.asked.name}: could not be removed")
        return True

    def _must_be_ours(self) -> None:
        owner = of_cluster(self.asked, "describe", f"--format=value(resourceLabels.{LABEL})")
        code, said = self.run(owner, {})
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
