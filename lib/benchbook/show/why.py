"""Why an effect is what it is, as `causes` of findings.json has it: in a few words, and in full for a page.

Nothing where no cause is known: what can't be explained is not guessed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from benchbook.compare import words
from benchbook.show import numbers
from benchbook.show.markup import Html
from benchbook.show.shape import shaped

Cause = Mapping[str, Any]


def known(findings: Mapping[str, Any]) -> list[Cause]:
    """Return the causes that have a sentence, in the study's order; none where the books break physics."""
    found = findings.get("causes") or {}
    if any(law["passed"] is False for law in found.get("physics", ())):
        return []
    return [one for one in found.get("contrasts", ()) if one["sentence"]]


def brief(cause: Cause) -> str:
    """Say a cause in about six words: which part is full and what a query costs it, or what time is added."""
    if cause["quantity"] == "latency" and cause["added_latency_us"]:
        return f"{_added(cause['added_latency_us']['value'])} a query"
    for part in dict.fromkeys(part for parts in cause["full"].values() for part in parts):
        change = cause["cost"][part]["value"] if part in cause["cost"] else 0.0
        # A cost that moves with the queries is not what decided them.
        if change * cause["qps"]["value"] < 0:
            less = "less" if change < 0 else "more"
            return f"{part} full; a query costs {numbers.percent(abs(change), 0, False)} {less}"
    return ""


def _added(us: float) -> str:
    return f"{numbers.significant(abs(us), 2)} µs {'more' if us > 0 else 'less'} to wait"


def shown(findings: Mapping[str, Any]) -> list[Html]:
    """Write the causes of a study for its page; nothing where none is known."""
    told: dict[str, list[str]] = {}
    for one in known(findings):
        told.setdefault(one["sentence"], []).append(_where(one, findings))
    if not told:
        return []
    lines = {numbers.listing(places): sentence for sentence, places in told.items()}
    return [shaped("why.html.j2", lines=lines)]


def _where(cause: Cause, findings: Mapping[str, Any]) -> str:
    return ", ".join(_named(cause, findings))


def _named(cause: Cause, findings: Mapping[str, Any]) -> Iterator[str]:
    for kind, name in (("arms", cause["treatment"]), ("workloads", cause["workload"])):
        yield str(words.labels(findings, kind).get(name, name))
    yield numbers.count(cause["threads"], "thread")
