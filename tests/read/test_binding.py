"""What the files of one run say of each other, and one run of the next, on both sides of each tolerance."""

import datetime
from types import SimpleNamespace
from typing import Any

import pytest

from benchbook.read import binding
from benchbook.read.evidence import Evidence
from tests.read import corpus, synthetic

BEGUN = "2026-01-05T10:00:00.000+00:00"


def at(seconds: float) -> str:
    """Return the moment so many seconds after the run began."""
    return (datetime.datetime.fromisoformat(BEGUN) + datetime.timedelta(seconds=seconds)).isoformat()


def run(changed: dict[str, Any] | None = None) -> Evidence:
    """Return a run of 7 s by all clocks, but for what is changed."""
    told = {"ended_utc": at(7), "machine_cores": 2, **(changed or {})}
    return corpus.healthy(synthetic.output(), synthetic.planned(), "", told)


def lasting(seconds: float) -> dict[str, Any]:
    return {"ended_monotonic_s": 100 + seconds, "sysbench_s": seconds, "ended_utc": at(seconds)}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, []),
        ({"sysbench_s": 7.0009}, []),
        ({"sysbench_s": 7.002}, ["evidence.json: sysbench_s is 7.002, end less start is 7.000 s"]),
        # The clocks are read one after the other, within a quarter of a second.
        ({"ended_utc": at(7.24)}, []),
        (
            {"ended_utc": at(7.26)},
            ["evidence.json: started_utc to ended_utc is 7.260 s, the run took 7.000 s"],
        ),
        # So much more as the wall clock stepped.
        ({"ended_utc": at(7.26), "clock_step_s": -0.02}, []),
        # Several clients begin half a second apart at the most; to connect may take 45 s.
        (lasting(6.51), []),
        (lasting(6.49), ["evidence.json: the run took 6.490 s, sysbench says 7.000 s"]),
        (lasting(51.9), []),
        (lasting(52.1), ["evidence.json: the run took 52.100 s, sysbench says 7.000 s"]),
    ],
)
def test_moments_lengths_and_sysbenchs_clock_are_of_one_run(changed: dict[str, Any], said: list[str]):
    assert list(binding.of_times(run(changed))) == said


@pytest.mark.parametrize(
    ("attempt", "voided", "said"),
    [
        (1, 0, []),
        (2, 0, ["manifest.json: attempt 2, evidence.json has 1"]),
        (1, 1, ["evidence.json: attempt 1, and void has 1 attempts before it"]),
    ],
)
def test_an_attempt_has_those_before_it_among_the_voids(attempt: int, voided: int, said: list[str]):
    assert list(binding.of_attempt(run(), SimpleNamespace(attempt=attempt), voided)) == said


def test_a_client_has_the_threads_of_its_plan():
    assert list(binding.of_client(run())) == []
    said = list(binding.of_client(run({"client": {"threads": 8}})))
    assert said == ["evidence.json: client.threads is 8, the plan has 4"]


def facts(version: str = "10.11.6", proxy: Any = None) -> dict[str, Any]:
    known = {name: corpus.WHO[name] for name in ("config_hash", "started_with")}
    return {"engine": {"name": "mariadb", "version": version, **known}, "proxy": proxy}


OF_PROXY = {"identity_before": {"proxy_config_hash": "p"}, "identity_after": {"proxy_config_hash": "p"}}


@pytest.mark.parametrize(
    ("changed", "told", "tells_proxy", "said"),
    [
        ({}, facts(), True, []),
        ({}, facts("11.4.2"), True, ["{}.version is 10.11.6, facts.json has 11.4.2"]),
        (OF_PROXY, facts(proxy={"config_hash": "p"}), True, []),
        (OF_PROXY, facts(proxy={"config_hash": "q"}), True, ["{}.proxy_config_hash is p, facts.json has q"]),
        ({}, facts(proxy={"config_hash": "p"}), True, ["{} lacks the proxy of facts.json"]),
        (OF_PROXY, facts(), True, ["{} has a proxy that facts.json lacks"]),
        # Where runs do not name their proxies, one that is not named is no sign.
        ({}, facts(proxy={"config_hash": "p"}), False, []),
        (OF_PROXY, facts(), False, []),
    ],
)
def test_server_and_proxy_of_a_run_are_those_of_the_facts(changed, told, tells_proxy, said):
    looks = ("identity_before", "identity_after")
    due = [f"evidence.json: {line.format(when)}" for when in looks for line in said]
    assert list(binding.of_identity(run(changed), told, tells_proxy)) == due


