"""What parts used, how steady runs were and where leaders were, in tables that leave out what nobody has."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

from benchbook.show import tables
from tests.found import findings
from tests.goldens import assert_page

RUN = {"position": 0, "block": 1, "workload": "rows-100", "threads": 16, "run_s": 600}


def study(table: pd.DataFrame, intervals: pd.DataFrame | None = None, facts: Any = None) -> Any:
    """What a report reads of a study with these runs, as far as these tables need it."""
    return SimpleNamespace(drawn=(table, ()), intervals=intervals, facts=facts or {"arms": {}})


def runs(**columns: list) -> pd.DataFrame:
    size = len(columns["arm"])
    return pd.DataFrame({"run_id": [f"r{place}" for place in range(size)], **RUN, **columns})


def usage(title: str, facts: Any = None, **columns: list) -> list[object]:
    return [f"<h2>{title}</h2>", *tables.tabulate_usage(study(runs(**columns), facts=facts))]


def test_columns_are_those_of_parts_that_some_run_has():
    # Six columns of cores and three of memory fit; one more does not.
    cores = {f"cpu_{part}_cores": [1.0] for part in ("client", "proxy", "server", "tidb", "tikv", "pd")}
    memory = {f"memory_{part}_mib": [9.0] for part in ("server", "tidb", "tikv")}
    stores = {"arms": {"a": {"engine": {"storage": "unistore, not TiKV: 3 stores, each row on 3"}}}}
    proxy = {"sent_proxy_mib_s": [np.nan, 100.0, 104.0], "memory_proxy_mib": [np.nan] * 3}
    cluster = {"cpu_tidb_cores": [3.0], "cpu_tikv_cores": [3.5], "memory_tikv_mib": [900.0]}
    assert_page(
        "parts.txt",
        *usage("No proxy", arm=["direct", "haproxy", "haproxy"], cpu_proxy_cores=[np.nan, 0.5, 0.7], **proxy),
        *usage("A cluster", arm=["pod"], cpu_server_cores=[7.0], **cluster, cpu_pd_cores=[0.5]),
        *usage("As wide as the page", arm=["tidb"], **cores, **memory),
        *usage("Memory apart", arm=["tidb"], **cores, **memory, memory_pd_mib=[9.0]),
        *usage("Stores that are no TiKV", stores, arm=["a"], **cluster),
    )


def test_only_long_runs_are_listed_with_their_stalls_and_levels():
    qps = np.concatenate([np.full(400, 1000.0), np.full(200, 700.0)])
    qps *= np.exp(np.random.default_rng(3).normal(0, 0.02, 600))
    qps[[50, 51]] = 0
    seconds = {"run_id": "r0", "second": np.arange(1.0, 601), "qps": qps, "is_discarded": False}
    intervals = pd.DataFrame(seconds)
    assert_page("stability.txt", *tables.tabulate_stability(study(runs(arm=["pod"]), intervals)))
    assert tables.tabulate_stability(study(runs(arm=["pod"], run_s=[60]), intervals)) == []


def leaders(folder: Path, cpu_s: float, zones: Any, *runs: tuple[str, str]) -> list[Any]:
    """Tables of a study whose runs had these leaders before them: an arm and a digit a region."""
    for number, (_, stores) in enumerate(runs):
        led = {str(region): f"store-{store}" for region, store in enumerate(stores)}
        told = {"arrangement": {"cluster": {"before": {"leaders": led}, "after": {}}}}
        (folder / f"r{number}").mkdir(parents=True)
        (folder / f"r{number}" / "evidence.json").write_text(json.dumps(told))
    names = [f"r{number}" for number in range(len(runs))]
    table = pd.DataFrame({"arm": [arm for arm, _ in runs], "folder": names, "cpu_tidb_cores": cpu_s})
    found = findings(names={"arms": {"near": "one zone", "near_again": "one zone again"}, "workloads": {}})
    facts = {"arms": {"near": {"engine": {"cluster": {"stores": 3, "zones": zones}}}}}
    return tables.tabulate_leaders(SimpleNamespace(folder=folder, runs=table, facts=facts, findings=found))


def test_each_arm_has_a_line_that_counts_the_leaders_of_its_runs(tmp_path: Path):
    zones = {"latency_ms": 0.0, "tidb_beside": ["store-1"]}
    # Beside TiDB are 2 of 4 leaders in one run and 1 of 4 in the other: 37.5 %.
    near = leaders(tmp_path / "1", 1.0, zones, ("near", "1122"), ("near", "1333"), ("near_again", "1122"))
    assert_page("leaders.txt", *near, *leaders(tmp_path / "2", 1.0, {}, ("near", "12")))
    assert leaders(tmp_path / "3", float("nan"), {}, ("near", "")) == []
