"""The report notebook is as thin as a stage: what it shows is made in lib."""

from __future__ import annotations

import json

from tests.show.conftest import REPORT


def test_it_is_thin():
    cells = json.loads(REPORT.read_text(encoding="utf-8"))["cells"]
    code = [cell["source"] for cell in cells if cell["cell_type"] == "code"]
    assert len(code) <= 9
    assert sum(map(len, code)) <= 40
