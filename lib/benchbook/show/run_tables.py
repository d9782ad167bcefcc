"""Tables of single runs, each with the way to its raw log."""

from __future__ import annotations

import pandas as pd

from benchbook.show import numbers
from benchbook.show.markup import Html, element, slug
from benchbook.show.table import Column, Notes, Table, long, number

_RUN_COLUMNS = (
    number("Log", meaning="place in the schedule, and the way to the raw log"),
    number("Block"),
    Column("Arm"),
    Column("Workload"),
    number("Threads"),
    number("QPS", "1/s"),
    number("TPS", "1/s"),
    number("p95", "ms"),
    number("p99", "ms"),
    number("Errors", "ignored"),
    number("Attempt", "if not 1"),
    number("Started", "UTC"),
)
_VOID_COLUMNS = (
    long("Run"),
    number("Block"),
    Column("Arm"),
    Column("Workload"),
    number("Threads"),
    Column("Status"),
    long("Reasons"),
)


def runs(table: pd.DataFrame, link: str) -> Table:
    """List every run in the order of the schedule; warnings and a ledger that is not there are footnotes.

    `link` leads from the page to the study's folder; the raw folders are found below it.
    """
    notes = Notes("runs")
    rows = []
    for run in table.sort_values("position", kind="stable").to_dict("records"):
        doubts = [
            *run["warnings"].split(";"),
            *([] if run["ledger"] == "agrees" else [f"ledger {run['ledger']}"]),
        ]
        log = element("a", run["position"], href=_log(link, run), id=f"run-{slug(run['run_id'])}")
        rows.append(
            [
                Html(log.text + notes.marks(doubts).text),
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
            ]
        )
    title = "Valid runs, in the order of the schedule"
    return Table("valid-runs", title, _RUN_COLUMNS, rows, empty="No run was valid.", notes=notes)


def voids(table: pd.DataFrame, link: str) -> Table:
    """List every voided attempt with all its reasons and a link to what it left."""
    rows = [
        [
            element("a", f"{void['run_id']}, attempt {void['attempt']}", href=_log(link, void)),
            void["block"],
            void["arm"],
            void["workload"],
            void["threads"],
            void["status"],
            element(
                "ul", *(element("li", text.strip()) for text in void["reasons"].split(";") if text.strip())
            ),
        ]
        for void in table.sort_values(["block", "run_id", "attempt"], kind="stable").to_dict("records")
    ]
    caption = "A partner is a run that was sound itself and went with the other half of its pair."
    return Table("voids", "Voided attempts", _VOID_COLUMNS, rows, caption, "No run was voided.")


def _log(link: str, run: dict) -> str:
    return f"{link}/{run['folder']}/sysbench.out"
