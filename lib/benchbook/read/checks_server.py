"""Checks V10 to V13 and V25: server counters, memory, and the time between two runs.

sysbench's counts and the server's agree to the query, over discard and window together. A server is held to
what it was when it was first seen, and its counters to where the run before left them.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchbook.core.artifacts.run_folder import Between
from benchbook.core.study.params import Limits
from benchbook.core.study.study_arm import LOWEST_SHARES
from benchbook.core.study.sysbench_workloads import ROW_BYTES
from benchbook.core.util import numeric_equality
from benchbook.read import checks_cluster, checks_custom_scripts
from benchbook.read.evidence import Evidence, Excused, Missing

OWN_ROWS = 5000
"""Rows that our own looks at the server may add to `Rows_sent` between its two readings."""
ROW_SHARE = 0.99
"""Share of the expected rows that must have been sent; the rest is chance in where ranges fall."""
WRITE_SHARE = 0.9
"""Share of the writes that must have changed a row; the others met a row that another thread had taken."""
LACKED = frozenset({"Com_begin", "Com_commit", "Com_stmt_execute", "Connections"})
"""Counters that an engine may lack, if it says why: its reads and writes are held all the same."""
WITH_ERRORS = frozenset({"Com_stmt_prepare", "Rows_changed"})
"""Counters of writes that hold whether statements ended in errors or not."""
RETRIES = "Retries"
"""Times that a server did the writes of a transaction again by itself, and counted them again, as optimistic
TiDB 3.0 does; a counter of those servers alone."""
UPTIME_SLACK_S = 5.0
"""Seconds by which the server's uptime may grow more than the run lasted: our looks before and after it."""
UPTIME_ROUNDING_S = 1.5


def check_ledger(run: Evidence, limits: Limits) -> Iterator[str]:
    """V10: the servers counted the statements, transactions and connections that sysbench counted, of all
    runs that they served at once."""
    if checks_custom_scripts.is_custom(run):
        yield from checks_custom_scripts.check_ledger(run)
        return
    if run.has_counter("Account_updates"):
        yield from _check_account(run)
        return
    expected: Counter[str] = Counter(Connections=run.get("ledger").get("own_connections", 0))
    optional: Counter[str] = Counter()
    for evidence in run.served:
        for sums, counts in zip((expected, optional), _expected_counts(evidence), strict=True):
            sums.update(counts)
    has_errors = any(evidence.total("ignored_errors") for evidence in run.served)
    again = _possible_repeats(run)
    for name, count in {**expected, **optional}.items():
        if name in optional:
            is_held = run.has_counter(name) and (name in WITH_ERRORS or not has_errors)
        else:
            is_held = name not in LACKED or not run.absent(name)
        if is_held and not count <= (observed := run.grown(name)) <= count + again[name]:
            yield f"{name} grew by {observed}, sysbench says {count}"


def _possible_repeats(run: Evidence) -> Counter[str]:
    """Possible repeated counts of each statement at a server, at the most, by the retries it counted."""
    most: Counter[str] = Counter()
    # Those of the server's own sessions are told too. Statements that are not prepared are counted once.
    retries = run.grown(RETRIES) if run.has_counter(RETRIES) else 0
    for transaction in [each.transaction for each in run.served] if retries else ():
        ends = {"Com_begin": 1, "Com_commit": 1} if transaction.has_transaction else {}
        again = {**transaction.counters, **ends} if transaction.is_prepared else {}
        # A transaction that is done again is done without its reads.
        most |= Counter({name: each * retries for name, each in again.items() if name != "Com_select"})
    return most


def _expected_counts(run: Evidence) -> tuple[dict[str, int], dict[str, int]]:
    """Expected server counts of a run by sysbench's totals, and the counts of only some servers."""
    transaction, spoilt, done = run.transaction, run.total("ignored_errors"), run.total("transactions")
    expected = {
        "Com_select": run.total("reads"),
        "Com_begin": done + spoilt if transaction.has_transaction else 0,
        "Com_commit": done if transaction.has_transaction else 0,
        "Connections": run.plan_value("threads"),
        "Com_stmt_execute": run.total("total") + spoilt if transaction.is_prepared else 0,
    }
    optional = {name: each * done for name, each in transaction.counters.items() if name != "Com_select"}
    optional["Com_stmt_prepare"] = run.plan_value("threads") * transaction.prepares
    # Rows changed are what sysbench calls writes, whether their transaction was kept or not.
    return expected, optional | {"Rows_changed": run.total("writes")}


