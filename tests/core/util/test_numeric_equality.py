"""What is the same value and what is another one: too strict fails elsewhere, too lax hides changes."""

import math

import numpy as np
import pandas as pd
import pytest

from benchbook.core.util import numeric_equality
from tests.goldens import assert_golden

ULP = math.ulp(1.0)


@pytest.mark.parametrize(
    ("recorded", "here"),
    [
        (0.12345678, 0.12345679),  # one unit of the eighth digit
        (-17.203412, -17.203411),
        (9999999.9, 10000000.0),  # across a power of ten the unit is that of the larger
        (0.0, 3e-17),  # what rounding leaves of nothing
        (6.0472723e-18, 0.0),
        (5, 5.0),
        (None, None),
        ("n = 5", "n = 5"),
        (True, True),
    ],
)
def test_the_same_value(recorded, here):
    assert list(numeric_equality.diff_documents({"a": recorded}, {"a": here})) == []


@pytest.mark.parametrize(
    ("recorded", "here"),
    [
        (0.12345678, 0.12345680),
        (0.98, 0.95),
        (0.0, 1e-11),
        (0.1, -0.1),
        (5, 6),
        (1, True),
        (0.0, None),
        (0.5, "0.5"),
        ("−17.2 %", "−17.3 %"),
        ("higher", "not shown"),
        ([1.0], [1.0, 1.0]),
        ({"b": 1}, {}),
    ],
)
def test_another_value(recorded, here):
    assert len(list(numeric_equality.diff_documents({"a": recorded}, {"a": here}))) == 1


def test_a_difference_is_named_with_its_place_and_both_values():
    recorded = {"findings": [{"n": 5, "label": "higher"}], "title": "x" * 90}
    here = {"findings": [{"n": 5, "label": "not shown"}], "title": "y" * 90}
    assert_golden("differences.txt", "\n".join([*numeric_equality.diff_documents(recorded, here), ""]))


def test_per_cent_with_four_decimals_may_differ_by_one_of_the_fourth_and_by_no_more():
    decimals = numeric_equality.DECIMALS["metrics.json"]
    # 17.20345 is 17.2034 or 17.2035: eight digits would tell these apart.
    assert not list(numeric_equality.diff_documents({"low_pct": -17.2034}, {"low_pct": -17.2035}, decimals))
    assert list(numeric_equality.diff_documents({"low_pct": -17.2034}, {"low_pct": -17.2036}, decimals))
    assert list(numeric_equality.diff_documents({"low_pct": -17.2034}, {"low_pct": -17.2035}))


@pytest.mark.parametrize("value", [0.25, 1 / 3, 2.44140625, 1e-9 / 7, 123456785.0])
def test_one_bit_never_makes_another_value(value):
    """2.44140625 and 123456785 lie on the edge between two numbers of eight digits."""
    near = [value, math.nextafter(value, 0), math.nextafter(value, math.inf)]
    kept = [numeric_equality.round_document({"a": one}) for one in near]
    assert not [text for one in kept for text in numeric_equality.diff_documents(kept[0], one)]


def test_documents_keep_eight_digits_and_what_is_no_number_is_null():
    made = numeric_equality.round_document({1: (1 / 3, np.float64(2e9 / 3), math.inf, np.int64(7)), "t": "x"})
    assert made == {"1": [0.33333333, 666666670.0, None, 7], "t": "x"}


def test_sums_are_exact_whatever_the_order_and_the_version_of_python():
    # Exactly 2; from the left 1e16 + 1 is 1e16, and the sum 0. `sum` gives 2 from Python 3.12 on, 0 before.
    assert numeric_equality.exact_sum([1e16, 1.0, 1.0, -1e16]) == 2.0
    assert numeric_equality.exact_mean(np.array([0.1] * 10)) == 0.1
    assert math.isnan(numeric_equality.exact_sum([math.inf, -math.inf]))


def table() -> pd.DataFrame:
    turns = pd.array([1, None, 3], dtype="Int64")
    counts = {"run_id": ["a", "b", "b"], "queries": [3, 4, 5], "turns": turns}
    return pd.DataFrame(counts | {"qps": [0.5, math.nan, 0.0], "is_discarded": [True, False, False]})


def test_a_digest_is_of_values_not_of_how_they_are_stored():
    made = table()
    same = pd.concat([made.iloc[:1], made.iloc[1:]], ignore_index=True)
    same["run_id"] = same["run_id"].astype("category").astype(object)
    same["qps"] = np.array([0.5, math.nan, -0.0])
    assert numeric_equality.tables_digest({"runs": made}) == numeric_equality.tables_digest({"runs": same})


def test_one_other_value_gives_another_digest():
    others = [
        ("run_id", 2, "a"), ("queries", 0, 4), ("turns", 1, 0),
        ("qps", 0, 0.5 + ULP / 2), ("qps", 1, 0.0), ("is_discarded", 2, True),
    ]  # fmt: skip
    digests = {numeric_equality.tables_digest({name: table()}) for name in ("runs", "parts")}
    for column, row, value in others:
        other = table()
        other.loc[row, column] = value
        digests.add(numeric_equality.tables_digest({"runs": other}))
    assert len(digests) == 2 + len(others)
