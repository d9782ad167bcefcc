"""Names as a stranger reads them: arms, workloads and metrics, each in one place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from benchbook.core.artifacts.findings import Contrast, Findings, Named
from benchbook.core.artifacts.meta_analysis import Contrast as PooledContrast
from benchbook.core.artifacts.meta_analysis import PooledEffect
from benchbook.core.study import descriptors
from benchbook.core.study.study import Study
from benchbook.core.util import yaml_file
from benchbook.core.util.plural import count

NAMES: Mapping[str, Mapping[str, str]]
NAMES = yaml_file.read(Path(__file__).parent / "templates" / "names.yaml", is_ours=True).data
"""What a stranger calls workloads, metrics, moderators, processors, and the silence of a document."""
WORKLOADS, METRICS, KEYS = NAMES["workloads"], NAMES["metrics"], NAMES["keys"]
# An arm that is called after its way of access, under the field's own term for it.
WAYS = {("service", "service"): "Service", ("load-balancer", "load_balancer"): "load balancer"}
WITH_ARTICLE = (" network", *WAYS.values())
AGAIN = "_again"
ARTICLE = "the "
Kind = Literal["arms", "workloads"]
Role = Literal["treatment", "baseline", "workload"]


def names(study: Study) -> Named:
    """Return readable names of a study's `arms` (the A/A twin too) and `workloads`, by their own names."""
    arms = {
        name: setting.name or arm(name, setting.access, setting.network)
        for name, setting in study.arms.items()
    }
    if study.twin:
        arms[study.twin] = f"{arms[study.baseline]} again"
    return Named(arms=arms, workloads={name: workload(name, study.script(name)) for name in study.workloads})


def arm(name: str, access: str | None = None, network: str | None = None) -> str:
    """Return an arm's readable name; a proxy's is written out only where the arm's `access` is that proxy.

    >>> arm("haproxy", "haproxy"), arm("direct", "direct"), arm("haproxy", "direct")
    ('HAProxy', 'direct connections', 'haproxy')
    >>> arm("pod", "direct", "pod"), arm("host", "direct", "host"), arm("pod", "haproxy", "pod")
    ('pod network', 'host network', 'pod')
    >>> arm("service", "service"), arm("load-balancer", "load_balancer"), arm("service", "direct")
    ('Service', 'load balancer', 'service')
    """
    if name.endswith(AGAIN):
        return f"{arm(name.removesuffix(AGAIN), access, network)} again"
    if name == network and access in ("direct", None):
        return f"{name} network"
    if name == "direct" and access in ("direct", None):
        return "direct connections"
    if (way := WAYS.get((name, access or ""))) is not None:
        return way
    as_written = set(descriptors.proxies()) - {access} if access is not None else set()
    parts = re.split(r"([-_.])", name)
    return "".join(part if part in as_written else descriptors.product(part) for part in parts)


def workload(name: str, script: str | None = None) -> str:
    """Return what a workload consists of; a name of the study's own stays beside it.

    >>> workload("oltp_read_write"), workload("rows_10", "select_random_ranges"), workload("mine")
    ('read-write transactions', 'selects of random ranges (rows_10)', 'mine')
    """
    if name in WORKLOADS:
        return WORKLOADS[name]
    return f"{WORKLOADS[script]} ({name})" if script in WORKLOADS else name


def metric(name: str) -> str:
    """Return the name of a metric, or of one over another, as a sentence writes it.

    >>> metric("latency_p95_ms"), metric("cpu_tidb_pct / qps"), metric("waits_us")
    ('p95 latency', 'processor use of TiDB over QPS', 'waits us')
    """
    return " over ".join(METRICS.get(one) or key(one) for one in name.split(" / "))


def key(name: str) -> str:
    """Return what a sentence calls a key of cells.

    >>> key("threads_per_server"), key("vcpus")
    ('threads per server', 'vCPUs')
    """
    return KEYS.get(name, name.replace("_", " "))


def of(found: Contrast, role: Role) -> str:
    """Return the readable name of what a finding has in a role, for a table or a figure."""
    return label(getattr(found.names, role))


def inside(found: Contrast, role: Role) -> str:
    """Return the readable name of a finding's `treatment` or `baseline` as it stands inside a sentence."""
    return in_sentence(getattr(found.names, role))


def labels(findings: Findings, kind: Kind) -> dict[str, str]:
    """Return the readable names of the `arms` or `workloads` that findings.json has, for tables and
    figures."""
    return {own: label(name) for own, name in getattr(findings.names, kind).items()}


def label(name: str) -> str:
    """Return a readable name without the article that it has inside a sentence.

    >>> label("the c2 machine"), label("TiDB 6.6")
    ('c2 machine', 'TiDB 6.6')
    """
    return name.removeprefix(ARTICLE)


def in_sentence(name: str) -> str:
    """Return an arm's readable name as it stands inside a sentence.

    >>> in_sentence("pod network"), in_sentence("direct connections"), in_sentence("the c2 machine")
    ('the pod network', 'direct connections', 'the c2 machine')
    """
    return (
        f"{ARTICLE}{name}"
        if not name.startswith(ARTICLE) and name.removesuffix(" again").endswith(WITH_ARTICLE)
        else name
    )


def name_effect(contrast: PooledContrast, effect: PooledEffect) -> str:
    """Name of an effect over sessions: `HAProxy on point selects at 8 threads`."""
    at = "" if effect.threads is None else f" at {count(effect.threads, 'thread')}"
    return f"{contrast.names.treatment} on {contrast.names.workload}{at}"


def sentence_case(text: str) -> str:
    """Begin a sentence with a capital, unless it begins with a name that is written otherwise.

    >>> sentence_case("the pod network served"), sentence_case("best-effort served")
    ('The pod network served', 'Best-effort served')
    >>> sentence_case("p95 latency was"), sentence_case("v5.0 served"), sentence_case("eBPF served")
    ('P95 latency was', 'v5.0 served', 'eBPF served')
    """
    first = text.partition(" ")[0]
    is_word = first.islower() and first.replace("-", "").isalpha()
    return text[:1].upper() + text[1:] if is_word or text.startswith(tuple(METRICS.values())) else text