def _check_account(run: Evidence) -> Iterator[str]:
    """Faults of the counters of one account, which recorded campaigns in turns have (docs/turns.md)."""
    transaction, spoilt, done = run.transaction, run.total("ignored_errors"), run.total("transactions")
    connections = run.plan_value("threads") + run.get("ledger").get("own_connections", 0)
    books = [
        ("Com_select", run.grown("Com_select"), run.total("reads")),
        ("Connections", run.grown("Connections"), connections),
    ]
    if not spoilt:
        updates = sum(each for name, each in transaction.counters.items() if name != "Com_select") * done
        # A write that met no row is an update to the server and another statement to sysbench.
        rest = run.total("writes") + run.total("other") - updates
        books += [("updates", run.grown("Account_updates"), updates),
                  ("other statements", run.grown("Account_other"), rest)]  # fmt: skip
    for name, book, count in books:
        if book != count:
            yield f"{name} of the account grew by {book}, sysbench says {count}"


def check_hits(run: Evidence, limits: Limits) -> Iterator[str]:
    """V11: reads found the rows they asked for, writes changed rows."""
    if checks_custom_scripts.is_custom(run):
        yield from checks_custom_scripts.check_hits(run)
        return
    transaction, done = run.transaction, run.total("transactions")
    least = transaction.writes * done * (WRITE_SHARE if transaction.growth >= 0 else 0)
    if transaction.writes and run.total("writes") < max(least, 1):
        yield f"{run.total('writes')} of {transaction.writes * done} writes changed a row"
        if run.absent("Rows_sent"):
            return
    ranges = [*filter(None, map(_expected_rows, run.served))]
    if transaction.reads and len(ranges) == len(run.served):
        sent = run.grown("Rows_sent")
        low, high = map(sum, zip(*ranges, strict=True))
        if not low <= sent <= high + OWN_ROWS:
            yield f"the server sent {sent} rows, {low:.0f} to {high + OWN_ROWS:.0f} expected"


def _expected_rows(run: Evidence) -> tuple[float, float] | None:
    """Least and greatest number of rows sent to a run; None if that is up to data."""
    fewest, most = run.transaction.fewest_rows, run.transaction.most_rows
    if fewest is None or most is None:
        return None
    done, spoilt = run.total("transactions"), run.total("ignored_errors")
    return fewest * done * (1 if fewest == most else ROW_SHARE), most * (done + spoilt)


def check_identity(run: Evidence, limits: Limits) -> Iterator[str]:
    """V12: server and proxy, their settings and places were the same at the start, before and after, they had
    the quotas that their arm asks for, and the server never stopped."""
    before, after = (
        checks_cluster.but_for_event(run, run.get(f"identity_{when}"), when) for when in ("before", "after")
    )
    yield from _diff_signs(before, after)
    yield from check_arm(run)
    yield from check_quotas(run)
    yield from check_settings(run)
    if run.planned_event is not None and "store" not in run.planned_event:
        return
    grown = run.get("uptime_after_s") - run.get("uptime_before_s")
    # Neighbours and connections beside a run come before it and leave after it.
    beside = run.observed.get("beside_s") or 0.0
    lasted = run.get("ended_monotonic_s") - run.get("started_monotonic_s")
    if not -UPTIME_ROUNDING_S <= grown - lasted <= UPTIME_SLACK_S + beside:
        yield f"the server's uptime grew by {grown} s in a run of {lasted:.1f} s"


def check_data(run: Evidence, limits: Limits) -> Iterator[str]:
    """V13: tables are defined as at the start, had the plan's rows, and the rows the script makes
    of them after."""
    faults = list(check_tables(run))
    yield from faults
    if faults or checks_custom_scripts.is_custom(run):
        return
    if run.observed.get("rows_before", ()) is None:
        yield from _check_sample(run)
        return
    before, after, transaction = run.get("rows_before"), run.get("rows_after"), run.transaction
    names = [f"sbtest{number}" for number in range(1, run.plan_value("tables") + 1)]
    if missing := [name for name in names if name not in before or name not in after]:
        raise Missing(f"no row count of {', '.join(missing)}")
    size = run.plan_value("table_size")
    for name in names:
        # A script that only adds or only removes rows may find what its neighbour in the block left.
        more = before[name] - size
        if more and more * transaction.growth <= 0:
            yield f"{name} had {before[name]} rows, {size} expected"
    changed = sum(after[name] - before[name] for name in names)
    expected = transaction.growth * run.total("writes")
    if abs(changed - expected) > _row_slack(run, run.served):
        yield f"the run changed the number of rows by {changed}, {expected} expected"


