"""`benchbook logs` over many logs, beside `grep` and a script as people write it, which proves nothing."""

import re
import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import logs
from benchmarks.table import Row

ARMS, LEVELS, SECONDS = ("direct", "haproxy"), (1, 4, 16, 64, 256), 60
GOAL_S = {1: 1.0, 1000: 8.0, 10_000: 60.0}
MEMORY_MIB = 1024
# What most public scripts do: the first number of a few lines, whatever stands around them.
NAIVE = """
import pathlib, re, sys
for path in sorted(pathlib.Path(sys.argv[1]).rglob("*.log")):
    text = path.read_text()
    print(path, *(re.search(form, text).group(1) for form in (
        r"transactions: +\\d+ +\\((.+?) per", r"queries: +\\d+ +\\((.+?) per", r"percentile: +(.+)")))
"""


def rows(is_full: bool) -> list[Row]:
    """Read 1, 1,000 and (with --full) 10,000 logs of a minute."""
    return [row for count in (1, 1000, *([10_000] if is_full else [])) for row in _rows(count)]


def _rows(count: int) -> list[Row]:
    with TemporaryDirectory() as name:
        folder = Path(name)
        texts = [logs.output(number, SECONDS)[0] for number in range(min(count, logs.DIFFERENT))]
        for number in range(count):
            arm, level = ARMS[number % 2], LEVELS[number // 2 % len(LEVELS)]
            path = folder / arm / f"rw_t{level}_run{number // 10}.log"
            path.parent.mkdir(exist_ok=True)
            # A seed of its own, or the files would be copies of each other.
            path.write_text(re.sub(r"seed \(\d+\)", f"seed ({number + 1})", texts[number % len(texts)]))
        ours = _seconds([sys.executable, "-m", "benchbook.commands.cli", "logs", str(folder)])
        grep = _seconds(["grep", "-rhE", "transactions:|queries:|percentile:", str(folder)])
        naive = _seconds([sys.executable, "-c", NAIVE, str(folder)])
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    what = f"{count:,} logs of {SECONDS} s"
    return [
        Row(what, f"{ours:.2f} s", f"script {naive:.2f} s, grep {grep:.2f} s", f"{ours / naive:.1f} ×",
            f"≤ {GOAL_S[count]:g} s", ours <= GOAL_S[count]),
        Row(f"{what}: memory of the largest process", f"{peak:.0f} MiB", "", "", f"≤ {MEMORY_MIB} MiB",
            peak <= MEMORY_MIB),
    ]  # fmt: skip


def _seconds(command: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started