def of_engine(name: str, kind: str = "local", **more: Any) -> dict[str, Any]:
    return {"engine": {"name": name, **more}, "site": {"kind": kind}}


@pytest.mark.parametrize(
    ("changed", "told", "said"),
    [
        ({}, of_engine("mariadb"), []),
        (
            {"available": False, "reason": "no"},
            of_engine("mariadb"),
            ["there is no ledger (no), and its server has one"],
        ),
        ({"available": False, "reason": "no"}, of_engine("mariadb", "existing"), []),
        ({"absent": {"Com_select": "no"}}, of_engine("mariadb"), ["no Com_select, which MariaDB counts"]),
        ({"absent": {"Com_begin": "no"}}, of_engine("mariadb"), ["no Com_begin, which MariaDB counts"]),
        ({"absent": {"Com_begin": "no"}}, of_engine("postgresql"), []),
        ({"absent": {"Connections": "no"}}, of_engine("mariadb"), ["no Connections, which MariaDB counts"]),
        # A proxy that pools sessions opens some of its own.
        ({"absent": {"Connections": "no"}}, of_engine("mariadb") | {"proxy": {"name": "pgbouncer"}}, []),
        (
            {"before": {"Connections": 1, "Retries": 0}},
            of_engine("tidb"),
            ["TiDB counts connections and Retries, and no server does both"],
        ),
        ({"before": {"Retries": 0}, "absent": {"Connections": "no"}}, of_engine("tidb"), []),
    ],
)
def test_books_that_a_server_can_keep_are_there(changed, told, said):
    ledger = run().seen["ledger"] | changed
    assert list(binding.of_ledger(run({"ledger": ledger}), told)) == [f"evidence.json: {one}" for one in said]


@pytest.mark.parametrize(
    ("asked", "replicas", "said"),
    [
        ({"stores": 2, "tidb": 1, "replicas": 2}, {"2": 7}, []),
        ({"stores": 3, "tidb": 1, "replicas": 2}, {"2": 7}, ["the cluster has 2 stores, facts.json has 3"]),
        ({"stores": 2, "tidb": 3, "replicas": 2}, {"2": 7}, ["the cluster has 1 tidb, facts.json has 3"]),
        ({"stores": 2, "tidb": 1, "replicas": 2}, {"1": 7}, ["rows are on 1 stores, facts.json has 2"]),
    ],
)
def test_a_cluster_has_the_parts_of_the_facts(asked, replicas, said):
    parts = {name: {"pid": 1} for name in ("pd", "store-1", "store-2", "tidb-1")}
    seen = run(
        {
            "identity_before": {"cluster": parts},
            "arrangement": {"cluster": {"before": {"replicas": replicas}}},
        }
    )
    assert list(binding.of_cluster(seen, of_engine("tidb", cluster=asked))) == [
        f"evidence.json: {one}" for one in said
    ]
    assert list(binding.of_cluster(run(), of_engine("mariadb"))) == []


@pytest.mark.parametrize(
    ("told", "cores"),
    [
        ({"machine": {"cores": 2}}, None),
        ({"machine": {"cores": 4}}, 4),
        # Of several machines it is the client's.
        ({"machine": {"cores": 2}, "hosts": {"client": {"cores": 8}, "server": {"cores": 2}}}, 8),
        ({"machine": {"cores": 2}, "client_node": {"cores": 16}}, 16),
        ({}, None),
    ],
)
def test_the_cores_are_those_of_the_clients_machine(told: dict[str, Any], cores: int | None):
    due = [f"evidence.json: machine_cores is 2, facts.json has {cores}"] if cores else []
    assert list(binding.of_machine(run(), told)) == due


