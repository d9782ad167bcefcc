"""Quota and weight are what the kernel says they are, in both versions of its interface."""

import os
import subprocess
import uuid
from pathlib import Path

import pytest

from benchbook.core.util.errors import SiteError
from benchbook.sites.local import cgroups
from benchbook.sites.machine import capabilities


def test_version_two_is_written_as_kubernetes_writes_it(tmp_path: Path) -> None:
    """A folder stands in for the kernel; weights by KEP-2254: 1 + (shares - 2) * 9999 / 262142."""
    group = cgroups.create_group("abcdef0123", "server", quota=0.5, shares=1024, root=tmp_path, version=2)
    assert group.folder == tmp_path / "benchbook-abcdef01" / "server"
    assert (group.folder / "cpu.max").read_text() == "5000 10000"
    assert (group.folder / "cpu.weight").read_text() == "39"
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+cpu"
    assert group.in_force() == {"quota_cores": 0.5, "period_ms": 10, "weight": 39}
    (group.folder / "cpu.stat").write_text("nr_periods 9\nnr_throttled 4\nthrottled_usec 1500000\n")
    assert group.throttled() == {"periods": 9, "throttled": 4, "throttled_s": 1.5}


@pytest.mark.parametrize(("shares", "weight"), [(2, 1), (1024, 39), (262_144, 10_000)])
def test_shares_become_weights(shares: int, weight: int) -> None:
    assert cgroups.to_weight(shares) == weight


def test_a_quota_that_is_not_taken_is_an_error(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(cgroups.CpuControlGroup, "in_force", lambda self: {"quota_cores": None, "weight": 39})
    with pytest.raises(SiteError, match=r"quota of 0\.5 cores"):
        cgroups.create_group("abcdef0123", "server", quota=0.5, shares=1024, root=tmp_path, version=2)


def test_what_cannot_be_made_names_the_group_and_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(SiteError, match=r"benchbook-abcdef01/server.*cpu\.quota"):
        cgroups.create_group("abcdef0123", "server", quota=1, shares=1024, root=tmp_path / "none", version=1)


@pytest.mark.skipif(
    os.geteuid() != 0 or not capabilities.cpu_quota().ok, reason="needs root and control groups"
)
def test_only_groups_of_the_lab_are_removed_and_none_with_a_process_of_others() -> None:
    token, foreign = uuid.uuid4().hex, uuid.uuid4().hex
    ours = cgroups.create_group(token, "server", quota=0.25, shares=2)
    other = cgroups.create_group(foreign, "server", quota=None, shares=1024)
    sleeper = subprocess.Popen(["/bin/sleep", "60"])
    try:
        (ours.folder / "cgroup.procs").write_text(str(sleeper.pid))
        assert cgroups.remove_groups(token[:8], wait_s=0.1) == []
        assert cgroups.list_groups(token[:8]) == [ours.folder, ours.folder.parent]
    finally:
        sleeper.kill()
        sleeper.wait()
    assert len(cgroups.remove_groups(token[:8])) == 2
    assert cgroups.list_groups(token[:8]) == [] and other.folder.is_dir()
    cgroups.remove_groups(foreign[:8])
