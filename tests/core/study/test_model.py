"""Words for people, and fingerprints that change with any part of a value."""

import pytest

from benchbook.core.study.model import compute_fingerprint
from benchbook.core.study.params import Analysis
from benchbook.core.util.errors import did_you_mean


def test_a_fingerprint_knows_content_and_not_order():
    assert compute_fingerprint({"a": 1, "b": [1, 2]}) == compute_fingerprint({"b": (1, 2), "a": 1})
    values = [{}, {"b": 1}, *({"a": value} for value in (1, 1.5, "1", None, [1], True, {"b": 1}))]
    assert len({compute_fingerprint(value) for value in values}) == len(values)
    assert all(len(compute_fingerprint(value)) == 10 for value in values)


def test_a_fingerprint_of_no_number_is_refused():
    with pytest.raises(ValueError, match="JSON"):
        compute_fingerprint({"a": float("nan")})


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("haprox", "did you mean haproxy?"),
        ("Direct", "did you mean direct?"),
        ("xyzzy", "known: direct, haproxy"),
        ("", "known: direct, haproxy"),
    ],
)
def test_a_wrong_word_gets_the_nearest_or_all(word: str, said: str):
    assert did_you_mean(word, ["haproxy", "direct"]) == said


@pytest.mark.parametrize(
    ("blocks", "looks"),
    [(3, (5, 10, 20)), (7, (5, 7)), (10, (5, 10, 20)), (12, (5, 10, 12)), (30, (5, 10, 20))],
)
def test_the_last_planned_block_takes_the_place_of_a_later_look(blocks, looks):
    assert Analysis().for_blocks(blocks).looks == looks
