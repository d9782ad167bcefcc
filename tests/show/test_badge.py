from pathlib import Path

import pytest

from benchbook.show import shape

STYLE = (Path(shape.__file__).parent / "templates" / "page" / "style.css").read_text(encoding="utf-8")
# Where nothing was shown, nothing is coloured.
PLAIN = {
    "nothing to check",
    "no practical difference",
    "not shown",
    "not decided yet",
    "not judged",
    "not computed",
}


@pytest.mark.parametrize("word", [*shape.LABELS, *shape.VERDICTS, *shape.RESULTS.values()])
def test_every_word_that_claims_something_has_its_colour(word):
    shown = shape.badge(word).text
    kind = word.replace(" ", "-")
    assert shown == f'<span class="badge {kind}">{word}</span>'
    assert (f".badge.{kind}" in STYLE) == (word not in PLAIN)


def test_an_unknown_word_looks_like_no_verdict_and_breaks_nothing():
    assert shape.badge('passed" onclick="x').text.startswith('<span class="badge">passed&quot;')
