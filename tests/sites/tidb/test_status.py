"""TiDB's books under MariaDB's names: what is added up and what is left out."""

import tomllib
from pathlib import Path

import pytest

from benchbook.core.util import numeric_equality
from benchbook.core.util.errors import SettingsDiffer
from benchbook.sites.descriptors import tidb
from benchbook.sites.machine.contract import Request
from benchbook.sites.tidb import config, status

DATA = Path(__file__).parents[2] / "data" / "tidb"
METRICS = (DATA / "metrics.txt").read_text(encoding="utf-8")
# Of a TiDB built from the sources of 2019-08-27, after three updates in two transactions of which one met the
# other and was done again; its buckets are left out, and most counters that stood at 0.
OLD_METRICS = (DATA / "metrics-3.0.txt").read_text(encoding="utf-8")
OLD_STATUS = '{"connections":1,"version":"5.7.25-TiDB-v3.0.1-20190827-cc07b110825e","git_hash":"None"}'


def test_counters_are_sums_over_results_under_the_names_that_the_checks_know() -> None:
    found = status.map_counters(status.parse_samples(METRICS))
    # 19783 + 5 executions, ignored errors among them, as MariaDB counts them.
    assert found["Com_stmt_execute"] == 19788 and found["Com_stmt_prepare"] == 7
    assert (found["Com_select"], found["Com_update"], found["Com_insert"]) == (12, 3, 0)
    # 8 + 1 ended, 4 never got in.
    assert found["Connections"] == 13 and found["Aborted_connects"] == 4
    assert found["Questions"] == 19783 + 5 + 7 + 2
    # It counts what it was told alone, however often it does it again.
    assert "Retries" not in found
    assert "Rows_sent" not in found and "Rows_sent" in status.ABSENT


def test_connections_that_an_old_server_does_not_count_are_not_counted_as_none() -> None:
    found = status.map_counters(status.parse_samples(OLD_METRICS))
    assert "Connections" not in found and "Connections" in status.UNCOUNTED
    assert found["Aborted_connects"] == 0 and found["Questions"] == 58 + 1
    assert (found["Com_select"], found["Com_update"], found["Retries"]) == (15, 8, 2)
    assert (found["Com_begin"], found["Com_commit"]) == (3, 6)


@pytest.mark.parametrize("path", ["/config", "/settings"])
def test_an_old_server_says_who_it_is_as_a_new_one_and_has_settings_at_a_path_of_its_own(path: str) -> None:
    class Server:
        def request(self, address: str, port: int, asked: Request) -> str:
            if asked.path not in ("/status", path):
                raise OSError(f"{asked.path}: 404")
            return OLD_STATUS if asked.path == "/status" else '{"log": {"level": "error"}}'

    found = status.Status("db1", 4001, Server())
    assert found.answers and found.connected() == 1 and found.config() == {"log.level": "error"}


def test_a_label_with_quotes_and_braces_is_read_whole() -> None:
    ((name, labels, value),) = status.parse_samples('one{a="x\\"}{",b="y"} -1.5\n')
    assert (name, labels, value) == ("one", {"a": 'x\\"}{', "b": "y"}, -1.5)


def test_items_go_into_sections_that_an_old_parser_reads_and_come_back_by_dotted_name() -> None:
    items = {"log.level": "error", "enable-telemetry": False, "log.file.max-days": 3, "x.ratio": 0.5}
    text = config.render_toml(items)
    lines = ["enable-telemetry=false", "[log]", 'level="error"', "[log.file]", "max-days=3", "[x]"]
    assert text.splitlines() == [*lines, "ratio=0.5"]
    assert numeric_equality.flatten_mapping(tomllib.loads(text)) == items


