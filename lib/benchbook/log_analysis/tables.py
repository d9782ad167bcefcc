"""Tidy tables of logs: runs, intervals, histograms, and the comparison; for files, notebooks and pages."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchbook.core.util.histogram import value_of
from benchbook.log_analysis.comparison import LogSet
from benchbook.log_analysis.runs import SERIES, LogRun

_OF_RUN = ("arm", "workload", "repeat", "processes", "version", "time_s", "events", "tps", "qps", "reads",
           "writes", "other", "errors", "reconnects", "avg_ms", "max_ms", "percentile", "percentile_ms",
           "interval_s", "rate", "path", "line")  # fmt: skip


def run_id(run: LogRun) -> str:
    """Name of a run in all tables: its file, and its place among the file's runs if it is not the first."""
    return run.path if run.order == 1 else f"{run.path}#{run.order}"


def runs_table(logs: LogSet) -> pd.DataFrame:
    """One row a run; rates per second of the whole run, latencies in ms."""
    rows = [
        {"run_id": run_id(run), "threads": run.level,
         **{name: getattr(run, name) for name in _OF_RUN},
         **{f"option_{key}": value for key, value in run.options.items()}}
        for run in logs.runs
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=None if rows else ["run_id", "threads", *_OF_RUN])


def intervals_table(logs: LogSet) -> pd.DataFrame:
    """One row a report line of each run."""
    parts = [{"run_id": run_id(run), **run.series} for run in logs.runs if run.series is not None]
    return _concat_parts(parts, ["run_id", *SERIES])


def histograms_table(logs: LogSet) -> pd.DataFrame:
    """One row a bucket of each run that printed a histogram."""
    parts = [
        {"run_id": run_id(run), "latency_ms": value_of(run.histogram[0]), "count": run.histogram[1]}
        for run in logs.runs
        if run.histogram is not None
    ]
    return _concat_parts(parts, ["run_id", "latency_ms", "count"])


def _concat_parts(parts: list[dict[str, Any]], columns: list[str]) -> pd.DataFrame:
    frames = [pd.DataFrame(part) for part in parts]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=columns)


def effects_table(logs: LogSet) -> pd.DataFrame:
    """One row a workload, level and arm, with its change against the baseline as a fraction."""
    return pd.DataFrame(_effect_rows(logs))


def _effect_rows(logs: LogSet) -> list[dict[str, Any]]:
    return [
        {"workload": cell.workload, "threads": cell.level, "arm": cell.arm, "n": cell.n,
         "qps": cell.mean("qps"), "tps": cell.mean("tps"), "avg_ms": cell.mean("avg_ms"),
         "variation": cell.variation,
         **{name: getattr(cell.change, name, None) for name in ("effect", "low", "high", "method", "reason")}}
        for cell in logs.cells
    ]  # fmt: skip


def write_tables(logs: LogSet, folder: Path, form: str) -> list[Path]:
    """Write all tables into a folder as CSV or Parquet; returns their files."""
    folder.mkdir(parents=True, exist_ok=True)
    tables = {
        "runs": runs_table(logs), "intervals": intervals_table(logs), "histograms": histograms_table(logs),
        "effects": effects_table(logs),
    }  # fmt: skip
    written = []
    for name, table in tables.items():
        path = folder / f"{name}.{form}"
        getattr(table, f"to_{form}")(path, index=False)
        written.append(path)
    return written


def as_document(logs: LogSet) -> dict[str, Any]:
    """Everything as one document for other programs; unknown values are null."""
    scaling = []
    for series in logs.scaling:
        law = series.law and {"gamma_qps": series.law.gamma, "alpha": series.law.alpha,
                              "beta": series.law.beta, "peak_threads": series.law.peak_threads}  # fmt: skip
        scaling.append({**asdict(series), "law": law})
    runs = runs_table(logs)
    records = runs.astype(object).where(runs.notna(), None).to_dict("records")
    return {
        "files": logs.files,
        "files_without_sysbench": logs.silent_files,
        "read_as": {
            "patterns": list(logs.layout.patterns), "arms": list(logs.arms),
            "is_paired": logs.layout.is_paired,
        },
        "runs": [
            {key: value.item() if isinstance(value, np.generic) else value for key, value in record.items()}
            for record in records
        ],
        "effects": _effect_rows(logs),
        "scaling": scaling,
        "claims": [{"claim": claim, "verdict": verdict} for claim, verdict in logs.claims],
        "caveats": [asdict(caveat) for caveat in logs.caveats],
        "left_out": [asdict(part) for part in logs.left_out],
    }  # fmt: skip
