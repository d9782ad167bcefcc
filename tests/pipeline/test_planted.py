"""A cause that was planted on real servers is the one that the page names."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from benchbook import sites
from benchbook.compare import consistency, findings
from benchbook.core.causes import Cause
from benchbook.core.findings import Findings
from benchbook.core.params import Analysis
from benchbook.core.study import Study
from benchbook.measure import dataset
from benchbook.plan import schedule
from benchbook.read import stream, tidy
from benchbook.show import causes
from benchbook.sites.arms import clean
from benchbook.sites.processes import process
from tests import rooms, small
from tests.limits import LIMITS
from tests.walks import Store

pytestmark = [pytest.mark.server, pytest.mark.slow, pytest.mark.alone]
# Sends on its socket are what client and server alike do once a query.
BURN = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
static long ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec * 1000000000L + t.tv_nsec;
}
static void burn(void) { long end = ns() + 1000L * atol(getenv("BURN_US")); while (ns() < end); }
ssize_t send(int f, const void *b, size_t n, int o) {
  static ssize_t (*real)(int, const void *, size_t, int);
  if (!real) real = dlsym(RTLD_NEXT, "send");
  burn();
  return real(f, b, n, o);
}
"""
ARMS = {"plain": {}, "planted": {"engine": {"settings": {"max_connections": 900}}}}
POINTS = {"oltp_point_select": {"rand_type": "uniform"}}


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="bb-planted-", dir="/var/tmp"))
    folder.chmod(0o711)
    monkeypatch.setenv("BENCHBOOK_LOCK", str(folder / "machine.lock"))
    yield folder
    assert clean.down(folder).is_clean
    shutil.rmtree(folder)


def asked(arms: Mapping[str, Any], **changes: Any) -> Study:
    engine = {"settings": {"innodb_buffer_pool_size": "96M", "innodb_log_file_size": "8M"}}
    return small.study(
        **{
            "site": {"port": rooms.port(260), "cpus": "split"},
            "engine": engine,
            "arms": arms,
            "workloads": POINTS,
            "threads": (1, 8),
            "dataset": {"tables": 2, "table_size": 20_000},
            "plan": {
                "seed": 3,
                "blocks": 5,
                "discard_s": 0.5,
                "run_s": 2,
                "order": "turns",
                "max_repeats": 3,
            },
            "warm_up": {"prewarm": True, "pilot_s": 0},
            **changes,
        }
    )


def named(study: Study, lab: Path, tmp_path: Path) -> dict[int, Cause]:
    """Measure a study and return the causes that its page names, by level."""
    return {one.threads: one for one in causes.known(measured(study, lab, tmp_path))}


def measured(study: Study, lab: Path, tmp_path: Path) -> Findings:
    """Measure a study and return its findings."""
    with sites.open_site(study, lab / "lab") as site:
        if not site.has_snapshot(dataset.label(study)):
            dataset.load(site, study)
        store = Store(site, study, tmp_path)
        store.walk_alone()
        facts = {arm: site.facts(arm) for arm in study.arms}
    stream.parse(store.raw, store.void, schedule.table(store.runs), tmp_path / "tidy", LIMITS)
    frames = tidy.load(tmp_path / "tidy")
    checks = consistency.of_runs(frames["runs"])
    found = findings.make("planted", study, frames, Analysis(), (), checks, facts)
    for one in found.causes.contrasts:
        print(one.threads, one.qps, one.cost, one.sentence or one.reason)
    print(*[(one.threads, one.arm, one.places) for one in found.causes.cells], sep="\n")
    return found


def burning(monkeypatch: pytest.MonkeyPatch, lab: Path, us: int, role_of: str) -> list[str]:
    """Let servers or clients of the arm `planted` burn time of a processor at each of their sends.

    Arms change places from block to block; the settings that a server is started with say whose it is.
    """
    library = lab / "burn.so"
    command = ["gcc", "-O2", "-shared", "-fPIC", "-x", "c", "-", "-o", str(library), "-ldl"]
    subprocess.run(command, input=BURN, text=True, check=True)
    library.chmod(0o755)
    start, burnt, arm_at = process.start, list[str](), dict[str, bool]()

    def started(role: str, argv: Any, **how: Any) -> process.Child:
        if role.startswith("server"):
            (file,) = [word.partition("=")[2] for word in argv if word.startswith("--defaults-file=")]
            text = Path(file).read_text(encoding="utf-8")
            port = next(line.split("=")[1].strip() for line in text.splitlines() if line.startswith("port"))
            arm_at[port] = is_planted = bool(re.search(r"max_connections *= *900\b", text))
        else:
            is_planted = any(
                is_it and f"port={port}" in word for port, is_it in arm_at.items() for word in argv
            )
        if role.startswith(role_of) and is_planted:
            burnt.append(role)
            how["env"] = {**(how.get("env") or {}), "LD_PRELOAD": str(library), "BURN_US": str(us)}
        return start(role, argv, **how)

    monkeypatch.setattr(process, "start", started)
    return burnt


def test_a_server_that_burns_time_is_named(lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    burnt = burning(monkeypatch, lab, 60, "server")
    found = named(asked(ARMS), lab, tmp_path)
    assert burnt and found[1].short.endswith("a query, most of it the server's processor")
    # What was planted is 60 us a query.
    assert 50 < found[1].predicted.value < 80
    # Where other programs take a part of its core, it is not full for certain: then it waits for it.
    assert 8 not in found or "the server's core" in found[8].sentence


def test_a_client_that_burns_time_is_named(lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    burnt = burning(monkeypatch, lab, 60, "client")
    found = named(asked(ARMS), lab, tmp_path)
    assert burnt and found[1].short.endswith("a query, most of it the client's processor")
    assert 50 < found[1].predicted.value < 80
    assert 8 not in found or "the client's core" in found[8].sentence


def test_a_proxy_with_a_small_buffer_is_named(lab: Path, tmp_path: Path):
    none = dict.fromkeys(("point_selects", "sum_ranges", "order_ranges", "distinct_ranges"), 0)
    rows = {"script": "oltp_read_only", "skip_trx": True, "simple_ranges": 1, "range_size": 1000, **none}
    planted = {"access": "haproxy", "proxy": {"settings": {"tune.bufsize": 1024}}}
    study = asked({"plain": {"access": "haproxy"}, "planted": planted}, workloads={"rows": rows})
    found = named(study, lab, tmp_path)
    assert "of the proxy's processor" in found[1].sentence
    assert 8 not in found or "client and proxy" in found[8].sentence


def test_a_cold_pool_is_named(lab: Path, tmp_path: Path):
    """Each run begins with an empty pool, and ends before most of the data have been read."""
    of_disk = {
        "innodb_flush_method": "O_DIRECT",
        "innodb_buffer_pool_size": "512M",
        "innodb_buffer_pool_load_at_startup": False,
        "innodb_buffer_pool_dump_at_shutdown": False,
    }
    study = asked(
        {"plain": {"data": {"prewarm": True}}, "planted": {"data": {"prewarm": False}}},
        engine={"settings": of_disk},
        dataset={"tables": 2, "table_size": 400_000},
        plan={"seed": 3, "blocks": 5, "discard_s": 0, "run_s": 2, "order": "runs", "max_repeats": 3},
    )
    found = measured(study, lab, tmp_path)
    (one,) = (cause for cause in found.causes.contrasts if cause.threads == 1)
    pages = "pages not in its memory a query, not 0.00"
    assert one.qps.high < 0 and any(pages in text for text in one.beside)
    # Where other programs take the machine, no cause is sure.
    assert pages in one.sentence if one.sentence else one.reason.startswith("other programs")
