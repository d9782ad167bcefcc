"""DVC as `make repro` runs it: stages, warnings and errors are seen, hints on git and remotes aren't."""

import subprocess
from pathlib import Path

from tests import forked

STAGES = "stages:\n  works: {cmd: echo made > out, outs: [out]}\n  fails: {cmd: exit 3}\n"
PROGRAM = """
import dvc.repo, dvc.repo.reproduce, dvc.stage.run
from benchbook.commands import quiet_dvc

def call(*words):
    return quiet_dvc.run_dvc(words)
"""


def test_hints_are_dropped_and_errors_stay(tmp_path: Path):
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / "dvc.yaml").write_text(STAGES, encoding="utf-8")
    with forked.calls(PROGRAM, cwd=tmp_path) as call:
        assert call("init", "-q")[:2] == (0, 0)
        (_, works, printed), (_, fails, errors) = call("repro", "works"), call("repro", "fails")
    assert works == 0 and "Running stage 'works'" in printed
    assert "git add" not in printed and "dvc push" not in printed
    assert fails == 255 and "failed to reproduce 'fails'" in errors
