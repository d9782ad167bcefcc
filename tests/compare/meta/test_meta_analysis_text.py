"""Numbers as headlines have them: two significant digits, ends that look apart, and 25 words at the most."""

import pytest

from benchbook.compare.meta import meta_analysis_text
from tests.compare.meta.test_treatment_text import effect


@pytest.mark.parametrize(
    ("fraction", "text"),
    [
        # From 9.95 % on a decimal is none of two digits.
        (0.0994, "+9.9 %"),
        (0.0996, "+10 %"),
        (-0.0996, "−10 %"),
        (0.0006, "+0.1 %"),
        # What is rounded to nothing has no sign.
        (0.0004, "0.0 %"),
        (-0.0004, "0.0 %"),
        (0.0, "0.0 %"),
    ],
)
def test_a_share_has_two_digits(fraction: float, text: str):
    assert meta_analysis_text.percent(fraction).replace("\xa0", " ") == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (-0.30, -0.20, "−30 to −20 %"),
        (-0.05, 0.20, "−5 to +20 %"),
        (-0.05, 0.05, "−5.0 to +5.0 %"),
        # 19.1 and 19.4 would look alike; what is alike may.
        (0.191, 0.194, "+19.1 to +19.4 %"),
        (0.194, 0.194, "+19 to +19 %"),
    ],
)
def test_a_range_has_as_many_digits_as_tell_its_ends_apart(low: float, high: float, text: str):
    assert meta_analysis_text.span(low, high).replace("\xa0", " ") == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (-0.19, -0.16, "16 to 19 %"),
        (0.16, 0.19, "16 to 19 %"),
        (-0.038, -0.038, "3.8 %"),
        (0.191, 0.194, "19.1 to 19.4 %"),
        (0.02, 0.12, "2 to 12 %"),
    ],
)
def test_where_a_word_has_the_sign_the_number_has_none(low: float, high: float, text: str):
    assert meta_analysis_text.unsigned(low, high).replace("\xa0", " ") == text


def test_the_first_sentence_of_25_words_is_taken_and_of_longer_ones_the_shortest():
    words = {many: " ".join(["word"] * many) for many in (24, 25, 26, 27)}
    assert meta_analysis_text.fitting([words[26], words[25], words[24]]) == words[25]
    assert meta_analysis_text.fitting([words[27], words[26]]) == words[26]
    assert meta_analysis_text.words_in("15\xa0% fewer") == 2


def test_a_range_is_what_is_expected_or_else_what_was_seen():
    expected = effect("on average", 0.1, -0.1, 0.3)
    assert meta_analysis_text.range_of(expected) == (-0.1, 0.3)
    assert meta_analysis_text.ends_of(expected) == (
        "; expect {} elsewhere (4 sessions, 4 processors)", "; expect {} elsewhere"
    )  # fmt: skip
    kind = expected.model_copy(update={"elsewhere": "on other virtual machines of 2 cores"})
    assert meta_analysis_text.ends_of(kind)[1] == "; expect {} on other virtual machines of 2 cores"
    seen = effect("on average", 0.1, 0.0, 0.2, is_expected=False)
    assert meta_analysis_text.range_of(seen) == (0.0, 0.2)
    assert meta_analysis_text.ends_of(seen) == (": {} in 4 sessions on 4 processors", ": {} in 4 sessions")
    # What depends on the machine has the range that was seen, on named machines.
    both = effect("depends on the machine", 0.1, -0.1, 0.3).model_copy(update={"range_low": 0.05})
    assert meta_analysis_text.range_of(both) == (0.05, 0.3)
    one = seen.model_copy(update={"processors": 0, "seen": seen.seen[:1]})
    assert meta_analysis_text.where(one) == "1 session, 1 processor"
