"""Names as a stranger reads them: arms, workloads and metrics, each in one place."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from benchbook.core.artifacts.findings import Contrast, DisplayNames, Findings
from benchbook.core.artifacts.meta_analysis import PooledContrast, PooledEffect
from benchbook.core.study import descriptors
from benchbook.core.study.study import StudySpec
from benchbook.core.util import yaml_file
from benchbook.core.util.number_format import format_count

NAMES: Mapping[str, Mapping[str, str]]
NAMES = yaml_file.read_mapping(Path(__file__).parent / "templates" / "names.yaml", is_ours=True).data
"""What a stranger calls workloads, metrics, moderators, processors, and the silence of a document."""
WORKLOADS, METRICS, KEYS = NAMES["workloads"], NAMES["metrics"], NAMES["keys"]
RATES = {"qps": "queries/s", "tps": "transactions/s"}
# An arm that is called after its way of access, under the field's own term for it.
WAYS: Mapping[tuple[str, str | None], str]
WAYS = {("service", "service"): "Service", ("load-balancer", "load_balancer"): "load balancer"}
WITH_ARTICLE = (" network", *WAYS.values())
AGAIN = "_again"
ARTICLE = "the "
Kind = Literal["arms", "workloads"]
Role = Literal["treatment", "baseline", "workload"]


def readable_names(study: StudySpec) -> DisplayNames:
    """Readable names of a study's `arms` (the A/A twin too) and `workloads`, by their own names."""
    arms = {
        name: setting.name or label_arm(name, setting.access, setting.network)
        for name, setting in study.arms.items()
    }
    if study.twin:
        arms[study.twin] = f"{arms[study.baseline]} again"
    return DisplayNames(
        arms=arms, workloads={name: label_workload(name, study.script(name)) for name in study.workloads}
    )


def label_arm(name: str, access: str | None = None, network: str | None = None) -> str:
    """Readable name of an arm; a proxy's is written out only if the arm's `access` is that proxy."""
    if name.endswith(AGAIN):
        return f"{label_arm(name.removesuffix(AGAIN), access, network)} again"
    if name == network and access in ("direct", None):
        return f"{name} network"
    if name == "direct" and access in ("direct", None):
        return "direct connections"
    if (way := WAYS.get((name, access))) is not None:
        return way
    as_written = set(descriptors.load_proxies()) - {access} if access is not None else set()
    parts = re.split(r"([-_.])", name)
    return "".join(part if part in as_written else descriptors.product_name(part) for part in parts)


def label_workload(name: str, script: str | None = None) -> str:
    """Description of a workload's content; a name of the study's own stays beside it."""
    if name in WORKLOADS:
        return WORKLOADS[name]
    return f"{WORKLOADS[script]} ({name})" if script in WORKLOADS else name


def label_metric(name: str) -> str:
    """Name of a metric, or of one over another, as a sentence writes it."""
    return " over ".join(METRICS.get(text) or label_key(text) for text in name.split(" / "))


def name_metric(metric: str) -> str:
    """Metric as a table names it: queries/s, p95 latency."""
    return RATES.get(metric) or label_metric(metric)


def label_key(name: str) -> str:
    """Name of a key of cells in a sentence."""
    return KEYS.get(name, name.replace("_", " "))


def label_place(where: str) -> str:
    """Place of a cell as readers name it."""
    named = re.sub(r"\bworkload (\w+)", lambda result: label_workload(result[1]), where)
    return re.sub(r"\bthreads (\d+)", r"\1 threads", named)


def label_part(where: str, names: DisplayNames) -> str:
    """Place of a claim's number under the readable names of arms and workloads."""
    known = {**names.arms, **names.workloads}
    alternatives = "|".join(map(re.escape, sorted(known, key=len, reverse=True)))
    pattern = rf"(?<![\w-])(?:{alternatives})(?![\w-])"
    return re.sub(pattern, lambda match: known[match[0]], where) if known else where


def label_role(contrast: Contrast, role: Role) -> str:
    """Readable name of a finding's value in a role, for a table or a figure."""
    return strip_article(getattr(contrast.names, role))


def label_by_name(findings: Findings, kind: Kind) -> dict[str, str]:
    """Readable names of the `arms` or `workloads` that findings.json has, for tables and figures."""
    return {key: strip_article(name) for key, name in getattr(findings.names, kind).items()}


def strip_article(name: str) -> str:
    """Readable name without the article that it has inside a sentence."""
    return name.removeprefix(ARTICLE)


def in_sentence(name: str) -> str:
    """An arm's readable name as it stands inside a sentence."""
    is_bare = name.removesuffix(" again").endswith(WITH_ARTICLE) and not name.startswith(ARTICLE)
    return f"{ARTICLE}{name}" if is_bare else name


def name_effect(treatment: str, workload: str, metric: str = "qps", threads: int | None = None) -> str:
    """Name of an effect by readable names."""
    at = "" if threads is None else f", {format_count(threads, 'thread')}"
    return f"{strip_article(treatment)} on {workload}{beside_queries(metric)}{at}"


def name_place(contrast: PooledContrast, effect: PooledEffect) -> str:
    """Name of an effect over sessions: `HAProxy on point selects, 8 threads`."""
    names = contrast.names
    return name_effect(names.treatment, names.workload, contrast.metric, effect.threads)


def beside_queries(metric: str) -> str:
    """Name of a metric after its subject, empty for queries a second: `, p95 latency`."""
    return "" if metric == "qps" else f", {label_metric(metric)}"


def sentence_case(text: str) -> str:
    """Begin a sentence with a capital, unless it begins with a name that is written otherwise."""
    first = text.partition(" ")[0]
    is_word = first.islower() and first.replace("-", "").isalpha()
    return text[:1].upper() + text[1:] if is_word or text.startswith(tuple(METRICS.values())) else text
