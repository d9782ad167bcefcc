"""Everything a report of one study reads, loaded once."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from benchbook.compare.text import labels
from benchbook.core.artifacts.findings import Findings
from benchbook.core.util import files, paths

# What a page is made of; None stands for all columns. Seconds are many, and few of their columns are shown.
TABLES: dict[str, list[str] | None] = {
    "runs": None,
    "intervals": ["run_id", "second", "threads", "qps", "is_discarded"],
    "voids": None,
}


@dataclass(frozen=True)
class ReportInputs:
    """Findings, tidy tables (read/tidy.py), facts and settings files of a study; it may lack `warm_up`."""

    name: str
    folder: Path
    findings: Findings
    runs: pd.DataFrame
    intervals: pd.DataFrame
    voids: pd.DataFrame
    facts: Mapping[str, Any]
    dataset: Mapping[str, Any]
    warm_up: Mapping[str, Any] | None
    applied: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def arms(self) -> tuple[str, ...]:
        """Name the arms that have runs: baseline, treatments, the rest, A/A, so that each keeps a colour."""
        findings, present = self.findings, set(self.runs.arm)
        wanted = [findings.baseline, *(finding.treatment for finding in findings.findings)]
        again = [findings.aa.treatment] if findings.aa else []
        rest = sorted(present - set(wanted) - set(again))
        return tuple(arm for arm in dict.fromkeys([*wanted, *rest, *again]) if arm in present)

    @cached_property
    def named(self) -> dict[str, str]:
        """Name the arms in their fixed order, each with its readable name."""
        label = labels.label_by_name(self.findings, "arms")
        return {arm: label.get(arm, arm) for arm in self.arms}

    @cached_property
    def histograms(self) -> pd.DataFrame:
        """Latency histograms: one row a run and bucket. Read when asked for: few pages draw them."""
        file = files.require_path(self.folder / "tidy" / "histograms.parquet")
        return pd.read_parquet(file, columns=["run_id", "bucket", "count"])

    @cached_property
    def drawn(self) -> tuple[pd.DataFrame, tuple[str, ...]]:
        """Give the runs and the arms in their order under the readable names that figures show."""
        return self.readable(self.runs), tuple(self.named.values())

    def readable(self, table: pd.DataFrame) -> pd.DataFrame:
        """Runs or voids with readable names of arms and workloads; `key` has the workload's own."""
        arms, workloads = (labels.label_by_name(self.findings, kind) for kind in ("arms", "workloads"))
        names = {
            "arm": [arms.get(name, name) for name in table.arm],
            "workload": [workloads.get(name, name) for name in table.workload],
        }
        return table.assign(key=table.workload, **names)

    @property
    def pages(self) -> str:
        """Beginning of a link from the study's page to the page of its runs."""
        return f"../runs/{self.name}/"


def load_evidence(name: str) -> ReportInputs:
    """Read everything a report needs of the study called `name`."""
    place = paths.study_paths(name)
    # Of small tables a comparison of pyarrow's texts costs more than the whole column.
    with pd.option_context("mode.string_storage", "python"):
        tidy = {
            table: pd.read_parquet(files.require_path(place.tidy / f"{table}.parquet"), columns=columns)
            for table, columns in TABLES.items()
        }
    there = sorted(place.applied.iterdir()) if place.applied.is_dir() else []
    return ReportInputs(
        *(name, place.data, Findings.read(place.findings)),
        **tidy,
        facts=files.read_json(place.facts),
        dataset=files.read_json(place.dataset),
        warm_up=files.read_json(place.warm_up) if place.warm_up.is_file() else None,
        applied={file.name: file.read_text(encoding="utf-8") for file in there},
    )
