"""One contrast in a line: its effects, the bar they span, the one number or range to take away.

Pure: findings and what sessions say together go in; effects are fractions of the baseline.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from benchbook.compare.meta.meta_analysis_text import range_of
from benchbook.compare.text.sentences import SHOWN
from benchbook.core.artifacts.findings import AnswerPart, Finding
from benchbook.core.artifacts.meta_analysis import Contrast, PooledEffect
from benchbook.core.util.errors import given
from benchbook.core.util.plural import count
from benchbook.show import numbers
from benchbook.show.forest import expected
from benchbook.show.tables import levels_of

_MEANS = ("holds elsewhere", "same direction", "on average", "one session")
# The words for a finding that was measured once.
ONE_SESSION = "one session on one machine"


@dataclass(frozen=True)
class Effect:
    """One measured effect, a fraction of the baseline, with the ends of its interval and its label."""

    value: float
    low: float | None
    high: float | None
    label: str


@dataclass(frozen=True)
class Line:
    """What one contrast came to: its effects, in words with the way to their evidence."""

    name: str
    way: str
    effects: tuple[Effect, ...]
    is_opposite: bool = False
    expected: tuple[float, float] | None = None
    """Where a further session is expected, or the range of the sessions; None of one session."""
    standing: tuple[str, ...] = ()
    """What the sessions say together, such as `depends on the machine`; nothing of one session."""
    means: str = ""
    """What they come to on average, at each thread level where that differs; empty of one session."""
    outlook: str = "seen"
    """Whether `expected` is that, or what was `seen`."""
    treatment: str = ""
    """The arm whose effects these are; empty where several arms are meant."""

    @property
    def decided(self) -> list[Effect]:
        """The effects that are shown to be above or below zero."""
        return [one for one in self.effects if one.label in SHOWN]

    @property
    def ends(self) -> tuple[float, float] | None:
        """Where the bar goes: as expected, else over all intervals; None where one is missing."""
        if self.expected:
            return self.expected
        lows, highs = ([getattr(one, end) for one in self.effects] for end in ("low", "high"))
        known = [one for one in (*lows, *highs) if numbers.is_known(one)]
        return (min(known), max(known)) if known and len(known) == len(lows) + len(highs) else None

    @property
    def told(self) -> str:
        """One number, one range, or why there is none."""
        if self.means:
            return self.means
        shown = self.decided
        if not shown:
            labels = {one.label for one in self.effects}
            return {"not shown": "no difference shown"}.get(label := min(labels), label) if labels else "none"
        return brief(min(one.value for one in shown), max(one.value for one in shown))

    @property
    def beside(self) -> str:
        """Where a further session is expected, the interval of a single effect, or how many are not shown."""
        if self.expected:
            ends = brief(*self.expected)
            return "" if ends == self.means else f"{self.outlook} {ends}"
        if len(self.decided) == len(self.effects) == 1 and self.ends:
            return brief(*self.ends)
        hidden = len(self.effects) - len(self.decided)
        if not self.decided:
            return brief(*self.ends) if self.told == "no difference shown" and self.ends else ""
        return f"{hidden} of {len(self.effects)} not shown" if hidden else ""

    @property
    def direction(self) -> str:
        """`higher`, `lower`, or nothing where neither or both are shown."""
        labels = {one.label for one in self.decided}
        return labels.pop() if len(labels) == 1 else ""


def over_sessions(contrasts: Sequence[Contrast]) -> dict[str, Any]:
    """Return effects, expected range and standing of a line that rests on several sessions."""
    parts = [part for one in contrasts for part in one.told]
    effects = tuple(
        Effect(one.effect, one.low, one.high, one.label or "not shown")
        for part in parts
        for one in part.sessions
        if one.effect is not None
    )
    ends = [expected(part) for part in parts]
    known = [end for both in ends if both for end in both]
    return {
        "effects": effects,
        "expected": (min(known), max(known)) if known and None not in ends else None,
        "outlook": "expect" if any(part.prediction_low is not None for part in parts) else "seen",
        "standing": tuple(dict.fromkeys(part.standing for part in parts)),
        "means": _means(parts),
    }


def _means(parts: Sequence[PooledEffect]) -> str:
    """Write what effects over sessions come to: one number or range, or one for each of two thread levels."""
    levels = sorted({part.threads for part in parts if part.threads is not None})
    told = [_mean([part for part in parts if part.threads in (None, level)]) for level in levels]
    if len(levels) != 2 or told[0] == told[1]:
        return _mean(parts)
    return f"{told[0]} at {count(levels[0], 'thread')}, {told[1]} at {levels[1]:,}"


def _mean(parts: Sequence[PooledEffect]) -> str:
    """Write the means that are shown; the range of sessions where the machine decides."""
    known = [end for part in parts if part.standing == "depends on the machine" for end in range_of(part)]
    known += [given(part.effect) for part in parts if part.label in _MEANS]
    none = "no difference shown" if any(part.standing == "not shown" for part in parts) else "not computed"
    return brief(min(known), max(known)) if known else none


def brief(low: float, high: float) -> str:
    """Write one effect, or a range of effects, with no more digits than a glance can use.

    >>> brief(0.2701, 0.2701), brief(-0.179, 0.33), brief(0.0148, 0.0148)
    ('+27\\xa0%', '−18 to +33\\xa0%', '+1.5\\xa0%')
    """
    digits = 1 if min(abs(low), abs(high)) < 0.1 and max(abs(low), abs(high)) < 0.3 else 0
    first, last = numbers.percent(low, digits), numbers.percent(high, digits)
    return last if first == last else numbers.span(low, high, digits)


def effect_of(part: AnswerPart) -> Effect:
    """Return a part of what a claim came to, with its label."""
    low, high = given(part.low), given(part.high)
    label = "higher" if low > 0 else "lower" if high < 0 else "not shown"
    return Effect(given(part.value), low, high, label)


def effects_of(own: Iterable[Finding]) -> Iterator[Effect]:
    """Give the effect of each workload, or of each thread level where no single number stands for all."""
    for found in own:
        for one in (found,) if found.headline else levels_of(found):
            if numbers.is_known(one.effect):
                yield Effect(one.effect, one.low, one.high, getattr(one, "label", None) or "not shown")
