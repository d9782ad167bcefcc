"""A page says in a line each what was measured: programs, machines, data."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
from ruamel.yaml import YAML

from benchbook.core.artifacts.applied_config import digest_text
from benchbook.show import setup_section
from tests.found import findings
from tests.goldens import assert_golden, assert_page

CASES = Path(__file__).parents[1] / "data" / "setups.yaml"
RUNS = pd.DataFrame({"workload": ["rw", "rw"], "reads": [14, 14], "writes": [4, 4], "other": [2, 2]})


def inputs(arms, dataset=None, names=None, applied=None, runs=RUNS[:0]):
    """Evidence of a study, as far as this page's part needs it."""
    return SimpleNamespace(
        facts={"arms": arms},
        dataset=dataset or {},
        named=names or {},
        applied=applied or {},
        runs=runs,
        findings=findings(names={"arms": {}, "workloads": {"rw": "read and write"}}),
    )


def state_settings(arm: dict[str, Any]) -> dict[str, Any]:
    """Facts of an arm with each setting as it was asked and as the server has it, where that is told."""
    engine = arm.get("engine")
    if engine is None or "settings" not in engine:
        return arm
    both = {
        name: dict(zip(("asked", "got"), said, strict=True)) if isinstance(said, list) else {"asked": said}
        for name, said in engine["settings"].items()
    }
    return arm | {"engine": engine | {"settings": both}}


def describe(case: dict[str, Any]) -> list[str]:
    """Lines of a page's first part, and the rows of its table of engines."""
    arms = {name: state_settings(arm) for name, arm in case["arms"].items()}
    seen = inputs(arms, case.get("data"), case.get("names"), runs=RUNS if case.get("has_runs") else RUNS[:0])
    tables = setup_section.compare_engines(seen)
    rows = [row for table in tables for row in ([column.label for column in table.columns], *table.rows)]
    return [*setup_section.describe_setup(seen), *("  | ".join(row) for row in rows)]


def test_first_lines_have_what_an_expert_asks_for_and_engines_stand_side_by_side():
    answers = []
    for title, cases in YAML(typ="safe").load(CASES).items():
        answers.append(f"\n{title}")
        answers += ["  - " + ("\n    ".join(describe(case)) or "nothing") for case in cases]
    assert_golden("setups.txt", "\n".join(answers).lstrip().replace("\xa0", " ") + "\n")


def test_each_file_is_folded_under_its_name_with_its_arms_and_is_only_text():
    common, own = "x=<b>1</b>", "frontend client"
    engine = {"config_hash": digest_text(common)}
    arms = {"direct": {"engine": engine}, "haproxy": {"engine": engine}}
    arms["haproxy"]["proxy"] = {"config_hash": digest_text(own)}
    kept = {"my-1.cnf": common, "haproxy-2.cfg": own, "store-3.toml": "y"}
    (block,) = setup_section.render_files(inputs(arms, names={"direct": "direct connections"}, applied=kept))
    # A store's digest is in the runs alone: its file names no arm.
    assert_page("applied.txt", block)
    assert block.text.count("<details>") == 3 and "x=&lt;b&gt;1" in block.text


def test_where_none_was_kept_nothing_is_shown():
    assert setup_section.render_files(inputs({})) == []
