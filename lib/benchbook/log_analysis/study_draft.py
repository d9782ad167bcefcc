"""Draft of a study file for the question of some logs, with marks at the parts to fill in."""

import re
from collections import Counter
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path

from benchbook.core.study import descriptors
from benchbook.core.util.errors import BenchbookError
from benchbook.log_analysis.comparison import LogSet

TO_FILL = "# FILL IN"
_KNOWN_SCRIPTS = (
    "oltp_point_select", "oltp_read_only", "oltp_read_write", "oltp_write_only", "oltp_update_index",
    "oltp_update_non_index", "oltp_insert", "oltp_delete", "select_random_points", "select_random_ranges",
)  # fmt: skip
LONGEST_RUN_S = 60
PORTS = {descriptors.PGSQL: "5432", descriptors.MYSQL: "3306"}


def write_study(logs: LogSet, path: Path) -> Path:
    """Write the draft; refuses to write over a file."""
    if path.exists():
        raise BenchbookError(f"--study {path}: the file is there already; write another name")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(draft_study(logs), encoding="utf-8")
    return path


def draft_study(logs: LogSet) -> str:
    """Arms, workloads, threads and tables as the logs have them, on endpoints that others run."""
    options = Counter((name, value) for run in logs.runs for name, value in run.options.items() if value)
    # The most frequent value of each comes last.
    common = {name: value for (name, value), _ in reversed(options.most_common())}
    driver = descriptors.PGSQL if common.get("driver") == descriptors.PGSQL else descriptors.MYSQL
    engines = [engine for engine in descriptors.load_engines().values() if engine.driver == driver]
    likely = max(engines, key=attrgetter("is_basic"))
    user = "user: bench, password_env: BENCH_PASSWORD"
    host = common.get("host", "db.example.org")
    port = common.get("port", PORTS[driver])
    levels = sorted({run.level for run in logs.runs})
    run_s = min(LONGEST_RUN_S, max(8, round(max(map(attrgetter("time_s"), logs.runs)))))
    lines = [
        f'title: "{len(logs.arms)} arms of existing logs, measured in blocks"',
        f'question: "How many queries a second does each arm serve?"  {TO_FILL}: yours',
        "site:",
        "  kind: existing",
        f"  existing: {{host: {host}, port: {port}, database: sbtest, {user}}}  {TO_FILL}: yours",
        f"engine: {{name: {likely.name}}}  {TO_FILL}: yours",
        "arms:  # the first is the baseline",
    ]
    lines += _draft_arms(logs, port)
    lines += [f"aa: {{threads: [{levels[len(levels) // 2]}]}}  # the baseline against itself", "workloads:"]
    lines += _draft_workloads(logs)
    size = common.get("table_size", "100000")
    note = "" if "table_size" in common else f"  {TO_FILL}: as the logs' tables were"
    lines += [
        f"dataset: {{tables: {common.get('tables', '1')}, table_size: {size}}}{note}",
        f"threads: {levels}",
        f"plan: {{blocks: 5, discard_s: {max(2, run_s // 4)}, run_s: {run_s}}}",
        "claims: []",
    ]
    return "\n".join(lines) + "\n"


def _draft_arms(logs: LogSet, port: str) -> Iterator[str]:
    for place, (arm, name) in enumerate(zip(logs.arms, _unique_names(logs.arms), strict=True)):
        if place == 0:
            yield f"  {name}: {{}}  # {arm}"
            continue
        its = next((run.options for run in logs.runs if run.arm == arm and run.options.get("host")), {})
        endpoint = f"host: {its.get('host', f'{name}.example.org')}, port: {its.get('port', port)}"
        yield f"  {name}: {{endpoint: {{{endpoint}}}}}  {TO_FILL}: where {arm} answers"


def _draft_workloads(logs: LogSet) -> Iterator[str]:
    workloads = list(dict.fromkeys(workload for workload, _ in logs.rows))
    for workload, name in zip(workloads, _unique_names(workloads), strict=True):
        script = next((name for name in _KNOWN_SCRIPTS if name.removeprefix("oltp_") in workload), None)
        note = "" if script else f"  {TO_FILL}: the script of {workload}"
        yield f"  {name.replace('-', '_')}: {{script: {script or 'oltp_read_write'}}}{note}"


def _unique_names(texts: list[str] | tuple[str, ...]) -> list[str]:
    """Names that a study file takes, each another one."""
    names: list[str] = []
    for text in texts:
        name = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:30].strip("-") or "arm"
        name = name if name[0].isalpha() else f"arm-{name}"
        names.append(name if name not in names else f"{name}-{len(names) + 1}")
    return names
