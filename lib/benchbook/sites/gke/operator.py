"""The commands that install the TiDB Operator a study needs in a cluster, and the programs they need."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from benchbook.core.errors import SiteError
from benchbook.sites.gke.steps import Step

RELEASE, NAMESPACE = "tidb-operator", "tidb-admin"
CHARTS = "https://charts.pingcap.org/"
TYPES = "https://raw.githubusercontent.com/pingcap/tidb-operator/v{version}/manifests/crd.yaml"
# GKE's clusters let only those in who have the plugin; without it a cluster would be made and not be reached.
REACHING, INSTALLING = ("gcloud", "gke-gcloud-auth-plugin"), ("kubectl", "helm")


def steps(version: str) -> list[Step]:
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


def installed(said: str) -> str | None:
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
