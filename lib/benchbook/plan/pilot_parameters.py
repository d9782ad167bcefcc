"""Parameters settled by pilots: fixed rates, lengths of turns, statements of own scripts.

A fixed rate is a share of the slower arm's saturation. Latency is compared at the same rate in all arms,
below what each of them can do: at saturation latency is only the length of the queue, and an arm that does
more would be asked for more.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from benchbook.core.study import interleaving as words
from benchbook.core.study.study import StudySpec
from benchbook.core.study.study_sections import Rate
from benchbook.core.util.errors import BenchbookError
from benchbook.core.util.plural import count

# Pilots that differ by a percent or two then ask for the same rate, and runs that exist are kept.
DIGITS = 2

Rates = Mapping[str, Mapping[int, int]]


def pilot_workload_of(study: StudySpec, workload: str) -> str:
    """Workload with pilots for this one: the first that differs in nothing but its rate."""
    asked_for = study.workloads[workload]
    # A workload with a number as its rate has pilots of its own, at that rate.
    if not isinstance(asked_for.rate, Rate):
        return workload
    same: dict[str, Any] = {"rate": 0, "script": None, "order": asked_for.order}
    return next(
        name
        for name, other in study.workloads.items()
        if (isinstance(other.rate, Rate) or other.rate == 0)
        and study.script(name) == study.script(workload)
        and other.model_copy(update=same) == asked_for.model_copy(update=same)
    )


def pilot_levels(study: StudySpec, workload: str) -> list[int]:
    """Thread levels of a workload's pilots: all if a rate depends on them, else the ends."""
    rated = (name for name, other in study.workloads.items() if isinstance(other.rate, Rate))
    depends = any(pilot_workload_of(study, name) == workload for name in rated)
    return sorted(set(study.threads) if depends else {min(study.threads), max(study.threads)})


def settle_rates(study: StudySpec, pilots: pd.DataFrame) -> list[dict[str, Any]]:
    """Rate of every workload with a share, at each thread level, and its origin.

    `pilots` has the columns arm, workload, threads, second (from 1) and tps. An arm's saturation is its mean
    over the second half of the pilot; `slower_arm` has the lowest. The rate is rounded down to two digits.
    """
    settled = []
    for name, workload in study.workloads.items():
        if not isinstance(workload.rate, Rate):
            continue
        observed = pilots[pilots.workload == pilot_workload_of(study, name)]
        for threads in study.threads:
            results = {
                str(arm): float(part.loc[2 * part.second > part.second.max(), "tps"].mean())
                for arm, part in observed[observed.threads == threads].groupby("arm", sort=True)
            }
            if not results:
                level = count(threads, "thread")
                raise BenchbookError(f"workloads.{name}.rate: no pilot at {level}; warm up again")
            slower = min(results, key=results.__getitem__)
            share, most = workload.rate.share, results[slower]
            row = {"workload": name, "threads": threads, "share": share, "slower_arm": slower}
            settled.append(row | {"saturation_tps": round(most, 1), "rate": _round_down(share * most)})
    return settled


def rates_told(settled: list[dict[str, Any]]) -> list[str]:
    """Say each settled rate in a sentence."""
    return [
        f"{row['workload']}, {count(row['threads'], 'thread')}: {row['rate']} transactions a second, "
        f"{100 * row['share']:g} % of what {row['slower_arm']} does ({row['saturation_tps']:g})"
        for row in settled
    ]


def settled_rates(study: StudySpec, warm_up: Mapping[str, Any]) -> Rates:
    """Settled rates by workload and threads from `warm_up.json`; BenchbookError if one lacks."""
    rates = by_cell(warm_up.get("rates", ()), "rate")
    for name, workload in study.workloads.items():
        lacking = [level for level in study.threads if not rates.get(name, {}).get(level)]
        if isinstance(workload.rate, Rate) and lacking:
            raise BenchbookError(
                f"workloads.{name}.rate: the pilots settled none at {count(lacking[0], 'thread')}; "
                "run warm-up again with longer pilots, or write the rate as a number"
            )
    return rates


def by_cell(rows: Iterable[Mapping[str, Any]], key: str) -> dict[str, dict[int, Any]]:
    """Values under a key in rows of `warm_up.json`, by workload and threads."""
    cell: dict[str, dict[int, Any]] = {}
    for row in rows:
        if key in row:
            cell.setdefault(row["workload"], {})[int(row["threads"])] = row[key]
    return cell


