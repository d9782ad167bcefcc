"""How the verdict on a claim of each kind is written down for the page of its document."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchbook.compare.arithmetic import amount, geometric_mean, pair_record, percent, plain, tidy
from benchbook.compare.claims.bands import is_share, judged_by, limits
from benchbook.compare.claims.judge import Outcome
from benchbook.compare.claims.kinds import Asked, Item
from benchbook.compare.verdicts import Band as Limits
from benchbook.core.cells import Cell, Pair
from benchbook.core.claim import Claim
from benchbook.core.errors import given

Record = dict[str, Any]
Records = Mapping[int, Record]
RULES = {
    "mean": "The geometric mean",
    "every_cell": "Every cell",
    "most_cells": "More than half of the cells",
}


def of(claim: Claim, asked: Asked, found: Sequence[Outcome], records: Records) -> Record:
    """Return what is written of a claim: reason, recomputed, cells and their numbers.

    `records` are those of `asked.items`, by their `id`.
    """
    made = _KINDS[claim.kind](claim, asked, found, records)
    return {"n_cells": len(made["cells"]), **made}


def as_pair(one: Item) -> Pair:
    """Return two cells as the pair that they are."""
    return Pair(one.place, given(one.baseline), one.cell)


def divided(record: Record, cell: Cell) -> Record:
    """Add the quotient to the arithmetic of a ratio of two metrics."""
    ratio = f" = {plain(cell.value)}" if "/" in cell.working else ""
    return {**record, "arithmetic": f"{record['arithmetic']}{ratio}"}


def _several(claim: Claim, asked: Asked, found: Sequence[Outcome], records: Records) -> Record:
    """Write an effect or a value: what must lie in the band, how many cells do, mean and range."""
    each = {id(one.part.items[0]): one.outcome == "confirmed" for one in found if len(one.part.items) == 1}
    is_effect = claim.kind == "effect"
    own = [
        {
            **(records[id(one)] if is_effect else divided(records[id(one)], one.cell)),
            "is_inside": each[id(one)],
        }
        for one in asked.items
    ]
    numbers = [as_pair(one).effect if is_effect else one.cell.value for one in asked.items]
    mean = geometric_mean([1 + number for number in numbers] if is_effect else numbers)
    mean = mean - 1 if is_effect and mean is not None else mean
    made: Record = {"cells": own}
    rule, band = given(judged_by(claim)), given(limits(claim))
    if rule == "mean" and mean is None:
        reason = "A value is zero or negative, so there is no geometric mean."
        return {**made, "verdict": "not derivable", "recomputed": "not derivable", "reason": reason}
    inside = sum(record["is_inside"] for record in own)
    share = is_share(claim)
    made |= {"n_inside": inside, "mean": tidy(mean), "low": tidy(min(numbers)), "high": tidy(max(numbers))}
    spread = f"{amount(min(numbers), share)} to {amount(max(numbers), share)}"
    told = amount(mean, share) if mean is not None else "none"
    if len(own) == 1:
        text = f"The one cell must lie {_ends(band, share)}; it {'does' if inside else 'does not'}."
        made["recomputed"] = amount(numbers[0], share)
    else:
        text = (
            f"{RULES[rule]} must lie {_ends(band, share)}. In there: {inside} of {len(own)} cells. "
            f"Geometric mean {told}, range {spread}."
        )
        made["recomputed"] = f"{told if mean is not None else 'no mean'} ({spread})"
        failed = {
            "mean": False,
            "every_cell": inside < len(own),
            "most_cells": 2 * inside <= len(own),
        }
        if failed[rule] and _holds(mean, band):
            text += " Only the geometric mean lies in the band."
    return {**made, "reason": text, **(_growth(asked, band, made, text) if is_effect else {})}


def _growth(asked: Asked, band: Limits, made: Record, text: str) -> Record:
    """Say whether a growth that fails was divided by the new value, and which cells have no counterpart."""
    pairs = [as_pair(one) for one in asked.items]
    inverse = [1 - one.baseline.value / one.treatment.value for one in pairs if one.treatment.value]
    is_closed = band.low is not None and band.high is not None and len(inverse) == len(pairs)
    other = None
    if made["n_inside"] < len(pairs) and is_closed and all(_holds(value, band) for value in inverse):
        other = [tidy(value) for value in inverse]
        text += (
            " Divided by the treatment's value instead of the baseline's, the same cells give "
            f"{', '.join(map(percent, inverse))}: the published figure is a growth divided by the new value."
        )
    if asked.alone:
        cells = "cell" if asked.alone == 1 else "cells"
        text += f" Left out: {asked.alone} {cells} of these arms without a counterpart."
    return {"reason": text, "other_base": other}


def _trend(claim: Claim, asked: Asked, found: Sequence[Outcome], records: Records) -> Record:
    is_effect = claim.baseline is not None

    def number(one: Item) -> float:
        return as_pair(one).effect if is_effect else float(one.cell.value)

    write = percent if is_effect else plain
    inside = {id(one.part.items[0]): one.outcome == "confirmed" for one in found}
    own = [
        {**records[id(one)], **({"is_inside": inside[id(one)]} if id(one) in inside else {})}
        for one in asked.items
    ]
    before = {id(after): one for one, after in zip(asked.items, asked.items[1:], strict=False)}
    steps = [(one, one.part.items[0]) for one in found]
    wrong = [
        f"{one.part.where}: {write(number(before[id(after)]))} to {write(number(after))}"
        for one, after in steps
        if one.outcome != "confirmed"
    ]
    held = f"{len(found) - len(wrong)} of {len(found)} steps"
    text = f"It {claim.direction} at {held} along {given(claim.along).replace('_', ' ')}."
    numbers = [number(one) for one in asked.items]
    return {
        "reason": f"{text} Not at: {'; '.join(wrong)}." if wrong else text,
        "cells": own,
        "n_inside": len(found) - len(wrong),
        "low": tidy(min(numbers)),
        "high": tidy(max(numbers)),
        "recomputed": f"{claim.direction} at {held}",
    }


def _proportional(claim: Claim, asked: Asked, found: Sequence[Outcome], records: Records) -> Record:
    key, powers = given(claim.along), [given(one.amount.log_mean) for one in found]
    along, each, texts, own = key.replace("_", " "), [], [], []
    for one, power in zip(found, powers, strict=True):
        where = f"{one.part.where}: " if len(found) > 1 and one.part.where else ""
        shares = [item.cell.value / item.place[key] for item in one.part.items]
        for item, share in zip(one.part.items, shares, strict=True):
            record = records[id(item)]
            work = (
                f"{record['arithmetic']} / {float(item.place[key]):g} = {plain(share)} for each, "
                f"{percent(share / shares[0] - 1)} against the first"
            )
            own.append({**record, "value": tidy(share), "arithmetic": work})
        texts.append(
            f"{where}Least squares on logarithms give {claim.metric} proportional to {along} to the power "
            f"{power:.3f}; the power must lie {_range(given(limits(claim)))}. Per unit the last cell stands "
            f"at {percent(shares[-1] / shares[0] - 1)} against the first."
        )
        each += shares
    return {
        "reason": " ".join(texts),
        "cells": own,
        "mean": tidy(powers[0]) if len(powers) == 1 else None,
        "low": tidy(min(each)),
        "high": tidy(max(each)),
        "recomputed": "; ".join(f"power {power:.2f}" for power in powers),
    }


def _peak(claim: Claim, asked: Asked, found: Sequence[Outcome], records: Records) -> Record:
    along = given(claim.along).replace("_", " ")
    values = [one.cell.value for one in asked.items]
    top = asked.items[values.index(max(values))]
    level = top.place[given(claim.along)]
    own = [{**records[id(one)], "is_inside": one is top} for one in asked.items]
    text = f"Highest at {along} {level}, with {plain(max(values))}."
    best = [one.part.items[1] for one in found]
    if asked.unseen and all(one.outcome == "confirmed" for one in found):
        text = f"{asked.unseen[0].upper()}{asked.unseen[1:]}."
    elif best and top not in best and all(one.outcome == "confirmed" for one in found):
        inside = best[0].place[given(claim.along)]
        text += f" That is less than 1 % more than at {along} {inside}, which is no other peak."
    return {"cells": own, "recomputed": f"highest at {along} {level}", "reason": text}


def _same_effect(claim: Claim, asked: Asked, found: Sequence[Outcome], records: Records) -> Record:
    key, own, effects = given(claim.along), [], []
    for one in found:
        (mine, first), (its, other) = ([term[0] for term in terms] for terms in one.part.of)
        place: Mapping[str, Any] = one.part.items[0].place
        pairs: list[Any] = [Pair(place, first, mine), Pair(place, other, its)]
        this, that = map(pair_record, pairs)
        effects.append((pairs[0].effect, pairs[1].effect))
        own.append(
            {
                **this,
                "is_inside": one.outcome == "confirmed",
                "other_baseline": that["baseline"],
                "other_treatment": that["treatment"],
                "where": f"{key.replace('_', ' ')} {place[key]}",
                "arithmetic": f"{this['arithmetic']}, beside {that['arithmetic']}",
            }
        )
    inside = sum(one.outcome == "confirmed" for one in found)
    return {
        "cells": own,
        "n_inside": inside,
        "low": tidy(min(mine for mine, _ in effects)),
        "high": tidy(max(mine for mine, _ in effects)),
        "reason": "Each effect must lie in the band around the other's effect (2 percentage points or a "
        f"fifth of it); {inside} of {len(own)} do.",
        "recomputed": "; ".join(f"{percent(mine, 1)} beside {percent(its, 1)}" for mine, its in effects),
    }


def _unit(claim: Claim, asked: Asked, found: Sequence[Outcome], records: Records) -> Record:
    point = given(claim.band).point
    claimed = float(point) if isinstance(point, int | float) else None
    own = [
        {
            **records[id(item)],
            "where": one.part.where,
            "is_inside": one.outcome == "confirmed",
            "arithmetic": records[id(item)]["arithmetic"]
            + (f": {plain(item.cell.value / claimed)} times the published number" if claimed else ""),
        }
        for one in found
        for item in one.part.items
    ]
    fits = [one.part.where.removeprefix("as ") for one in found if one.outcome == "confirmed"]
    as_written = "as written" if claim.metric in fits else f"not {claim.metric}"
    told = f"It fits {' and '.join(fits)}." if fits else "It fits none of the metrics printed."
    return {
        "reason": f"Published as {claim.metric}. {told}",
        "cells": own,
        "n_inside": len(fits),
        "recomputed": f"fits {' and '.join(fits) or 'none'}, {as_written}",
    }


def _holds(value: float | None, band: Limits) -> bool:
    return (
        value is not None
        and (band.low is None or value >= band.low)
        and (band.high is None or value <= band.high)
    )


def _ends(band: Limits, is_share: bool) -> str:
    if band.high is None:
        return f"above {amount(given(band.low), is_share)}"
    if band.low is None:
        return f"below {amount(band.high, is_share)}"
    return f"between {amount(band.low, is_share)} and {amount(band.high, is_share)}"


def _range(band: Limits) -> str:
    if band.low is None or band.high is None:
        return f"above {band.low:g}" if band.high is None else f"below {band.high:g}"
    return f"in {band.low:g} to {band.high:g}"


_KINDS: dict[str, Callable[[Claim, Asked, Sequence[Outcome], Records], Record]] = {
    "effect": _several,
    "value": _several,
    "same_effect": _same_effect,
    "trend": _trend,
    "proportional": _proportional,
    "peak": _peak,
    "unit": _unit,
}
