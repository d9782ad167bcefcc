"""The page of a study's runs and the tables of its cells: each run with the way to its raw files."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from benchbook.core import paths, runfolder
from benchbook.show import numbers
from benchbook.show.evidence import Evidence
from benchbook.show.markup import Html, element, join, slug
from benchbook.show.shape import shaped
from benchbook.show.table import Column, Notes, Table, long, number

_RUN = (number("Block"), Column("Arm"), Column("Workload"), number("Threads"))
_RUN_COLUMNS = (
    number("Run", meaning="place in the schedule"), *_RUN, number("QPS", "1/s"), number("TPS", "1/s"),
    number("Latency", "p95, ms"), number("Latency", "p99, ms"), number("Errors", "ignored"),
    number("Attempt", "if not 1"), Column("Started", "UTC"), Column("Raw"),
)  # fmt: skip
_RAW = {"log": runfolder.OUT, "errors": runfolder.ERR, "evidence": runfolder.EVIDENCE,
        "monitor": runfolder.MONITOR}  # fmt: skip


def opening(seen: Evidence) -> Html:
    """Write the title of the page of runs, and how many there are."""
    return shaped("runs.html.j2", name=seen.name, runs=seen.runs, voids=seen.voids)


def tables(seen: Evidence) -> tuple[Table, Table]:
    """List valid runs and voided attempts, each with the ways to its raw files."""
    link = os.path.relpath(seen.folder, paths.study(seen.name).run_pages)
    valid, void = (seen.readable(table) for table in (seen.runs, seen.voids))
    return runs(valid, link, seen.folder), voids(void, link, seen.folder)


def checks(known: Sequence[tuple[str, str, Callable[..., Any]]]) -> Table:
    """List the checks of a run: id, name, and what it means to pass, from the check's own description."""
    rows = [[id, name, _meaning(check)] for id, name, check in known]
    columns = [Column("Check"), Column("Name"), long("Passed means")]
    return Table("checks-of-a-run", "Checks of a run", columns, rows, is_whole=True)


def _meaning(check: Callable[..., Any]) -> str:
    text = (inspect.getdoc(check) or "").partition("\n\n")[0].partition(": ")[2]
    return f"{text[:1].upper()}{text[1:]}"


def runs(table: pd.DataFrame, link: str, folder: Path | None = None) -> Table:
    """List every run in the order of the schedule; warnings and a ledger that is not there are footnotes.

    `link` leads from the page to the study's `folder`, in which the raw folders are. Files that are not in it
    are not linked.
    """
    notes = Notes("runs")
    rows = []
    for run in _rows(table.sort_values("position", kind="stable")):
        doubts = [*run.warnings.split(";"), *([] if run.ledger == "agrees" else [f"ledger {run.ledger}"])]
        name = element("span", run.position, id=anchor(run.folder))
        rows.append(
            [
                Html(name.text + notes.marks(doubts).text),
                *(run.block, run.arm, run.workload, run.threads),
                *map(numbers.significant, (run.qps, run.tps, run.latency_p95_ms, run.latency_p99_ms)),
                run.ignored_errors,
                "" if run.attempt == 1 else run.attempt,
                str(run.started_utc)[:19].replace("T", " "),
                _raw(link, run, folder),
            ]
        )
    title = "Valid runs, in the order of the schedule"
    return Table("valid-runs", title, _RUN_COLUMNS, rows, empty="No run was valid.", notes=notes)


def cells(table: pd.DataFrame, pages: str) -> Table:
    """List every cell of readable runs: how many it has, their middle and ends, and the way to each of them.

    Medians and ends describe; effects are computed from pairs of neighbouring runs, not from these. What
    `pages` begins with leads to the page of runs.
    """
    rows = []
    seen: set[str] = set()
    for (workload, threads, arm), own in table.groupby(["workload", "threads", "arm"], sort=True):
        place = cell_anchor(own.key.iloc[0], threads)
        ways = (
            element(
                "a",
                run.block,
                href=f"{pages}index.html#{anchor(run.folder)}",
                class_="block",
                aria_label=f"{run.block}, run {run.run_id}",
            ).text
            for run in _rows(own.sort_values("block", kind="stable"))
        )
        latencies = ("latency_min_ms", "latency_avg_ms", "latency_p99_ms")
        rows.append(
            [
                element("span", workload, id=None if place in seen else place),
                *(threads, arm, len(own)),
                *(numbers.significant(getattr(own.qps, one)()) for one in ("median", "min", "max")),
                *(numbers.significant(own[one].median()) for one in latencies),
                element("span", Html(" ".join(ways))),
            ]
        )
        seen.add(place)
    columns = [
        Column("Workload"), number("Threads"), Column("Arm"), number("n", "runs"),
        *(number("QPS", one) for one in ("median", "lowest", "highest")),
        *(number("Latency", f"{one}, ms") for one in ("least", "mean", "p99")), long("Runs, by block"),
    ]  # fmt: skip
    caption = (
        "What each cell is made of: medians over its runs. Effects come from neighbouring runs of a block, "
        "not from medians."
    )
    return Table("cells", "Every cell", columns, rows, caption, "No run was valid.")


def cell_anchor(workload: str, threads: int) -> str:
    """Give the anchor of the first cell of a workload at a thread count."""
    return f"cell-{slug(workload)}-{threads}"


def voids(table: pd.DataFrame, link: str, folder: Path | None = None) -> Table:
    """List every voided attempt with all its reasons and the ways to what it left."""
    rows = [
        [
            element("span", f"{void.run_id}, attempt {void.attempt}", id=anchor(void.folder)),
            *(void.block, void.arm, void.workload, void.threads, void.status),
            element("ul", *(element("li", text.strip()) for text in void.reasons.split(";") if text.strip())),
            _raw(link, void, folder),
        ]
        for void in _rows(table.sort_values(["block", "run_id", "attempt"], kind="stable"))
    ]
    columns = [long("Run"), *_RUN, Column("Status"), long("Reasons"), Column("Raw")]
    caption = "A partner is a run that was sound itself and went with the other half of its pair."
    return Table("voids", "Voided attempts", columns, rows, caption, "No run was voided.")


def anchor(folder: str) -> str:
    """Give the anchor of a run by its folder, so that a voided attempt has one of its own."""
    return f"run-{slug(folder.rpartition('/')[2])}"


def _rows(table: pd.DataFrame) -> Iterator[Any]:
    return table.itertuples(index=False)


def _raw(link: str, run: Any, folder: Path | None) -> Html:
    ways = (
        element("a", name, href=f"{link}/{run.folder}/{file}", aria_label=f"{name} of {run.run_id}")
        for name, file in _RAW.items()
        if folder is None or (folder / run.folder / file).is_file()
    )
    return join(ways, " ")
