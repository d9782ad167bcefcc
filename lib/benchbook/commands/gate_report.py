"""Result of a gate, for a terminal, a pull request and a CI that reads JUnit XML."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from scipy.special import chdtri

from benchbook.compare.stats.intervals import Interval
from benchbook.compare.stats.noninferiority import NoninferiorityDecision
from benchbook.compare.text.results_table import ResultRow, ResultsTable
from benchbook.core.util.errors import require_value
from benchbook.core.util.estimate import Estimate
from benchbook.core.util.number_format import format_count, format_interval, format_level, format_percent
from benchbook.core.util.plural import as_sentence
from benchbook.show import results_view, templating

ORDER = ("slower", "undecided", "not slower")
RANGE = 0.8
"""Confidence of the range of minutes that would decide."""
ANSWER_MARKS = {"not slower": "✅", "slower": "❌", "undecided": "❔"}


def format_decision(decision: NoninferiorityDecision, margin: float) -> str:
    """One decision as a line: answer, effect with interval and level, blocks, reason."""
    effect = f"{format_effect(decision)}; margin {format_percent(-margin)}"
    return f"{decision.workload}: {decision.treatment}: {decision.word}: {effect}; {decision.why}"


def format_effect(decision: NoninferiorityDecision) -> str:
    """Effect on QPS with its interval, level and blocks in words."""
    interval = decision.interval
    blocks = format_count(interval.n, "block")
    if interval.effect is None:
        return f"no effect ({blocks})"
    ends = f"{format_interval(interval.low, interval.high)} at {format_level(interval.level)}"
    within = ends if interval.is_known else "without an interval"
    return f"{format_percent(interval.effect)} QPS {within} ({blocks})"


def format_headline(result: Any) -> str:
    """The answer as a sentence."""
    request = result.request
    margin = f"margin {format_percent(-request.margin)} QPS, baseline {request.study.baseline}"
    blocks = f"{result.blocks} blocks with {result.run_s} s of each arm, {result.spent_s / 60:.1f} minutes"
    end = f"{result.voided} runs voided; {result.ended}"
    return f"{request.name}: {result.word} ({margin}, {blocks}, {end})"


def build_results(result: Any) -> ResultsTable:
    """A row for each question, with its answer as the label and the reason as a note."""
    baseline = result.request.study.baseline
    rows = (
        ResultRow(
            decision.workload, decision.treatment, baseline, decision.workload, "qps", None, None,
            Estimate(interval.effect, interval.low, interval.high, interval.level, interval.n),
            decision.answer, (as_sentence(f"{decision.word}: {decision.why}"),),
        )
        for decision in result.decisions
        for interval in [decision.interval]
    )  # fmt: skip
    return ResultsTable(result.request.name, "", tuple(rows))


def render_text(result: Any) -> str:
    """Text for a terminal."""
    table = build_results(result)
    lines = [format_headline(result), results_view.caption_of(table), *results_view.render_text(table)]
    if result.answer == "undecided":
        lines.append(as_sentence(describe_remedy(result, result.decisions)))
    return "\n".join(lines)


def describe_remedy(result: Any, decisions: Sequence[NoninferiorityDecision]) -> str:
    """Minutes to decide the undecided questions, and the margin that these were enough for."""
    shown = [decision.interval for decision in decisions if decision.answer == "undecided"]
    if result.why_void and not all(interval.n for interval in shown):
        return f"the commonest reason of {result.voided} voided runs: {result.why_void}"
    needed = [_needed_minutes(interval, result) for interval in shown]
    if not needed or None in needed:
        return f"too few blocks to say how long it would take; try --minutes {2 * result.request.minutes:g}"
    minutes, least, most, blocks = max(estimate for estimate in needed if estimate is not None)
    if minutes <= result.request.minutes:
        return "the effect is close to the margin; measure again, or choose another --slower"
    spread = f"{least:.0f} to {most:.0f}, by what {blocks} blocks say of the spread"
    remedy = f"about --minutes {minutes:.0f} would decide it on a machine as busy as this one ({spread})"
    # The smallest margin that so wide an interval is above without an effect, rounded up to 0.1 %.
    enough = math.ceil(-1000 * math.expm1(-max(map(_half_width, shown)))) / 1000
    if enough <= result.request.margin:
        return remedy
    fast = "if the arm is as fast as its baseline"
    return f"{remedy}; these minutes are enough for --slower {100 * enough:.1f}%, {fast}"


def _half_width(interval: Interval) -> float:
    return (require_value(interval.log_high) - require_value(interval.log_low)) / 2


def _needed_minutes(interval: Interval, result: Any) -> tuple[float, float, float, int] | None:
    """Minutes to decide, their 80 % range (chi-squared of the blocks' variance), blocks; None: not known."""
    if not interval.is_known or not interval.df:
        return None
    distance = abs(require_value(interval.log_mean) - math.log1p(-result.request.margin))
    if not distance:
        return None
    minutes, df = float(result.spent_s / 60 * (_half_width(interval) / distance) ** 2), interval.df
    ends = [minutes * df / float(chdtri(df, tail)) for tail in ((1 - RANGE) / 2, (1 + RANGE) / 2)]
    return minutes, ends[0], ends[1], interval.n


def render_markdown(result: Any) -> str:
    """Summary for a pull request."""
    worst = min(result.decisions, key=lambda item: (ORDER.index(item.answer), item.interval.log_mean or 0.0))
    table = build_results(result)
    inputs = {
        "answer_mark": ANSWER_MARKS[result.answer],
        "worst": worst,
        "effect": format_effect(worst),
        "margin": format_percent(-result.request.margin),
        "headline": format_headline(result),
        "caption": results_view.caption_of(table),
        "table": results_view.render_markdown(table),
        "remedy": as_sentence(describe_remedy(result, result.decisions)),
        "engines": {arm: facts.get("engine") or {} for arm, facts in result.facts.items()},
    }
    return templating.render_text("gate.md.j2", result=result, **inputs)


def render_junit(result: Any) -> str:
    """JUnit XML: one test case for each question, failed if slower, skipped if undecided."""
    inputs = {"result": result, "line": format_decision, "remedy": describe_remedy}
    return f"{templating.render_template('junit.xml.j2', **inputs).text}\n"


def build_record(result: Any) -> dict[str, Any]:
    """Content of `gate.json`, kept beside the evidence."""
    return {
        "study": result.request.name,
        "answer": result.answer,
        "word": result.word,
        "margin": result.request.margin,
        "minutes": result.request.minutes,
        "blocks": result.blocks,
        "run_s": result.run_s,
        "decisions": [
            {key: getattr(decision, key) for key in ("workload", "treatment", "answer", "word", "why")}
            | {key: getattr(decision.interval, key) for key in ("n", "level", "effect", "low", "high")}
            for decision in result.decisions
        ],
    }
