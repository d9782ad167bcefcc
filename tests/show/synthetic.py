"""A made-up study: seeded tidy tables and the findings that follow from them, for tests of the show floor."""

import json
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from ruamel.yaml import YAML
from scipy.special import stdtrit

from benchbook.compare.stats import pairs
from benchbook.compare.text import labels
from benchbook.core.artifacts.findings import FindingData, Findings
from benchbook.show.evidence import ReportInputs
from tests.found import changed, finding
from tests.found import findings as whole
from tests.found import runs as runs_of

WORKLOADS = {"oltp_point_select": (21_000.0, 1), "oltp_read_write": (9_500.0, 20)}
THREADS = (1, 4, 16)
TOLD = YAML(typ="safe").load(Path(__file__).parents[1] / "data" / "made_study.yaml")
ARMS = {"direct": 1.0, "haproxy": 0.88, "direct_again": 1.0}


def evidence(
    blocks: int = 5, seed: int = 7, treatment: str = "haproxy", workloads: dict | None = None
) -> ReportInputs:
    """Make a whole study with a proxy that costs about 12 %, and one voided pair."""
    random = np.random.default_rng(seed)
    runs = _runs(random, blocks, treatment, workloads or WORKLOADS)
    reasons = "V10 ledger: Com_select 41 more than counted; V20 pause: no tick for 612 ms"
    voids = runs.loc[[9, 8], ["run_id", "block", "arm", "workload", "threads"]].reset_index(drop=True)
    told = {"status": ["invalid", "partner"], "reasons": [reasons, "partner of a voided run"]}
    voids = voids.assign(attempt=1, folder="void/" + voids["run_id"] + ".a1", **told)
    return ReportInputs(
        name="quick",
        folder=Path("data/quick"),
        findings=findings(runs, blocks, treatment),
        runs=runs,
        intervals=_intervals(random, runs),
        voids=voids,
        **{part: TOLD[part] for part in ("facts", "dataset", "warm_up")},
    )


def _runs(random: np.random.Generator, blocks: int, treatment: str, workloads: dict) -> pd.DataFrame:
    rows: list[dict[str, Any]] = []
    for block, workload, threads in product(range(1, blocks + 1), workloads, THREADS):
        again = workload == next(iter(workloads)) and threads == 4
        for arm in ARMS if again else list(ARMS)[:2]:
            of = block, workload, *workloads[workload], threads, arm
            rows.append(_run(random, *of, len(rows), treatment))
    return runs_of(rows)


def _run(random, block, workload, base, statements, threads, arm, position, treatment) -> dict[str, Any]:
    drift = 1 - 0.02 * np.sin(position / 15)
    qps = base * threads**0.62 * (1 - threads / 90) * ARMS[arm] * drift * np.exp(random.normal(0, 0.012))
    tps, mean = qps / statements, 1000 * threads * statements / qps
    arm = treatment if arm == "haproxy" else arm
    run_id = f"b{block:02d}-{workload}-t{threads:04d}-{arm}-{position:010x}"
    proxy = 0.31 * min(threads, 4) ** 0.5 if arm == treatment else np.nan
    cores = min(threads, 4)
    return TOLD["run"] | {
        "run_id": run_id, "block": block, "position": position, "group": f"{block}-{workload}-{threads}",
        "arm": arm, "workload": workload, "threads": threads, "folder": f"raw/{run_id}",
        "attempt": 2 if position in (8, 9) else 1, "seed": 1000 + position // 2,
        "started_utc": f"2026-01-05T10:{position // 6 % 60:02d}:{position % 6 * 10:02d}Z",
        "started_s": 10.4 * position, "events": int(tps * 6), "transactions": int(tps * 6),
        "reads": int(qps * 4), "writes": int(qps), "other": int(qps), "queries": int(qps * 6),
        "qps": qps, "tps": tps, "latency_min_ms": mean / 3, "latency_avg_ms": mean,
        "latency_max_ms": mean * 14, "latency_p95_ms": mean * 1.7, "printed_percentile_ms": mean * 2.5,
        "latency_p99_ms": mean * (2.5 + random.random() / 4), "cpu_client_cores": 0.21 * cores**0.7,
        "cpu_proxy_cores": proxy, "cpu_server_cores": 0.5 * cores**0.7, "cpu_machine_pct": 45.0 + threads * 3,
        "warnings": "PSI cpu above 40 % for 2 s" if position == 20 else "",
    }  # fmt: skip


