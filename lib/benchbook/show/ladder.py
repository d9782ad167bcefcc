"""A study's ladder on its page: the figure from first to last, and every pair of its arms in a table."""

from __future__ import annotations

from benchbook.compare import words
from benchbook.core.findings import Findings, Rungs
from benchbook.show import forest, numbers
from benchbook.show.badge import badge
from benchbook.show.table import Column, Table, long, number

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


def shown(findings: Findings) -> list[object]:
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
