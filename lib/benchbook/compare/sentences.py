"""Sentences made of numbers: subject, verb, number with its interval, blocks, and what it means.

They are written from a finding as findings.json holds it, so that a page, a notebook and a summary say the
same words. Every percentage is of the baseline.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from benchbook.compare import words
from benchbook.core.errors import given
from benchbook.core.findings import Contrast, Finding, Level
from benchbook.core.wording import count

NBSP = "\N{NO-BREAK SPACE}"
Part = Contrast | Level
SHOWN = ("higher", "lower")
_AT_A_LEVEL = {
    "no practical difference": "no practical difference",
    "no useful interval": "no useful interval yet",
    "not decided yet": "nothing is decided yet",
}
_SERVED = {"qps": "queries per second", "tps": "transactions per second"}


def percent(fraction: float) -> str:
    """Write a fraction as signed percent with one decimal and a real minus.

    >>> percent(-0.312)
    '−31.2\\xa0%'
    """
    return f"{signed(fraction)}{NBSP}%"


def signed(fraction: float, digits: int = 1) -> str:
    """Write a fraction as percent with a real sign, nothing before zero."""
    text = f"{abs(100 * fraction):.{digits}f}"
    sign = "" if float(text) == 0 else "\N{MINUS SIGN}" if fraction < 0 else "+"
    return f"{sign}{text}"


def listing(items: Sequence[object], last: str = "and") -> str:
    """Join items as a sentence does: a, b and c."""
    texts = [str(item) for item in items]
    return f"{', '.join(texts[:-1])} {last} {texts[-1]}" if len(texts) > 1 else "".join(texts)


class Interval(Protocol):
    """Anything with two ends, fractions."""

    @property
    def low(self) -> float | None:
        """The lower end."""

    @property
    def high(self) -> float | None:
        """The upper end."""


def interval(part: Part) -> str:
    """Write an interval with its level: 98 % interval −28.4 to −18.8 %."""
    return f"{100 * part.level:g}{NBSP}% interval {ends(part.low, part.high)}"


def ends(low: float | None, high: float | None) -> str:
    """Write the two ends of an interval: −28.4 to −18.8 %."""
    return f"{signed(given(low))} to {signed(given(high))}{NBSP}%"


def sentence(found: Finding) -> str:
    """Say in one sentence what was found of a contrast, or why nothing was."""
    return words.sentence_case(_sentence(found), *_names(found)[:2])


def _sentence(found: Finding) -> str:
    treatment, baseline, workload = _names(found)
    where, blocks, label = f"on {workload}", count(found.n, "block"), found.label
    if found.effect is None:
        reason = found.reason or "there is no number"
        return f"{treatment} could not be compared with {baseline} {where}: {reason}."
    if found.low is None:
        return f"{_compared(found)} ({blocks}); there is no interval: {found.reason or 'too few blocks'}."
    seen = f"({interval(found)}, {blocks})"
    if label == "not decided yet":
        return f"Nothing is decided yet {where}; so far {_compared(found, where='')} {seen}."
    if label == "no useful interval":
        metric = "" if found.metric in _SERVED else f"{_noun(found)} with "
        told = f"{metric}{treatment} against {baseline} {where} {seen}"
        return f"No useful interval yet for {told}.{_help(found)}"
    if label == "depends on threads":
        return f"{_by_level(found)}; {blocks}."
    if label == "no practical difference":
        return (
            f"{treatment} and {baseline} differ by no more than 1{NBSP}% in {_noun(found)} {where}: "
            f"{percent(given(found.effect))} {seen}."
        )
    # The interval leaves out zero, but the correction for many contrasts left nothing shown.
    if label == "not shown" and (given(found.low) > 0 or given(found.high) < 0):
        return f"{LOST} between {treatment} and {baseline} {where}: {percent(given(found.effect))} {seen}."
    if label == "not shown":
        return (
            f"No difference in {_noun(found)} between {treatment} and {baseline} was shown {where}: "
            f"{percent(given(found.effect))} {seen}."
        )
    return f"{_compared(found)} {seen}.{_depends(found)}"


LOST = "Once all contrasts of the study are counted (Holm), no difference is decided"


def _level_told(found: Finding, part: Level, with_ends: bool = True) -> str:
    """Say what is known at one thread level: 24.4 % fewer at 1 thread (−28.0 to −20.5 %)."""
    where = f"at {count(part.threads, 'thread')}"
    seen = f" ({ends(part.low, part.high)})" if with_ends and part.low is not None else ""
    quiet = _AT_A_LEVEL.get(str(part.label), "no difference was shown")
    return f"{_amount(found, part) if part.label in SHOWN else quiet} {where}{seen}"


def _names(found: Finding) -> tuple[str, str, str]:
    return words.inside(found, "treatment"), words.inside(found, "baseline"), words.of(found, "workload")


def _noun(found: Finding) -> str:
    return _SERVED.get(found.metric, words.metric(found.metric))


def _amount(found: Finding, part: Part | None = None) -> str:
    """Write how much, with its direction: 23.7 % fewer, or 12.0 % higher."""
    effect = given((part or found).effect)
    more, less = ("more", "fewer") if found.metric in _SERVED else ("higher", "lower")
    return f"{signed(effect).lstrip('+−')}{NBSP}% {less if effect < 0 else more}"


def _compared(found: Finding, part: Part | None = None, where: str | None = None) -> str:
    treatment, baseline, workload = _names(found)
    place = f" on {workload}" if where is None else where
    if found.metric in _SERVED:
        served = f"{_amount(found, part)} {_noun(found)}"
        return f"{treatment} served {served} than {baseline}{place}"
    return f"{_noun(found)} was {_amount(found, part)} with {treatment} than with {baseline}{place}"


def _levels(found: Finding) -> list[Level]:
    return [part for part in found.levels if part.effect is not None]


def _by_level(found: Finding) -> str:
    """Say what is known at each thread level, those with a difference first."""
    treatment, baseline, workload = _names(found)
    levels = _levels(found)
    shown = [part for part in levels if part.label in SHOWN]
    others = [part for part in levels if part not in shown]
    rest = [_level_told(found, part) for part in others]
    if not shown:
        head = f"Threads change how {treatment} compares with {baseline} on {workload}"
        return f"{head}, though {listing(rest)}"
    first, *more = shown
    head = f"{_compared(found, first)} at {count(first.threads, 'thread')} ({interval(first)})"
    summary = listing([head, *(_level_told(found, part) for part in more)])
    return "; ".join([summary, *rest])


def _depends(found: Finding) -> str:
    """Say the thread levels of a finding that has one number, where they were shown to differ in size."""
    test, levels = found.depends_on_threads, _levels(found)
    if not test or test.p >= 0.05 or len(levels) < 2:
        return ""
    told = listing([_level_told(found, part, with_ends=False) for part in levels])
    return f" On {_names(found)[2]} the effect depends on threads: {told}."


def _help(found: Finding) -> str:
    """Say what would make an interval useful."""
    reason = f" {found.withheld}" if found.withheld else ""
    more = found.blocks_to_useful
    if not more or more.blocks < 1:
        return f"{reason} A quieter machine would help."
    minutes = ""
    if more.minutes is not None:
        hours = f"{more.minutes / 60:,.0f} hours"
        minutes = f", some {hours if more.minutes >= 120 else count(max(round(more.minutes), 1), 'minute')}"
    blocks = f"{more.blocks:,} more block{'' if more.blocks == 1 else 's'}"
    return f"{reason} About {blocks}{minutes}, or a quieter machine would help."