def _row_slack(run: Evidence, served: Sequence[Evidence]) -> int:
    """Rows that transactions with an error may have changed where none of them is undone."""
    spoilt = sum(each.total("ignored_errors") for each in served)
    return spoilt if run.transaction.writes and not run.transaction.has_transaction else 0


def _check_sample(run: Evidence) -> Iterator[str]:
    """Faults of a sample of tables too large to count around every run; Excused without one."""
    if run.observed.get("sample_before") is None and "sample_before" not in run.observed:
        raise Excused("rows not counted: too many to count around every run")
    size, transaction = run.plan_value("table_size"), run.transaction
    slack = _row_slack(run, [run])
    for when in ("before", "after"):
        observed = run.get(f"sample_{when}")
        for number in range(1, run.plan_value("tables") + 1):
            result = observed.get(f"sbtest{number}")
            if fault := _rows_fault(result, size, transaction.growth, slack) if result else "was not there":
                yield f"sbtest{number} {fault} {when} the run"


def _rows_fault(look: dict[str, int], size: int, growth: int, slack: int) -> str | None:
    """Fault in the ids of one table: a script adds rows beyond the last, and leaves gaps where it removes."""
    first, last, lost = look["first"], look["last"], look["asked"] - look["there"]
    if growth > 0:
        return f"ended at id {last}, {size} or more expected," if last < size else None
    if last > size:
        return f"ended at id {last}, {size} expected,"
    if growth == 0 and not slack and (first, last) != (1, size):
        return f"had ids {first} to {last}, 1 to {size} expected,"
    return f"lacked {lost} of {look['asked']} rows looked for" if growth == 0 and lost > slack else None


COLD_SHARE, STARTED_BYTES = 0.1, 8 << 20
"""Share of its data that a cold arm may hold, beside what any start reads of the server's own tables."""
WARM_SHARE = 0.75
"""Share of its data that a warm arm must hold. A pool that is smaller than its data is never warm: what it
holds follows from how a server evicts, and MariaDB keeps 1,536 pages free, more than 24 MiB of pool have."""


def check_cache(run: Evidence, limits: Limits) -> Iterator[str]:
    """V25: the server's memory content at its first query is as the arm begins by its study."""
    run.require_record()
    begins = run.observed.get("begins")
    held = run.cache("before") if begins in ("cold", "warm") else None
    if held is None and begins == "cold":
        why = "so that it began cold follows from its start right before the run alone"
        raise Excused(f"the server does not say what it holds in memory, {why}")
    if held is None:
        return
    data = run.plan_value("tables") * run.plan_value("table_size") * ROW_BYTES
    in_memory, pool = held.pages * held.page_bytes, held.pages_of_pool * held.page_bytes
    shown = f"{in_memory / 1e6:.1f} MB of at least {data / 1e6:.1f} MB were in memory at its first query"
    if begins == "cold" and in_memory > COLD_SHARE * data + STARTED_BYTES:
        yield f"it was to begin cold, and {shown}"
    if begins == "warm" and in_memory < WARM_SHARE * data and pool >= data:
        yield f"it was to begin warm, and {shown}"


QUOTA_ROUNDING = 1e-3
"""What a quota in cores may differ by from the one asked: kernels keep it in microseconds of a period."""


def check_settings(run: Evidence) -> Iterator[str]:
    """Each variable of the server that differs from the start, or was changed in the run."""
    for name, value in _foreign_items(run, "settings"):
        yield f"server variable {name} was set to {value} by hand before the runs"
    yield from (f"server variable {changes}" for changes in _describe_changes(run, "settings"))


def check_tables(run: Evidence) -> Iterator[str]:
    """Each table, column, index, trigger, event that differs from the start or changed in the run."""
    for name, what in _foreign_items(run, "tables"):
        yield f"{name} is not ours and was there before the runs ({what})"
    yield from _describe_changes(run, "tables")


