"""Fast and slow turns against whole runs, on questions whose answer is known, turn about on real servers.

`python -m benchmarks.interleaving [KIND ...] [--blocks 5] [--rounds 2] [--minutes 60]`

Kinds: fast, quota, neighbour, zones, engines. Each has a question with equal arms, each with a server or hop
of its own, and others whose answer is made: 5 and 20 % more of a quota or of a distance, a server that spends
more, a poor pod, another engine. Every round measures a question once by turns and once by whole runs of as
many seconds; which comes first changes. Both must give one answer; `variance` says how many times the
variance of whole runs is that of turns at equal wall time.
"""

import argparse
import sys
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from benchbook.commands import machine_noise
from benchbook.commands.machine_noise import log_ratios
from benchbook.compare.stats.intervals import t_interval
from benchbook.core.study.interleaving import RUNS, TURNS
from benchbook.core.study.params import Limits
from benchmarks import bench_site
from benchmarks.table import Row, format_interval, machine, show

LEVEL = 0.95
RUN_S = {"fast": 2, "quota": 4, "neighbour": 3, "zones": 3, "engines": 2}
Arms = dict[str, dict[str, Any]]


def set_quotas(**cores: float) -> Arms:
    """Arms whose servers have some of a core each, by their names."""
    return {name: {"cpu": {"server": {"quota": quota}}} for name, quota in cores.items()}


def set_distances(**latencies_ms: float) -> Arms:
    """Arms so far from their servers, by their names."""
    return {name: {"zones": {"latency_ms": far}} for name, far in latencies_ms.items()}


NEIGHBOUR = {"neighbour": {"processes": 1}}
OWN = {"engine": {"settings": {"max_connections": 200}}}
QUESTIONS: dict[str, dict[str, Arms]] = {
    "fast": {
        "equal": {"one": {}, "other": {}},
        "burns": {"one": {}, "other": {"engine": {"settings": {"performance_schema": True}}}},
        "haproxy": {"one": {}, "other": {"access": "haproxy"}},
    },
    # Quotas that differ by a hundredth of a per cent have servers of their own and the same microseconds.
    "quota": {
        "equal": set_quotas(one=0.4, other=0.40001),
        "5 %": set_quotas(one=0.4, other=0.42),
        "20 %": set_quotas(one=0.4, other=0.48),
    },
    "neighbour": {
        "equal": {"one": NEIGHBOUR, "other": {**NEIGHBOUR, **OWN}},
        "poor": {"one": {**NEIGHBOUR, "qos": "guaranteed"}, "other": {**NEIGHBOUR, "qos": "best_effort"}},
    },
    "zones": {
        "equal": set_distances(one=0.5, other=0.50001),
        "5 %": set_distances(one=0.5, other=0.525),
        "20 %": set_distances(one=0.5, other=0.6),
    },
    "engines": {
        "equal": {
            "one": {"engine": {"name": "postgresql", "settings": {"max_connections": 200}}},
            "other": {"engine": {"name": "postgresql", "settings": {"max_connections": 210}}},
        },
        "other engine": {"one": {}, "other": {"engine": {"name": "postgresql"}}},
    },
}


def ask(kind: str, question: str, blocks: int, rounds: int, port: int) -> Row:
    """Measure one question by both orders, turn about; return its line."""
    ratios: dict[str, list[float]] = {TURNS: [], RUNS: []}
    wall_s = dict.fromkeys(ratios, 0.0)
    for number in range(rounds):
        for order in (TURNS, RUNS) if number % 2 == 0 else (RUNS, TURNS):
            parts: Mapping[str, Any] = {
                "arms": QUESTIONS[kind][question],
                "site": {"port": port, "cpus": "split"},
            }
            asked = {"order": order, "blocks": blocks, "run_s": RUN_S[kind], "seed": 100 + number}
            of = machine_noise.build_study(parts, **asked)
            with bench_site.place() as base:
                began = time.monotonic()
                limits = Limits(**bench_site.LIMITS)
                runs = machine_noise.measure_runs(of, base / "lab", base, limits, lambda _: None)
                wall_s[order] += time.monotonic() - began
            ratios[order] += list(log_ratios(runs, *of.arms)) if set(of.arms) <= set(runs.arm) else []
    found = {order: t_interval(values, LEVEL) for order, values in ratios.items()}
    if not all(one.is_known for one in found.values()):
        return Row(f"{kind}: {question}", *(str(one.reason) for one in found.values()))
    variance = {
        order: np.var(values, ddof=1) * wall_s[order] / len(values) for order, values in ratios.items()
    }
    apart = found[TURNS].log_mean - found[RUNS].log_mean
    error = float(np.hypot(*(one.standard_error for one in found.values())))
    return Row(
        f"{kind}: {question}",
        f"turns {format_interval(found[TURNS])}",
        f"runs {format_interval(found[RUNS])}",
        f"variance {variance[RUNS] / variance[TURNS]:.1f} ×; {apart / error:+.1f} standard errors apart",
        "0 inside" if question == "equal" else "one answer",
        found[TURNS].log_low <= 0 <= found[TURNS].log_high if question == "equal" else abs(apart) < 3 * error,
    )  # fmt: skip


def main() -> None:
    """Ask the questions of the kinds that are named, or of all, as long as there is time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", default=list(QUESTIONS), metavar="KIND")
    for name, usual in (("--blocks", 5), ("--rounds", 2), ("--minutes", 60), ("--port", 26900)):
        parser.add_argument(name, type=int, default=usual)
    asked = parser.parse_args()
    if unknown := sorted(set(asked.kinds) - set(QUESTIONS)):
        parser.error(f"{unknown[0]}: unknown; write some of {', '.join(QUESTIONS)}")
    print(machine(), file=sys.stderr)
    began, rows = time.monotonic(), []
    for kind in asked.kinds:
        for question in QUESTIONS[kind]:
            if time.monotonic() - began < 60 * asked.minutes:
                rows.append(ask(kind, question, asked.blocks, asked.rounds, asked.port))
                print(rows[-1], file=sys.stderr, flush=True)
    show(rows)


if __name__ == "__main__":
    main()
