"""What the runs of a study show that plans too few blocks for a decision: sentences, arm by arm.

Such a study is about single runs, second by second. It has no interval, and nothing in it decides a claim.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchbook.compare import dips, stability
from benchbook.compare.claims.blocks import Evidence
from benchbook.compare.sentences import listing
from benchbook.compare.words import sentence_case
from benchbook.core.params import Analysis
from benchbook.core.study import Study
from benchbook.core.wording import count


def is_all(study: Study, analysis: Analysis) -> bool:
    """Tell whether a study plans fewer blocks than the first look needs, so that it describes its runs."""
    return study.plan.blocks < min(analysis.looks)


def tables(study: Study, analysis: Analysis) -> list[str]:
    """Return the tidy tables that a description needs beside those of any findings."""
    return ["intervals"] if is_all(study, analysis) else []


def findings(evidence: Evidence, names: Mapping[str, str]) -> dict[str, Any]:
    """Return {"described": sentences} for a study that only describes; `names` are what the arms are called.

    Nothing for another study, and for one without an event in its runs and without a long run.
    """
    runs, intervals = evidence.runs, evidence.intervals
    if intervals is None or not is_all(evidence.study, evidence.analysis):
        return {}
    arms = dict(zip(runs.run_id, runs.arm, strict=True))
    cost = dips.of_runs(runs, intervals, dips.events({"arms": evidence.facts}))
    told = _events([(names[arms[one.run_id]], one) for one in cost]) or [
        _steadiness(names[arms[one.run_id]], one) for one in stability.of_runs(runs, intervals)
    ]
    return {"described": told} if told else {}


def _events(found: Sequence[tuple[str, dips.Dip]]) -> list[str]:
    """Say for each arm with an event how long its runs were all but silent, and when they were as before."""
    told = []
    for arm in dict.fromkeys(name for name, one in found if one.has_event):
        own = [one for name, one in found if name == arm]
        back = [one.recovered_s for one in own if one.recovered_s is not None]
        again = f"as fast as before after {_seconds(back)}" if back else "not as fast as before in any run"
        if back and len(back) < len(own):
            again += f" in {len(back)} of them"
        silent = _seconds([one.silent_s for one in own])
        text = (
            f"{arm} answered less than a tenth as fast as before for {silent} after its event and was "
            f"{again} ({count(len(own), 'run')})."
        )
        told.append(sentence_case(text, arm))
    for arm in dict.fromkeys(name for name, one in found if not one.has_event):
        still = [one.silent_s for name, one in found if name == arm]
        did = f"fell so low for {_seconds(still)}" if any(still) else "never fell so low"
        told.append(sentence_case(f"{arm} {did} ({count(len(still), 'run')}).", arm))
    return told


def _steadiness(arm: str, one: stability.Stability) -> str:
    """Say at which levels a long run stayed, and how often it stalled."""
    levels = [f"{100 * mode.share:.0f} % of its seconds at {mode.qps:,.0f}" for mode in one.modes]
    where = f"at {len(levels)} levels, {listing(levels)}" if len(levels) > 1 else "at one level"
    text = (
        f"{arm} stayed {where if levels else 'at levels that too few seconds tell apart'} (median "
        f"{one.median_qps:,.0f} queries per second, slowest second {one.lowest_qps:,.0f}, "
        f"{count(len(one.stalls), 'stall')} in {one.seconds:,} s)."
    )
    return sentence_case(text, arm)


def _seconds(values: Sequence[int]) -> str:
    low, high = min(values), max(values)
    return f"{low} s" if low == high else f"{low} to {high} s"
