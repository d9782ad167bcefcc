"""Statements of one transaction of each script of sysbench, as the server will count them.

From the Lua scripts that sysbench 1.0.20 and 1.1.0 install and that measure queries; `--db-ps-mode=auto`
prepares each kind of statement once for every table and thread.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from benchbook.core.study.model import PlannedRun

ROW_BYTES = 206
"""The least that a row of sysbench takes: two numbers of 4 bytes, 120 and 60 letters, 18 of InnoDB's own."""


class Statement(NamedTuple):
    """One kind of statement: the server's counter of it, and the rows it sends (a number, or an option)."""

    option: str
    counter: str
    rows: int | str | None = 0


@dataclass(frozen=True)
class Script:
    """The statements of one transaction; `fixed` overrides options that the script sets itself."""

    statements: tuple[str, ...]
    has_transaction: bool = False
    is_prepared: bool = True
    is_per_table: bool = True
    fixed: dict[str, int] = field(default_factory=dict)
    growth: int = 0
    """Rows by which a successful write changes the tables."""


READING = "Com_select"
STATEMENTS = {
    "point_selects": Statement("point_selects", READING, 1),
    "simple_ranges": Statement("simple_ranges", READING, "range_size"),
    "sum_ranges": Statement("sum_ranges", READING, 1),
    "order_ranges": Statement("order_ranges", READING, "range_size"),
    "distinct_ranges": Statement("distinct_ranges", READING, "range_size"),
    "index_updates": Statement("index_updates", "Com_update"),
    "non_index_updates": Statement("non_index_updates", "Com_update"),
    "deletes": Statement("delete_inserts", "Com_delete"),
    "inserts": Statement("delete_inserts", "Com_insert"),
    # An IN list over a column with repeated values: how many rows it finds is up to the data.
    "random_points": Statement("once", READING, None),
    "random_ranges": Statement("once", READING, 1),
}
READS = ("point_selects", "simple_ranges", "sum_ranges", "order_ranges", "distinct_ranges")
CHANGES = ("index_updates", "non_index_updates", "deletes", "inserts")
SCRIPTS = {
    "oltp_delete": Script(("deletes",), fixed={"delete_inserts": 1}, growth=-1),
    "oltp_insert": Script(("inserts",), is_prepared=False, fixed={"delete_inserts": 1}, growth=1),
    "oltp_point_select": Script(("point_selects",), fixed={"point_selects": 1}),
    "oltp_read_only": Script(READS, has_transaction=True),
    "oltp_read_write": Script((*READS, *CHANGES), has_transaction=True),
    "oltp_update_index": Script(("index_updates",)),
    "oltp_update_non_index": Script(("non_index_updates",)),
    "oltp_write_only": Script(CHANGES, has_transaction=True),
    "select_random_points": Script(("random_points",), is_per_table=False),
    "select_random_ranges": Script(("random_ranges",), is_per_table=False),
}
# Scripts that change rows, and those among them that change their number.
WRITING = frozenset(name for name, script in SCRIPTS.items() if set(script.statements) & set(CHANGES))
GROWING = frozenset(name for name, script in SCRIPTS.items() if script.growth)


@dataclass(frozen=True)
class Transaction:
    """Counts that one transaction adds to sysbench's and to the server's.

    `fewest_rows` and `most_rows` bound the rows it sends: a range near the end of a table finds fewer.
    `prepares` counts the statements each thread prepares once. None where no rule is known.
    """

    reads: int
    writes: int
    other: int
    counters: dict[str, int]
    fewest_rows: float | None
    most_rows: float | None
    has_transaction: bool
    is_prepared: bool
    prepares: int
    growth: int


def find_transaction(planned: PlannedRun) -> Transaction | None:
    """Statements of one transaction of a planned run, or None for a script without a rule."""
    script = SCRIPTS.get(planned.script)
    if script is None:
        return None
    options = {**planned.options, **script.fixed, "once": 1}
    counts = {name: int(options[STATEMENTS[name].option]) for name in script.statements}
    counters: Counter[str] = Counter()
    for name, count in counts.items():
        counters[STATEMENTS[name].counter] += count
    fewest, most = _bound_rows(counts, options, planned.table_size)
    has_transaction = script.has_transaction and not options["skip_trx"]
    is_prepared = script.is_prepared and options["ps_mode"] == "auto"
    tables = planned.tables if script.is_per_table else 1
    return Transaction(
        reads=counters[READING],
        writes=counters.total() - counters[READING],
        other=2 if has_transaction else 0,
        counters=dict(counters),
        fewest_rows=fewest,
        most_rows=most,
        has_transaction=has_transaction,
        is_prepared=is_prepared,
        prepares=(len(counts) * tables + (2 if has_transaction else 0)) if is_prepared else 0,
        growth=script.growth,
    )


def _bound_rows(
    counts: dict[str, int], options: dict[str, Any], table_size: int
) -> tuple[float | None, float | None]:
    fewest = most = 0.0
    for name, count in counts.items():
        rows = STATEMENTS[name].rows
        if rows is None:
            return None, None
        size = int(options[rows]) if isinstance(rows, str) else rows
        most += count * min(size, table_size)
        # With rows drawn evenly, a range starts so near the end that it is cut once in table_size / size.
        fewest += count * size * max(0.0, 1 - size / table_size) if size > 1 else count * size
    return fewest, most
