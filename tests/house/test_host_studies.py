"""The studies for hosts ask what their sources print: sizes, thread levels, and the time that these took."""

import pytest

from benchbook.core.util import paths
from benchbook.plan import schedule
from benchbook.sites.hosts import roles
from tests.house import tree

# What each stands for, and the minutes that its source's runs took for as many arms; None: no length printed.
PUBLISHED_MINUTES = {
    **{f"tiproxy-haproxy-{load}": 120 for load in ("point-select", "read-only", "write-only", "read-write")},
    **{"tiproxy-haproxy-result-rows": 160, "tiproxy-haproxy-vcpus": 80},
    **{"tiproxy-haproxy-idle": 60, "tiproxy-haproxy-short": 60, "tiproxy-haproxy-capture": 120},
    # One arm was published.
    **{"tidb-upgrade": None, "tidb-sysbench-howto": 3 * 180},
    **{"tidb-sysbench-howto-tikv": 3 * 180, "tidb-sysbench-howto-pools": 2 * 180},
}


def test_no_study_for_hosts_is_left_out():
    found = {name for name in paths.list_studies() if "kind: ssh" in paths.study_paths(name).file.read_text()}
    assert found == set(PUBLISHED_MINUTES)


@pytest.mark.parametrize("name", PUBLISHED_MINUTES)
def test_sizes_and_levels_are_those_of_the_source_and_it_takes_no_longer(name: str):
    asked, most = tree.study(name), PUBLISHED_MINUTES[name]
    (origin,) = (one for one in ("tiproxy-haproxy", "tidb-sysbench-howto", "tidb-upgrade") if one in name)
    options = tree.document(origin).sysbench.options
    assert (asked.dataset.tables, asked.dataset.table_size) == (options["tables"], options["table-size"])
    assert set(asked.threads) <= tree.printed_levels(origin) | {768}
    seconds = schedule.estimate_seconds(asked, schedule.sketch_runs(name, asked))
    assert seconds <= 60 * (most if most is not None else 400)
    assert most is None or seconds > 0.9 * 60 * most, "and the time is used"


def test_the_open_files_that_the_study_of_idle_connections_asks_for_are_those_that_hosts_are_held_to():
    asked = tree.study("tiproxy-haproxy-idle")
    text = paths.study_paths("tiproxy-haproxy-idle").file.read_text(encoding="utf-8")
    most = max((arm for arm in asked.arms.values() if arm.load), key=lambda arm: arm.load.connections)
    # 15,000 connections, two files each at a proxy, and 1,024 for all else: 31,024 and 16,024.
    for role, told in (("proxy", "lb1 must allow 31,024"), ("server", "every other host 16,024")):
        needed = int(told.split()[-1].replace(",", ""))
        assert told in text
        assert roles.short_of_files(most, role, needed) is None
        assert roles.short_of_files(most, role, needed - 1) is not None
