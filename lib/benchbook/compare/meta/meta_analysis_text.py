"""Sentences on what sessions say together: one number, one range, at most 25 words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from benchbook.compare.text import cpu_models, labels
from benchbook.compare.text.sentences import NBSP, signed, told
from benchbook.core.artifacts.findings import Finding
from benchbook.core.artifacts.meta_analysis import Contrast, PooledEffect, Session
from benchbook.core.util.plural import count

MOST_WORDS = 25
SERVED = {"qps": "queries", "tps": "transactions"}
_MINUS = "\N{MINUS SIGN}"


def lead(contrast: Contrast, effect: PooledEffect) -> str:
    """Name an effect: `HAProxy on point selects at 8 threads`."""
    at = "" if effect.threads is None else f" at {count(effect.threads, 'thread')}"
    return f"{contrast.names.treatment} on {contrast.names.workload}{at}"


def headline(entry: Finding, found: PooledEffect, sessions: Mapping[str, Session]) -> str:
    """Say in one sentence what is known beyond a session: the number, and where a further one is expected.

    `entry` has the names and the metric. With fewer than four occasions the range is that of the sessions; of
    one session it is that of its blocks, and the sentence says so.
    """
    treatment, baseline = labels.inside(entry, "treatment"), labels.inside(entry, "baseline")
    own, low, high = found.sessions, *range_of(found)
    at = "" if found.threads is None else f" at {count(found.threads, 'thread')}"
    label = found.standing
    if label == "one session" and len(own) == 1:
        low, high = own[0].low or 0.0, own[0].high or 0.0
    far = [choose(own, key=lambda one: one.effect or 0.0) for choose in (min, max)] if own else []
    reasons = [one.reason for one in found.seen if one.reason] or ["there is no session"]
    variants = told(
        "pooled.j2",
        found=found,
        label=label,
        own=own,
        treatment=treatment,
        baseline=baseline,
        served=SERVED.get(entry.metric),
        noun=SERVED.get(entry.metric, labels.metric(entry.metric)),
        where=f" on {labels.of(entry, 'workload')}{at}",
        reason=reasons[-1].rstrip("."),
        range=unsigned(low, high) if low * high > 0 else span(low, high),
        span=span(low, high),
        amount=unsigned(found.effect or 0.0, found.effect or 0.0),
        ends=ends_of(found, label == "not shown" and low * high > 0),
        digits=_digits(*(one.effect or 0.0 for one in far)) if far else 0,
        far=[(one, cpu_models.name(sessions[one.session].processor)) for one in far],
    )
    return labels.sentence_case(fitting(variants))


def short(found: PooledEffect) -> str:
    """Say it in a few words, for a table: `−15 %, expected −18 to −13 %`."""
    if found.effect is None:
        return found.label
    if found.label == "depends on the machine":
        return f"{span(*range_of(found))}, {found.standing}"
    if found.label == "one session":
        return f"{percent(found.effect) if found.occasions[0].sign else 'not shown'}, {found.label}"
    seen = "expected" if is_expectation(found) else "seen"
    return f"{percent(found.effect)}, {seen} {span(*range_of(found))}"


def percent(fraction: float) -> str:
    """Write a fraction as signed per cent with two significant digits.

    >>> percent(-0.1532), percent(0.0042), percent(-0.0002)
    ('−15\\xa0%', '+0.4\\xa0%', '0.0\\xa0%')
    """
    return f"{signed(fraction, _digits(fraction))}{NBSP}%"


def span(low: float, high: float) -> str:
    """Write a range of fractions, both ends with the same digits, and enough to tell them apart.

    >>> span(-0.179, -0.127), span(-0.004, 0.021), span(0.191, 0.194)
    ('−18 to −13\\xa0%', '−0.4 to +2.1\\xa0%', '+19.1 to +19.4\\xa0%')
    """
    digits = _digits(low, high)
    return f"{signed(low, digits)} to {signed(high, digits)}{NBSP}%"


def where(found: PooledEffect) -> str:
    """Count what is pooled: 5 sessions, 3 processors."""
    sessions = count(len(found.sessions), "session")
    return f"{sessions}, {count(max(found.processors, 1), 'processor')}"


def range_of(found: PooledEffect) -> tuple[float, float]:
    """Return the range that a headline names: the prediction interval, else that of the sessions.

    Where an effect depends on the machine it is the latter: what was seen, on named machines.
    """
    if is_expectation(found):
        return found.prediction_low or 0.0, found.prediction_high or 0.0
    return found.range_low or 0.0, found.range_high or 0.0


def is_expectation(found: PooledEffect) -> bool:
    """Tell whether the range that a headline names is expected of a further session, not what was seen."""
    return found.prediction_low is not None and found.label != "depends on the machine"


def expected_on(*effects: PooledEffect) -> str:
    """Kind of machine that what is expected may be expected on."""
    places = {effect.elsewhere for effect in effects}
    return places.pop() if len(places) == 1 else "elsewhere"


def ends_of(found: PooledEffect, is_against: bool = False) -> tuple[str, str]:
    """Return how a sentence ends with its range, in full and in brief; `is_against`: alone the range would
    deny the sentence."""
    sessions = count(len(found.sessions), "session")
    if is_expectation(found):
        brief = f"; expect {{}} {expected_on(found)}"
        return f"{brief} ({where(found)})", brief
    full = where(found).replace(", ", " on ")
    if is_against:
        return f", though {full} measured {{}}", f", though {sessions} measured {{}}"
    return f": {{}} in {full}", f": {{}} in {sessions}"


def fitting(variants: Iterable[str]) -> str:
    """Return the first that has few enough words, else the one that has fewest."""
    known = list(variants)
    return next((text for text in known if words_in(text) <= MOST_WORDS), min(known, key=words_in))


def words_in(text: str) -> int:
    """Count words; a number and its unit are one.

    >>> words_in("it served 15\\xa0% fewer")
    4
    """
    return len(text.split(" "))


def unsigned(low: float, high: float) -> str:
    """Write two fractions of one sign without it, the smaller first; one number where they are one.

    >>> unsigned(-0.19, -0.16), unsigned(0.038, 0.038)
    ('16 to 19\\xa0%', '3.8\\xa0%')
    """
    if low == high:
        return percent(low).lstrip(f"+{_MINUS}")
    small, large = sorted((abs(low), abs(high)))
    digits = _digits(small, large)
    return f"{100 * small:.{digits}f} to {100 * large:.{digits}f}{NBSP}%"


def _digits(*fractions: float) -> int:
    """Return how many decimals several per cents need: none from 10 on, more where they would look alike."""
    digits = 0 if max(abs(100 * one) for one in fractions) >= 9.95 else 1
    alike = len({f"{100 * one:.{digits}f}" for one in fractions}) < len(set(fractions))
    return 1 if alike else digits
