"""Power and false findings of a session in turns: a difference of about 5 % and none, each put many times.

`python -m benchmarks.power [KIND ...] [--times 10] [--seed 1]`

Kinds: quota (5 % more processor time) and zones (8 % more distance, which is about 5 % of the queries at 4
threads). Each time servers are loaded for three arms: the baseline, an equal one, and the one that differs.
As a session of the lab does, it looks at five blocks with 98 % intervals and, where the difference is open,
at ten. The alternative is what the level allows by itself: one of 50 intervals of equal arms, at each
look, leaves zero out.
"""

import argparse
import sys
import time
from typing import Any

import numpy as np

from benchbook.commands import machine_noise
from benchbook.commands.machine_noise import LEVEL, log_ratios
from benchbook.compare.stats import tolerance
from benchbook.compare.stats.intervals import Interval, t_interval
from benchbook.core.study.params import Limits
from benchmarks import bench_site
from benchmarks.interleaving import set_distances, set_quotas
from benchmarks.table import Row, format_interval, machine, show

BLOCKS = 5
SHARE = 0.9
"""Share of the differences that are to be found: 18 of 20."""
KINDS: dict[str, dict[str, Any]] = {
    "quota": {"arms": set_quotas(one=0.4, equal=0.40001, other=0.42), "run_s": 3, "sign": 1},
    "zones": {"arms": set_distances(one=0.5, equal=0.50001, other=0.54), "run_s": 2, "sign": -1},
}


def measure_session(kind: str, seed: int, port: int) -> tuple[Interval, Interval]:
    """Intervals of the equal and of the other arm, after five blocks or, where the latter is open, ten."""
    of = KINDS[kind]
    parts = {"arms": of["arms"], "site": {"port": port, "cpus": "split"}}
    equal, other = list[float](), list[float]()
    for look in (1, 2):
        plan = {"blocks": BLOCKS, "run_s": of["run_s"], "seed": 1000 * look + seed, "max_repeats": 6}
        study = machine_noise.build_study(parts, **plan)
        with bench_site.place() as base:
            limits = Limits(**bench_site.LIMITS)
            runs = machine_noise.measure_runs(study, base / "lab", base, limits, lambda _: None)
        equal += list(log_ratios(runs, "one", "equal"))
        other += list(log_ratios(runs, "one", "other"))
        if _find_sign(t_interval(other, LEVEL)):
            break
    return t_interval(equal, LEVEL), t_interval(other, LEVEL)


def _find_sign(interval: Interval) -> int:
    return tolerance.sign_of_interval(interval.low, interval.high)


def count_results(kind: str, pairs: list[tuple[Interval, Interval]], wall_s: float) -> Row:
    """Line of a kind: sessions that found its difference with its sign, and that invented one."""
    sign = KINDS[kind]["sign"]
    right = sum(_find_sign(other) == sign for _, other in pairs)
    invented = sum(_find_sign(equal) != 0 for equal, _ in pairs)
    effects = np.array([other.log_mean for _, other in pairs])
    apart = np.array([equal.log_mean for equal, _ in pairs])
    spread = effects.std(ddof=1) if len(pairs) > 1 else np.nan
    return Row(
        f"{kind}: 5 % and none, {len(pairs)} sessions",
        f"{right} found, mean {100 * np.expm1(effects.mean()):+.1f} % ± {100 * spread:.1f} a session",
        f"{invented} invented, equal arms {100 * np.expm1(apart.mean()):+.1f} % on average",
        f"{wall_s / max(1, len(pairs)):.0f} s a session",
        f"{SHARE:.0%} found, at most 1 in 10 invented",
        right >= SHARE * len(pairs) and invented <= 0.1 * len(pairs),
    )


def main() -> None:
    """Put the questions of the kinds that are named, or of all, turn about."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("kinds", nargs="*", default=list(KINDS), metavar="KIND")
    for name, usual in (("--times", 10), ("--seed", 1), ("--port", 27100)):
        parser.add_argument(name, type=int, default=usual)
    request = parser.parse_args()
    if unknown := sorted(set(request.kinds) - set(KINDS)):
        parser.error(f"{unknown[0]}: unknown; write some of {', '.join(KINDS)}")
    print(machine(), file=sys.stderr)
    pairs: dict[str, list[tuple[Interval, Interval]]] = {kind: [] for kind in request.kinds}
    wall_s = dict.fromkeys(pairs, 0.0)
    for number in range(request.times):
        for kind, results in pairs.items():
            began = time.monotonic()
            results.append(measure_session(kind, request.seed + number, request.port))
            wall_s[kind] += time.monotonic() - began
            equal, other = map(format_interval, results[-1])
            blocks = results[-1][1].n
            print(f"{kind} {number + 1}, {blocks} blocks: equal {equal}, other {other}", file=sys.stderr)
    show([count_results(kind, results, wall_s[kind]) for kind, results in pairs.items()])


if __name__ == "__main__":
    main()
