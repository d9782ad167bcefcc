"""README's first screen: the table that `make repro` ends with, of the newest session of `quick`."""

import os
import re
from pathlib import Path

from benchbook.compare.text.results_table import build_results
from benchbook.core.artifacts import record
from benchbook.show import results_view

README = Path(__file__).parents[2] / "README.md"
BLOCK = re.compile(r"(?<=```text\n)Change in .*?(?=\n```)", re.DOTALL)


def test_readme_shows_the_table_of_the_newest_recorded_session():
    table = build_results(record.read_index().newest("quick").results.findings)
    lines = [results_view.caption_of(table), *results_view.render_text(table, 100)]
    expected = "\n".join(lines).replace("\xa0", " ")
    text = README.read_text(encoding="utf-8")
    if os.environ.get("BENCHBOOK_WRITE_GOLDENS"):
        text = BLOCK.sub(lambda _: expected, text)
        README.write_text(text, encoding="utf-8")
    assert BLOCK.search(text)[0] == expected, "`make goldens` writes it anew"
