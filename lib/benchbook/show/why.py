"""Why an effect is what it is, in a few words for a table; nothing where no cause is known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchbook.core.causes import Cause
from benchbook.show import causes, numbers


def known(findings: Mapping[str, Any]) -> list[Cause]:
    """Return the causes that have a sentence, in the order of the study; none where books don't add up."""
    found = causes.of(findings)
    if found is None or any(law.passed is False for law in found.physics):
        return []
    return [one for one in found.contrasts if one.sentence]


def brief(cause: Cause) -> str:
    """Say a cause in about six words: which part is full and what a query costs it, or what time is added."""
    if cause.quantity == "latency" and cause.added_latency_us:
        us = cause.added_latency_us.value
        return f"{numbers.significant(abs(us), 2)} µs {'more' if us > 0 else 'less'} to wait a query"
    for part in dict.fromkeys(part for parts in cause.full.values() for part in parts):
        if part in cause.cost:
            change = cause.cost[part].value
            amount = numbers.percent(abs(change), 0, False)
            return f"{part} full; a query costs {amount} {'less' if change < 0 else 'more'}"
    return ""
