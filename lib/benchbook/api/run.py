"""One run as an object: its log, series, evidence and checks, read from its folder of raw files."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from benchbook.api.columns import document_table
from benchbook.api.lookup import Delegated
from benchbook.core.artifacts import run_folder
from benchbook.core.artifacts.run_folder import RunFolder
from benchbook.core.study import load
from benchbook.core.util import number_format
from benchbook.read import costs, rows, validity
from benchbook.read.schemas import SCHEMAS
from benchbook.read.validity import Judgement
from benchbook.show.markup import Html
from benchbook.show.templating import render_template

_WIDTH, _HEIGHT = 360, 48


@dataclass(frozen=True, repr=False)
class Run:
    """One measured sysbench process: valid, voided or a pilot. Nothing in its folder is ever edited."""

    id: str
    folder: Path

    @cached_property
    def plan(self) -> dict[str, Any]:
        """The plan of the run."""
        return self._files.plan()

    @cached_property
    def evidence(self) -> dict[str, Any]:
        """Evidence from before, during and after the run: command line, identities, ledger, machine."""
        return self._files.evidence()

    log = Delegated[str](
        lambda run: run._files.text(run_folder.OUT),
        "What sysbench printed, byte for byte; of several clients the first.",
    )
    errors = Delegated[str](lambda run: run._files.text(run_folder.ERR), "What sysbench printed to stderr.")
    manifest_problems = Delegated[list[str]](
        lambda run: run._files.verify(),
        "What differs from the hashes in its manifest; nothing, if the files are as they were written.",
    )
    status = Delegated[str]("_judged.status", "`valid`, `invalid` or `indeterminate`, judged now.")
    reasons = Delegated[list[str]]("_judged.reasons", "Every check that did not pass, in words.")
    warnings = Delegated[list[str]](
        lambda run: list(run._judged.warnings),
        "What does not make it invalid but belongs beside its figures.",
    )
    qps = Delegated[float | None]("_judged.qps", "Queries a second of the measured window.")

    @property
    def intervals(self) -> pd.DataFrame:
        """One row a second: the columns of `intervals`, without run_id."""
        return _cast_series("intervals", pd.DataFrame(rows.interval_columns(self._judged)))

    @property
    def histogram(self) -> pd.DataFrame:
        """Latencies of the measured window: the columns of `histograms`, without run_id."""
        return _cast_series("histograms", pd.DataFrame(rows.histogram_columns(self._judged)))

    @property
    def monitor(self) -> pd.DataFrame:
        """CPU, memory and pressure a second and part: the columns of `monitor`, without run_id."""
        return _cast_series("monitor", costs.monitor_table(self._files.text(run_folder.MONITOR)).to_pandas())

    @property
    def checks(self) -> pd.DataFrame:
        """Every validity check, judged again with the limits of params.yaml."""
        results = [vars(check) for check in self._judged.checks]
        return document_table("run_checks", pd.DataFrame(results))

    @property
    def set_aside(self) -> str | None:
        """Reason for moving its folder to `void`, or None."""
        note = self.folder.with_name(f"{self.folder.name}.{run_folder.VOID}")
        if not note.is_file():
            return None
        record = run_folder.read_note(note)
        return f"{record.status}: {'; '.join(record.reasons)}"

    @property
    def _files(self) -> RunFolder:
        return RunFolder(self.folder)

    @cached_property
    def _judged(self) -> Judgement:
        return validity.judge_run(self._files, load.load_params("limits").limits)

    @property
    def _told(self) -> str:
        plan = self.plan
        block = f"block {plan['block']}" if plan["block"] else "pilot"
        qps = "no QPS" if self.qps is None else f"{number_format.format_significant(self.qps)} QPS"
        threads = number_format.format_count(plan["threads"], "thread")
        return f"{block}, {plan['workload']}, {threads}, {plan['arm']}: {qps}"

    @property
    def _verdict(self) -> str:
        passed = sum(check.passed is True for check in self._judged.checks)
        return f"{self.status}; {passed} of {len(self._judged.checks)} checks passed"

    def __repr__(self) -> str:
        lines = [self.id, f"  {self._told}", f"  {self._verdict}"]
        lines += [f"  ! {text}" for text in [*self.reasons, *self.warnings]]
        return "\n".join([*lines, *([f"  set aside, {self.set_aside}"] if self.set_aside else [])])

    def _repr_html_(self) -> str:
        inputs = {"summary": self._told, "checks": self._verdict.partition("; ")[2]}
        series = _draw_sparkline(self.intervals)
        return render_template("objects/run.html.j2", run=self, series=series, **inputs).text


def _cast_series(name: str, series: pd.DataFrame) -> pd.DataFrame:
    """Give a run's own series the types that they have among those of all runs."""
    kinds = {"int": "int64", "Int": "Int64"}
    types = {column: kinds[kind] for column, (kind, _, _) in SCHEMAS[name].items() if kind in kinds}
    return document_table(name, series.astype(types))


def _draw_sparkline(series: pd.DataFrame) -> Html | str:
    """Draw queries in each second as a line; the discarded seconds are shaded."""
    qps = series.qps.dropna()
    if len(qps) < 2 or not qps.max() > 0:
        return ""
    step = _WIDTH / (len(qps) - 1)
    heights = _HEIGHT - 4 - (_HEIGHT - 8) * qps / qps.max()
    points = " ".join(f"{place * step:.1f},{height:.1f}" for place, height in enumerate(heights))
    discarded, most = int(series.is_discarded.sum()), number_format.format_significant(qps.max())
    inputs = {"seconds": len(qps), "most": most, "discarded": discarded, "shade": f"{discarded * step:.1f}"}
    return render_template("sparkline.html.j2", points=points, width=_WIDTH, height=_HEIGHT, **inputs)
