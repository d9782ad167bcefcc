from pathlib import Path

import pytest

from benchbook.show import badge

STYLE = (Path(badge.__file__).parent / "templates" / "page" / "style.css").read_text(encoding="utf-8")
# Where nothing was shown, nothing is coloured.
PLAIN = {
    "nothing to check",
    "no practical difference",
    "not shown",
    "not decided yet",
    "not judged",
    "not computed",
}


@pytest.mark.parametrize("word", [*badge.LABELS, *badge.VERDICTS, *badge.RESULTS.values()])
def test_every_word_that_claims_something_has_its_colour(word):
    shown = badge.badge(word).text
    kind = word.replace(" ", "-")
    assert shown == f'<span class="badge {kind}">{word}</span>'
    assert (f".badge.{kind}" in STYLE) == (word not in PLAIN)


def test_an_unknown_word_looks_like_no_verdict_and_breaks_nothing():
    assert badge.badge('passed" onclick="x').text.startswith('<span class="badge">passed&quot;')
