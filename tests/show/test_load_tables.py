"""What parts used and how steady runs were, in tables that leave out what nobody has."""

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

from benchbook.show import tables
from tests.found import findings


def cells(table: object) -> list[list[str]]:
    """Return the texts of a table's rows as they are shown."""
    html = table._repr_html_()
    rows = re.findall(r"<tr.*?</tr>", html, re.S)
    return [
        [re.sub("<[^>]+>", "", cell) for cell in re.findall(r"<t[dh].*?</t[dh]>", row, re.S)] for row in rows
    ]


def runs(**columns: list) -> pd.DataFrame:
    size = len(next(iter(columns.values())))
    return pd.DataFrame(
        {
            "run_id": [f"r{place}" for place in range(size)],
            "position": range(size),
            "block": 1,
            "workload": "rows-100",
            "threads": 16,
            "run_s": 600,
            **columns,
        }
    )


def of(table: pd.DataFrame, intervals: pd.DataFrame | None = None, facts: Any = None) -> Any:
    """Return what a report reads of a study with these runs, as far as these tables need it."""
    return SimpleNamespace(drawn=(table, ()), intervals=intervals, facts=facts or {"arms": {}})


def test_an_arm_without_a_proxy_has_an_empty_cell_and_columns_nobody_has_are_not_shown():
    table = runs(
        arm=["direct", "haproxy", "haproxy"],
        cpu_proxy_cores=[np.nan, 0.5, 0.7],
        sent_proxy_mib_s=[np.nan, 100.0, 104.0],
        memory_proxy_mib=[np.nan] * 3,
    )
    head, direct, haproxy = cells(*tables.tabulate_usage(of(table)))
    assert not any("MiB" in name and "MiB/s" not in name for name in head)
    assert direct[2:] == ["direct", "", ""]
    assert haproxy[2:] == ["haproxy", "0.600", "102"]


def test_the_parts_of_a_tidb_cluster_have_columns_of_their_own():
    table = runs(
        arm=["pod"],
        cpu_server_cores=[7.0],
        cpu_tidb_cores=[3.0],
        cpu_tikv_cores=[3.5],
        cpu_pd_cores=[0.5],
        memory_tikv_mib=[900.0],
    )
    head, row = cells(*tables.tabulate_usage(of(table)))
    assert row[3:] == ["7.00", "3.00", "3.50", "0.500", "900"]
    assert [name.split(",")[0].split(" ")[0] for name in head[3:]] == ["Server", "TiDB", "TiKV", "PD", "TiKV"]


def test_memory_and_bytes_stand_apart_where_a_page_is_too_narrow_for_all():
    """Six columns of cores and three of memory fit; one more does not."""
    cores = {f"cpu_{part}_cores": [1.0] for part in ("client", "proxy", "server", "tidb", "tikv", "pd")}
    memory = {f"memory_{part}_mib": [9.0] for part in ("server", "tidb", "tikv")}
    (whole,) = tables.tabulate_usage(of(runs(arm=["tidb"], **cores, **memory)))
    apart = tables.tabulate_usage(of(runs(arm=["tidb"], **cores, **memory, memory_pd_mib=[9.0])))
    assert [whole.title, *(table.title for table in apart)] == [
        *("What the parts used", "What the parts used", "Memory and bytes of the parts")
    ]
    assert [len(cells(table)[0]) for table in (whole, *apart)] == [3 + 9, 3 + 6, 3 + 4]


def test_stores_that_are_no_tikv_are_not_called_so():
    used = {"cpu_tidb_cores": [3.0], "cpu_tikv_cores": [3.5], "memory_tikv_mib": [900.0]}
    facts = {"arms": {"three-stores": {"engine": {"storage": "unistore, not TiKV: 3 stores, each row on 3"}}}}
    (found,) = tables.tabulate_usage(of(runs(arm=["three-stores"], **used), facts=facts))
    assert [name.startswith("Store (unistore)") for name in cells(found)[0][3:]] == [False, True, True]
    assert "TiDB, store (unistore) and PD together" in found.caption and "TiKV" not in found._repr_html_()


def test_only_long_runs_are_listed_with_their_stalls_and_levels():
    qps = np.concatenate([np.full(400, 1000.0), np.full(200, 700.0)]) * np.exp(
        np.random.default_rng(3).normal(0, 0.02, 600)
    )
    qps[[50, 51]] = 0
    intervals = pd.DataFrame(
        {"run_id": "r0", "second": np.arange(1.0, 601), "qps": qps, "is_discarded": False}
    )
    (table,) = tables.tabulate_stability(of(runs(arm=["pod"]), intervals))
    (_, row) = cells(table)
    assert row[4] == "600"
    assert row[7] == "1: second 51 (2 s)"
    assert row[8].startswith("2: 70") and "for 33 %" in row[8] and "for 67 %" in row[8]
    assert tables.tabulate_stability(of(runs(arm=["pod"], run_s=[60]), intervals)) == []


NEAR = {"engine": {"cluster": {"stores": 3, "zones": {"latency_ms": 0.0, "tidb_beside": ["store-1"]}}}}


def seen(folder: Path, cpu_s: float, runs: list[tuple[str, dict[str, str | None]]], facts: Any = NEAR) -> Any:
    """Return what a report reads of a study whose runs had these leaders before them."""
    for number, (_, led) in enumerate(runs):
        (folder / "raw" / f"r{number}").mkdir(parents=True)
        told = {"arrangement": {"cluster": {"before": {"leaders": led}, "after": {}}}}
        (folder / "raw" / f"r{number}" / "evidence.json").write_text(json.dumps(told))
    table = pd.DataFrame(
        {
            "arm": [arm for arm, _ in runs],
            "folder": [f"raw/r{number}" for number in range(len(runs))],
            "cpu_tidb_cores": cpu_s,
        }
    )
    names = {"arms": {"near": "one zone", "near_again": "one zone again"}, "workloads": {}}
    found = findings(names=names)
    return SimpleNamespace(folder=folder, runs=table, facts={"arms": {"near": facts}}, findings=found)


def led(*stores: str) -> dict[str, str | None]:
    return {str(region): store for region, store in enumerate(stores)}


def test_each_arm_has_a_line_that_counts_the_leaders_of_its_runs(tmp_path: Path):
    first, second = led(*["store-1"] * 2, *["store-2"] * 2), led("store-1", *["store-3"] * 3)
    (table,) = tables.tabulate_leaders(
        seen(tmp_path, 1.0, [("near", first), ("near", second), ("near_again", first)])
    )
    # Beside TiDB are 2 of 4 leaders in one run and 1 of 4 in the other: 37.5 %.
    assert list(map(list, table.rows)) == [
        ["one zone", 2, "4", "store-1 1 to 2, store-2 0 to 2, store-3 0 to 3", "37.5"],
        ["one zone again", 1, "4", "store-1 2, store-2 2", "50.0"],
    ]
    assert "added latency" in table.caption


def test_without_zones_no_store_is_nearer_than_another(tmp_path: Path):
    (table,) = tables.tabulate_leaders(seen(tmp_path, 1.0, [("near", led("store-1", "store-2"))], {}))
    assert "zone" not in re.sub("<[^>]+>", "", table._repr_html_()).replace("one zone", "")


def test_a_study_without_clusters_has_no_such_table(tmp_path: Path):
    assert tables.tabulate_leaders(seen(tmp_path, float("nan"), [("near", {})])) == []
