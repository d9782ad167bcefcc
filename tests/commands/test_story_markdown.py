"""The story as the page of a repository shows it: text and tables, nothing that such a page leaves out."""

from types import SimpleNamespace

import nbformat
import pytest

from benchbook.commands.story_markdown import FILE, render_story, write_story
from benchbook.core.util import paths
from benchbook.show.story import render_opening
from tests.goldens import assert_golden


def test_prose_and_tables_stay_and_pictures_styles_and_code_go():
    table = '<section class="x"><style>td{}</style>\n\n<table>\n\n<tr><td colspan="2" class="lower">'
    table += '<a href="studies/quick.html">−24 %</a> <svg><text>bar</text></svg></td></tr></table></section>'
    code = nbformat.v4.new_code_cell("story.measured(seen)")
    code.outputs = [nbformat.v4.new_output("display_data", {"text/html": table, "text/plain": "Table"})]
    cells = [nbformat.v4.new_markdown_cell("# Five reports"), code, nbformat.v4.new_markdown_cell("## Why")]
    text = render_story(nbformat.v4.new_notebook(cells=cells))
    assert_golden("story-cells.md", text)


def test_a_table_stands_where_the_page_has_a_figure():
    code = nbformat.v4.new_code_cell("story.draw_forest(seen)")
    data = {"text/html": "<ul><li>bar</li></ul>", "text/markdown": "<table><tr><td>row</td></tr></table>"}
    code.outputs = [nbformat.v4.new_output("display_data", data)]
    text = render_story(nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# Title"), code]))
    assert "<td>row</td>" in text and "bar" not in text


@pytest.mark.parametrize("audits", [[], ["one report"]])
def test_a_story_without_the_record_replaces_no_file(tmp_path, monkeypatch, audits):
    opening = render_opening(SimpleNamespace(pooled={}, audits=audits, claims=[]))
    monkeypatch.setattr(paths, "find_root", lambda: tmp_path)
    place = tmp_path / "data" / "site" / "notebooks" / "story.ipynb"
    place.parent.mkdir(parents=True)
    file = paths.reports_folder() / FILE
    for html, is_written in ((opening.text, False), ("<p>It rests on five reports.</p>", True)):
        cell = nbformat.v4.new_code_cell("story.render_opening(seen)")
        cell.outputs = [nbformat.v4.new_output("display_data", {"text/html": html})]
        cells = [nbformat.v4.new_markdown_cell("# Story"), cell]
        nbformat.write(nbformat.v4.new_notebook(cells=cells), place)
        write_story()
        assert file.exists() == is_written
