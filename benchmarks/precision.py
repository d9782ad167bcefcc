"""Precision a machine second buys: our blocks and intervals against the order published reports use.

A machine is simulated whose speed drifts, has slow episodes, differs after each restart and is never quite
the same twice. The project's own schedule says when each run stands on it, the project's own intervals and
labels judge what comes out. The alternative measures all of arm A, then all of arm B, one run of 600 s a
cell. It gets the same machine seconds, and where power is compared a threshold that is calibrated
perfectly, which nobody has. Both deploy for 60 s; ours once a block, the alternative once an arm.

`python -m benchmarks.precision [--full]`: about 30 seconds, or some minutes for five times the campaigns.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchbook.compare.stats.equivalence import label_interval
from benchbook.compare.stats.intervals import t_interval
from benchbook.core.study.params import Analysis
from benchmarks.machines import SCENARIOS, STEP_S, Scenario, speed
from benchmarks.order import BLOCK_S, DEPLOY_S, DISCARD_S, LEVELS, RUN_S, agrees_with_findings, placed
from benchmarks.table import Row, main

Array = NDArray[np.float64]

EFFECT = float(np.log1p(0.05))
# A perfectly calibrated 5 % test shows an effect of 5 % with a power of 80 % at this standard error.
ENOUGH = EFFECT / (1.959964 + 0.841621)
PUBLISHED_RUN_S = 600
# How much longer the published runs are made in search of enough precision: up to five days in all.
LONGER = (1, 2, 4, 8, 16, 64)
ANALYSIS = Analysis()
DRIFT = ("mild", "noisy", "bad")


@dataclass(frozen=True)
class Outcome:
    """What one scenario gave; shares from 0 to 1, seconds of the machine, errors as log ratios."""

    name: str
    coverage: float
    false_positives: float
    variance_ratio: float
    price: float
    seconds: float
    published_seconds: float
    is_bound: bool
    decided_s: tuple[float, float]


def rows(is_full: bool) -> list[Row]:
    """Simulate every scenario; return goals, each with the scenario where it is closest to being missed."""
    campaigns = 4000 if is_full else 1200
    schedules = 40 if is_full else 12
    orders = [placed(seed) for seed in range(1, schedules + 1)]
    outcomes = [
        _outcome(scenario, orders, np.random.default_rng([20261121, number]), campaigns, is_full)
        for number, scenario in enumerate(SCENARIOS)
    ]
    checked = agrees_with_findings(SCENARIOS[2], 20 if is_full else 4)
    drifting = [one for one in outcomes if one.name.startswith(DRIFT)]
    moderate = [one for one in drifting if not one.name.startswith("bad")]
    white = outcomes[-1]
    worst = min(outcomes, key=lambda one: one.coverage)
    loudest = max(outcomes, key=lambda one: one.false_positives)
    least = min(drifting, key=lambda one: one.variance_ratio)
    slowest = min(moderate, key=lambda one: one.published_seconds / one.seconds)
    saved = slowest.published_seconds / slowest.seconds
    bound = ">" if slowest.is_bound else ""
    return [
        *[_line(one) for one in outcomes],
        Row("coverage of the printed interval", f"{worst.coverage:.1%} ({worst.name})", "", "", "≥ 94 %",
            worst.coverage >= 0.94),
        Row("A/A campaigns that show a difference", f"{loudest.false_positives:.1%} ({loudest.name})", "",
            "", "≤ 6 %", loudest.false_positives <= 0.06),
        Row("error variance at equal seconds, 5 to 15 % drift", f"least in: {least.name}",
            "all of A, then all of B", f"{least.variance_ratio:.0f} × smaller", "≥ 30 ×",
            least.variance_ratio >= 30),
        Row("seconds to 80 % power for 5 %, 5 to 10 % drift", f"{slowest.seconds:,.0f} s ({slowest.name})",
            f"{bound}{slowest.published_seconds:,.0f} s", f"{bound}{saved:.0f} × fewer", "≥ 40 ×",
            saved >= 40),
        Row("price on a machine with white noise only", f"{white.price:.2f} × the seconds", "1", "",
            "is said", None),
        Row("findings.make gives the numbers used here", f"{checked} campaigns alike", "", "", "all",
            checked > 0),
    ]  # fmt: skip


def _line(one: Outcome) -> Row:
    mark = ">" if one.is_bound else ""
    middle, most = one.decided_s
    return Row(
        f"  {one.name}",
        f"covers {one.coverage:.1%}, A/A {one.false_positives:.1%}, "
        f"5 % decided in {middle:,.0f} s (80 %: {most:,.0f} s)",
        f"power {one.seconds:,.0f} s : {mark}{one.published_seconds:,.0f} s",
        f"variance {one.variance_ratio:.1f} × smaller",
    )


def _outcome(
    scenario: Scenario, orders: list[Array], random: np.random.Generator, campaigns: int, is_full: bool
) -> Outcome:
    errors = np.vstack([block_errors(scenario, order, random, campaigns // len(orders)) for order in orders])
    published = published_errors(scenario, 1, random, campaigns)
    equal = round((2 * DEPLOY_S + 2 * LEVELS * PUBLISHED_RUN_S) / BLOCK_S)
    ours = float((errors[:, :equal].mean(axis=1) ** 2).mean())
    theirs = float((published**2).mean())
    ratio = theirs / ours * (2 * DEPLOY_S + 2 * LEVELS * PUBLISHED_RUN_S) / (equal * BLOCK_S)
    rmse = np.array(
        [np.sqrt((errors[:, :n].mean(axis=1) ** 2).mean()) for n in range(1, errors.shape[1] + 1)]
    )
    reached = np.flatnonzero(rmse <= ENOUGH)
    seconds = (reached[0] + 1) * BLOCK_S if reached.size else np.inf
    published_seconds, is_bound = _published_seconds(scenario, random, 600 if is_full else 200)
    covered, false, blocks = _looks(errors)
    return Outcome(
        scenario.name, covered, false, ratio, 1 / ratio, float(seconds), published_seconds, is_bound,
        (float(np.median(blocks)) * BLOCK_S, float(np.quantile(blocks, 0.8)) * BLOCK_S),
    )  # fmt: skip


def block_errors(scenario: Scenario, order: Array, random: np.random.Generator, campaigns: int) -> Array:
    """Return the error of each block's mean log ratio, one row a campaign.

    `order` holds block × level × (first step of the baseline's run, of the treatment's).
    """
    blocks, _, arms = order.shape
    steps = int(order.max()) + (DISCARD_S + RUN_S) // STEP_S
    log_speed = speed(scenario, campaigns, steps, random)
    total = np.concatenate([np.zeros((campaigns, 1)), np.cumsum(log_speed, axis=1)], axis=1)
    begin = order + DISCARD_S // STEP_S
    runs = (total[:, begin + RUN_S // STEP_S] - total[:, begin]) / (RUN_S // STEP_S)
    runs = runs + _noise(scenario, runs.shape, RUN_S, random)
    runs += random.normal(0, scenario.restart, (campaigns, blocks, 1, arms))
    return (runs[..., 1] - runs[..., 0]).mean(axis=2)


def published_errors(scenario: Scenario, longer: int, random: np.random.Generator, campaigns: int) -> Array:
    """Return the errors of all of A, then all of B, each run `longer` times 600 s."""
    deploy, steps = DEPLOY_S // STEP_S, longer * PUBLISHED_RUN_S // STEP_S
    arm = deploy + LEVELS * steps
    log_speed = speed(scenario, campaigns, 2 * arm, random).reshape(campaigns, 2, arm)
    runs = log_speed[:, :, deploy:].reshape(campaigns, 2, LEVELS, steps).mean(axis=3)
    runs = runs + _noise(scenario, runs.shape, longer * PUBLISHED_RUN_S, random)
    runs += random.normal(0, scenario.restart, (campaigns, 2, 1))
    return (runs[:, 1] - runs[:, 0]).mean(axis=1)


def _noise(scenario: Scenario, shape: tuple[int, ...], seconds: int, random: np.random.Generator) -> Array:
    return random.normal(0, np.hypot(scenario.run, scenario.second / np.sqrt(seconds)), shape)


def _published_seconds(scenario: Scenario, random: np.random.Generator, campaigns: int) -> tuple[float, bool]:
    """Return the seconds at which the published order is exact enough, or the most tried and True."""
    seconds = 0.0
    for longer in LONGER:
        seconds = 2.0 * DEPLOY_S + 2 * LEVELS * longer * PUBLISHED_RUN_S
        if np.sqrt((published_errors(scenario, longer, random, campaigns) ** 2).mean()) <= ENOUGH:
            return seconds, False
    return seconds, True


def _looks(errors: Array) -> tuple[float, float, Array]:
    """Walk the looks as an analysis does: share of printed intervals that hold the true effect, share of
    A/A campaigns that show a difference, and the blocks after which an effect of 5 % is decided (or all)."""
    covered, false, blocks = 0, 0, []
    for row in errors:
        misses, shown, decided = False, False, None
        for look in ANALYSIS.looks:
            interval = t_interval(row[:look], ANALYSIS.level)
            if not shown and label_interval(interval) in ("higher", "lower"):
                shown = True
            if decided is None:
                ahead = t_interval(row[:look] + EFFECT, ANALYSIS.level)
                misses = not ahead.log_low <= EFFECT <= ahead.log_high
                decided = look if label_interval(ahead) != "not shown" else None
        covered += not misses
        false += shown
        blocks.append(decided or ANALYSIS.looks[-1])
    return covered / len(errors), false / len(errors), np.array(blocks)


if __name__ == "__main__":
    main(rows, __doc__)
