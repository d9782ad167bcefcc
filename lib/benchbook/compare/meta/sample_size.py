"""Sample size: the gain from more sessions or more blocks, and the study that needs one most."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from scipy.special import chdtri, stdtrit

from benchbook.compare.meta.random_effects import FEWEST_PROCESSORS, group_occasions
from benchbook.compare.stats import tolerance
from benchbook.compare.stats.intervals import t_quantile
from benchbook.compare.text.labels import name_place
from benchbook.core.artifacts.findings import BlocksNeeded
from benchbook.core.artifacts.meta_analysis import MetaAnalysis, PooledContrast, PooledEffect, StudySession
from benchbook.core.util.grouping import group_by
from benchbook.core.util.plural import count


@dataclass(frozen=True)
class Advice:
    """Half of an effect's prediction interval in points of log: now, at twice the models or blocks.

    None where `missing` models leave nothing to be narrowed.
    """

    effect: str
    occasions: int
    now_pct: float | None = None
    processors_pct: float | None = None
    blocks_pct: float | None = None
    missing: int = 0

    @property
    def cells(self) -> tuple[str, ...]:
        """Row of the table that `plan` prints."""
        if self.now_pct is None:
            return self.effect, f"needs {count(self.missing, 'more model')}", "", ""
        widths = (self.now_pct, self.processors_pct, self.blocks_pct)
        return self.effect, *(f"±{width:.1f}" for width in widths if width is not None)


def advise_study(pooled: MetaAnalysis) -> list[Advice]:
    """Advice for each displayed effect of a study: the work that would narrow its interval."""
    return [_advise_effect(contrast, effect) for contrast in pooled.contrasts for effect in contrast.shown]


def format_advice(pooled: MetaAnalysis | None) -> Iterator[str]:
    """Advice for a study as lines of a table, the least known first; nothing without recorded sessions."""
    advice = advise_study(pooled) if pooled else []
    advice.sort(key=lambda item: (item.occasions, -(item.now_pct or math.inf)))
    rows = [item.cells for item in advice]
    if rows:
        yield "Half width of what is expected of a further session, in points, by processor models:"
        rows = [("", "now", "2 × models", "2 × blocks"), *rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  " + "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()


def half_width(tau: float, error: float, k: int) -> float:
    """Half of the prediction interval (log, 90 %) of k processors, each with this error of its mean.

    It is t · sqrt(tau² + (tau² + error²) / k) with k − 1 degrees of freedom.
    """
    return t_quantile(0.95, k - 1) * math.sqrt(tau**2 + (tau**2 + error**2) / k)


def _advise_effect(contrast: PooledContrast, effect: PooledEffect) -> Advice:
    models = group_by(effect.occasions, lambda occasion: occasion.processor).values()
    squares = [[occasion.standard_error**2 for occasion in model] for model in models]
    variances, k = [math.fsum(each) / len(each) ** 2 for each in squares], len(squares)
    error = math.sqrt(math.fsum(variances) / k) if k else None
    tau = None if effect.tau_pct is None else effect.tau_pct / 100
    name = name_place(contrast, effect)
    if k < FEWEST_PROCESSORS or tau is None or error is None:
        return Advice(name, effect.k, missing=FEWEST_PROCESSORS - k)
    now, processors = half_width(tau, error, k), half_width(tau, error, 2 * k)
    blocks = half_width(tau, error / math.sqrt(2), k)
    return Advice(name, effect.k, 100 * now, 100 * processors, 100 * blocks)


@dataclass(frozen=True)
class SampleSize:
    """State of the record for a study: occasions, and half of its widest prediction interval (log), if known.

    `is_new_here`: a session on this machine now would be an occasion of its own.
    """

    study: str
    occasions: int
    width_pct: float | None
    is_new_here: bool
    is_in_runs: bool
    seconds: float

    @property
    def sentence(self) -> str:
        """Sentence on the gap in the record and the duration of a session."""
        width = "" if self.width_pct is None else f", ±{self.width_pct:.1f} points expected of a further one"
        order = f"{'whole runs' if self.is_in_runs else 'turns'}, {self.seconds / 60:.0f} min"
        return f"{self.study}: {count(self.occasions, 'occasion')}{width}; {order}"


def assess_study(
    study: str,
    standing: Sequence[StudySession],
    here: StudySession,
    pooled: MetaAnalysis | None,
    in_runs: bool,
    seconds: float,
) -> SampleSize:
    """Need of the record for a session of a study, `here`; `standing` are the sessions to pool with it."""
    occasions = group_occasions(standing)
    advice = advise_study(pooled) if pooled else []
    widths = [item.now_pct for item in advice if item.now_pct is not None]
    is_new = len(group_occasions([*standing, here])) > len(occasions)
    return SampleSize(study, len(occasions), max(widths, default=None), is_new, in_runs, seconds)


def choose_studies(needs: Sequence[SampleSize], seconds: float) -> list[SampleSize]:
    """Studies that need a session most, as many as fit, in the order to measure them.

    Needed most is what has fewest occasions, then what is expected least narrowly. Whole runs come first: on
    a machine that becomes busy they suffer more than turns.
    """
    fitting: list[SampleSize] = []
    wanted = [need for need in needs if need.is_new_here]
    wanted.sort(key=lambda need: (need.occasions, -(need.width_pct or math.inf), need.study))
    for need in wanted:
        if need.seconds <= seconds - sum(chosen.seconds for chosen in fitting):
            fitting.append(need)
    return sorted(fitting, key=lambda item: not item.is_in_runs)


ASSURANCE = 0.80
POWER = 0.80
MAX_BLOCKS = 10_000


def upper_spread_bound(spread: float, n: int) -> float:
    """Upper bound of the true spread that n blocks support, by `ASSURANCE`.

    A standard deviation of five blocks is itself uncertain; planning with it as it stands misses the
    wanted width half of the time (Kupper & Hafner 1989). One-sided chi-squared bound.
    """
    if n < 2:
        raise ValueError(f"a spread of {n} block is unknown")
    return spread * math.sqrt((n - 1) / float(chdtri(n - 1, ASSURANCE)))


def blocks_for(half_width: float, spread: float, level: float) -> int | None:
    """Smallest number of blocks with an interval of ± `half_width`, for a known spread.

    `half_width` is a fraction (0.02 is 2 %), `spread` the standard deviation of block log ratios.
    None where more than 10,000 blocks would be needed.
    """
    wanted = math.log1p(half_width)
    for n in range(2, MAX_BLOCKS + 1):
        if tolerance.is_below(float(stdtrit(n - 1, (1 + level) / 2)) * spread / math.sqrt(n), wanted):
            return n
    return None


def more_blocks(
    spread: float, n: int, have: int, half_width: float, level: float, block_s: float | None
) -> BlocksNeeded | None:
    """Blocks to add to the `have` that exist for an interval of ± `half_width`, a fraction.

    Planned with 80 % assurance. `spread` comes from n blocks; `block_s` is what a block took, in seconds.
    None where the spread says nothing (fewer than 2 blocks, or no end in sight).
    """
    if n < 2:
        return None
    needed = blocks_for(half_width, upper_spread_bound(spread, n), level)
    if needed is None:
        return None
    blocks = max(0, needed - have)
    return BlocksNeeded(blocks=blocks, minutes=None if block_s is None else blocks * block_s / 60)


def half_width_after(half_width: float, n: int, more: int, level: float) -> float:
    """Half-width of a t interval expected after `more` blocks of the same spread, from that of n blocks."""
    both = [t_quantile((1 + level) / 2, blocks - 1) / math.sqrt(blocks) for blocks in (n, n + more)]
    return half_width * both[1] / both[0]


def detectable_effect(spread: float, n: int, level: float) -> float | None:
    """Smallest effect (a fraction) that n blocks show with 80 % power; None below 2."""
    if n < 2:
        return None
    quantiles = float(stdtrit(n - 1, (1 + level) / 2)) + float(stdtrit(n - 1, POWER))
    return math.expm1(quantiles * spread / math.sqrt(n))
