"""What is held of a script of the user's own, of which only the pilots tell a rule."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ruamel.yaml import YAML

from benchbook.read import checks_custom_scripts
from tests.goldens import assert_golden

CASES = Path(__file__).parents[1] / "data" / "custom_scripts.yaml"
RULE = {"event": {"reads": 3, "writes": 1, "other": 2}, "thread": {"reads": 1, "writes": 0, "other": 0}}
TOTALS = {"reads": 304, "writes": 100, "other": 200, "total": 604, "events": 100, "ignored_errors": 0}
COUNTERS = {"Connections": 4, "Com_select": 304, "Statements": 608, "Rows_sent": 304}


def build_run(case: dict[str, Any]) -> Any:
    """A run with what sysbench and its server counted, but for a case's changes."""
    plan = {"script": "mine.lua", "threads": 4} | case.get("plan", {"own": {"statements": RULE}})
    seen = {"ledger": {"own_connections": case.get("own_connections", 0)}, "script": {"mine.lua": "a" * 16}}
    total, grown = (TOTALS | case).get, (COUNTERS | case).get
    return SimpleNamespace(
        plan=plan, plan_value=plan.__getitem__, total=total, grown=grown, get=seen.__getitem__
    )


def test_a_script_did_what_its_pilots_did_and_its_server_counted_as_much():
    answers = []
    for what, cases in YAML(typ="safe").load(CASES).items():
        check = getattr(checks_custom_scripts, f"check_{what}")
        answers += [
            f"{what}\n",
            *(f"  - {'; '.join(check(build_run(case))) or 'agrees'}\n" for case in cases),
        ]
    assert_golden("custom_scripts.txt", "".join(answers))