@pytest.mark.parametrize(
    ("versions", "has_item", "has_telemetry"),
    [
        (("3.0.1", "4.0.1"), True, False),
        (("4.0.2", "5.4.0-alpha-1", "6.0.3"), True, True),
        (("6.1.0", "7.5"), False, True),
    ],
)
def test_each_version_is_asked_for_the_plan_cache_in_its_way_and_for_nothing_that_it_does_not_know(
    versions: tuple[str, ...], has_item: bool, has_telemetry: bool
) -> None:
    for asked in (config.complete_settings({}, version) for version in versions):
        assert ("prepared-plan-cache.enabled" in asked.items) == has_item
        assert ("tidb_enable_prepared_plan_cache" in asked.variables) != has_item
        for settings in (asked.items, asked.variables):
            assert ({"enable-telemetry", "tidb_enable_telemetry"} & settings.keys() != set()) == has_telemetry


def test_a_setting_that_was_not_taken_is_named_whichever_kind_it_is() -> None:
    asked = config.complete_settings({"performance.max-procs": 2, "tidb_retry_limit": 10}, "6.6.0")
    items = {"log.level": "error", "enable-telemetry": False, "performance.max-procs": 0}
    variables = {name: "OFF" if value is False else "ON" for name, value in asked.variables.items()}
    with pytest.raises(SettingsDiffer) as told:
        asked.taken({}, items, variables | {"tidb_retry_limit": "7"})
    assert told.value.differences == {"performance.max-procs": (2, "0"), "tidb_retry_limit": (10, "7")}
    with pytest.raises(SettingsDiffer) as told:
        asked.taken({}, items | {"performance.max-procs": 2}, {})
    assert told.value.differences["tidb_retry_limit"] == (10, None)
    assert "got no such variable" in str(told.value)


def test_what_a_version_does_not_know_is_no_fault_unless_the_study_asks_for_it() -> None:
    asked = config.complete_settings({"tidb_retry_limit": 10}, "6.6.0")
    items = {"log.level": "error", "enable-telemetry": False}
    told = {name: "OFF" if value is False else "ON" for name, value in asked.variables.items()}
    told["tidb_retry_limit"] = "10"
    del told["tidb_enable_telemetry"]
    mine = {"tidb_retry_limit": 10}
    assert asked.taken(mine, items, told, may_lack=True)["tidb_enable_telemetry"]["got"] is None
    with pytest.raises(SettingsDiffer, match="tidb_enable_telemetry"):
        asked.taken(mine, items, told)
    del told["tidb_retry_limit"]
    with pytest.raises(SettingsDiffer, match="tidb_retry_limit"):
        asked.taken(mine, items, told, may_lack=True)


def test_what_would_open_the_server_is_the_labs_to_say() -> None:
    asked = {"security.skip-grant-table": True, "status.status-host": "0.0.0.0", "log.level": "info"}
    assert tidb.find_reserved(asked) == ["security.skip-grant-table", "status.status-host"]


# As TiKV 3 to 8 write it: a counter for each thread, whose name ends in its number.
TOLD = (DATA / "threads.txt").read_text(encoding="utf-8")


def test_what_two_looks_at_all_tikv_differ_by_is_what_each_pool_of_threads_used_busiest_first():
    looks = [status.pool_seconds(TOLD.format(spent_s)) for spent_s in (1.5, 4.0, 2.0)]
    assert looks[0] == {"grpc": 3.5, "grpc-server": 3.25, "unified-read-po": 7.5, "raftstore-1": 0.5}
    # grpc_0 goes from 1.5 to 4.0 s in one TiKV and from 1.5 to 2.0 s in the other: 3.0 s together.
    spent = status.pools_spent([looks[0]] * 2, [looks[1], {**looks[2], "new-pool": 5.0}])
    assert spent == {"new-pool": 5.0, "grpc": 3.0} and list(spent) == ["new-pool", "grpc"]
    assert status.pools_spent(looks[1:2], [{"grpc": 0.1}]) is None, "one that was started anew"
    assert status.pool_seconds("nothing of it\n") == {}
