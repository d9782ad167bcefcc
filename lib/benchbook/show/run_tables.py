"""Tables of single runs, each with the way to its raw log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from benchbook.show import numbers
from benchbook.show.markup import Html, element, slug
from benchbook.show.run_page import address
from benchbook.show.table import Column, Notes, Table, long, number

_RUN_COLUMNS = (
    number("Run", meaning="place in the schedule, and the way to the run's page"),
    number("Block"),
    Column("Arm"),
    Column("Workload"),
    number("Threads"),
    number("QPS", "1/s"),
    number("TPS", "1/s"),
    number("Latency", "p95, ms"),
    number("Latency", "p99, ms"),
    number("Errors", "ignored"),
    number("Attempt", "if not 1"),
    number("Started", "UTC"),
    Column("Raw"),
)
_VOID_COLUMNS = (
    long("Run"),
    number("Block"),
    Column("Arm"),
    Column("Workload"),
    number("Threads"),
    Column("Status"),
    long("Reasons"),
    Column("Raw"),
)


def runs(table: pd.DataFrame, link: str, pages: str) -> Table:
    """List every run in the order of the schedule; warnings and a ledger that is not there are footnotes.

    `link` leads from the page to the study's folder, in which the raw folders are; what `pages` begins
    with leads to the pages of single runs.
    """
    notes = Notes("runs")
    rows = []
    for run in table.sort_values("position", kind="stable").to_dict("records"):
        doubts = [
            *run["warnings"].split(";"),
            *([] if run["ledger"] == "agrees" else [f"ledger {run['ledger']}"]),
        ]
        way = element("a", run["position"], href=section(pages, run), id=f"run-{slug(run['run_id'])}")
        rows.append(
            [
                Html(way.text + notes.marks(doubts).text),
                run["block"],
                run["arm"],
                run["workload"],
                run["threads"],
                numbers.significant(run["qps"]),
                numbers.significant(run["tps"]),
                numbers.significant(run["latency_p95_ms"]),
                numbers.significant(run["latency_p99_ms"]),
                run["ignored_errors"],
                "" if run["attempt"] == 1 else run["attempt"],
                str(run["started_utc"])[:19].replace("T", " "),
                _log(link, run),
            ]
        )
    title = "Valid runs, in the order of the schedule"
    return Table("valid-runs", title, _RUN_COLUMNS, rows, empty="No run was valid.", notes=notes)


def cells(table: pd.DataFrame, pages: str) -> Table:
    """List every cell: how many runs it has, their middle and their ends, and the way to each of them.

    Medians and ends describe; effects are computed from pairs of neighbouring runs, not from these.
    """
    rows = []
    seen: set[str] = set()
    for (workload, threads, arm), own in table.groupby(["workload", "threads", "arm"], sort=True):
        place = cell_anchor(workload, threads)
        ways = (
            element(
                "a",
                run["block"],
                href=section(pages, run),
                aria_label=f"{run['block']}, run {run['run_id']}",
            ).text
            for run in own.sort_values("block", kind="stable").to_dict("records")
        )
        rows.append(
            [
                element("span", workload, id=None if place in seen else place),
                threads,
                arm,
                len(own),
                numbers.significant(own["qps"].median()),
                numbers.significant(own["qps"].min()),
                numbers.significant(own["qps"].max()),
                numbers.significant(own["latency_min_ms"].median()),
                numbers.significant(own["latency_avg_ms"].median()),
                numbers.significant(own["latency_p99_ms"].median()),
                element("span", Html(" ".join(ways))),
            ]
        )
        seen.add(place)
    columns = [
        Column("Workload"),
        number("Threads"),
        Column("Arm"),
        number("n", "runs"),
        number("QPS", "median"),
        number("QPS", "lowest"),
        number("QPS", "highest"),
        number("Latency", "least, ms"),
        number("Latency", "mean, ms"),
        number("Latency", "p99, ms"),
        long("Runs, by block"),
    ]
    caption = (
        "What each cell is made of: medians over its runs. Effects come from neighbouring runs of a block, "
        "not from medians."
    )
    return Table("cells", "Every cell", columns, rows, caption, "No run was valid.")


def cell_anchor(workload: str, threads: int) -> str:
    """Give the anchor of the first cell of a workload at a thread count."""
    return f"cell-{slug(workload)}-{threads}"


def voids(table: pd.DataFrame, link: str, pages: str) -> Table:
    """List every voided attempt with all its reasons and the ways to what it left."""
    rows = [
        [
            element("a", f"{void['run_id']}, attempt {void['attempt']}", href=section(pages, void)),
            void["block"],
            void["arm"],
            void["workload"],
            void["threads"],
            void["status"],
            element(
                "ul", *(element("li", text.strip()) for text in void["reasons"].split(";") if text.strip())
            ),
            _log(link, void),
        ]
        for void in table.sort_values(["block", "run_id", "attempt"], kind="stable").to_dict("records")
    ]
    caption = "A partner is a run that was sound itself and went with the other half of its pair."
    return Table("voids", "Voided attempts", _VOID_COLUMNS, rows, caption, "No run was voided.")


def section(pages: str, run: Mapping[str, Any]) -> str:
    """Give the way to a run's own section on the page of its block."""
    return f"{pages}{address(run['block'], run['folder'])}"


def _log(link: str, run: dict) -> Html:
    name = f"log of {run['run_id']}"
    return element("a", "log", href=f"{link}/{run['folder']}/sysbench.out", aria_label=name)