@pytest.mark.parametrize(
    # 128 MiB are 8,192 pages of 16 KiB, and 0.95 of them 7,782.4.
    ("pages", "is_told"),
    [(8192, False), (8193, True), (7783, False), (7782, True)],
)
def test_a_pool_has_the_pages_of_its_size_but_for_a_twentieth(pages: int, is_told: bool):
    known = {"page_bytes": 16384, "pages": 900, "pages_read": 1000, "bytes_read": 1000 * 16384}
    seen = run({"cache": {"before": known | {"pages_of_pool": pages}, "after": None}})
    due = (
        f"evidence.json: cache.before: the pool has {pages} pages of 16384 bytes, facts.json has a pool of "
        "134217728 bytes"
    )
    for size in ({"got": "134217728"}, 134217728):
        settings = {"engine": {"settings": {"innodb_buffer_pool_size": size}}}
        assert list(binding.of_pool(seen, settings)) == ([due] if is_told else [])
    for unknown in ({"got": "auto"}, {}):
        settings = {"engine": {"settings": {"innodb_buffer_pool_size": unknown}}}
        assert list(binding.of_pool(seen, settings)) == []


@pytest.mark.parametrize(
    # The last sample is a hundredth after its second, and 3 s may lack or be too many.
    ("seconds", "is_whole", "is_told"),
    [
        *((7, True, False), (4, True, False), (3, True, True), (3, False, False)),
        *((9, True, False), (11, False, True)),
    ],
)
def test_a_monitor_ends_with_its_run(seconds: int, is_whole: bool, is_told: bool):
    due = [f"monitor.csv: it ends at second {seconds}.01, the run at 7.0"] if is_told else []
    assert list(binding.of_monitor(run(), synthetic.monitor(seconds), is_whole)) == due


def test_a_monitor_goes_on():
    first, *rows = synthetic.monitor(7).splitlines()
    assert list(binding.of_monitor(run(), "\n".join([first, *rows[::-1]]) + "\n", True)) == [
        "monitor.csv: its seconds do not go on"
    ]


def look(begun: float, ended: float, before: int, after: int, **changed: Any) -> dict[str, Any]:
    """Return what was seen of a run of one server, which counted so many connections at both ends."""
    return {
        **dict.fromkeys(("started_utc", "ended_utc"), BEGUN),
        **{"started_monotonic_s": begun, "ended_monotonic_s": ended, "clock_step_s": 0.0},
        "sysbench_s": ended - begun,
        "identity_before": {"pid": 10, "started": 5.0},
        "ledger": {"before": {"Connections": before}, "after": {"Connections": after}},
        **changed,
    }


def since(connections: int, seconds: float) -> dict[str, Any]:
    known = {"uptime_s": 10, "own": 3, "counters": {}, "is_shared": False}
    return {"state": {"between": known | {"connections": connections, "seconds": seconds}}}


@pytest.mark.parametrize(
    ("later", "said"),
    [
        (look(20, 30, 14, 18), []),
        (look(20, 30, 13, 18), ["b: evidence.json: Connections is 13 before it, was 14 after a"]),
        # Another process begins at nought, and so does what is counted by account; sums of several servers,
        # and what one server served at once, are no chain.
        (look(20, 30, 3, 7, identity_before={"pid": 10, "started": 19.0}), []),
        (look(20, 30, 3, 7, ledger={"before": {"Account_updates": 0, "Connections": 3}, "after": {}}), []),
        (look(20, 30, 3, 7, servers=[{}]), []),
        (look(5, 30, 3, 7), []),
        # Three connections in the 10 s between them, by our looks; four by the server's count.
        (look(20, 30, 17, 21, **since(3, 10.0)), []),
        (
            look(20, 30, 18, 22, **since(3, 10.0)),
            ["b: evidence.json: 3 connections since the run before, Connections grew by 4 since a"],
        ),
        # The run before was another one, which is not here.
        (look(20, 30, 18, 22, **since(3, 7.9)), []),
        (look(20, 30, 18, 22, **since(3, 12.1)), []),
    ],
)
def test_a_server_counts_on_from_run_to_run(later: dict[str, Any], said: list[str]):
    assert list(binding.chained({"b": later, "a": look(0, 10, 10, 14)})) == said


def test_runs_of_two_groups_follow_each_other():
    def told(begin: float, group: str) -> list[str]:
        spans = {
            "b": (binding.moment(at(begin)), binding.moment(at(20)), group),
            "a": (binding.moment(at(0)), binding.moment(at(10)), "one"),
        }
        return list(binding.overlapping(spans))

    assert told(9.0, "two") == []
    assert told(8.9, "two") == ["b: it began while a was still running"]
    assert told(8.9, "one") == []
    with pytest.raises(ValueError, match="a moment without a zone"):
        binding.moment("2026-01-05T10:00:00")
