"""A `dvc.lock` that a killed DVC left cut: the same command goes on, with the stages that are whole."""

from pathlib import Path

from dvc.schema import COMPILED_LOCKFILE_SCHEMA
from ruamel.yaml import YAML

from benchbook.commands.dvc_lock import repair_lock_file
from tests.goldens import assert_golden

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


def test_a_lock_file_cut_anywhere_is_one_that_dvc_reads(tmp_path: Path):
    """What was written whole is kept, and whoever loses a stage is told: goldens/lock_cut.txt."""
    file, messages = tmp_path / "dvc.lock", dict[str | None, list[int]]()
    for length in range(0, len(WHOLE), 7):
        file.write_text(WHOLE[:length], encoding="utf-8")
        messages.setdefault(repair_lock_file(tmp_path), []).append(length)
        stages: dict[str, object] = {}
        if file.exists():
            content = YAML(typ="safe").load(file.read_text("utf-8"))
            COMPILED_LOCKFILE_SCHEMA(content)
            stages = content["stages"]
        assert ("code" in stages) == (length >= WHOLE.index("  parse@tiny:")), length
    lines = [f"{cut[0]} to {cut[-1]} bytes: {text or 'whole'}\n" for text, cut in messages.items()]
    assert_golden("lock_cut.txt", "".join(lines))


def test_a_whole_lock_file_and_one_in_a_merge_are_left(tmp_path: Path):
    file = tmp_path / "dvc.lock"
    assert repair_lock_file(tmp_path) is None and not file.exists()
    without_deps = "schema: '2.0'\nstages:\n  code:\n    cmd: make\n    outs:\n" + DIGEST.format(
        path="data/x"
    )
    for text in (WHOLE, without_deps, "schema: '2.0'\nstages: {}\n", WHOLE[:-40] + "\n<<<<<<< ours\n"):
        file.write_text(text, encoding="utf-8")
        assert repair_lock_file(tmp_path) is None and file.read_text("utf-8") == text
