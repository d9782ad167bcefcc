"""Variance components of a contrast: blocks, runs and counting, and the best use of more time.

Estimates are those of a balanced random model by mean squares; below zero they are zero.
"""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from benchbook.compare.stats.intervals import residual_mean_square

CELL = ["workload", "threads"]
MINUTE_S = 60.0


@dataclass(frozen=True)
class Components:
    """Variances of log ratios: of a block, of a run within its block, and of counting (part of the latter).

    `speed_share` is the share of the variance within cells that the machine's speed, or else the server's
    cost of a query, explains; None where neither is known.
    """

    block: float
    run: float
    counting: float
    speed_share: float | None
    blocks: int
    cells: int

    @property
    def of_mean(self) -> float:
        """Variance of the session's mean log ratio."""
        return (self.block + self.run / self.cells) / self.blocks

    def table(self) -> pd.DataFrame:
        """A row a component with its standard deviation in percent and its share of the mean's variance."""
        turns = max(0.0, self.run - self.counting)
        rows = [
            ("blocks: starts of servers, the machine's state", self.block, self.block),
            ("runs: starts of clients, turns or seconds", turns, turns / self.cells),
            ("counting inside a run", self.counting, self.counting / self.cells),
        ]
        whole = sum(share for *_, share in rows) or math.nan
        return pd.DataFrame(
            [(name, 100 * math.sqrt(size), share / whole) for name, size, share in rows],
            columns=["component", "sd_pct", "share_of_mean"],
        )


def log_ratio_table(runs: pd.DataFrame, baseline: str, treatment: str, metric: str = "qps") -> pd.DataFrame:
    """ln(treatment / baseline), one row a block, one column a cell; blocks that lack a cell are left out."""
    wide = runs.pivot_table(index="block", columns=[*CELL, "arm"], values=metric)
    cells = [cell[:2] for cell in wide if cell[2] == baseline and (*cell[:2], treatment) in wide]
    results = {cell: np.log(wide[(*cell, treatment)] / wide[(*cell, baseline)]) for cell in cells}
    return pd.DataFrame(results).dropna()


def variance_components(runs: pd.DataFrame, baseline: str, treatment: str) -> Components | None:
    """Components of a contrast; None with fewer than three blocks. `runs` is the tidy table of a session."""
    ratios = log_ratio_table(runs, baseline, treatment)
    blocks, cells = ratios.shape
    if blocks < 3 or not cells:
        return None
    of_means = float(ratios.mean(axis=1).var(ddof=1))
    run = residual_mean_square(ratios)[0] if cells > 1 else 0.0
    is_in_cell = pd.MultiIndex.from_frame(runs[CELL]).isin(list(ratios))
    used = runs[is_in_cell & runs.arm.isin([baseline, treatment])]
    counting = 2 * float((1 / used.events.clip(lower=1)).mean())
    block = max(0.0, of_means - run / cells)
    if cells == 1:
        block, run = 0.0, of_means
    return Components(block, run, counting, _speed_share(runs, ratios, baseline, treatment), blocks, cells)


def _speed_share(runs: pd.DataFrame, ratios: pd.DataFrame, baseline: str, treatment: str) -> float | None:
    """R² of the ratios on those of the machine's speed within cells, less the part by chance."""
    for metric in ("machine_speed", "server_us"):
        if metric not in runs or runs[metric].isna().all():
            continue
        x = log_ratio_table(runs.dropna(subset=[metric]), baseline, treatment, metric).reindex_like(ratios)
        if x.isna().to_numpy().any():
            continue
        x, y = ((item - item.mean()).to_numpy().ravel() for item in (x, ratios))
        df = len(y) - ratios.shape[1] - 1
        if df > 0 and (x**2).sum() and (y**2).sum():
            share = float((x @ y) ** 2 / ((x @ x) * (y @ y)))
            return max(0.0, 1 - (1 - share) * (df + 1) / df)
    return None


def estimate_narrowing(
    components: Components, measured_s: float, around_run_s: float, around_block_s: float
) -> pd.DataFrame:
    """Relative narrowing of the interval by a further minute, by its use, the largest first.

    `measured_s` are the measured seconds of all arms in a cell of a block, `around_run_s` what a group takes
    beside them, `around_block_s` what a block takes beside its groups.
    """
    cell_s = measured_s + around_run_s
    block_s = around_block_s + components.cells * cell_s
    more = MINUTE_S / components.blocks / components.cells
    inside = components.run / components.cells
    options = {
        "more blocks": components.of_mean
        * components.blocks
        * block_s
        / (components.blocks * block_s + MINUTE_S),
        "longer runs": (components.block + inside * measured_s / (measured_s + more)) / components.blocks,
        "more runs a block": (components.block + inside * cell_s / (cell_s + more)) / components.blocks,
    }
    whole = components.of_mean or math.nan
    rows = [(name, 1 - math.sqrt(variance / whole)) for name, variance in options.items()]
    table = pd.DataFrame(rows, columns=["a minute more for", "narrower_by"])
    return table.sort_values("narrower_by", ascending=False, ignore_index=True)
