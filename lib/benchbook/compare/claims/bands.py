"""Claimed figure, as a band to judge by and as a text to print."""

import math
from typing import Any, Literal

from benchbook.compare.stats.equivalence import MARGIN, Bounds, point_band, range_band
from benchbook.compare.stats.equivalence import EquivalenceBand as Limits
from benchbook.compare.text import labels
from benchbook.compare.text.worked_arithmetic import write_percent
from benchbook.core.published.claim import ClaimSpec, parse_amount
from benchbook.core.util.errors import require_value
from benchbook.core.util.number_format import format_plain

VALUE_MARGIN = 0.02
Scale = Literal["share", "value", "power"]


def scale_bounds(band: Limits, scale: Scale) -> Bounds:
    """Bounds of a claim's numbers: logarithms of ratios and of values, which are above zero; plain powers."""
    if scale == "share":
        return Bounds(band.log_low, band.log_high, band.is_strict)
    low, high = -math.inf if band.low is None else band.low, math.inf if band.high is None else band.high
    if scale == "value":
        low, high = (math.log(end) if end > 0 else -math.inf for end in (low, high))
    return Bounds(low, high, band.is_strict)


def claim_limits(claim: ClaimSpec) -> Limits | None:
    """Band of a claim: the project's rule for effects, 2 % of the value around values."""
    band = claim.band
    if band is None:
        return point_band(1.0) if claim.kind == "proportional" else None
    # "Less than 5 % lower" is above -5 %.
    if band.above is not None:
        return Limits(parse_amount(band.above), None, is_strict=True)
    if band.below is not None:
        return Limits(None, parse_amount(band.below), is_strict=True)
    ends: tuple[Any, Any] = band.range or (band.point, band.point)
    low, high = map(parse_amount, ends)
    if band.tolerance is not None:
        margin = parse_amount(band.tolerance)
        # What has a direction never holds in the other one, however wide its tolerance.
        least, most = low - margin, high + margin
        return Limits(max(least, 0.0) if low > 0 else least, min(most, 0.0) if high < 0 else most)
    if claim.kind in ("effect", "proportional"):
        if band.range and claim.kind == "proportional":
            return Limits(low - MARGIN, high + MARGIN)
        return range_band(low, high) if band.range else point_band(low)
    # A level is what it is: one that was measured beyond the last of a range is not in it.
    if claim.kind == "peak":
        return Limits(low, high)
    return Limits(low - VALUE_MARGIN * abs(low), high + VALUE_MARGIN * abs(high))


def is_share(claim: ClaimSpec) -> bool:
    """True if the numbers of a claim are shares; these have a direction."""
    return claim.kind in ("effect", "same_effect") or bool(claim.band and claim.band.is_share)


def judged_by(claim: ClaimSpec) -> str | None:
    """Rule of a claim: a point is judged by the mean of cells, a range or bound by each cell."""
    if claim.kind not in ("effect", "value"):
        return None
    return claim.judged_by or ("mean" if require_value(claim.band).point is not None else "every_cell")


def published_text(claim: ClaimSpec) -> str:
    """Published figure: the source's own text, or a description of the kind of claim."""
    band = claim.band
    if claim.published is not None:
        return claim.published
    if band is None:
        along = labels.label_key(claim.along or "")
        return {
            "trend": f"{claim.direction} with {along}",
            "same_effect": f"the same effect of {along}",
            "proportional": f"proportional to {along}",
        }.get(claim.kind, "")
    if band.range is not None:
        return " to ".join(_write_amount(end, claim.kind) for end in band.range)
    bounds = {"about": band.point, "above": band.above, "below": band.below}
    ((word, amount),) = ((word, amount) for word, amount in bounds.items() if amount is not None)
    return f"{word} {_write_amount(amount, claim.kind)}"


def _write_amount(amount: str | int | float, kind: str) -> str:
    value = parse_amount(amount)
    if not isinstance(amount, str):
        return format_plain(value)
    digits = len(amount.partition(".")[2].rstrip(" %"))
    return write_percent(value, digits) if kind == "effect" else f"{100 * value:g} %"
