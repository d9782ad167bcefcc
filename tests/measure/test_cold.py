"""A real server that begins cold, one that begins warm, and what is said of each at its first query."""

import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from benchbook import sites
from benchbook.core.study.study import StudySpec
from benchbook.measure import dataset, statement_counters
from benchbook.measure.data_plan import plan_data
from benchbook.read import validity
from benchbook.sites.topology import teardown
from tests import rooms
from tests.walks import Store

pytestmark = pytest.mark.server

Make = Callable[..., StudySpec]
# 200,000 rows of at least 206 bytes: 41 MB, a tenth of which and 8 MiB are 12.5 MB.
DATA = {"tables": 2, "table_size": 100_000}
ARMS = {"warm": {"data": {"prewarm": True}}, "cold": {"data": {"prewarm": False}}}


@pytest.fixture(scope="module")
def asked(make_study: Make) -> StudySpec:
    settings = {"innodb_buffer_pool_size": "96M", "innodb_log_file_size": "8M"}
    settings["innodb_flush_method"] = "O_DIRECT"
    return make_study(
        arms=ARMS,
        engine={"settings": settings},
        dataset=DATA,
        threads=(1,),
        workloads={"oltp_point_select": {}},
        plan={"seed": 3, "blocks": 1, "discard_s": 0, "run_s": 2, "order": "runs", "max_repeats": 2},
    )


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A folder on the disk, from which a cold server has to read: other labs may lie in memory."""
    with tempfile.TemporaryDirectory(prefix="bb-cold-", dir=rooms.DISK) as name:
        made = Path(name)
        made.chmod(0o711)
        yield made
        assert teardown.tear_down(made).is_clean


@pytest.fixture
def store(asked: StudySpec, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setenv("BENCHBOOK_LOCK", str(folder / "machine.lock"))
    with sites.open_site(asked, folder / "cold") as opened:
        if not opened.has_snapshot(plan_data(asked).label):
            dataset.load_data(opened, plan_data(asked))
        yield Store(opened, asked, tmp_path)


def in_memory(evidence: dict[str, Any], when: str = "before") -> float:
    held = evidence["cache"][when]
    return float(held["pages"] * held["page_bytes"])


def test_a_cold_arm_is_cold_and_a_warm_one_warm_and_data_are_proven_in_both(store: Store):
    store.walk()
    store.assert_complete()
    seen = {folder.plan()["arm"]: folder.evidence() for folder in store.kept()}
    assert {arm: one["begins"] for arm, one in seen.items()} == {"warm": "warm", "cold": "cold"}
    assert in_memory(seen["cold"]) < 12.5e6 < 41e6 < in_memory(seen["warm"])
    assert {arm: one["rows_before"] for arm, one in seen.items()} == {
        arm: {"sbtest1": 100_000, "sbtest2": 100_000} for arm in ARMS
    }
    # What it asks for, it reads from the disk.
    caches = {arm: one["cache"] for arm, one in seen.items()}
    read = {arm: one["after"]["pages_read"] - one["before"]["pages_read"] for arm, one in caches.items()}
    assert read["cold"] > 100 > read["warm"]
    # It reads pages of 16 KiB from its first query on.
    assert seen["cold"]["read_kib_first_s"] > 100 * 16 > seen["warm"]["read_kib_first_s"]
    checks = [one for folder in store.kept() for one in validity.judge_run(folder).checks if one.id == "V25"]
    assert len(checks) == 2 and all(one.passed for one in checks)


def test_a_cold_arm_that_was_read_before_its_first_query_is_void(store, monkeypatch):
    """The fault that was there: to prove data by counting them again loads the pool."""
    chill = type(store.site).chill

    def warmed(site: Any, arm: str) -> None:
        chill(site, arm)
        with statement_counters.open_session(site, arm) as connection:
            dataset.describe_data(connection, plan_data(store.study))

    monkeypatch.setattr(type(store.site), "chill", warmed)
    plan = store.study.plan.model_copy(update={"max_repeats": 0})
    store.study = store.study.model_copy(update={"plan": plan})
    store.walk()
    assert any("V25 cache: " in reasons for _, reasons in store.voids().values())


def test_the_kernel_forgets_the_files_of_a_cold_server_alone(store: Store):
    """A server without O_DIRECT reads through the kernel's memory, where what was copied may still be."""
    store.site.up("cold")
    folder = Path(store.site._servers_of("cold")[0].folder)
    tables, beside = list((folder / "data").rglob("sbtest*.ibd")), folder / "beside"
    beside.write_bytes(bytes(4_000_000))
    for file in (*tables, beside):
        file.read_bytes()
    try:
        assert len(tables) == 2 and min(map(resident, [*tables, beside])) > 0.9
        store.site.chill("cold")
        assert max(map(resident, tables)) < 0.1 and resident(beside) > 0.9
    finally:
        beside.unlink()


def resident(file: Path) -> float:
    """Return the share of a file that the kernel has in memory, in whole pages (util-linux's fincore)."""
    argv = ["fincore", "--bytes", "--noheadings", "--output", "RES,SIZE", str(file)]
    held, size = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split()
    return int(held) / int(size)
