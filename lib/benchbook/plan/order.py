"""The order of runs and turns: blocks, adjacent arms, and a seed that fixes both for ever.

Everything is drawn by hashing the seed with the name of what is drawn. A hash gives the same order in
every version of every library, and adding a block or a thread level disturbs nothing that is there.
"""

import hashlib
from collections.abc import Sequence
from typing import TypeVar

from benchbook.core.study.model import PlannedRun

T = TypeVar("T")


def draw_number(*parts: object) -> int:
    """Number from 0 to 2**64 - 1 that depends on all parts and on nothing else."""
    text = "/".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def shuffle_items(items: Sequence[T], *seed: object) -> list[T]:
    """Items in an order drawn from the seed; each item's place depends only on itself."""
    return sorted(items, key=lambda item: draw_number(*seed, item))


def run_seed(seed: int, block: int, workload: str, threads: int, place: int = 0) -> int:
    """sysbench's seed (1 to 2**31 - 1), different between groups.

    The arms of a group share it (`place` 0). Where a workload writes, each has its own `place`: with the same
    seed the second would write the values that the first has just written, which costs the server less.
    """
    return 1 + (draw_number(seed, "run", block, workload, threads) + place) % (2**31 - 2)


def table_seed(seed: int, table: int) -> int:
    """sysbench's seed for the rows of one table (1 to 2**31 - 1): no two tables are alike."""
    return 1 + draw_number(seed, "table", table) % (2**31 - 2)


def williams_square(arms: int) -> list[list[int]]:
    """Rows of a balanced square: each arm stands in each place, and follows each other, as often.

    An even number of arms needs as many rows, an odd number twice as many. Source: E. J. Williams,
    Experimental designs balanced for the estimation of residual effects of treatments, Australian Journal of
    Scientific Research A 2 (1949).
    """
    first = [0]
    for step in range(1, arms):
        first.append((arms - step // 2) % arms if step % 2 == 0 else (step + 1) // 2)
    rows = [[(place + shift) % arms for place in first] for shift in range(arms)]
    return rows if arms % 2 == 0 else rows + [row[::-1] for row in rows]


def arm_order(arms: Sequence[str], seed: int, block: int, index: int, per_block: int) -> list[str]:
    """Arms of one group in the order they run.

    `index` counts the groups of this size within the block, `per_block` says how many there are. Two arms
    run ABBA or BAAB over each two groups, the first letter drawn; more arms walk a balanced square. Both go
    on from block to block, so that an odd number of groups in a block leaves nothing unbalanced for long.
    """
    if len(arms) == 1:
        return list(arms)
    turn = (block - 1) * per_block + index
    if len(arms) == 2:
        flipped = (draw_number(seed, "first", turn // 2) + turn) % 2 == 1
        return list(arms[::-1]) if flipped else list(arms)
    rows = williams_square(len(arms))
    row = rows[(draw_number(seed, "row", len(arms)) + turn) % len(rows)]
    return [arms[place] for place in row]


def turns_each(run_s: float, turn_ms: int, of_a_round: int) -> int:
    """Number of turns of each arm: whole rounds of `of_a_round` that fit, at least one round."""
    return max(1, round(run_s * 1000) // turn_ms // of_a_round) * of_a_round


def group_rounds(planned: PlannedRun) -> tuple[list[list[str]], int]:
    """Rounds of a group in turns, and the number of turns of each arm, from one of its runs."""
    rounds = turn_rounds(planned.partners, planned.block, planned.workload, planned.threads)
    of_a_round = len(rounds[0]) // len(planned.partners)
    return rounds, turns_each(planned.run_s, planned.turn_ms, of_a_round)


def turn_rounds(arms: Sequence[str], block: int, *cell: object) -> list[list[str]]:
    """Rounds of turns, repeated until the window is full, each with every arm as often.

    Two arms go ABBA or BAAB, the first letter drawn for the cell and changed from block to block. More walk a
    balanced square, in which each follows each other equally often, from a row drawn likewise.
    """
    start = draw_number("turns", *cell) + block
    if len(arms) == 2:
        first, second = arms if start % 2 == 0 else arms[::-1]
        return [[first, second, second, first]]
    rows = williams_square(len(arms))
    start %= len(rows)
    return [[arms[at] for at in row] for row in rows[start:] + rows[:start]]
