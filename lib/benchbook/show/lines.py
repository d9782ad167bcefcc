"""One contrast in a line: its effects, the bar they span, the one number or range to take away.

Pure: findings and what sessions say together go in; effects are fractions of the baseline.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from benchbook.compare.sentences import SHOWN
from benchbook.core.findings import Finding
from benchbook.core.pooled import Contrast
from benchbook.show import numbers
from benchbook.show.forest import expected
from benchbook.show.tables import levels_of

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
    standing: str = ""
    """What the sessions say together, such as `depends on the machine`; empty of one session."""
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
        if self.expected:
            return brief(*self.expected)
        shown = self.decided
        if not shown:
            labels = {one.label for one in self.effects}
            return {"not shown": "no difference shown"}.get(label := min(labels), label) if labels else "none"
        return brief(min(one.value for one in shown), max(one.value for one in shown))

    @property
    def beside(self) -> str:
        """The interval of a single effect, or how many of several are not shown."""
        if self.expected:
            return ""
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
    parts = [
        part
        for one in contrasts
        for part in ([one.whole] if one.one_number or not one.levels else one.levels)
    ]
    effects = tuple(
        Effect(one.effect, one.low, one.high, one.label or "not shown")
        for part in parts
        for one in part.sessions
        if one.effect is not None
    )
    ends = [expected(part) for part in parts]
    known = [end for both in ends if both for end in both]
    labels = list(dict.fromkeys(part.label for part in parts))
    return {
        "effects": effects,
        "expected": (min(known), max(known)) if known and None not in ends else None,
        "standing": ", ".join(labels[:2]),
    }


def brief(low: float, high: float) -> str:
    """Write one effect, or a range of effects, with no more digits than a glance can use.

    >>> brief(0.2701, 0.2701), brief(-0.179, 0.33), brief(0.0148, 0.0148)
    ('+27\\xa0%', '−18 to +33\\xa0%', '+1.5\\xa0%')
    """
    digits = 1 if min(abs(low), abs(high)) < 0.1 and max(abs(low), abs(high)) < 0.3 else 0
    first, last = numbers.percent(low, digits), numbers.percent(high, digits)
    return last if first == last else numbers.span(low, high, digits)


def effects_of(own: Iterable[Finding]) -> Iterator[Effect]:
    """Give the effect of each workload, or of each thread level where no single number stands for all."""
    for found in own:
        for one in (found,) if found.headline else levels_of(found):
            if numbers.is_known(one.effect):
                yield Effect(one.effect, one.low, one.high, getattr(one, "label", None) or "not shown")
