"""What `make pages` costs: the record made again, a source's page, and all of it in a fresh clone.

Seconds of processors are compared, since those of the wall depend on who else is there. `--full` also makes
a clone ready from nothing, with what the caches of pip and uv hold.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchbook.core import record
from benchmarks.pipeline import clone_of
from benchmarks.table import Row, main

SOURCE = "tidb-kubernetes"
GOAL_S = 120


def rows(is_full: bool) -> list[Row]:
    """Time the stages that `make pages` consists of, and with `is_full` all of it."""
    with tempfile.TemporaryDirectory(prefix="bb-pages-") as place:
        clone = clone_of(Path(place) / "clone")
        benchbook = [sys.executable, "-m", "benchbook.commands.cli"]
        record_s, record_cpu_s = _spent(clone, [*benchbook, "rebuild"])
        _, ours_s = _spent(clone, [*benchbook, "audit", SOURCE])
        notebook = ["notebooks/audit.ipynb", str(Path(place) / "made.ipynb")]
        papermill = [sys.executable, "-m", "papermill", "--no-progress-bar", "-r", "source", SOURCE]
        _, theirs_s = _spent(clone, [*papermill, "--kernel", "python3", "--cwd", str(clone), *notebook])
        whole_s, whole_cpu_s = _spent(clone, ["make", "pages"]) if is_full else (None, 0.0)
    known = record.read().studies
    runs = sum(entry.runs for entry in known.values())
    found = [
        Row(f"the record made again, {len(known)} studies, {runs} runs", f"{record_cpu_s:.1f} s of CPU",
            f"on the wall {record_s:.1f} s"),
        Row("a source's page", f"{ours_s:.1f} s of CPU",
            f"papermill with a kernel of its own {theirs_s:.1f} s, the page not yet rendered",
            f"{theirs_s / ours_s:.1f} ×"),
    ]  # fmt: skip
    if whole_s is not None:
        told = f"{whole_s:.0f} s (CPU {whole_cpu_s:.0f} s)"
        found.append(Row("make pages in a fresh clone", told, "", "", f"≤ {GOAL_S} s", met=whole_s <= GOAL_S))
    return found


def _spent(clone: Path, argv: list[str]) -> tuple[float, float]:
    """Run a command in a clone; return its seconds on the wall and those of processors."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    environment = {**os.environ, "BENCHBOOK_ROOT": str(clone), "PYTHONHASHSEED": "0"}
    subprocess.run(argv, cwd=clone, env=environment, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return time.monotonic() - began, spent


if __name__ == "__main__":
    main(rows, __doc__)
