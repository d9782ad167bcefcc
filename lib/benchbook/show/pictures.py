"""The figures of a study: its effects, its ladder, what percentiles rest on, and what its runs show."""

from __future__ import annotations

from benchbook.compare import words
from benchbook.compare.turns import orders
from benchbook.core.findings import Findings, Rungs
from benchbook.core.turns import TURNS
from benchbook.show import causes, curves, figures, forest, numbers, sessions
from benchbook.show.evidence import Evidence
from benchbook.show.picture import Picture
from benchbook.show.shape import badge
from benchbook.show.table import Column, Table, long, number


def of_effects(seen: Evidence) -> list[object]:
    """Draw the effects of a study, over its recorded sessions if it is recorded, and say below why."""
    found, several = seen.findings, sessions.several(seen)
    earlier = sessions.earlier(several) if several else ()
    lines, told = curves.over_sessions(several) if several else curves.of_findings(found.findings)
    drawn = (
        forest.over_sessions(several, told) if several else forest.of_findings(found.findings, found.aa, told)
    )
    shown = [one for one in (lines, drawn if drawn.rows or not lines else None) if one is not None]
    return [*shown, *causes.shown(found, earlier)]


def beside_effects(seen: Evidence) -> list[object]:
    """Return what else there is on effects: session by session, the ladder, what a query cost each part."""
    found = seen.findings
    own = [forest.of_findings(found.findings, found.aa)] if sessions.several(seen) else []
    return [
        *sessions.shown(seen),
        *own,
        *ladder(found),
        *causes.tables(found),
        *percentiles(found),
    ]


def of_runs(seen: Evidence) -> list[Picture]:
    """Draw what the runs of a study show.

    Throughput over threads takes several levels. In turns a second holds the turns of all arms, so its series
    tells nothing of one.
    """
    drawn, names = seen.drawn
    found = [figures.qps(drawn, names)] if drawn.threads.nunique() > 1 else []
    is_shared = (orders(drawn) == TURNS).any()
    return [*found, *([] if is_shared else [figures.seconds(seen.intervals, drawn, names)])]


_CAPTION = (
    "A pause of the machine makes many queries late at once. Pauses are counted as seconds, or several in a "
    "row, that hold what lies beyond the percentile of their run. Where one alone made it, it says more of "
    "the machine than of the arm."
)


def percentiles(findings: Findings) -> list[Table]:
    """Return the table, or nothing where no percentile was compared."""
    arms = words.labels(findings, "arms")
    rows = [
        [
            words.of(found, "workload"),
            words.metric(found.metric),
            arms.get(one.arm, one.arm),
            one.runs,
            one.events_beyond,
            *("not known" if many is None else many for many in (one.pauses, one.by_one_pause)),
        ]
        for found in findings.findings
        for one in found.support or ()
    ]
    columns = [
        long("Workload"), Column("Percentile"), Column("Arm"), number("Runs"),
        number("Events beyond", "at least, in a run"), number("Pauses", "in all runs"),
        number("By one pause alone", "runs"),
    ]  # fmt: skip
    title = "What percentiles rest on"
    return [Table("percentiles", title, columns, rows, _CAPTION)] if rows else []


_QUESTIONS = {
    "against_first": "against the first",
    "against_neighbour": "against its neighbour",
    "pairs": "among all pairs",
}
CAPTION = (
    "Each pair of arms, the later one against the earlier one. A label is decided within its own "
    "question with "
    "Holm's correction: against the first arm, against the neighbour, and among all pairs, which "
    "asks for the most "
    "evidence. The best arm is decided among all pairs."
)


def ladder(findings: Findings) -> list[object]:
    """Return the figure and the tables of a study's ladder; nothing where it has none."""
    own = findings.ladder
    if not own:
        return []
    tables = [_table(found, place) for place, found in enumerate(own.workloads, 1)]
    skipped = f" Without any run: {numbers.listing(own.skipped)}." if own.skipped else ""
    if not tables:
        empty = f"Too few arms of the ladder have runs.{skipped}"
        return [Table("ladder", "From the first arm to the last", [Column("Arm")], [], empty=empty)]
    return [*map(forest.ladder, own.workloads), *tables]


def _table(found: Rungs, place: int) -> Table:
    label = {
        question: {(one.baseline, one.treatment): one.label for one in getattr(found, question)}
        for question in _QUESTIONS
    }
    rows = [
        [
            f"{words.of(one, 'treatment')} against {words.of(one, 'baseline')}",
            numbers.effect(one),
            numbers.span(one.low, one.high) if one.headline else "",
            one.n,
            *(
                badge(own[pair]) if (pair := (one.baseline, one.treatment)) in own else ""
                for own in label.values()
            ),
        ]
        for one in found.pairs
    ]
    levels = numbers.listing([numbers.level(one) for one in sorted({one.level for one in found.pairs})])
    columns = [
        long("Pair"), number("Effect"), number("Interval", levels), number("n", "blocks"),
        *(Column(text.capitalize()) for text in _QUESTIONS.values()),
    ]  # fmt: skip
    workload = words.of(found.pairs[0], "workload")
    title = f"The ladder on {workload}, {words.metric(found.metric)}"
    return Table(f"ladder-{place}", title, columns, rows, f"{found.sentence} {CAPTION}", is_whole=True)
