"""The findings in small: tables that `dvc metrics` and `dvc plots` compare between revisions."""

import math
from typing import Any

import pandas as pd

from benchbook.compare.stats import interleaved_runs, pairs
from benchbook.compare.stats.pairs import block_ratios
from benchbook.core.artifacts.findings import Contrast, Findings, LevelContrast
from benchbook.core.study.study import StudySpec
from benchbook.core.util import numeric_equality


def export_metrics(findings: Findings) -> dict[str, Any]:
    """Effects in percent by workload, treatment and metric, with interval, n, label, blocks, voided runs."""
    table: dict[str, Any] = {
        "blocks": findings.blocks.complete,
        "voided_runs": sum(arm.voided for arm in findings.voids.by_arm.values()),
        "machine_minutes": findings.machine_minutes,
    }
    for finding in findings.everything:
        messages = {**_effect_numbers(finding), "n": finding.n, "shown": finding.label}
        table.setdefault(finding.workload, {}).setdefault(finding.treatment, {})[finding.metric] = messages
    return table


def by_threads(findings: Findings) -> pd.DataFrame:
    """Columns workload, treatment, threads, effect_pct, low_pct, high_pct, label of QPS, one row a
    thread level of a finding."""
    columns = ["workload", "treatment", "threads", "effect_pct", "low_pct", "high_pct", "shown"]
    rows = [
        (finding.workload, finding.treatment, level.threads, *_effect_numbers(level).values(), level.label)
        for finding in findings.findings
        if finding.metric == "qps"
        for level in finding.levels
    ]
    return pd.DataFrame(rows, columns=columns)


def by_block(study: StudySpec, runs: pd.DataFrame) -> pd.DataFrame:
    """Workload, treatment, block, effect_pct of QPS, the mean over thread levels, one row a complete
    block that counts."""
    runs, _ = pairs.select_usable(interleaved_runs.select_order(runs, study)[0])
    rows = []
    for workload in study.workloads:
        for treatment in study.treatments:
            ratios = block_ratios(runs, study.baseline, treatment, workload, study.threads).ratios
            rows += [
                (workload, treatment, int(block), _to_percent(math.expm1(row.mean())))
                for block, row in ratios.iterrows()
            ]
    return pd.DataFrame(rows, columns=["workload", "treatment", "block", "effect_pct"])


def findings_table(findings: Findings) -> pd.DataFrame:
    """Every finding in one row; the percents are empty where the effect depends on threads."""
    rows = [
        {
            **{key: getattr(finding, key) for key in ("workload", "metric", "treatment", "baseline")},
            **(_effect_numbers(finding) if finding.headline else dict.fromkeys(_effect_numbers(finding))),
            "blocks": finding.n,
            "shown": finding.label,
            "claim": finding.claim,
            "verdict": finding.verdict,
        }
        for finding in [*([findings.aa] if findings.aa else []), *findings.findings]
    ]
    return pd.DataFrame(rows)


def _effect_numbers(item: Contrast | LevelContrast) -> dict[str, float | None]:
    return {f"{key}_pct": _to_percent(getattr(item, key)) for key in ("effect", "low", "high")}


def _to_percent(fraction: float | None) -> float | None:
    return None if fraction is None else round(100 * fraction, numeric_equality.PERCENT_DECIMALS)
