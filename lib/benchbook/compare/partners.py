"""Time between partners: the runs of a group that are compared because they are neighbours in time.

Only when things happened decides here, never what came out of them.
"""

from __future__ import annotations

import pandas as pd

from benchbook.compare.sentences import listing
from benchbook.core.findings import Partners

# Partners lie apart when their distance is this many times the usual one, and at least so many seconds more.
TIMES, SECONDS = 4.0, 10.0
# A server's age is known to the second.
AGE_S = 2.0
CELL = ["block", "group"]


def blocks(runs: pd.DataFrame) -> list[Partners]:
    """Return for each block the median and the longest time between the starts of neighbouring partners."""
    groups = _groups(runs)
    return [
        Partners(
            block=int(block),
            median_s=float(own.apart_s.median()),
            max_s=float(own.apart_s.max()),
            is_far=bool(own.is_far.any()),
            left_out=_reason(own) if own.is_split.any() else None,
        )
        for block, own in groups.groupby("block")
    ]


def usable(runs: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Return the runs that may be paired, and a sentence for each block that lost a group.

    A group is left out if its runs lie far apart and a server of it was started in between: its runs are no
    neighbours, and a server draws its layout in memory again at each start.
    """
    groups = _groups(runs)
    split = groups[groups.is_split]
    if split.empty:
        return runs, []
    text = [f"Block {block}: {_reason(own)}." for block, own in split.groupby("block")]
    lost = pd.MultiIndex.from_frame(split[CELL])
    return runs[~pd.MultiIndex.from_frame(runs[CELL]).isin(lost)].reset_index(drop=True), text


def span(seconds: float) -> str:
    """Write a length of time so that it is read at a glance."""
    return f"{seconds / 60:.0f} minutes" if seconds >= 120 else f"{seconds:.1f} s"


def _groups(runs: pd.DataFrame) -> pd.DataFrame:
    """Return block, group, threads, workload, apart_s, is_far, is_split; one row a group of several runs."""
    started = runs.groupby(CELL, sort=True)["started_s"]
    table = started.agg(["min", "max", "count"]).reset_index()
    where = runs.drop_duplicates(CELL).set_index(CELL)[["workload", "threads"]]
    table = table.join(where, on=CELL)
    table["apart_s"] = started.apply(lambda starts: starts.sort_values().diff().max()).to_numpy()
    table = table[table["count"] > 1]
    usual = table.apart_s.median()
    table["is_far"] = (table.apart_s > TIMES * usual) & (table.apart_s > usual + SECONDS)
    table["is_split"] = table.is_far & _restarted(runs, table)
    return table


def _restarted(runs: pd.DataFrame, table: pd.DataFrame) -> pd.Series:
    """Tell of each group whether one of its servers was started after its first run began."""
    if "server_started_s" not in runs:
        return pd.Series(False, index=table.index)
    latest = runs.groupby(CELL)["server_started_s"].max()
    started = pd.Series([latest.get(tuple(cell)) for cell in table[CELL].to_numpy()], index=table.index)
    return started.astype(float) > table["min"] + AGE_S


def _reason(groups: pd.DataFrame) -> str:
    own = groups[groups.is_split]
    cells = [
        f"{row.workload} at {row.threads} thread{'' if row.threads == 1 else 's'}" for row in own.itertuples()
    ]
    apart = span(own.apart_s.max())
    return (
        f"left out on {listing(cells)}, because partners started {apart} apart and a server was started "
        "in between"
    )
