"""What other work on the machine can have done, and which arm it favours."""

from typing import Any

import pandas as pd

from benchbook.compare.inference import interference
from benchbook.compare.text import labels
from tests.compare.cases import assert_cases
from tests.found import runs

FACTS = {
    "direct": {"proxy": None, "machine": {"cores": 2, "congestion_control": "cubic"},
               "moment": {"load_1min": 0.3}},
    "haproxy": {"proxy": {"name": "haproxy"}, "machine": {"cores": 2}, "moment": {"load_1min": 0.4}},
}  # fmt: skip


def _runs(**columns):
    """Make two runs of either arm on two cores: 50 % of them used, all of it by the arm."""
    table = {
        "run_id": list("abcd"), "arm": ["direct", "haproxy"] * 2, "workload": "oltp_point_select",
        "threads": [1, 1, 16, 16], "cpu_client_cores": 0.4, "cpu_proxy_cores": [None, 0.2] * 2,
        "cpu_server_cores": [0.6, 0.4] * 2, "cpu_machine_pct": 50.0, "steal_pct": 0.0, "qps": 1000.0,
        "sent_server_mib_s": 1.0,
    }  # fmt: skip
    return runs(table | columns)


def describe(case: dict[str, Any], names: Any) -> list[str]:
    """The line on the machine and each doubt about it, with the arms that it favours."""
    changes = case.get("facts", {})
    facts = {} if changes is None else {arm: known | changes for arm, known in FACTS.items()}
    monitor = pd.DataFrame(case["monitor"]) if "monitor" in case else None
    table = _runs(**case.get("runs", {}))
    doubts = interference.interference_caveats(table, facts, monitor, names)
    found = [f"{one.title} (favours {', '.join(one.favours) or 'none'}): {one.text}" for one in doubts]
    return [interference.measure_interference(table, facts, None).line, *found]


def test_doubts_about_other_work_and_whom_it_favours(make_study):
    names = labels.readable_names(make_study())
    assert_cases("interference", lambda case: describe(case, names), indent=6)


def test_an_arms_own_neighbour_is_no_other_program(make_study):
    busy, names = _runs(cpu_machine_pct=[50.0, 90.0] * 2), labels.readable_names(make_study())
    assert interference.interference_caveats(busy, FACTS, None, names, ["haproxy"]) == []
    # 0.8 cores beside HAProxy are its neighbour's and not measured; beside direct connections nobody ran.
    assert interference.measure_interference(busy, FACTS, None, ["haproxy"]).others_cores == 0.0
    assert interference.measure_interference(busy, FACTS, None, ["direct", "haproxy"]).others_cores is None
    beside = make_study(arms={"direct": {}, "haproxy": {"access": "haproxy", "neighbour": {"processes": 1}}})
    assert interference.arms_with_side_load(beside) == ["haproxy"]
