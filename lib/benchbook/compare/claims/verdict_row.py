"""Row of the verdict on a claim by a document's own tables: cells, the numbers of all of them, caveats."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import geometric_mean
from typing import Any, NamedTuple

from benchbook.compare.claims.bands import claim_limits, is_share, judged_by
from benchbook.compare.claims.estimands import CellPair, ClaimTest
from benchbook.compare.claims.judge import EstimandOutcome, as_answer_part, judge_test
from benchbook.compare.text import labels
from benchbook.compare.text.sentences import render_paragraphs
from benchbook.compare.text.worked_arithmetic import pair_record, round_digits, write_percent
from benchbook.core.published.claim import ClaimSpec, parse_amount
from benchbook.core.published.table_cells import Pair
from benchbook.core.util.errors import require_value
from benchbook.core.util.number_format import format_plain
from benchbook.core.util.numeric_equality import round_document

Record = dict[str, Any]
Records = Mapping[int, Record]
_NUMBERS = ("mean", "low", "found_at", "n_other_sign", "other_base")


class _Case(NamedTuple):
    """A claim with its test, its outcomes, and the records of the test's items by their `id`."""

    claim: ClaimSpec
    test: ClaimTest
    outcomes: Sequence[EstimandOutcome]
    records: Records

    @property
    def numbers(self) -> list[float]:
        """Effects of the test's pairs, values of its cells."""
        return [
            float(item.cell.value if item.baseline is None else as_pair(item).effect)
            for item in self.test.items
        ]


def build_verdict(
    claim: ClaimSpec, claim_test: ClaimTest, outcomes: Sequence[EstimandOutcome], records: Records
) -> Record:
    """Verdict as a row: cells, their numbers together, `recomputed` in few words, `reason` for care."""
    row, words = _ROWS[claim.kind](_Case(claim, claim_test, outcomes, records))
    recomputed, *caveats = render_paragraphs(
        "claim.j2",
        claim=claim,
        row={**dict.fromkeys(_NUMBERS), **row},
        rule=judged_by(claim),
        share=is_share(claim),
        all_held=all(outcome.outcome == "confirmed" for outcome in outcomes),
        is_open=judge_test(claim_test, outcomes, None) == "inconclusive",
        of=len(outcomes),
        flat=[outcome.part.where for outcome in outcomes if outcome.is_flat],
        unseen=claim_test.unseen,
        alone=claim_test.alone,
        along=labels.label_key(claim.along or ""),
        **words,
    )
    measured = (each for each in outcomes if each.amount.is_known and each.part.scale != "power")
    repeats = [as_answer_part(outcome, outcome.amount.n) for outcome in measured]
    return {
        **{key: value for key, value in row.items() if value != []},
        "n_cells": len(row["cells"]),
        "recomputed": recomputed,
        "reason": " ".join(caveats),
        **({"repeats": [round_document(part.plain) for part in repeats]} if repeats else {}),
    }


def as_pair(cell_pair: CellPair) -> Pair:
    """Two cells as the pair that they are."""
    return Pair(cell_pair.place, require_value(cell_pair.baseline), cell_pair.cell)


def _mark_cells(case: _Case) -> list[Record]:
    """Cells with `is_inside` where one cell alone supports a claim or contradicts it."""
    held = {
        id(each.part.items[0]): {"is_inside": each.outcome == "confirmed"}
        for each in case.outcomes
        if len(each.part.items) == 1
    }
    return [case.records[id(item)] | held.get(id(item), {}) for item in case.test.items]


def _value_row(case: _Case, less: int = 0) -> tuple[Record, Record]:
    """Numbers of values: cells in the band, mean and range; of effects as ratios, which are 1 more."""
    cells, numbers, rule = _mark_cells(case), case.numbers, judged_by(case.claim)
    # With a value of zero or below there is none.
    mean = geometric_mean(number + less for number in numbers) - less if min(numbers) + less > 0 else None
    if rule == "mean" and mean is None:
        return {"cells": cells, "verdict": "not derivable"}, {}
    return {
        "cells": cells,
        "n_inside": sum(cell["is_inside"] for cell in cells),
        "mean": round_digits(mean),
        **_ends(numbers),
        "found_at": [],
        "outside": [cell["where"] for cell in cells if rule == "every_cell" and not cell["is_inside"]],
    }, {}


def _effect_row(case: _Case) -> tuple[Record, Record]:
    """Numbers of an effect: those of values, and of a failed claim where else its number comes from."""
    row, words = _value_row(case, less=1)
    if "mean" not in row:
        return row, words
    row["other_base"] = None
    if judge_test(case.test, case.outcomes, None) != "confirmed":
        row["found_at"] = _find_published(case.claim, row["cells"], case.numbers)
        other = None if row["found_at"] else _divide_by_new(case)
        row["other_base"] = other and list(map(round_digits, other))
    if judged_by(case.claim) == "mean" and (signs := sum(each * row["mean"] < 0 for each in case.numbers)):
        row["n_other_sign"] = signs
    return row, words


