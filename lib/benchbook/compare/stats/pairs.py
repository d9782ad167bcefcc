"""Block log ratios of runs, the basis of every interval, and the time between partners.

Only when things happened decides which runs are usable here, never what came out of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import pandas as pd

from benchbook.core.artifacts.findings import Partners
from benchbook.core.util.number_format import join_words
from benchbook.core.util.plural import count


@dataclass(frozen=True)
class BlockRatios:
    """ln(treatment/baseline) of one contrast, one row a complete block, one column a thread level.

    `run_ids` has the same rows. `dropped` says in words which blocks are missing and why. `refusal` is set
    where a ratio has no meaning at all or can't be known; then `ratios` is empty. `threads` are the levels
    asked for, which are one column 0 where they were pooled; `note` says where the numbers come from.
    """

    baseline: str
    treatment: str
    workload: str
    metric: str
    ratios: pd.DataFrame
    run_ids: dict[int, tuple[str, ...]]
    dropped: tuple[str, ...]
    refusal: str | None = None
    threads: tuple[int, ...] = ()
    note: str | None = None

    @property
    def is_pooled(self) -> bool:
        """True if thread levels were combined before the ratio was taken."""
        return tuple(self.ratios.columns) != self.threads

    @property
    def n(self) -> int:
        return len(self.ratios)

    def first(self, n: int) -> BlockRatios:
        """Same contrast with its first n complete blocks."""
        kept = self.ratios.iloc[:n]
        run_ids = {block: self.run_ids[block] for block in kept.index}
        return replace(self, ratios=kept, run_ids=run_ids)


def block_ratios(
    runs: pd.DataFrame,
    baseline: str,
    treatment: str,
    workload: str,
    threads: Iterable[int],
    metric: str = "qps",
) -> BlockRatios:
    """Pair the runs of two arms block by block and take the log of their ratio.

    `runs` needs the columns run_id, block, group, arm, workload, threads and `metric`; a run_id may be many
    ids with spaces between them where runs were pooled. A pair is one run of each arm in the same group. A
    block that misses a pair at any of `threads` is dropped. A metric of zero or below (or infinite) refuses
    the whole contrast, because leaving out just the blocks in which an arm did nothing would favour that arm.
    Raise ValueError when an arm has two runs in one place.
    """
    levels = sorted(threads)
    is_of_arms = runs.arm.isin([baseline, treatment])
    chosen = runs[(runs.workload == workload) & runs.threads.isin(levels) & is_of_arms]
    zero = chosen[chosen[metric].le(0) | chosen[metric].isin([math.inf])]
    if len(zero):
        worst = zero.sort_values(["block", "threads", "arm"]).iloc[0]
        where = f"block {worst.block}, {worst.arm}, {count(worst.threads, 'thread')}"
        refusal = f"{metric} is {worst[metric]:g} ({where}), so a ratio cannot be taken"
        empty = pd.DataFrame(index=pd.Index([], name="block"), columns=levels, dtype=float)
        return BlockRatios(baseline, treatment, workload, metric, empty, {}, (), refusal, tuple(levels))
    pairs = _pair_runs(chosen.dropna(subset=[metric]), baseline, treatment, metric)
    ratios = pairs.pivot(index="block", columns="threads", values="ratio")
    blocks = pd.Index(sorted(chosen.block.unique()), name="block")
    ratios = ratios.reindex(index=blocks, columns=levels)
    dropped = tuple(
        f"block {block} has no pair at {', '.join(str(level) for level in row.index[row.isna()])} threads"
        for block, row in ratios.iterrows()
        if row.isna().any()
    )
    complete, ids = ratios.dropna(), ["run_id_baseline", "run_id_treatment"]
    by_block = dict(iter(pairs.sort_values(["block", "threads"]).groupby("block")[ids]))
    run_ids = {block: tuple(" ".join(by_block[block].to_numpy().ravel()).split()) for block in complete.index}
    contrast = (baseline, treatment, workload, metric)
    return BlockRatios(*contrast, complete, run_ids, dropped, threads=tuple(levels))


def _pair_runs(chosen: pd.DataFrame, baseline: str, treatment: str, metric: str) -> pd.DataFrame:
    where = ["block", "threads", "group"]
    columns = [*where, "run_id", metric]
    left = chosen.loc[chosen.arm == baseline, columns]
    right = chosen.loc[chosen.arm == treatment, columns]
    pairs = left.merge(right, on=where, suffixes=("_baseline", "_treatment"))
    repeated = pairs[pairs.duplicated(["block", "threads"])]
    if len(repeated):
        block, level = repeated.iloc[0][["block", "threads"]]
        raise ValueError(f"block {block} has several pairs of {baseline} and {treatment} at {level} threads")
    ratio = pairs[f"{metric}_treatment"] / pairs[f"{metric}_baseline"]
    return pairs.assign(ratio=ratio.map(math.log))


# Partners lie apart when their distance is this many times the usual one, and at least so many seconds more.
TIMES, SECONDS = 4.0, 10.0
# A server's age is known to the second.
AGE_S = 2.0
CELL = ["block", "group"]


def partner_gaps(runs: pd.DataFrame) -> list[Partners]:
    """Median and longest time between the starts of neighbouring partners, for each block."""
    return [
        Partners(
            block=int(block),
            median_s=float(groups.apart_s.median()),
            max_s=float(groups.apart_s.max()),
            is_far=bool(groups.is_far.any()),
            left_out=_explain_exclusion(groups) if groups.is_split.any() else None,
        )
        for block, groups in _group_table(runs).groupby("block")
    ]


def select_far(partners: Iterable[Partners]) -> list[Partners]:
    """Blocks whose partners lie far apart and count all the same."""
    return [each for each in partners if each.is_far and each.left_out is None]


def select_usable(runs: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Runs that may be paired, and a sentence for each block that lost a group.

    A group is left out if its runs lie far apart and a server of it was started in between: its runs are no
    neighbours, and a server draws its layout in memory again at each start.
    """
    groups = _group_table(runs)
    split = groups[groups.is_split]
    if split.empty:
        return runs, []
    text = [f"Block {block}: {_explain_exclusion(part)}." for block, part in split.groupby("block")]
    lost = pd.MultiIndex.from_frame(split[CELL])
    return runs[~pd.MultiIndex.from_frame(runs[CELL]).isin(lost)].reset_index(drop=True), text


