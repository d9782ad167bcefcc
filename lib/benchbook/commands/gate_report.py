"""What a gate found, for a terminal, a pull request and a CI that reads JUnit XML."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchbook.compare.stats.intervals import Interval
from benchbook.compare.stats.noninferiority import Decision
from benchbook.core.util.errors import given
from benchbook.core.util.number_format import format_percent
from benchbook.show import templating

ORDER = ("slower", "undecided", "not slower")
WIDTH = 61
MARKS = {"not slower": "✅", "slower": "❌", "undecided": "❔"}


def line(one: Decision, margin: float) -> str:
    """Return one decision as a line: answer, effect with interval and level, blocks, reason."""
    against = f"margin {format_percent(-margin)}"
    return f"{one.workload}: {one.treatment}: {one.word}: {effect(one)}; {against}; {one.why}"


def effect(one: Decision) -> str:
    """Return an effect on QPS with its interval, level and blocks in words."""
    found = one.interval
    if found.effect is None:
        return f"no effect ({found.n} blocks)"
    if not found.is_known:
        return f"{format_percent(found.effect, 2)} QPS without an interval ({found.n} blocks)"
    between = f"[{format_percent(found.low, 2)}, {format_percent(found.high, 2)}]"
    return f"{format_percent(found.effect, 2)} QPS {between} at {100 * found.level:g} % ({found.n} blocks)"


def headline(found: Any) -> str:
    """Return the answer as a sentence."""
    asked = found.asked
    return (
        f"{asked.name}: {found.word} (margin {format_percent(-asked.margin)} QPS, "
        f"baseline {asked.study.baseline}, "
        f"{found.blocks} blocks with {found.run_s} s of each arm, {found.spent_s / 60:.1f} minutes, "
        f"{found.voided} runs voided; {found.ended})"
    )


def text(found: Any) -> str:
    """Return what a terminal shows."""
    lines = [headline(found), *(f"  {line(one, found.asked.margin)}" for one in found.decisions)]
    if found.answer == "undecided":
        lines.append(f"  {remedy(found, found.decisions)}")
    return "\n".join(lines)


def remedy(found: Any, decisions: Sequence[Decision]) -> str:
    """Return in how many minutes the undecided would be decided, and for which margin these were enough."""
    shown = [one.interval for one in decisions if one.answer == "undecided"]
    if found.why_void and not all(one.n for one in shown):
        return f"the commonest reason of {found.voided} voided runs: {found.why_void}"
    minutes = max((_minutes(one, found) or math.inf for one in shown), default=math.inf)
    if not math.isfinite(minutes):
        return f"too few blocks to say how long it would take; try --minutes {2 * found.asked.minutes:g}"
    if minutes <= found.asked.minutes:
        return "the effect is close to the margin; measure again, or choose another --slower"
    told = f"about --minutes {minutes:.0f} would decide it on a machine as busy as this one"
    enough = max(_margin(one) for one in shown)
    if enough <= found.asked.margin:
        return told
    fast = "if the arm is as fast as its baseline"
    return f"{told}; these minutes are enough for --slower {100 * enough:.1f}%, {fast}"


def _margin(interval: Interval) -> float:
    """Return the smallest margin that so wide an interval is above without an effect, rounded up to 0.1 %."""
    half = (given(interval.log_high) - given(interval.log_low)) / 2
    return math.ceil(-1000 * math.expm1(-half)) / 1000


def _minutes(interval: Interval, found: Any) -> float | None:
    """Return about how many minutes shrink the interval to the distance between effect and margin."""
    if not interval.is_known:
        return None
    distance = abs(given(interval.log_mean) - math.log1p(-found.asked.margin))
    half = (given(interval.log_high) - given(interval.log_low)) / 2
    return float(found.spent_s / 60 * (half / distance) ** 2) if distance else None


def markdown(found: Any) -> str:
    """Return a summary for a pull request."""
    ranked = sorted(found.decisions, key=lambda one: (ORDER.index(one.answer), one.interval.log_mean or 0.0))
    given = {"marks": MARKS, "effect": effect, "figure": figure, "remedy": remedy(found, found.decisions)}
    engines = {arm: one.get("engine") or {} for arm, one in found.facts.items()}
    servers = {
        arm: " ".join(str(one.get(key) or "") for key in ("name", "version")).strip()
        for arm, one in engines.items()
    }
    told = {"worst": ranked[0], "headline": headline(found), "servers": servers}
    return templating.text(
        "gate.md.j2", found=found, margin=format_percent(-found.asked.margin), **given, **told
    )


def figure(one: Decision, margin: float) -> Iterator[str]:
    """Yield an interval on a line of its own, above a scale that has the margin and zero."""
    found = one.interval
    yield f"{one.workload}, {one.treatment}"
    if not found.is_known or found.low is None or found.high is None or found.effect is None:
        yield "  no interval"
        return
    left, right = min(found.low, -margin), max(found.high, 0.0)
    step = (right - left) / (WIDTH - 1)

    def drawn(marks: Mapping[float, str], fill: str = " ", ends: tuple[float, float] = (0.0, 0.0)) -> str:
        first, last = (round((end - left) / step) for end in ends)
        line = [fill if first < place < last else " " for place in range(WIDTH)]
        for value, mark in marks.items():
            line[round((value - left) / step)] = mark
        return "  " + "".join(line).rstrip()

    yield drawn({found.low: "├", found.high: "┤", found.effect: "●"}, "─", (found.low, found.high))
    yield drawn({-margin: "▲", 0.0: "│"})
    yield f"  ▲ margin {format_percent(-margin)}   │ no change   ●─ effect {format_percent(found.effect, 2)}"


def junit(found: Any) -> str:
    """Return JUnit XML: one test case for each question, failed if slower, skipped if undecided."""
    return templating.render("junit.xml.j2", found=found, line=line, remedy=remedy).text + "\n"


def record(found: Any) -> dict[str, Any]:
    """Return what is kept beside the evidence as `gate.json`."""
    return {
        "study": found.asked.name,
        "answer": found.answer,
        "word": found.word,
        "margin": found.asked.margin,
        "minutes": found.asked.minutes,
        "blocks": found.blocks,
        "run_s": found.run_s,
        "decisions": [
            {key: getattr(one, key) for key in ("workload", "treatment", "answer", "word", "why")}
            | {key: getattr(one.interval, key) for key in ("n", "level", "effect", "low", "high")}
            for one in found.decisions
        ],
    }
