"""The page of a study's runs and the tables of its cells: each run with the way to its raw files."""

import inspect
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from benchbook.core.artifacts import run_folder
from benchbook.core.util import paths
from benchbook.show.evidence import ReportInputs
from benchbook.show.markup import Html, make_slug
from benchbook.show.table import Notes, Table, build_table
from benchbook.show.templating import render_template

_RAW = {"log": run_folder.OUT, "errors": run_folder.ERR, "evidence": run_folder.EVIDENCE,
        "monitor": run_folder.MONITOR}  # fmt: skip


def render_opening(report_inputs: ReportInputs) -> Html:
    """Write the title of the page of runs, and their number."""
    return render_template("runs.html.j2", study=report_inputs)


def build_tables(report_inputs: ReportInputs) -> tuple[Table, Table]:
    """List valid runs and voided attempts, each with the ways to its raw files."""
    link = os.path.relpath(report_inputs.folder, paths.study_paths(report_inputs.name).run_pages)
    valid, void = (report_inputs.readable(table) for table in (report_inputs.runs, report_inputs.voids))
    return tabulate_runs(valid, link, report_inputs.folder), tabulate_voids(void, link, report_inputs.folder)


def tabulate_checks(checks: Sequence[tuple[str, str, Callable[..., Any]]]) -> Table:
    """List the checks of a run: id, name, and the meaning of a pass, from the check's description."""
    rows = []
    for id, name, check in checks:
        text = (inspect.getdoc(check) or "").partition("\n\n")[0].partition(": ")[2]
        rows.append([id, name, f"{text[:1].upper()}{text[1:]}"])
    return build_table("checks-of-a-run", rows)


def tabulate_runs(table: pd.DataFrame, link: str, folder: Path | None = None) -> Table:
    """List runs in the order of the schedule; `link` leads to `folder`, and to none but its files."""
    rows = table.sort_values("position", kind="stable").itertuples(index=False)
    inputs = {"anchor_of": run_anchor, "raw": partial(_raw_files, folder), "link": link}
    return build_table("valid-runs", rows, notes=Notes("runs"), **inputs)


def tabulate_cells(table: pd.DataFrame, pages: str) -> Table:
    """List cells with medians and ends of their runs, which only describe; `pages` leads to the runs."""
    rows = []
    observations: set[str] = set()
    for (workload, threads, arm), cell in table.groupby(["workload", "threads", "arm"], sort=True):
        place = cell_anchor(cell.key.iloc[0], threads)
        of = {"workload": workload, "threads": threads, "arm": arm}
        runs_of = cell.sort_values("block", kind="stable")
        rows.append({**of, "runs": runs_of, "place": "" if place in observations else place})
        observations.add(place)
    return build_table("cells", rows, anchor_of=run_anchor, pages=pages)


def cell_anchor(workload: str, threads: int) -> str:
    """Give the anchor of the first cell of a workload at a thread count."""
    return f"cell-{make_slug(workload)}-{threads}"


def tabulate_voids(table: pd.DataFrame, link: str, folder: Path | None = None) -> Table:
    """List every voided attempt with all its reasons and links to the files it left."""
    listed = table.sort_values(["block", "run_id", "attempt"], kind="stable").itertuples()
    return build_table("voids", listed, anchor_of=run_anchor, raw=partial(_raw_files, folder), link=link)


def run_anchor(folder: str) -> str:
    """Give the anchor of a run by its folder, so that a voided attempt has one of its own."""
    return f"run-{make_slug(folder.rpartition('/')[2])}"


def _raw_files(folder: Path | None, run: Any) -> dict[str, str]:
    """Raw files of a run that are there, each with its path from the study's folder."""
    ways = {name: f"{run.folder}/{file}" for name, file in _RAW.items()}
    return {name: way for name, way in ways.items() if folder is None or (folder / way).is_file()}
