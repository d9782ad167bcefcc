"""The story as the page of a repository shows it: text and tables, nothing that such a page leaves out."""

import nbformat

from benchbook.commands.story_markdown import render_story


def test_prose_and_tables_stay_and_pictures_styles_and_code_go():
    table = '<section class="x"><style>td{}</style>\n\n<table>\n\n<tr><td colspan="2" class="lower">'
    table += '<a href="studies/quick.html">−24 %</a> <svg><text>bar</text></svg></td></tr></table></section>'
    code = nbformat.v4.new_code_cell("story.measured(seen)")
    code.outputs = [nbformat.v4.new_output("display_data", {"text/html": table, "text/plain": "Table"})]
    cells = [nbformat.v4.new_markdown_cell("# Five reports"), code, nbformat.v4.new_markdown_cell("## Why")]
    text = render_story(nbformat.v4.new_notebook(cells=cells))
    assert text.startswith("# Five reports\n\nMade by `make pages`") and text.endswith("\n\n## Why\n")
    assert '<table>\n<tr><td colspan="2">−24 % </td></tr></table>' in text
    assert "svg" not in text and "style" not in text and "story.measured" not in text
