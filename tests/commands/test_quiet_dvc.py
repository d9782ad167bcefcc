"""DVC as `make repro` runs it: stages, warnings and errors are seen, hints on git and remotes aren't."""

import subprocess
import sys
from pathlib import Path

STAGES = "stages:\n  works: {cmd: echo made > out, outs: [out]}\n  fails: {cmd: exit 3}\n"


def test_hints_are_dropped_and_errors_stay(tmp_path: Path):
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)

    run("git", "init", "-q")
    run(sys.executable, "-m", "dvc", "init", "-q")
    (tmp_path / "dvc.yaml").write_text(STAGES, encoding="utf-8")
    dvc = (sys.executable, "-m", "benchbook.commands.quiet_dvc", "repro")
    works, fails = run(*dvc, "works"), run(*dvc, "fails")
    assert works.returncode == 0 and "Running stage 'works'" in works.stdout
    assert "git add" not in works.stdout and "dvc push" not in works.stdout
    assert fails.returncode == 255 and "failed to reproduce 'fails'" in fails.stderr
