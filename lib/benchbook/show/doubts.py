"""What speaks against a study's answer, as a list: the A/A pair first, every warning last."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd

from benchbook.compare import edges, pairs, words
from benchbook.compare import turns as of_turns
from benchbook.compare.doubts import FISHER_P, leaves_zero_out
from benchbook.compare.verdicts import MARGIN
from benchbook.core import paths
from benchbook.core.errors import given
from benchbook.core.findings import Check, Difference, Finding, Findings, Partners, Voids
from benchbook.core.wording import sentence
from benchbook.show import forest, numbers, opposite
from benchbook.show.markup import Html
from benchbook.show.shape import render

# In the root of a recorded session: the values that came out otherwise than recorded, a line each.
DIFFERS = "differs.txt"

_NAMED_FACTS = 6
_TURNS = "the effect changes its sign with the threads"
_NO_PILOT = (
    "No pilot was run (warm_up.pilot_s is 0), so nothing shows how long a run must go until it is steady. "
    "Slow seconds of the start may be among those that count."
)
_SAID = ("A/A", "Voided runs")
"""Titles of warnings whose facts a point of its own has with their numbers."""
_LOOK = re.compile(r"(?<=”\)); (?=\d{4}-)")
_SHORT = re.compile(r"a pilot of (\d+) s is too short to judge; it needs (\d+) s")


@dataclass(frozen=True)
class Doubt:
    """One point, and whether it asks for care."""

    name: str
    text: str
    is_care: bool = False

    @property
    def lines(self) -> list[str]:
        """The text, with each session that was looked at before on a line of its own."""
        return _LOOK.split(self.text)


def differing() -> list[Doubt]:
    """Return that values of a recorded session came out otherwise here; nothing for any other study."""
    file = paths.root() / DIFFERS
    if not file.is_file():
        return []
    told = file.read_text(encoding="utf-8").splitlines()
    first = "; ".join(told[:3])
    more = f"; and {len(told) - 3} more" if len(told) > 3 else ""
    return [Doubt("Not as recorded", f"Made again here, values differ: {first}{more}.", True)]


def doubts(
    findings: Findings,
    runs: pd.DataFrame,
    warm_up: Mapping[str, Any] | None = None,
    more: Sequence[Doubt] = (),
) -> Html:
    """Write the points: those that matter in a line, each to be opened, then how it was measured, folded."""
    return render("doubts.html.j2", doubts=list(points(findings, runs, warm_up, more)))


def points(
    findings: Findings,
    runs: pd.DataFrame,
    warm_up: Mapping[str, Any] | None = None,
    more: Sequence[Doubt] = (),
) -> Iterator[Doubt]:
    """Give every point, from the A/A pair over blocks, runs, voids and checks to the warnings."""
    warned = {one.title for one in findings.warnings}
    yield twin(findings.aa, "A/A" in warned)
    yield Doubt("How quiet was this machine", findings.quiet.line)
    yield _blocks(findings)
    yield from _turns(findings, runs)
    yield from _partners(findings.partners)
    yield from more
    yield _lengths(runs)
    yield from _steady(warm_up)
    yield _voids(findings.voids, findings.names.arms)
    yield _checks(findings.checks)
    yield _differences(findings.facts_differ)
    yield from _limits(findings)
    yield Doubt("Scope", f"These numbers hold for {findings.scope}; another machine is another study.")
    for found in findings.findings:
        if (second := found.second_opinion) and not second.agrees:
            ends = numbers.span(second.low, second.high)
            told = f"Another kind of interval ({second.method}) leads to another answer: {ends}."
            yield Doubt(_name(found), told, True)
    yield from _warnings(findings)
    # An arm without a run is told once, as that.
    ran = {*runs.arm}
    for found in (one for one in findings.findings if {one.baseline, one.treatment} <= ran):
        name = f"{_name(found)}, {words.metric(found.metric)}"
        # That is an answer, which the page gives by thread levels, and no doubt about it.
        for text in (one for one in found.warnings if not one.startswith(_TURNS)):
            yield Doubt(name, f"{text[:1].upper()}{text[1:].rstrip('.')}.", True)


def twin(aa: Finding | None, is_care: bool = False) -> Doubt:
    """Say what the A/A pair showed, and whether it showed something where there is nothing.

    `is_care` tells that it leaves room for more than a study may overlook.
    """
    told = partial(Doubt, "A/A")
    if aa is None:
        never = "No arm was compared with itself, so how far apart equal arms come out here is not known."
        return told(never, True)
    about = f"{words.of(aa, 'workload')}{forest.beside_queries(aa.metric)}"
    sentence = f"One arm under two names, on {about}: {numbers.percent(aa.effect)}, "
    blocks = numbers.count(aa.n, "block")
    if aa.low is None:
        return told(f"{sentence}{blocks}. Without an interval it shows nothing yet.", True)
    sentence += f"{numbers.level(aa.level)} interval {numbers.span(aa.low, aa.high)}, {blocks}."
    if leaves_zero_out(aa):
        care = "It leaves zero out where there is nothing to find: take effects of this size for noise."
        return told(f"{sentence} {care}", True)
    if aa.label == "depends on threads":
        return told(f"{sentence} {_by_threads(aa)}", True)
    if aa.label == "no useful interval":
        return told(f"{sentence} Equal arms come out too far apart to compare others.", True)
    room = max(abs(aa.low), abs(given(aa.high)))
    if room > MARGIN:
        most = numbers.percent(room, signed=False)
        care = f"No difference was shown, but the interval has room for one of {most}."
        return told(f"{sentence} {care}", is_care)
    return told(f"{sentence} No difference was shown where there is none, as it should be.")


def _by_threads(aa: Finding) -> str:
    """Say that equal arms differed otherwise at one thread count than at another."""
    steps = [one for one in aa.by_threads if numbers.is_known(one.effect)]
    each = [f"{numbers.percent(one.effect)} at {numbers.count(one.threads, 'thread')}" for one in steps]
    test = aa.depends_on_threads
    tested = [numbers.p_value(test.p)] if test else []
    return (
        f"The difference was shown to depend on threads where there is none ({'; '.join([*each, *tested])}): "
        "take differences of about this size between thread counts for noise."
    )


def _turns(findings: Findings, runs: pd.DataFrame) -> Iterator[Doubt]:
    turns = findings.turns
    if not turns:
        return
    arms: dict[str, list[str]] = {}
    for arm, parts in turns.stopped.items():
        if not arm.endswith(words.AGAIN):
            name = findings.names.arms.get(arm, arm)
            arms.setdefault(numbers.listing(parts), []).append(name)
    stopped = [f"{parts} of {numbers.listing(names)}" for parts, names in arms.items()]
    still = f" Between the turns of an arm these stand still: {'; '.join(stopped)}." if stopped else ""
    lost = f" {of_turns.ABSENT}" if of_turns.lacks_percentiles(runs) else ""
    yield Doubt(
        "Turns",
        f"Arms took turns inside the same second, so QPS counts the seconds of an arm's own turns.{still} "
        "The rates in sysbench's own log count the seconds of all arms, so they are too small by the number "
        f"of arms. Mean latency is threads divided by throughput (Little's law).{lost}",
    )


def _partners(blocks: Sequence[Partners]) -> Iterator[Doubt]:
    if not blocks:
        return
    longest = max(blocks, key=lambda block: block.max_s)
    usual = pairs.span(pd.Series([block.median_s for block in blocks]).median())
    yield Doubt(
        "Time between partners",
        f"Runs that are compared started {usual} apart (median), and {pairs.span(longest.max_s)} at most "
        f"(block {longest.block}).",
    )


def _warnings(findings: Findings) -> Iterator[Doubt]:
    """Give each warning once, under its own title."""
    seen = set()
    for one in findings.warnings:
        if one.text not in seen and one.title not in _SAID:
            turned = opposite.beside_note(one.text, findings)
            yield Doubt(one.title, f"{one.text} {turned}" if turned else one.text, True)
        seen.add(one.text)


def _name(found: Finding) -> str:
    return f"{words.of(found, 'treatment')} on {words.of(found, 'workload')}"


def _blocks(findings: Findings) -> Doubt:
    blocks, note = findings.blocks, findings.look.note
    sentence = f"{blocks.complete} of {numbers.count(blocks.planned, 'planned block')} complete"
    return Doubt("Blocks", f"{sentence}{f'; {note}' if note else ''}.", blocks.complete < blocks.planned)


def _lengths(runs: pd.DataFrame) -> Doubt:
    if runs.empty:
        return Doubt("Runs", "No run was valid.", True)
    run_s, discard_s = (
        numbers.listing([f"{length:g}" for length in sorted(runs[column].unique())], "or")
        for column in ("run_s", "discard_s")
    )
    sentence = (
        f"{numbers.count(len(runs), 'run')}, each measured for {run_s} s after a discard of {discard_s} s."
    )
    return Doubt("Runs", f"{sentence} The shorter a run, the more of its noise is left.")


def _steady(warm_up: Mapping[str, Any] | None) -> Iterator[Doubt]:
    if warm_up and warm_up.get("is_steady") is not True:
        reason = f": {warm_up['reason'].rstrip('.')}" if warm_up.get("reason") else ""
        pilots = warm_up.get("pilots")
        said = _NO_PILOT if pilots in ([], ()) else _too_short(pilots or ())
        yield Doubt("Warm-up", said or f"The pilots did not show a steady state{reason}.", True)


def _too_short(pilots: Sequence[Mapping[str, Any]]) -> str:
    """Say it once where every pilot was too short to judge; empty where one was not."""
    found = [_SHORT.match(str(pilot.get("reason"))) for pilot in pilots]
    if not found or not all(found):
        return ""
    lengths = sorted({int(one[1]) for one in found if one})
    needed = next(one[2] for one in found if one)
    return (
        f"No pilot was long enough to show a steady state: they took {numbers.listing(lengths, 'or')} s, and "
        f"{needed} s are needed. Slow seconds of the start may be among those that count."
    )


def _voids(voids: Voids, arms: Mapping[str, str]) -> Doubt:
    if not any(arm.voided for arm in voids.by_arm.values()):
        return Doubt("Voids", "No run was voided.")
    by_arm = [
        f"{arm.voided} of {numbers.count(arm.runs, 'run')} of {arms.get(name, name)}"
        for name, arm in voids.by_arm.items()
        if arm.runs
    ]
    p = voids.fisher_p
    tested = f" Fisher's exact test for equal rates: {numbers.p_value(p)}." if numbers.is_known(p) else ""
    # Without a test nothing shows that the arms were voided alike.
    is_care = p is None or not edges.is_above(p, FISHER_P)
    care = f" {sentence(voids.note)}" if is_care else ""
    return Doubt("Voids", f"Voided and run again: {numbers.listing(by_arm)}.{tested}{care}", is_care)


def _checks(checks: list[Check]) -> Doubt:
    failed = [
        name if count == 1 else f"{name} in {count} places"
        for name, count in Counter(check.check for check in checks if check.passed is False).items()
    ]
    made = [check for check in checks if check.passed is not None]
    idle = [check.check for check in checks if check.passed is None]
    total = numbers.count(len(made), "consistency check")
    if failed:
        return Doubt("Checks", f"Failed, of {total}: {numbers.listing(failed)}.", True)
    left = f" Nothing to check for {numbers.listing(idle)}." if idle else ""
    return Doubt("Checks", f"{total}, all passed.{left}" if made else "None was made.", not made)


def _differences(entries: list[Difference]) -> Doubt:
    if not entries:
        return Doubt("Arms", "The arms reported no fact that differs.")
    names = [entry.fact for entry in entries[:_NAMED_FACTS]]
    more = len(entries) - len(names)
    names += [numbers.count(more, "more fact", "more facts")] if more else []
    care = "Whatever differs beyond what the study compares is another possible reason for the answer."
    return Doubt("Arms", f"The arms differ in {numbers.listing(names)}. {care}")


def _limits(findings: Findings) -> Iterator[Doubt]:
    """Doubt arms that a limit of their own may stop, whatever else the study compares."""
    arms, base = findings.names.arms, findings.baseline
    for entry in findings.facts_differ:
        limits = entry.values if entry.fact == "resources.limits.cpu" else {}
        for arm in [one for one, limit in limits.items() if limit is not None and limits.get(base) is None]:
            name, other = arms.get(arm, arm), arms.get(base, base)
            told = f"{name[:1].upper()}{name[1:]} has a limit of {limits[arm]} CPU, and {other} has none"
            yield Doubt("Limit of its own", f"{told}: its effect may come of that limit alone.", True)