def check_arm(run: Evidence) -> Iterator[str]:
    """Each sign of the arm's parts that differs from the start of its servers."""
    for changed in _diff_signs(run.get("identity_at_start"), run.get("identity_before")):
        yield f"{changed} between the runs"


def _diff_signs(then: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for name, (was, has) in numeric_equality.diff_mappings(then, now).items():
        yield f"{name} changed from {was!r} to {has!r}"


def check_quotas(run: Evidence) -> Iterator[str]:
    """Each part that had another quota of processor time than its arm asks for, by the kernel's own word."""
    setting = run.plan.get("arm_setting") or {}
    request = setting.get("cpu") or {}
    for name, group in sorted(run.get("identity_before").items()):
        if not name.endswith("_group") or not isinstance(group, Mapping) or "quota_cores" not in group:
            continue
        part, had = name.removesuffix("_group"), group["quota_cores"]
        quota = (request.get("server" if part.startswith("server") else "proxy") or {}).get("quota")
        if _is_other_quota(had, quota):
            shown = ["no quota" if item is None else f"a quota of {item:g} cores" for item in (had, quota)]
            yield f"the {part} had {shown[0]}, its arm asks for {shown[1]}"
        shares, qos = group.get("shares"), setting.get("qos", "none")
        if part == "server" and (shares == LOWEST_SHARES) != (qos == "best_effort"):
            yield f"the {part} had a weight of {shares}, its arm asks for qos {qos}"


def _is_other_quota(had: float | None, quota: float | None) -> bool:
    if had is None or quota is None:
        return had is not quota
    return bool(quota) and abs(had - quota) > QUOTA_ROUNDING


def check_between(run: Evidence) -> Iterator[str]:
    """Each sign that a server did something for others since the run before; of several, each named."""
    for number, server in enumerate(run.servers):
        name = f"server {number}: " if len(run.servers) > 1 else ""
        yield from (name + changes for changes in _check_between(server))


def not_held(run: Evidence) -> list[str]:
    """Properties of a server that could not be held between the runs, each with the reason."""
    state = run.observed.get("state")
    if not isinstance(state, dict):
        return []
    lacking = {**(state.get("not_held") or {}), **((state.get("between") or {}).get("not_held") or {})}
    sampled = ["rows not counted, a sample was: too many"] if run.observed.get("sample_before") else []
    return sampled + [f"not held between the runs: {what} ({why})" for what, why in sorted(lacking.items())]


def _describe_changes(run: Evidence, kind: str) -> Iterator[str]:
    start, before, after = (run.get("state", kind, when) for when in ("at_start", "before", "after"))
    observed = run.get("state", kind)
    between = (start, before, "changed_between", "between the runs")
    for was, now, key, when in (between, (before, after, "changed_in_run", "in the run")):
        if was != now:
            items = sorted((observed.get(key) or {}).items())
            for name, (had, has) in items:
                changed = f"removed (it was {had})" if has is None else f"{had}, is {has}"
                yield f"{name} was {f'added ({has})' if had is None else changed} {when}"
            if not items:
                yield f"{kind}: the digest changed {when}"


def _foreign_items(run: Evidence, kind: str) -> list[tuple[str, str]]:
    """Objects of a stranger at the first look at the server; older runs have no such list."""
    return sorted(((run.get("state").get("unasked") or {}).get(kind) or {}).items())


def _check_between(run: Evidence) -> Iterator[str]:
    state, report = run.get("state"), run.get("state", "between")
    for table, (_, now) in sorted((state.get("written_between") or {}).items()):
        yield f"{table} was written to between the runs ({now or 'gone'})"
    if not report:
        raise Missing("the server's counters at the end of the run before are not known")
    between = Between.of(report)
    short_s = between.seconds - between.uptime_s
    if short_s > UPTIME_ROUNDING_S:
        yield f"the server was started again between the runs: its uptime lacks {short_s:.0f} s"
    if between.is_shared:
        return
    yield from (f"{name} grew by {count} between the runs" for name, count in between.counters.items())
    if between.own is not None and between.connections is not None:
        probes = between.refused if (run.observed.get("arrangement") or {}).get("has_probes") else 0
        if foreign := between.connections - between.own - probes:
            yield f"{foreign} connections that are not ours were made between the runs"
