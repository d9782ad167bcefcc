"""What run folders cost on disk, and what DVC takes to add, look at and push them.

A run folder is six small files. The question is whether they should be packed, say one archive a block,
before DVC sees them. The answer, with the figures of benchmarks/README.md: no. DVC's cost a folder is
constant and small beside the run that made it, which took a minute of a machine; a pipeline with nothing
changed looks at folders without reading them; and a folder that is a folder can be opened, compared and
linked to from a report. Packing would buy inodes and cost all of that. Campaigns of ten thousand runs that
hurt anyway can use DVC's own options (`dvc config cache.type reflink,hardlink`, more connections to a
remote) as they are.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import logs
from benchmarks.table import Row, main

SIZES = {False: (1000,), True: (1000, 10_000)}
RUN_S = 60


def rows(is_full: bool) -> list[Row]:
    """Add, look at and push campaigns of 60 s runs; beside them, the copy of their files by `cp`."""
    found = []
    for runs in SIZES[is_full]:
        with tempfile.TemporaryDirectory(prefix="bb-storage-") as place:
            found += _campaign(Path(place), runs)
    return found


def _campaign(place: Path, runs: int) -> list[Row]:
    clone = place / "clone"
    schedule = logs.campaign(clone / "data", runs, seconds=RUN_S)
    raw = clone / "data" / "raw"
    # Folders share files by hard link where they are made up, and not where they are measured.
    _run(["cp", "-r", "--no-preserve=links", str(raw), str(place / "copy")], place)
    _run(["rm", "-r", str(clone / "data")], place)
    (clone / "data").mkdir()
    copied_s = _run(["cp", "-r", str(place / "copy"), str(raw)], place)
    sizes = [path.stat().st_size for path in (raw / schedule["run_id"][0]).iterdir()]
    disk = sum(path.stat().st_blocks * 512 for path in (raw / schedule["run_id"][0]).iterdir())
    dvc = [sys.executable, "-m", "dvc"]
    for argv in (["git", "init", "-q"], [*dvc, "init", "-q"],
                 [*dvc, "remote", "add", "-q", "-d", "here", str(place / "remote")]):  # fmt: skip
        _run(argv, clone)
    start_s = _run([*dvc, "root"], clone)
    added_s = _run([*dvc, "add", "-q", "data/raw"], clone)
    status_s = _run([*dvc, "status", "-q"], clone)
    pushed_s = _run([*dvc, "push", "-q"], clone)
    again_s = _run([*dvc, "push", "-q"], clone)
    return [
        Row(f"a run folder of {RUN_S} s", f"{sum(sizes) / 1024:.0f} KiB in {len(sizes)} files",
            f"{disk / 1024:.0f} KiB on disk"),
        Row(f"dvc add, {runs:,} runs", f"{added_s:.1f} s, {1000 * (added_s - start_s) / runs:.1f} ms a run",
            f"cp -r {copied_s:.1f} s", f"{added_s / copied_s:.1f} ×", "≤ 1 % of measuring",
            added_s <= 0.01 * runs * RUN_S),
        Row(f"dvc status, {runs:,} runs", f"{status_s:.1f} s", f"dvc root {start_s:.1f} s",
            f"{status_s / start_s:.1f} ×"),
        Row(f"dvc push, {runs:,} runs",
            f"{pushed_s:.1f} s, {1000 * (pushed_s - start_s) / runs:.1f} ms a run",
            f"cp -r {copied_s:.1f} s", f"{pushed_s / copied_s:.1f} ×", "≤ 1 % of measuring",
            pushed_s <= 0.01 * runs * RUN_S),
        Row(f"dvc push again, {runs:,} runs", f"{again_s:.1f} s"),
    ]  # fmt: skip


def _run(argv: list[str], where: Path) -> float:
    where.mkdir(exist_ok=True)
    began = time.monotonic()
    done = subprocess.run(argv, cwd=where, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(argv[:4])}: {done.stderr.strip()[-300:]}")
    return time.monotonic() - began


if __name__ == "__main__":
    main(rows, __doc__)
