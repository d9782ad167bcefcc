"""Seconds and memory of parse, analyze and report, and the parser beside straightforward regular expressions.

Folders of 600 report lines with histogram and monitor, made up from a seed and valid in all twenty checks. A
campaign of each size goes through `read.stream` in a process of its own, on two cores, down to the Parquet
files; then the stages analyze and report run on what it left, notebook and all. The alternative,
`benchmarks.plain`, reads the same outputs of sysbench into the same fields and proves nothing.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchbook.core.util import files, parallel
from benchbook.read import tidy
from benchbook.read.sysbench_log import parse_log
from benchmarks import logs, plain
from benchmarks.table import ROOT, Row, main

CORES = 2
SIZES = {False: (100, 1000, 10_000), True: (100, 1000, 10_000)}
REPORTED = {False: (100, 1000), True: (100, 1000, 10_000)}
TEXTS = 10


def rows(is_full: bool) -> list[Row]:
    """Compare the parsers on single outputs, then read whole campaigns."""
    regex_ms, found = _parsers(5 if is_full else 3)
    with tempfile.TemporaryDirectory(prefix="bb-parse-") as place:
        told = {size: _campaign(Path(place) / str(size), size, size in REPORTED[is_full])
                for size in SIZES[is_full]}  # fmt: skip
    most, least = max(told), min(told)
    each_ms = {size: 1000 * one["parse_s"] / size for size, one in told.items()}
    growth = told[most]["parent_mib"] - told[1000]["parent_mib"]
    found.append(
        Row("  a whole run to Parquet, judged, on two cores", f"{each_ms[most]:.2f} ms a run",
            f"regular expressions, log only {regex_ms:.2f} ms", f"{regex_ms / each_ms[most]:.1f} ×")
    )  # fmt: skip
    for size, one in told.items():
        mib = one["parent_mib"] + CORES * one["worker_mib"]
        is_goal = size == 10_000
        found.append(
            Row(f"parse {size:,} runs", f"{one['parse_s']:.1f} s, {each_ms[size]:.2f} ms a run",
                f"CPU of all processes {one['cpu_s']:.1f} s", f"{mib:.0f} MiB in all",
                "≤ 60 s and 1 GiB" if is_goal else "",
                one["parse_s"] <= 60 and mib <= 1024 if is_goal else None)
        )  # fmt: skip
    found.append(
        Row("memory from 1,000 to 10,000 runs", f"{growth:+.0f} MiB", "", "", "≤ 150 MiB", growth <= 150)
    )
    for stage in ("analyze_s", "report_s"):
        done = {size: one[stage] for size, one in told.items() if stage in one}
        small, large = min(done), max(done)
        factor = done[large] / done[small]
        found.append(
            Row(f"{stage[:-2]}, {' / '.join(f'{size:,}' for size in done)} runs",
                " / ".join(f"{seconds:.1f} s" for seconds in done.values()), "",
                f"{factor:.1f} × for {large // small} × the runs", "no worse than linear",
                factor <= large / small)
        )  # fmt: skip
    assert least < most
    return found


def _parsers(rounds: int) -> tuple[float, list[Row]]:
    texts = [logs.output(number, 600)[0] for number in range(TEXTS)]
    ours = _each_ms(parse_log, texts, rounds)
    regex = _each_ms(plain.parse, texts, rounds)
    few = _each_ms(plain.three_fields, texts, rounds)
    return regex, [
        Row("one output of sysbench, all fields, one core", f"{ours:.2f} ms",
            f"regular expressions {regex:.2f} ms", f"{regex / ours:.1f} ×"),
        Row("  outputs a second on two cores", f"{CORES * 1000 / ours:,.0f}",
            f"one process {1000 / regex:,.0f}", f"{CORES * regex / ours:.1f} ×", "≥ 10 ×",
            CORES * regex / ours >= 10),
        Row("  the same beside three fields of each line, no histogram", f"{ours:.2f} ms", f"{few:.2f} ms",
            f"{few / ours:.1f} ×"),
    ]  # fmt: skip


def _each_ms(function: Callable[[str], Any], texts: list[str], rounds: int) -> float:
    """Return CPU milliseconds a text, the best of some rounds: a busy machine takes wall time, not these."""
    best = float("inf")
    for _ in range(rounds):
        began = time.process_time()
        for text in texts:
            function(text)
        best = min(best, time.process_time() - began)
    return 1000 * best / len(texts)


def _campaign(folder: Path, runs: int, is_reported: bool) -> dict[str, float]:
    """Make a campaign and read it in a process of its own; return its seconds and MiB."""
    root = _root(folder)
    schedule = logs.campaign(root / "data" / "made-up", runs)
    files.write_csv(root / "data" / "made-up" / "schedule.csv", schedule)
    code = f"from benchmarks.parse import measure; measure({str(root)!r})"
    told = json.loads(_python(["-c", code], root).splitlines()[-1])
    for stage in ("analyze", "report") if is_reported else ():
        began = time.monotonic()
        _python(["-m", "benchbook.cli", "stage", stage, "made-up"], root)
        told[f"{stage}_s"] = time.monotonic() - began
    shutil.rmtree(folder)
    return told


def measure(root: str) -> None:
    """Parse the campaign below `root` and print what it took; runs in a process of its own."""
    import pandas as pd

    data = Path(root) / "data" / "made-up"
    schedule = pd.read_csv(data / "schedule.csv")
    began = time.monotonic()
    with parallel.map_tasks(len(schedule), CORES) as each:
        made = tidy.parse_study(data / "raw", data / "void", schedule, data / "tidy", each=each)
    seconds = time.monotonic() - began
    assert made.rows["runs"] == len(schedule), made.refused.to_pylist()[:1]
    mib = {
        who: resource.getrusage(kind).ru_maxrss / 1024
        for who, kind in (("parent", resource.RUSAGE_SELF), ("worker", resource.RUSAGE_CHILDREN))
    }
    cpu_s = sum(
        sum(resource.getrusage(kind)[:2]) for kind in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    told = {"parse_s": seconds, "cpu_s": cpu_s, "parent_mib": mib["parent"], "worker_mib": mib["worker"]}
    print(json.dumps(told))


def _python(words: list[str], root: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "BENCHBOOK_ROOT": str(root)}
    done = subprocess.run(
        [sys.executable, *words], env=environment, cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[-300:])
    return done.stdout


def _root(folder: Path) -> Path:
    """Return a folder that looks like a clone with one study, whose runs are made up."""
    (folder / "studies").mkdir(parents=True)
    (folder / "data" / "made-up").mkdir(parents=True)
    for name in ("notebooks", "dvc.yaml", "params.yaml", "data/published"):
        (folder / name).symlink_to(ROOT / name)
    text = (ROOT / "studies" / "quick.yaml").read_text(encoding="utf-8")
    text = text.replace("threads: [1, 4, 16]", f"threads: [{logs.THREADS}]")
    text = text.replace("  oltp_point_select: {rand_type: uniform}\n", "").replace("aa:  ", "aa: null  #")
    text = text.replace("  workloads: [oltp_point_select]\n  threads: [4]\n", "")
    (folder / "studies" / "made-up.yaml").write_text(text, encoding="utf-8")
    shutil.copy2(folder / "studies" / "made-up.yaml", folder / "studies" / "quick.yaml")
    facts = {
        "study": "made-up",
        "arms": {arm: {"arm": arm, "access": arm, "moment": {}} for arm in logs.ARMS},
    }
    for name, content in (("facts", facts), ("dataset", {}), ("warm_up", {})):
        files.write_json(folder / "data" / "made-up" / f"{name}.json", content)
    return folder


if __name__ == "__main__":
    main(rows, __doc__)