def _intervals(random: np.random.Generator, runs: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for run in runs.itertuples():
        for second in range(1, int(run.discard_s + run.run_s) + 1):
            qps = run.qps * np.exp(random.normal(0, 0.03)) * (0.9 if second <= 2 else 1)
            qps *= 0.04 if run.position == len(runs) - 2 and second == 5 else 1
            own = {"run_id": run.run_id, "second": float(second), "is_discarded": second <= run.discard_s}
            rates = {"threads": run.threads, "tps": qps / 20, "qps": qps, "reads_per_s": qps}
            rows.append({**own, **rates, "latency_percentile_ms": run.latency_p99_ms, **TOLD["second"]})
    return pd.DataFrame(rows)


def findings(runs: pd.DataFrame, blocks: int, treatment: str = "haproxy") -> Findings:
    """Compute findings of the contract's shape: t intervals on block means of log ratios."""
    listed = [_finding(runs, workload, "direct", treatment) for workload in dict.fromkeys(runs["workload"])]
    claims = (
        ("proxy-costs-little", [-0.07, -0.03], "contradicted"),
        ("proxy-costs-writes", [-0.16, -0.08], "confirmed"),
    )
    for place, (claim, band, verdict) in zip((0, -1), claims, strict=True):
        listed[place] = changed(listed[place], claim=f"example-source/{claim}", band=band, verdict=verdict)
    workloads, once = dict.fromkeys(runs["workload"]), {"runs": 31, "voided": 1}
    names = {"direct": "direct connections", "direct_again": "direct connections again"}
    made = TOLD["findings"] | {
        "blocks": {"planned": blocks, "complete": blocks},
        "look": {"n": blocks, "level": 0.98, "next": 10, "note": "first of the looks at 5, 10 and 20 blocks"},
        "aa": _finding(runs, next(iter(workloads)), "direct", "direct_again"),
        "facts_differ": [{"fact": "access", "values": {"direct": "direct", treatment: "haproxy"}}],
        "voids": {"by_arm": {"direct": once, treatment: once}, "fisher_p": 1.0,
                  "note": "void rates do not differ between the arms"},
        "names": {"arms": names | {treatment: labels.label_arm(treatment)},
                  "workloads": {name: labels.label_workload(name) for name in workloads}},
        "partners": pairs.partner_gaps(runs),
        "scaling": [{"workload": workload, "arm": arm, **TOLD["scaling"]}
                    for workload in workloads for arm in ("direct", treatment)],
    }  # fmt: skip
    return whole(*listed, **made)


def _finding(runs: pd.DataFrame, workload: str, baseline: str, treatment: str) -> FindingData:
    own = runs[(runs["workload"] == workload) & runs["arm"].isin([baseline, treatment])]
    wide = own.assign(log=np.log(own["qps"])).pivot(index="block", columns=["threads", "arm"], values="log")
    present = [threads for threads in THREADS if treatment in wide.get(threads, {})]
    ratios = pd.DataFrame({at: wide[at][treatment] - wide[at][baseline] for at in present})
    n = len(ratios)
    about = {at: {"threads": at, "n": n, **_ends(ratios[at], 0.98)} for at in present}
    levels = [{"q": 0.01, **about[at], **_ends(ratios[at], 0.95), "level": 0.95} for at in present]
    decided = [{**of, "level": 0.98, "label": _label(of), "note": None} for of in about.values()]
    ends = _ends(ratios.mean(axis=1), 0.98)
    made = TOLD["finding"] | {
        "id": f"{workload}.{treatment}.qps", "workload": workload, "baseline": baseline,
        "treatment": treatment, "threads": present, **ends, "n": n, "label": _label(ends),
        "levels": decided, "by_threads": levels, "runs": list(own["run_id"]), "pairs": len(own) // 2,
    }  # fmt: skip
    return finding(**made)


def _label(ends: dict[str, float]) -> str:
    return "not shown" if ends["low"] < 0 < ends["high"] else "higher" if ends["low"] > 0 else "lower"


def _ends(values: pd.Series, level: float) -> dict[str, float]:
    mean, half = values.mean(), values.std(ddof=1) / np.sqrt(len(values))
    half *= stdtrit(len(values) - 1, (1 + level) / 2)
    ends = {"effect": mean, "low": mean - half, "high": mean + half}
    return {name: float(np.expm1(value)) for name, value in ends.items()}


def with_folders(made: ReportInputs, voids: pd.DataFrame) -> ReportInputs:
    """Give a study other voids and folder names that a disk takes, whatever its arms are called."""
    runs = made.runs.assign(folder=[f"raw/{number}" for number in range(len(made.runs))])
    voids = voids.assign(folder=[f"void/{number}" for number in range(len(voids))])
    return replace(made, runs=runs, voids=voids)


def empty(made: ReportInputs) -> ReportInputs:
    """Give the same study with nothing measured."""
    tables = ("runs", "intervals", "voids")
    cut = {name: getattr(made, name).head(0) for name in tables}
    return replace(made, findings=changed(made.findings, aa=None, findings=[]), **cut)


def write(made: ReportInputs, root: Path) -> None:
    """Write a study's files where the pipeline leaves them, with one raw log for each run."""
    folder = root / "data" / made.name
    (folder / "tidy").mkdir(parents=True)
    for table in ("runs", "intervals", "voids"):
        getattr(made, table).to_parquet(folder / "tidy" / f"{table}.parquet")
    made.findings.write(folder / "findings.json")
    for name in ("facts", "dataset", "warm_up"):
        (folder / f"{name}.json").write_text(json.dumps(getattr(made, name)), encoding="utf-8")
    for place in [*made.runs["folder"], *made.voids["folder"]]:
        (folder / place).mkdir(parents=True)
        (folder / place / "sysbench.out").write_text("sysbench 1.0.20\n", encoding="utf-8")
