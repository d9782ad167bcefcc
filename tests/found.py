"""Whole findings and tables with made-up values, for tests that are about a few of them."""

import math
from typing import Any, TypeVar

import pandas as pd

from benchbook.compare.text import labels
from benchbook.core.artifacts.artifact import DocumentPart
from benchbook.core.artifacts.findings import Answer, Contrast, FindingData, Findings, LevelContrast
from benchbook.read.schemas import SCHEMAS

P = TypeVar("P", bound=DocumentPart)
_NAMES = {"workload": labels.label_workload, "baseline": labels.label_arm, "treatment": labels.label_arm}


def changed(whole: P, **given: Any) -> P:
    """Return a part of findings with other values, which have to be of its types.

    What a finding is about has the usual name, unless another is given.
    """
    made = {**whole.plain, **_plain(given)}
    if isinstance(whole, Contrast) and not given.get("names"):
        own = {role: _NAMES[role](made[role]) for role in _NAMES if role in given or "names" in given}
        made["names"] = {**whole.names.plain, **own}
    return type(whole).model_validate(_filled(made))


def runs(rows: Any, **given: Any) -> pd.DataFrame:
    """Return a table of whole runs in closed loops; columns that are not given hold nothing."""
    nothing = {name: "" if kind == "str" else math.nan for name, (kind, _, _) in SCHEMAS["runs"].items()}
    table = pd.DataFrame(rows).assign(**given)
    rest = {name: one for name, one in (nothing | {"order": "runs", "rate": 0}).items() if name not in table}
    return table.assign(**rest)


def level(
    threads: int, effect: float | None, low: float | None, high: float | None, **given: Any
) -> LevelContrast:
    """Return a contrast at one number of threads."""
    made = {"level": 0.98, "n": 5, "label": "not shown", "note": None}
    return LevelContrast(**{**made, "threads": threads, "effect": effect, "low": low, "high": high, **given})


def finding(**given: Any) -> FindingData:
    """Return a finding; unless given, an arm b that is shown to be 10 % lower than a."""
    made = {
        "id": "w.b.qps", "workload": "w", "baseline": "a", "treatment": "b", "metric": "qps", "threads": [4],
        "effect": -0.10, "low": -0.12, "high": -0.08, "level": 0.98, "n": 5, "reason": None, "label": "lower",
        "headline": True, "withheld": None, "levels": [], "warnings": [],
        "blocks_to_useful": None, "by_threads": [], "depends_on_threads": None, "second_opinion": None,
        "claim": None, "band": None, "verdict": None, "direction": None, "more_blocks": None,
        "detectable_effect": None, "runs": [], "pairs": 0,
    }  # fmt: skip
    made |= _plain(given)
    names = {role: name(made[role]) for role, name in _NAMES.items()}
    return FindingData.model_validate(_filled({**made, "names": {**names, **(made.get("names") or {})}}))


def contrast(**given: Any) -> Contrast:
    """Return the contrast of a ladder."""
    whole = finding(**given).plain
    return Contrast.model_validate({key: whole[key] for key in Contrast.model_fields if key in whole})


def doubt(text: str) -> dict[str, Any]:
    """Return a doubt about a whole study."""
    return {"title": text, "text": text, "favours": []}


def answer(*parts: dict[str, Any], **given: Any) -> Answer:
    """Return what a claim came to that is no effect between two arms; of a part only some keys are needed."""
    rest = {"where": "w", "scale": "share", "outcome": "inconclusive", "reason": None, "band": [None, None]}
    each = [{**rest, "value": one["low"], **one} for one in parts]
    made = {
        "claim": "s/c", "kind": "effect", "metric": "qps", "published": "some", "read_as": None,
        "judged": False, "n": 5, "level": 0.98, "verdict": None, "reason": None,
    }  # fmt: skip
    return Answer.model_validate({**made, "parts": each, **given})


def findings(*found: FindingData, **given: Any) -> Findings:
    """Return the findings of a study."""
    made = {
        "study": "made", "title": "Made up", "question": "Is it?", "baseline": "a",
        "made_by": {"benchbook": "0"}, "scope": "this machine, these hours",
        "names": {"arms": {}, "workloads": {}}, "order": "runs", "turns": None,
        "blocks": {"planned": 5, "complete": 5},
        "look": {"n": 5, "level": 0.98, "next": 10, "note": "judged at 5 blocks; the next look is at 10"},
        "machine_minutes": 1.0, "aa": None, "checks": [],
        "voids": {"by_arm": {}, "fisher_p": None, "note": "no run was voided"}, "facts_differ": [],
        "quiet": {"cores": None, "load_1min": None, "others_cores": None, "psi_cpu_pct": None,
                  "steal_pct": None, "line": "Nothing was recorded about it."},
        "partners": [], "verdicts": {"number": 0, "expected_false_at_most": 0.0}, "warnings": [],
        "scaling": [],
    }  # fmt: skip
    return Findings.model_validate({**made, "findings": [one.plain for one in found], **_plain(given)})


def _filled(made: dict[str, Any]) -> dict[str, Any]:
    """Give what is told in short the rest of its keys."""
    at = {"level": 0.98, "n": 5}
    short = {
        "levels": {**at, "label": "not shown", "note": None},
        "by_threads": {**at, "low": None, "high": None, "q": None},
        "checks": {"tables": []},
    }
    return made | {key: [{**rest, **one} for one in made[key]] for key, rest in short.items() if key in made}


def _plain(given: Any) -> Any:
    if isinstance(given, DocumentPart):
        return given.plain
    if isinstance(given, dict):
        return {key: _plain(value) for key, value in given.items()}
    return [_plain(value) for value in given] if isinstance(given, list | tuple) else given
