"""Result of a gate, for a terminal, a pull request and a CI that reads JUnit XML."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchbook.compare.stats.intervals import Interval
from benchbook.compare.stats.noninferiority import NoninferiorityDecision
from benchbook.core.util.errors import require_value
from benchbook.core.util.number_format import format_percent
from benchbook.show import templating

ORDER = ("slower", "undecided", "not slower")
WIDTH = 61
MARKS = {"not slower": "✅", "slower": "❌", "undecided": "❔"}


def format_decision(one: NoninferiorityDecision, margin: float) -> str:
    """One decision as a line: answer, effect with interval and level, blocks, reason."""
    against = f"margin {format_percent(-margin)}"
    return f"{one.workload}: {one.treatment}: {one.word}: {format_effect(one)}; {against}; {one.why}"


def format_effect(one: NoninferiorityDecision) -> str:
    """Effect on QPS with its interval, level and blocks in words."""
    found = one.interval
    if found.effect is None:
        return f"no effect ({found.n} blocks)"
    if not found.is_known:
        return f"{format_percent(found.effect, 2)} QPS without an interval ({found.n} blocks)"
    between = f"[{format_percent(found.low, 2)}, {format_percent(found.high, 2)}]"
    return f"{format_percent(found.effect, 2)} QPS {between} at {100 * found.level:g} % ({found.n} blocks)"


def format_headline(found: Any) -> str:
    """The answer as a sentence."""
    asked = found.asked
    return (
        f"{asked.name}: {found.word} (margin {format_percent(-asked.margin)} QPS, "
        f"baseline {asked.study.baseline}, "
        f"{found.blocks} blocks with {found.run_s} s of each arm, {found.spent_s / 60:.1f} minutes, "
        f"{found.voided} runs voided; {found.ended})"
    )


def render_text(found: Any) -> str:
    """Text for a terminal."""
    lines = [
        format_headline(found),
        *(f"  {format_decision(one, found.asked.margin)}" for one in found.decisions),
    ]
    if found.answer == "undecided":
        lines.append(f"  {describe_remedy(found, found.decisions)}")
    return "\n".join(lines)


def describe_remedy(found: Any, decisions: Sequence[NoninferiorityDecision]) -> str:
    """Minutes to decide the undecided questions, and the margin that these were enough for."""
    shown = [one.interval for one in decisions if one.answer == "undecided"]
    if found.why_void and not all(one.n for one in shown):
        return f"the commonest reason of {found.voided} voided runs: {found.why_void}"
    minutes = max((_needed_minutes(one, found) or math.inf for one in shown), default=math.inf)
    if not math.isfinite(minutes):
        return f"too few blocks to say how long it would take; try --minutes {2 * found.asked.minutes:g}"
    if minutes <= found.asked.minutes:
        return "the effect is close to the margin; measure again, or choose another --slower"
    told = f"about --minutes {minutes:.0f} would decide it on a machine as busy as this one"
    enough = max(_enough_margin(one) for one in shown)
    if enough <= found.asked.margin:
        return told
    fast = "if the arm is as fast as its baseline"
    return f"{told}; these minutes are enough for --slower {100 * enough:.1f}%, {fast}"


def _enough_margin(interval: Interval) -> float:
    """Smallest margin that so wide an interval is above without an effect, rounded up to 0.1 %."""
    half = (require_value(interval.log_high) - require_value(interval.log_low)) / 2
    return math.ceil(-1000 * math.expm1(-half)) / 1000


def _needed_minutes(interval: Interval, found: Any) -> float | None:
    """Minutes, about, that shrink the interval to the distance between effect and margin."""
    if not interval.is_known:
        return None
    distance = abs(require_value(interval.log_mean) - math.log1p(-found.asked.margin))
    half = (require_value(interval.log_high) - require_value(interval.log_low)) / 2
    return float(found.spent_s / 60 * (half / distance) ** 2) if distance else None


def render_markdown(found: Any) -> str:
    """Summary for a pull request."""
    ranked = sorted(found.decisions, key=lambda one: (ORDER.index(one.answer), one.interval.log_mean or 0.0))
    given = {
        "marks": MARKS,
        "effect": format_effect,
        "figure": draw_interval,
        "remedy": describe_remedy(found, found.decisions),
    }
    engines = {arm: one.get("engine") or {} for arm, one in found.facts.items()}
    servers = {
        arm: " ".join(str(one.get(key) or "") for key in ("name", "version")).strip()
        for arm, one in engines.items()
    }
    told = {"worst": ranked[0], "headline": format_headline(found), "servers": servers}
    return templating.render_text(
        "gate.md.j2", found=found, margin=format_percent(-found.asked.margin), **given, **told
    )


def draw_interval(one: NoninferiorityDecision, margin: float) -> Iterator[str]:
    """An interval on a line of its own, above a scale that has the margin and zero."""
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


def render_junit(found: Any) -> str:
    """JUnit XML: one test case for each question, failed if slower, skipped if undecided."""
    return (
        templating.render_template(
            "junit.xml.j2", found=found, line=format_decision, remedy=describe_remedy
        ).text
        + "\n"
    )


def build_record(found: Any) -> dict[str, Any]:
    """Content of `gate.json`, kept beside the evidence."""
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