def _divide_by_new(case: _Case) -> list[float] | None:
    """Growths over the new value if these lie in the band (their mean within a tenth of its middle)."""
    band, rule = require_value(claim_limits(case.claim)), judged_by(case.claim)
    pairs = [as_pair(item) for item in case.test.items]
    inverse = [1 - pair.baseline.value / pair.treatment.value for pair in pairs if pair.treatment.value]
    if band.low is None or band.high is None:
        return None
    if len(inverse) != len(pairs) or max(inverse) >= 1:
        return None
    if rule != "mean" or len(inverse) == 1:
        return inverse if all(band.low <= value <= band.high for value in inverse) else None
    mean, middle = 1 - geometric_mean(1 - value for value in inverse), (band.low + band.high) / 2
    return [mean] if abs(mean - middle) <= abs(middle) / 10 else None


def _find_published(claim: ClaimSpec, cells: Sequence[Record], numbers: Sequence[float]) -> list[str]:
    """Places of cells with the published number, rounded as it was published."""
    point = require_value(claim.band).point
    if not isinstance(point, str) or len(cells) < 2:
        return []
    digits = len(point.partition(".")[2].rstrip(" %"))
    wanted = round(100 * parse_amount(point), digits)
    return [
        f"{write_percent(effect)} ({cell['where']})"
        for cell, effect in zip(cells, numbers, strict=True)
        if round(100 * effect, digits) == wanted
    ]


def _trend_row(case: _Case) -> tuple[Record, Record]:
    cells = _mark_cells(case)
    inside = sum(outcome.outcome == "confirmed" for outcome in case.outcomes)
    return {"cells": cells, "n_inside": inside, **_ends(case.numbers)}, {}


def _proportion_row(case: _Case) -> tuple[Record, Record]:
    key, each, cells = require_value(case.claim.along), [], []
    for outcome in case.outcomes:
        shares = [item.cell.value / item.place[key] for item in outcome.part.items]
        for item, share in zip(outcome.part.items, shares, strict=True):
            record = case.records[id(item)]
            work = (
                f"{record['arithmetic']} / {float(item.place[key]):g} = {format_plain(share)} for each, "
                f"{write_percent(share / shares[0] - 1)} against the first"
            )
            cells.append({**record, "value": round_digits(share), "arithmetic": work})
        each += shares
    powers = [round_digits(outcome.amount.log_mean) for outcome in case.outcomes]
    mean = powers[0] if len(powers) == 1 else None
    return {"cells": cells, "mean": mean, **_ends(each)}, {"powers": powers}


def _peak_row(case: _Case) -> tuple[Record, Record]:
    key = require_value(case.claim.along)
    top = max(case.test.items, key=lambda item: item.cell.value)
    best = [outcome.part.items[1] for outcome in case.outcomes]
    cells = [{**case.records[id(item)], "is_inside": item is top} for item in case.test.items]
    other = [item.place[key] for item in best[:1] if top not in best]
    return {"cells": cells}, {"level": top.place[key], "other": other}


def _same_effect_row(case: _Case) -> tuple[Record, Record]:
    key, effects = require_value(case.claim.along), []
    cells: list[Record] = []
    for outcome in case.outcomes:
        (mine, first), (its, other) = ([term[0] for term in terms] for terms in outcome.part.of)
        place: Mapping[str, Any] = outcome.part.items[0].place
        pairs: list[Any] = [Pair(place, first, mine), Pair(place, other, its)]
        this, that = map(pair_record, pairs)
        effects.append((pairs[0].effect, pairs[1].effect))
        gap = write_percent((1 + pairs[0].effect) / (1 + pairs[1].effect) - 1)
        cells.append(
            {
                **this,
                "is_inside": outcome.outcome == "confirmed",
                "other_baseline": that["baseline"],
                "other_treatment": that["treatment"],
                "where": f"{labels.label_key(key)} {place[key]}",
                "arithmetic": f"{this['arithmetic']}, beside {that['arithmetic']}; {gap} apart",
            }
        )
    inside, ends = sum(cell["is_inside"] for cell in cells), _ends(mine for mine, _ in effects)
    return {"cells": cells, "n_inside": inside, **ends}, {"effects": effects}


def _unit_row(case: _Case) -> tuple[Record, Record]:
    point = require_value(case.claim.band).point
    claimed = float(point) if isinstance(point, int | float) else None
    times = "{}: {} times the published number" if claimed else "{}"
    cells, fits = [], []
    for outcome in case.outcomes:
        where, is_inside = outcome.part.where, outcome.outcome == "confirmed"
        fits += [where.removeprefix("as ")] if is_inside else []
        for item in outcome.part.items:
            record, multiple = case.records[id(item)], format_plain(item.cell.value / (claimed or 1))
            work = times.format(record["arithmetic"], multiple)
            cells.append({**record, "where": where, "is_inside": is_inside, "arithmetic": work})
    return {"cells": cells, "n_inside": len(fits)}, {"fits": fits}


def _ends(numbers: Iterable[float]) -> Record:
    values = list(numbers)
    return {"low": round_digits(min(values)), "high": round_digits(max(values))}


_ROWS: dict[str, Callable[[_Case], tuple[Record, Record]]] = {
    "effect": _effect_row,
    "value": _value_row,
    "same_effect": _same_effect_row,
    "trend": _trend_row,
    "proportional": _proportion_row,
    "peak": _peak_row,
    "unit": _unit_row,
}
