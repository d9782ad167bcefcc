"""What stands behind a claim on the first page: when an illustration goes the other way than published."""

from __future__ import annotations

import pytest

from benchbook.show.standing import is_opposite


def finding(low: float, high: float, is_headline: bool = True) -> dict[str, object]:
    return {"effect": (low + high) / 2, "low": low, "high": high, "headline": is_headline}


@pytest.mark.parametrize(
    ("band", "low", "high", "told"),
    [
        ([0.3, None], -0.30, -0.25, True),
        ([0.3, None], -0.05, 0.02, False),
        ([-0.3, -0.06], 0.01, 0.03, True),
        ([-0.3, -0.06], -0.9, -0.8, False),
        # "Less than 5 % below" and "almost none" allow both directions.
        ([-0.05, None], 0.02, 0.09, False),
        ([-0.02, 0.02], 0.05, 0.09, False),
        (None, 0.05, 0.09, False),
    ],
)
def test_only_what_lies_wholly_on_the_other_side_of_zero_is_opposite(
    band: list[float | None] | None, low: float, high: float, told: bool
):
    assert is_opposite(finding(low, high), {"is_share": True, "band": band}) is told


def test_a_number_that_is_no_share_or_is_withheld_has_no_direction():
    assert not is_opposite(finding(-0.3, -0.2), {"is_share": False, "band": [5.0, 12.0]})
    assert not is_opposite(finding(-0.3, -0.2, is_headline=False), {"is_share": True, "band": [0.3, None]})
