"""Limits that others set on the control groups of a process are told, wherever they are up to the root."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchbook.sites.processes import cgroup_limits
from benchbook.sites.processes.cgroup_limits import ControlGroup
from tests.faults import outside_limits

BUSY = "import sys\nprint(1, flush=True)\nwhile True: pass"


@pytest.fixture
def child() -> Iterator[int]:
    with subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE) as popen:
        assert popen.stdout is not None
        popen.stdout.readline()
        yield popen.pid
        popen.kill()


VERSION_2 = {"cpu.max": "20000 100000", "cpu.weight": "100", "memory.max": "max", "memory.high": "536870912"}
VERSION_1 = {"cpu.cfs_quota_us": "-1", "cpu.shares": "2", "memory.limit_in_bytes": str((1 << 63) - 4096)}


@pytest.mark.parametrize(
    ("files", "path", "said"),
    [
        (VERSION_2, "/a.slice", ["a CPU quota of 0.2 cores", "a memory limit (memory.high) of 512 MiB"]),
        # What an arm asks for is no limit of others; what they add to our own group is one.
        (VERSION_2, "/benchbook-0123abcd/server", ["a memory limit (memory.high) of 512 MiB"]),
        ({"cpu.max": "max 100000", "cpu.weight": "9"}, "/benchbook-0123abcd", []),
        ({"cpu.max": "5000 100000"}, "/benchbook-0123abcd", ["a CPU quota of 0.05 cores"]),
        (VERSION_1, "/limits", ["a CPU weight of 2 (1024 is usual)"]),
        ({"cpu.cfs_quota_us": "150000", "cpu.cfs_period_us": "100000"}, "/", ["a CPU quota of 1.5 cores"]),
        ({"cpuset.cpus": "0"}, "/one", ["a set of cores (0)"]),
        ({"io.max": "8:0 rbps=1 wbps=max"}, "/slow", ["a limit of disks (io.max 8:0 rbps=1 wbps=max)"]),
        ({}, "/", []),
    ],
)
def test_what_the_files_of_a_group_say_is_told_in_words(tmp_path: Path, files, path: str, said: list[str]):
    for name, text in files.items():
        (tmp_path / name).write_text(text + "\n")
    assert list(cgroup_limits._iter_limits(ControlGroup(str(tmp_path), "/sys/fs/cgroup", path))) == said


@pytest.mark.parametrize("kind", outside_limits.KINDS)
def test_a_limit_is_told_with_its_group_and_is_gone_with_it(child: int, kind: str):
    before = cgroup_limits.describe_limits(child)
    with outside_limits.on(child, kind) as path:
        (limit,) = set(cgroup_limits.describe_limits(child)) - set(before)
        assert limit.endswith(f" at {path}")
    assert cgroup_limits.describe_limits(child) == before


def test_what_a_quota_held_back_is_counted_between_two_looks(child: int):
    # Less than a machine that is busy with other tests leaves it.
    with outside_limits.on(child, "small quota") as path:
        was = cgroup_limits.held_back([child])
        deadline, periods = time.monotonic() + 30.0, 0.0
        while periods <= 2 and time.monotonic() < deadline:
            time.sleep(0.2)
            held = cgroup_limits.diff_throttling(was, cgroup_limits.held_back([child])).get(path, {})
            periods = held.get("periods", 0.0)
        assert periods > 2 and held["seconds"] > 0 and held["memory"] == 0
    assert cgroup_limits.describe_limits(2**22 + os.getpid()) == []
