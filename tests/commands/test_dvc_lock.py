"""A `dvc.lock` that a killed DVC left cut: the same command goes on, with the stages that are whole."""

from pathlib import Path

import pytest
from dvc.schema import COMPILED_LOCKFILE_SCHEMA
from ruamel.yaml import YAML

from benchbook.commands.dvc_lock import repair_lock_file

DIGEST = (
    "    - path: {path}\n      hash: md5\n      md5: 4b85d9aceb848ce777f979f563f8d8fa\n      size: 5238\n"
)
STAGE = (
    "  {name}:\n    cmd: exec tools/benchbook stage {name}\n    deps:\n"
    + DIGEST.format(path="lib/benchbook/core")
    + "    params:\n      studies/tiny.yaml:\n        plan:\n          blocks: 5\n        claims: []\n"
    + "    outs:\n"
    + DIGEST.format(path="data/tiny/raw")
)
WHOLE = "schema: '2.0'\nstages:\n" + "".join(STAGE.format(name=name) for name in ("code", "parse@tiny"))


@pytest.mark.parametrize("length", range(0, len(WHOLE), 7))
def test_a_lock_file_cut_anywhere_is_one_that_dvc_reads(tmp_path: Path, length: int):
    file = tmp_path / "dvc.lock"
    file.write_text(WHOLE[:length], encoding="utf-8")
    message = repair_lock_file(tmp_path)
    stages: dict[str, object] = {}
    if file.exists():
        content = YAML(typ="safe").load(file.read_text("utf-8"))
        COMPILED_LOCKFILE_SCHEMA(content)
        stages = content["stages"]
    # What was written whole is kept, and whoever loses a stage is told.
    assert ("code" in stages) == (length >= WHOLE.index("  parse@tiny:"))
    assert message is None or "was cut when DVC was killed" in message


def test_a_whole_lock_file_and_one_in_a_merge_are_left(tmp_path: Path):
    file = tmp_path / "dvc.lock"
    assert repair_lock_file(tmp_path) is None and not file.exists()
    without_deps = "schema: '2.0'\nstages:\n  code:\n    cmd: make\n    outs:\n" + DIGEST.format(
        path="data/x"
    )
    for text in (WHOLE, without_deps, "schema: '2.0'\nstages: {}\n", WHOLE[:-40] + "\n<<<<<<< ours\n"):
        file.write_text(text, encoding="utf-8")
        assert repair_lock_file(tmp_path) is None and file.read_text("utf-8") == text
