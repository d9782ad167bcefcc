"""What others wrote is shown as it is: no character of it can hide, or turn the text around it."""

import unicodedata

import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from benchbook.show import markup, page

OVERRIDE, ISOLATE, POP, NO_WIDTH, TAG = "\u202e", "\u2066", "\u202c", "\u200b", "\U000e0041"


def test_overrides_of_direction_and_characters_without_width_are_shown_by_their_code():
    assert markup.escape_html(f"direct{OVERRIDE}yxorpah") == r"direct\u202eyxorpah"
    assert markup.strip_control(f"a{NO_WIDTH}b{ISOLATE}c{POP}d{TAG}") == r"a\u200bb\u2066c\u202cd\U000e0041"
    assert markup.escape_markdown(f"x{OVERRIDE}y") == r"x\\u202ey"


def test_every_format_character_of_unicode_is_shown_but_letters_and_emoji_stay():
    every = map(chr, range(0x110000))
    hidden = [one for one in every if unicodedata.category(one) in ("Cf", "Zl", "Zp")]
    # These have a picture of their own: signs before Arabic, Syriac and Kaithi numbers, Egyptian joiners.
    drawn = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}
    drawn |= {*range(0x13430, 0x13456)}
    left = [f"{ord(one):x}" for one in hidden if one in markup.show_invisible(one) and ord(one) not in drawn]
    assert left == []
    kept = "Größe 測試 שלום مرحبا ⚠️ 1 234 µs"
    assert markup.show_invisible(kept) == kept


@pytest.mark.parametrize("written", ["\u202e", "&#8238;", "&#x202E;"])
def test_no_way_onto_a_page_carries_one(written):
    outputs = [
        new_output("display_data", {"text/html": f"<p>HTML {written} here</p>", "text/plain": ""}),
        new_output("stream", name="stdout", text=f"printed {written} here"),
        new_output("execute_result", {"text/plain": f"value {written} here"}, execution_count=1),
    ]
    cell = new_code_cell(f"title = '{written}'", outputs=outputs)
    made = page.render_html(new_notebook(cells=[cell]), f"A title {written}")
    assert "\u202e" not in made
    assert made.count(r"HTML \u202e here") == 1
