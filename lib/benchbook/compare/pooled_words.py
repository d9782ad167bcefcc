"""Sentences on what sessions say together: one number, one range, at most 25 words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from benchbook.compare import machines, words
from benchbook.compare.sentences import NBSP, signed
from benchbook.core.findings import Finding
from benchbook.core.pooled import Contrast, PooledEffect, Seen, Session
from benchbook.core.wording import count

MOST_WORDS = 25
SERVED = {"qps": "queries", "tps": "transactions"}
_MINUS = "\N{MINUS SIGN}"


@dataclass(frozen=True)
class Said:
    """What a sentence is made of: a finding's names and metric, its effect over sessions, the sessions."""

    entry: Finding
    found: PooledEffect
    sessions: Mapping[str, Session]

    @property
    def treatment(self) -> str:
        """The treatment as it stands inside a sentence."""
        return words.inside(self.entry, "treatment")

    @property
    def baseline(self) -> str:
        """The baseline as it stands inside a sentence."""
        return words.inside(self.entry, "baseline")

    @property
    def noun(self) -> str:
        """What is compared: queries, p95 latency."""
        return SERVED.get(self.entry.metric, words.metric(self.entry.metric))

    @property
    def where(self) -> str:
        """On which workload, at which level: ` on point selects at 1 thread`."""
        threads = self.found.threads
        at = "" if threads is None else f" at {count(threads, 'thread')}"
        return f" on {words.of(self.entry, 'workload')}{at}"


def lead(contrast: Contrast, effect: PooledEffect) -> str:
    """Name an effect: `HAProxy on point selects at 8 threads`."""
    at = "" if effect.threads is None else f" at {count(effect.threads, 'thread')}"
    return f"{contrast.names.treatment} on {contrast.names.workload}{at}"


def headline(said: Said) -> str:
    """Say in one sentence what is known beyond a session: the number, and where a further one is expected.

    With fewer than four occasions the range is that of the sessions; of one session it is that of its blocks,
    and the sentence says so.
    """
    label = said.found.label
    if label == "not computed":
        reasons = [one.reason for one in said.found.seen if one.reason] or ["there is no session"]
        text = (
            f"{said.treatment} and {said.baseline} were not compared{said.where}: {reasons[0].rstrip('.')}."
        )
        return begun(text, said.treatment, said.baseline)
    told = {"depends on the machine": _depends, "one session": _once}
    return begun(fitting(told.get(label, _shown)(said)), said.treatment, said.baseline)


def short(said: Said) -> str:
    """Say it in a few words, for a table: `−15 %, expected −18 to −13 %`."""
    found = said.found
    if found.effect is None:
        return found.label
    if found.label == "depends on the machine":
        return f"{span(*range_of(found))}, {found.label}"
    if found.label == "one session":
        return f"{percent(found.effect) if found.occasions[0].sign else 'not shown'}, {found.label}"
    seen = "expected" if found.prediction_low is not None else "seen"
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
    low, high = found.prediction_low, found.prediction_high
    if low is None or high is None or found.label == "depends on the machine":
        low, high = found.range_low, found.range_high
    return low or 0.0, high or 0.0


def _shown(said: Said) -> Iterator[str]:
    """Say what holds elsewhere, has the same direction, is there on average, or was not shown."""
    low, high = range_of(said.found)
    full, brief = ends_of(said.found)
    if said.found.label == "not shown":
        told, tail = [_no_difference(said, is_brief) for is_brief in (False, True)], span(low, high)
    else:
        lead = "on average " if said.found.label == "on average" else ""
        told = [f"{lead}{_compared(said, is_brief)}" for is_brief in (False, True)]
        tail = unsigned(low, high) if low * high > 0 else span(low, high)
    for begins, ends in ((told[0], full), (told[0], brief), (told[1], brief)):
        yield f"{begins}{ends.format(tail)}."


def ends_of(found: PooledEffect) -> tuple[str, str]:
    """Return how a sentence ends with its range, in full and in brief."""
    if found.prediction_low is not None:
        return f"; expect {{}} elsewhere ({where(found)})", "; expect {} elsewhere"
    sessions = count(len(found.sessions), "session")
    return f": {{}} in {where(found).replace(', ', ' on ')}", f": {{}} in {sessions}"


def _once(said: Said) -> Iterator[str]:
    found, own = said.found, said.found.sessions
    lead = "in one session on one machine"
    if len(own) > 1:
        lead = f"in {len(own)} sessions within 6 hours on one processor model"
    low, high = (own[0].low or 0.0, own[0].high or 0.0) if len(own) == 1 else range_of(found)
    if any(one.label == "no useful interval" for one in own):
        yield f"{lead} the interval was too wide to be of use for {said.treatment}{said.where}."
        return
    is_decided = bool(found.occasions[0].sign)
    ends = unsigned(low, high) if is_decided and low * high > 0 else span(low, high)
    told = _compared(said) if is_decided else _no_difference(said)
    brief = _compared(said, is_brief=True) if is_decided else f"no difference was shown{said.where}"
    tails = (f" ({ends} over its blocks)", f" ({ends})", "") if len(own) == 1 else (f" ({ends})", "")
    for tail in tails:
        yield f"{lead} {told}{tail}."
    yield f"{lead} {brief}."


def _depends(said: Said) -> Iterator[str]:
    least, most = (choose(said.found.sessions, key=_effect) for choose in (min, max))
    on = [machines.name(said.sessions[one.session].processor) for one in (least, most)]
    digits = _digits(_effect(least), _effect(most))
    low, high = (f"{signed(_effect(one), digits)}{NBSP}%" for one in (least, most))
    what = f"the effect of {said.treatment}"
    if said.entry.metric not in SERVED:
        what = f"{what} on {said.noun}"
    tail = f"depends on the machine: from {low} ({on[0]}) to {high} ({on[1]})"
    if on[0] == on[1]:
        tail = f"changes between sessions: from {low} to {high} on {on[0]}"
    yield f"{what} against {said.baseline}{said.where} {tail}."
    yield f"{what}{said.where} {tail}."


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


def begun(text: str, treatment: str, baseline: str) -> str:
    """Begin a sentence with a capital, or with the name of an arm as that is written."""
    if text.startswith((treatment, baseline)):
        return words.sentence_case(text, treatment, baseline)
    return text[:1].upper() + text[1:]


def _compared(said: Said, is_brief: bool = False) -> str:
    """Say how much: HAProxy served 15 % fewer queries than direct connections on point selects."""
    effect = said.found.effect or 0.0
    amount = unsigned(effect, effect)
    if said.entry.metric in SERVED:
        than = "" if is_brief else f" than {said.baseline}"
        more = "fewer" if effect < 0 else "more"
        return f"{said.treatment} served {amount} {more} {said.noun}{than}{said.where}"
    than = "" if is_brief else f" than with {said.baseline}"
    level = "lower" if effect < 0 else "higher"
    return f"{said.noun} was {amount} {level} with {said.treatment}{than}{said.where}"


def _no_difference(said: Said, is_brief: bool = False) -> str:
    arms = f"with {said.treatment}" if is_brief else f"between {said.treatment} and {said.baseline}"
    return f"no difference in {said.noun} {arms} was shown{said.where}"


def _effect(one: Seen) -> float:
    return one.effect or 0.0


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
