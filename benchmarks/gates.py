"""How often gates of 3, 5 and 10 % are wrong or undecided: made of blocks of equal arms that were recorded.

`data/record/calibration` has 100 campaigns of equal arms on busy machines of two cores, five blocks of 2 s
each. A gate here takes the noise of one campaign: each of its blocks is drawn from that campaign's own, about
their mean and with either sign. A gate of longer blocks has the mean of several of them.
"""

import csv
import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd

from benchbook.compare.stats.noninferiority import Answer, decide_contrast
from benchbook.compare.stats.pairs import BlockRatios
from benchbook.core.study import params
from benchmarks.table import ROOT, Row, main

CAMPAIGNS = ROOT / "data" / "record" / "calibration" / "campaigns.csv"
MARGINS = (0.03, 0.05, 0.10)
MINUTES = {4: 1, 10: 3}
"""About how many minutes 20 blocks take there, with how many recorded blocks in each."""
BLOCKS = 20
GATES = {False: 200, True: 4000}
WRONG_PCT = 5.0
SEED = 20261125


def campaigns() -> list[np.ndarray]:
    """Return the log ratios of each recorded campaign of equal arms, about their mean."""
    with CAMPAIGNS.open(encoding="utf-8", newline="") as file:
        same = [row["log_ratios"].split() for row in csv.DictReader(file) if row["kind"] == "same"]
    found = [np.array(one, dtype=float) for one in same if len(one) > 1]
    return [(one - one.mean()) * math.sqrt(len(one) / (len(one) - 1)) for one in found]


def answers(
    noise: Sequence[np.ndarray], margin: float, lost: float, each: int, gates: int
) -> Counter[Answer]:
    """Count the answers of so many gates to an arm that has lost a share of the baseline's queries."""
    drawing, settings = np.random.default_rng(SEED), params.Analysis()
    found: Counter[Answer] = Counter()
    for number in range(gates):
        own = noise[number % len(noise)]
        drawn = drawing.choice(own, (BLOCKS, each)) * drawing.choice((-1, 1), (BLOCKS, each))
        blocks = pd.DataFrame({4: drawn.mean(axis=1) + math.log1p(-lost)}, index=range(1, BLOCKS + 1))
        ids = dict.fromkeys(blocks.index, ("",))
        ratios = BlockRatios("base", "head", "oltp", "qps", blocks, ids, (), None, (4,))
        found[decide_contrast(ratios, margin, settings, is_over=True).answer] += 1
    return found


def rows(is_full: bool) -> list[Row]:
    """Ask equal arms, arms slower by the margin and by twice as much; the first two have a goal."""
    noise, gates = campaigns(), GATES[is_full]
    made = []
    for minutes, each in MINUTES.items():
        for margin in MARGINS:
            for lost, wrong in ((0.0, "slower"), (margin, "not slower"), (2 * margin, "not slower")):
                counted = answers(noise, margin, lost, each, gates)
                share = {name: 100 * counted[name] / gates for name in ("slower", "not slower", "undecided")}
                told = ", ".join(f"{name} {one:.1f} %" for name, one in share.items())
                name = f"gates of {100 * margin:g} %, {minutes} minutes, {100 * lost:g} % slower"
                is_met = share[wrong] <= WRONG_PCT
                made.append(Row(name, told, goal=f"{wrong}: at most {WRONG_PCT:g} %", met=is_met))
    return made


if __name__ == "__main__":
    main(rows, __doc__ or "")
