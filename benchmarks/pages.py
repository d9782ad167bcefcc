"""What `make pages` costs after set-up: the whole site from the record, and the same with nothing changed."""

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchbook.core.artifacts import record
from benchmarks.pipeline import clone_of
from benchmarks.table import Row, main

GOAL_S = 60


def rows(is_full: bool) -> list[Row]:
    """Time `benchbook pages` in a fresh clone, twice; `is_full` is as quick."""
    with tempfile.TemporaryDirectory(prefix="bb-pages-") as place:
        clone = clone_of(Path(place) / "clone")
        whole_s, whole_cpu_s = _spent(clone)
        again_s, again_cpu_s = _spent(clone)
    known = [session for study in record.read_index().studies.values() for session in study.sessions.values()]
    what = f"make pages, {len(record.read_index().studies)} studies, {len(known)} sessions"
    return [
        Row(what, f"{whole_s:.0f} s (CPU {whole_cpu_s:.0f} s)", goal=f"≤ {GOAL_S} s", met=whole_s <= GOAL_S),
        Row("make pages, nothing changed", f"{again_s:.1f} s (CPU {again_cpu_s:.1f} s)"),
    ]


def _spent(clone: Path) -> tuple[float, float]:
    """Make the pages in a clone; return the seconds on the wall and those of processors."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    environment = {**os.environ, "BENCHBOOK_ROOT": str(clone), "PYTHONHASHSEED": "0"}
    argv = [sys.executable, "-m", "benchbook.commands.cli", "pages"]
    subprocess.run(argv, cwd=clone, env=environment, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return time.monotonic() - began, spent


if __name__ == "__main__":
    main(rows, __doc__)
