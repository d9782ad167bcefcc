"""Where the leaders of a cluster's regions were, counted in the runs themselves."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd

from benchbook.show import leaders
from tests.found import findings

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
    (table,) = leaders.tables(seen(tmp_path, 1.0, [("near", first), ("near", second), ("near_again", first)]))
    # Beside TiDB are 2 of 4 leaders in one run and 1 of 4 in the other: 37.5 %.
    assert list(map(list, table.rows)) == [
        ["one zone", 2, "4", "store-1 1 to 2, store-2 0 to 2, store-3 0 to 3", "37.5"],
        ["one zone again", 1, "4", "store-1 2, store-2 2", "50.0"],
    ]
    assert "added latency" in table.caption


def test_without_zones_no_store_is_nearer_than_another(tmp_path: Path):
    (table,) = leaders.tables(seen(tmp_path, 1.0, [("near", led("store-1", "store-2"))], {}))
    assert "zone" not in re.sub("<[^>]+>", "", table._repr_html_()).replace("one zone", "")


def test_a_study_without_clusters_has_no_such_table(tmp_path: Path):
    assert leaders.tables(seen(tmp_path, float("nan"), [("near", {})])) == []
