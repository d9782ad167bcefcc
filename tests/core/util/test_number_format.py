import math

import pytest

from benchbook.core.util import number_format


@pytest.mark.parametrize(
    ("fraction", "text"),
    [
        (0.061, "+6.1\xa0%"),
        (-0.1163, "−11.6\xa0%"),
        (-0.0001, "0.0\xa0%"),  # no minus before what rounds to nothing
        (12.5, "+1,250\xa0%"),
        (math.inf, "+∞\xa0%"),
        (None, "not computed"),
        (math.nan, "not computed"),
    ],
)
def test_percent(fraction, text):
    assert number_format.format_percent(fraction) == text


def test_what_is_missing_is_never_a_number():
    assert number_format.format_percent_range(None, 0.1) == "no interval"
    assert number_format.format_decimal(None) == number_format.format_significant(math.nan) == "not computed"
    assert number_format.format_p_value(None) == "not computed"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (74321.9, "74,300"),
        (12.36, "12.4"),
        (0.38249, "0.382"),
        (0.0999, "0.0999"),
        (0, "0"),
        (999.6, "1,000"),
    ],
)
def test_three_significant_digits(value, text):
    assert number_format.format_significant(value) == text


def test_words():
    assert number_format.format_count(1, "block") == "1\xa0block"
    assert number_format.format_count(1200, "run") == "1,200\xa0runs"
    assert number_format.join_words(["a", "b", "c"]) == "a, b and c"
    assert number_format.format_minutes(11.6) == "12\xa0minutes"
    assert number_format.format_minutes(1.2) == "1\xa0minute"
    assert number_format.format_minutes(150) == "2.5\xa0hours"
    assert number_format.format_p_value(0.0004) == "p < 0.001"
