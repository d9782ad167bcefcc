"""Checks of runs of the user's own scripts, of which the pilots alone tell what statements an event has."""

from collections.abc import Iterator

from benchbook.core.study import custom_scripts
from benchbook.core.util import numeric_equality
from benchbook.read.evidence import Evidence

KINDS = ("reads", "writes", "other")


def is_custom(run: Evidence) -> bool:
    """True if a run is of a user's own script."""
    return custom_scripts.is_own(run.plan_value("script"))


def check_files(run: Evidence) -> Iterator[str]:
    """V5: the script and its modules were those of the plan, byte for byte; pilots have no such plan."""
    if not is_custom(run) or "own" not in run.plan:
        return
    request, result = run.plan_value("own")["files"], run.get("script")
    for name, (due, was) in numeric_equality.diff_mappings(request, result).items():
        shown = [(digest or "absent")[:10] for digest in (was, due)]
        yield f"the script's file {name} was {shown[0]}, {shown[1]} asked"


def check_work(run: Evidence) -> Iterator[str]:
    """V9: statements were made, and as many in each event as the pilots showed."""
    events, spoilt = run.total("events"), run.total("ignored_errors")
    if not run.total("total"):
        yield "the script made no statement that sysbench counts"
        return
    rule = (run.plan.get("own") or {}).get("statements") or {}
    for kind in KINDS if rule else ():
        count, each = run.total(kind), rule["event"][kind]
        first = rule["thread"][kind] * run.plan_value("threads")
        if not each * events <= count - first <= each * (events + spoilt):
            yield f"{count} {kind} in {events} events, {each} each and {first} first in the pilots"


def check_ledger(run: Evidence) -> Iterator[str]:
    """V10: the server's statements are those that sysbench counted, over one connection for each thread."""
    threads = run.plan_value("threads")
    product = run.grown("Connections") - run.get("ledger").get("own_connections", 0)
    if product != threads:
        yield f"the script makes connections of its own: {product} were made for {threads} threads"
    reads, observed = run.total("reads"), run.grown("Com_select")
    # MariaDB counts the end of each connection as a statement.
    result, spoilt = run.grown("Statements") - threads, run.total("ignored_errors")
    if not run.total("total") <= result <= run.total("total") + spoilt:
        yield f"the server was sent {result} statements, sysbench says {run.total('total')}"
    if not spoilt and observed > reads:
        yield f"Com_select grew by {observed}, sysbench says {reads} reads"


def check_hits(run: Evidence) -> Iterator[str]:
    """V11: reads found rows."""
    if run.total("reads") and not run.grown("Rows_sent"):
        yield f"{run.total('reads')} reads found no row"