def _round_down(rate: float) -> int:
    """Round a positive rate down to two significant digits."""
    if rate < 1:
        return 0
    step = 10 ** max(0, math.floor(math.log10(rate)) + 1 - DIGITS)
    return int(rate // step * step)


EDGE_STEP_S = 0.5

# Milliseconds; None where transactions are too long.
Lengths = Mapping[str, Mapping[int, int | None]]


def settle_turns(study: StudySpec, pilots: pd.DataFrame) -> list[dict[str, Any]]:
    """Length of a turn of each workload and thread level in milliseconds, the same for all arms.

    A turn holds a mean transaction and ten mean statements of the slowest arm, 1.5 ms for each thread, and
    what the study's arms need at the least (`core.turns.least_ms`); None where no length that is used is as
    long. `pilots` has the columns arm, workload, threads, second, tps, qps and starting_s; a mean time is
    threads over the rate of the best second (Little's law), on a straight line of logarithms between levels
    that have pilots. `edge_s` is there where clients take longer to start than `EDGE_S` holds.
    """
    settled, shortest_ms = [], words.least_ms(study)
    for name in study.workloads:
        observed = pilots[pilots.workload == name]
        # The best second, for another program's burst in a pilot of two would make whole runs of a level.
        best = observed.groupby(["arm", "threads"], sort=True)[["tps", "qps"]].max()
        lowest = best[(best > 0).all(axis="columns")].groupby(level="threads").min()
        if lowest.empty:
            continue
        levels = np.log(lowest.index.astype(float))
        times = {rate: np.log(1000 * lowest.index / lowest[rate]) for rate in lowest}
        for threads in study.threads:
            transaction_ms, statement_ms = (
                round(float(np.exp(np.interp(np.log(threads), levels, times[rate]))), 3)
                for rate in ("tps", "qps")
            )
            statements_ms, threads_ms = words.STATEMENTS * statement_ms, words.THREAD_MS * threads
            needed_ms = max(transaction_ms, statements_ms, threads_ms, shortest_ms)
            length = next((number for number in words.LADDER_MS if number >= needed_ms), None)
            row = {"workload": name, "threads": threads, "transaction_ms": transaction_ms}
            row |= {"statement_ms": statement_ms, "turn_ms": length}
            settled.append(row | _starting_times(observed, threads))
    return settled


def _starting_times(data_frame: pd.DataFrame, threads: int) -> dict[str, float]:
    """`starting_s` of all arms at a level, and `edge_s` in half seconds where the usual don't suffice."""
    # Arms that start at once share the cores, so that the last one has started when all have had the time
    # that each took alone, and the A/A pair has one more; on a straight line between levels that have pilots.
    each = data_frame.groupby(["threads", "arm"])["starting_s"].first().dropna().groupby(level="threads")
    together = each.sum() + each.max()
    if together.empty:
        return {}
    starting_s = round(float(np.interp(threads, together.index.astype(float), together)), 2)
    edge_s = math.ceil((words.GUARD_S + starting_s) / EDGE_STEP_S) * EDGE_STEP_S
    return {"starting_s": starting_s} | ({"edge_s": edge_s} if edge_s > words.EDGE_S else {})


def length_ms(study: StudySpec, workload: str, threads: int, settled: Lengths) -> int | None:
    """Milliseconds of a turn; None if a transaction is too long for turns."""
    if study.plan.turn_ms is not None:
        return study.plan.turn_ms
    return settled.get(workload, {}).get(threads, words.least_ms(study)) or None


KINDS = ("reads", "writes", "other")
MOST_OF_A_THREAD = 10
"""Statements of a kind with which a thread may begin; more of them can't be distinguished from a mixture."""
Totals = Mapping[str, Sequence[Mapping[str, int]]]
"""For each workload of every pilot threads, events, reads, writes, other and errors."""


def statement_counts(pilots: Totals) -> dict[str, dict[str, dict[str, int]]]:
    """For each workload the statements of one event under `event`, and those sent as a thread begins under
    `thread`, by kind; nothing where events differ.

    Only whole numbers that all pilots share are a rule: a mixture is held by the ledger alone.
    """
    statements: dict[str, dict[str, dict[str, int]]] = {}
    for workload, counts in pilots.items():
        rules = [_statement_rule(values) for values in counts]
        statements[workload] = rules[0] if rules and all(rule == rules[0] for rule in rules) else {}
    return statements


def _statement_rule(values: Mapping[str, int]) -> dict[str, dict[str, int]]:
    events, threads = values["events"], values["threads"]
    if values["errors"] or events <= MOST_OF_A_THREAD * threads:
        return {}
    rests = {kind: values[kind] % events for kind in KINDS}
    if any(rest % threads or rest > MOST_OF_A_THREAD * threads for rest in rests.values()):
        return {}
    return {
        "event": {kind: values[kind] // events for kind in KINDS},
        "thread": {kind: rest // threads for kind, rest in rests.items()},
    }


def script_record(scripts: Mapping[str, Any], totals: Totals) -> dict[str, Any]:
    """Content of `warm_up.json` under `own` for own scripts; nothing if a study has none."""
    return {"own": {**scripts, "statements": statement_counts(totals)}} if scripts else {}


def carried_scripts(warm_up: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Own scripts' part of plans, from `warm_up.json`: `files` and `statements`."""
    settled = warm_up.get("own") or {}
    return {
        workload: {"files": item["sha256"], "statements": settled["statements"].get(workload, {})}
        for workload, item in settled.get("scripts", {}).items()
    }