def format_span(seconds: float) -> str:
    """Length of time in words, readable at a glance."""
    return f"{seconds / 60:.0f} minutes" if seconds >= 120 else f"{seconds:.1f} s"


def _group_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Table of groups of several runs: block, group, threads, workload, apart_s, is_far, is_split."""
    ordered = runs.sort_values([*CELL, "started_s"], kind="stable")
    groups = ordered.assign(gap_s=ordered.groupby(CELL).started_s.diff()).groupby(CELL, as_index=False)
    table = groups.agg(
        workload=("workload", "first"),
        threads=("threads", "first"),
        first_s=("started_s", "min"),
        runs=("started_s", "count"),
        apart_s=("gap_s", "max"),
        latest_s=("server_started_s", "max"),
    )
    table = table[table.runs > 1]
    usual = table.apart_s.median()
    table["is_far"] = (table.apart_s > TIMES * usual) & (table.apart_s > usual + SECONDS)
    # One of its servers was started after its first run began.
    table["is_split"] = table.is_far & (table.latest_s > table.first_s + AGE_S)
    return table


def _explain_exclusion(groups: pd.DataFrame) -> str:
    split = groups[groups.is_split]
    cells = join_words([f"{row.workload} at {count(row.threads, 'thread')}" for row in split.itertuples()])
    because = f"partners started {format_span(split.apart_s.max())} apart and a server was started in between"
    return f"left out on {cells}, because {because}"
