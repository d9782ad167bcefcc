"""Real studies of two arms, one of which has something planted that makes it slow, and what they find."""

import contextlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from benchbook import sites
from benchbook.compare.claims import consistency
from benchbook.compare.inference import findings
from benchbook.core.artifacts.findings import Findings
from benchbook.core.study.params import Analysis
from benchbook.core.study.study import StudySpec
from benchbook.measure import dataset, server_drift
from benchbook.measure.data_plan import plan_data
from benchbook.plan import schedule
from benchbook.read import tidy
from benchbook.sites.processes import process
from benchbook.sites.topology import teardown
from tests import rooms, small
from tests.limits import LIMITS
from tests.walks import Store

# Sends on its socket are what client and server alike do once a query.
SLOW = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
static long asked(const char *name) { char *value = getenv(name); return value ? atol(value) : 0; }
static long ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec * 1000000000L + t.tv_nsec;
}
static void slow(void) {
  static __thread long sends;
  long each = asked("SLOW_EACH"), end = ns() + 1000L * asked("BURN_US");
  if (each && ++sends % each) return;
  while (ns() < end);
  if (asked("SLEEP_US")) usleep(asked("SLEEP_US"));
}
ssize_t send(int f, const void *b, size_t n, int o) {
  static ssize_t (*real)(int, const void *, size_t, int);
  if (!real) real = dlsym(RTLD_NEXT, "send");
  slow();
  return real(f, b, n, o);
}
"""
ARMS = {"plain": {}, "planted": {"engine": {"settings": {"max_connections": 900}}}}
POINTS = {"oltp_point_select": {"rand_type": "uniform"}}
NO_QUERIES = dict.fromkeys(("point_selects", "sum_ranges", "order_ranges", "distinct_ranges"), 0)
SMALL_BUFFER = {
    "plain": {"access": "haproxy"},
    "planted": {"access": "haproxy", "proxy": {"settings": {"tune.bufsize": 1024}}},
}
OF_DISK = {
    "innodb_flush_method": "O_DIRECT",
    "innodb_buffer_pool_size": "512M",
    "innodb_buffer_pool_load_at_startup": False,
    "innodb_buffer_pool_dump_at_shutdown": False,
}
PLAN = {"seed": 3, "blocks": 5, "discard_s": 0.5, "run_s": 2, "order": "turns", "max_repeats": 3}


@contextlib.contextmanager
def laboratory() -> Iterator[Path]:
    """Make a folder that all accounts can enter, and hold no other lab off; take all of it away again."""
    folder = Path(tempfile.mkdtemp(prefix="bb-planted-", dir="/var/tmp"))
    folder.chmod(0o711)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BENCHBOOK_LOCK", str(folder / "machine.lock"))
        yield folder
        assert teardown.tear_down(folder).is_clean
    shutil.rmtree(folder)


def asked(arms: Mapping[str, Any], **changes: Any) -> StudySpec:
    """Return a study of two threads levels in turns, with other sections as given."""
    engine = {"settings": {"innodb_buffer_pool_size": "96M", "innodb_log_file_size": "8M"}}
    usual = {
        "site": {"port": rooms.port(260), "cpus": "split"}, "engine": engine, "arms": arms,
        "workloads": POINTS, "threads": (1, 8), "dataset": {"tables": 2, "table_size": 20_000},
        "plan": PLAN, "warm_up": {"prewarm": True, "pilot_s": 0},
    }  # fmt: skip
    return small.study(**usual | changes)


def ranges(rows: int) -> dict[str, Any]:
    """Return a workload whose queries are ranges of so many rows each."""
    only = {"script": "oltp_read_only", "skip_trx": True, "simple_ranges": 1, "range_size": rows}
    return {"rows": {**only, **NO_QUERIES}}


def cold(**changes: Any) -> StudySpec:
    """Return a study whose planted arm begins each run with an empty pool, and ends before it has filled."""
    return asked(
        {"plain": {"data": {"prewarm": True}}, "planted": {"data": {"prewarm": False}}},
        engine={"settings": OF_DISK},
        dataset={"tables": 2, "table_size": 400_000},
        plan={**PLAN, "discard_s": 0, "order": "runs"},
        **changes,
    )


def measured(study: StudySpec, lab: Path, base: Path) -> Findings:
    """Measure a study and return its findings."""
    with sites.open_site(study, lab / "lab") as site:
        if not site.has_snapshot(plan_data(study).label):
            dataset.load_data(site, plan_data(study))
        store = Store(site, study, base)
        store.walk_alone()
        facts = {arm: site.facts(arm) for arm in study.arms}
    tidy.parse_study(store.raw, store.void, schedule.schedule_table(store.runs), base / "tidy", LIMITS)
    frames = tidy.load_tables(base / "tidy")
    checks = consistency.of_runs(frames["runs"])
    found = findings.build_findings("planted", study, frames, Analysis(), (), checks, facts)
    for one in found.causes.contrasts:
        print(one.threads, one.qps, one.cost, one.sentence or one.reason)
    print(*[(one.threads, one.arm, one.places) for one in found.causes.cells], sep="\n")
    return found


def slowed(patch: pytest.MonkeyPatch, lab: Path, role_of: str, **how: int) -> list[str]:
    """Let servers or clients of the arm `planted` be slow at each of their sends; return whose were so.

    `how` has BURN_US, time of a processor, or SLEEP_US; and SLOW_EACH, at which of a thread's sends.
    """
    library = lab / "slow.so"
    command = ["gcc", "-O2", "-shared", "-fPIC", "-x", "c", "-", "-o", str(library), "-ldl"]
    subprocess.run(command, input=SLOW, text=True, check=True)
    library.chmod(0o755)
    preloaded = {"LD_PRELOAD": str(library), **{key: str(value) for key, value in how.items()}}
    return planted(patch, role_of, preloaded)


def triggered(patch: pytest.MonkeyPatch, lab: Path, tables: int, body: str) -> list[str]:
    """Let servers of the arm `planted` do something in a trigger before each update.

    A trigger that nobody asked for voids each run and is named there (V13): here that is let pass, for what
    it costs to be seen.
    """
    patch.setattr(server_drift, "foreign_items", lambda tables, is_ours=True: {})
    file = lab / "triggers.sql"
    lines = [
        f"CREATE OR REPLACE DEFINER='root'@'localhost' TRIGGER sbtest.slow{number} "
        f"BEFORE UPDATE ON sbtest.sbtest{number} FOR EACH ROW {body};\n"
        for number in range(1, tables + 1)
    ]
    file.write_text("".join(lines), encoding="utf-8")
    file.chmod(0o644)
    return planted(patch, "server", {}, (f"--init-file={file}",))


def planted(
    patch: pytest.MonkeyPatch, role_of: str, env: Mapping[str, str], options: Sequence[str] = ()
) -> list[str]:
    """Start servers or clients of the arm `planted` with more in their environment, or with more options.

    Arms change places from block to block; the settings that a server is started with say whose it is. What
    a server is to do once it has its tables waits for them.
    """
    start, found, arm_at = process.start_child, list[str](), dict[str, bool]()

    def started(role: str, argv: Any, **how: Any) -> process.Child:
        has_tables = True
        if role.startswith("server"):
            (file,) = [word.partition("=")[2] for word in argv if word.startswith("--defaults-file=")]
            text = Path(file).read_text(encoding="utf-8")
            of = dict(line.replace(" ", "").split("=", 1) for line in text.splitlines() if "=" in line)
            arm_at[of["port"]] = is_planted = bool(re.search(r"max_connections *= *900\b", text))
            has_tables = (Path(of["datadir"]) / "sbtest" / "sbtest1.ibd").exists()
        else:
            of_planted = [f"port={port}" for port, is_it in arm_at.items() if is_it]
            is_planted = any(port in word for port in of_planted for word in argv)
        if role.startswith(role_of) and is_planted and (has_tables or not options):
            found.append(role)
            how["env"] = {**(how.get("env") or {}), **env}
            argv = [*argv, *options]
        return start(role, argv, **how)

    patch.setattr(process, "start_child", started)
    return found
