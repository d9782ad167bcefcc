"""Documents come back as they were: what the record's archives hold, read and written again, to the byte."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchbook.core import files, paths, record
from benchbook.core.errors import BenchbookError
from benchbook.core.findings import Findings
from benchbook.evidence import archive


def test_recorded_findings_are_read_and_written_to_the_byte(tmp_path: Path):
    lost = []
    for file in record.archives():
        where = paths.StudyPaths(file.parent.name, tmp_path / file.parent.name / file.name)
        archive.unpack(file, where.base, ("findings.json",))
        before = where.findings.read_bytes()
        Findings.read(where.findings).write(where.findings)
        if where.findings.read_bytes() != before:
            lost.append(str(file))
    assert not lost


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [("look", {"n": "five"}, "look.n: input should be a valid integer"), ("more", 1, "more: extra inputs")],
)
def test_findings_of_another_shape_are_refused_by_key_and_remedy(tmp_path: Path, key, value, told):
    file = tmp_path / "findings.json"
    archived = next(one for one in record.archives() if one.parent.name == "quick")
    archive.unpack(archived, tmp_path, ("findings.json",))
    found = files.read_json(paths.StudyPaths("quick", tmp_path).findings)
    found[key] = {**found[key], **value} if isinstance(value, dict) else value
    file.write_text(json.dumps(found), encoding="utf-8")
    with pytest.raises(BenchbookError, match=rf"findings\.json: {told}.*run `make pages`"):
        Findings.read(file, "`make pages`")
