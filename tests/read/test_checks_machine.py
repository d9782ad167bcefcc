"""Connections beside a run are those that were asked for, by the driver's word and by the server's."""

from __future__ import annotations

from typing import Any

import pytest

from benchbook.core.params import Limits
from benchbook.read import checks_machine
from tests.read import corpus, synthetic

IDLE = {
    "idle": {"asked": 5000, "opened": 5000, "held": 5000, "lost": 0, "took_s": 2.5},
    "sessions_before": 5001,
    "sessions_after": 5001,
    "stayed": True,
    "error": "",
}
SHORT = {
    "short": {"asked_per_s": 200, "achieved_per_s": 199.8, "lowest_per_s": 198, "per_s": [199, 198]},
    "stayed": True,
    "error": "",
}


def faults(arrangement: dict[str, Any]) -> list[str]:
    run = corpus.healthy(synthetic.output(), synthetic.planned(), "", {"arrangement": arrangement})
    return checks_machine.arrangement(run, Limits())


def test_loads_that_were_there_are_no_fault():
    assert faults({"load": IDLE}) == faults({"load": SHORT}) == []
    assert faults({"capture": {"stayed": True, "error": "", "written_mib": 3.0}}) == []


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"idle": IDLE["idle"] | {"opened": 4999}}, "4999 of 5000 idle connections were open before the run"),
        ({"idle": IDLE["idle"] | {"held": 4990}}, "4990 of 5000 idle connections were open after the run"),
        ({"idle": IDLE["idle"] | {"held": None}}, "None of 5000 idle connections were open after the run"),
        # The driver may believe in connections that a proxy holds and the server has never seen.
        ({"sessions_before": 5000}, "the server had 5000 sessions before the run, 5000 idle ones"),
        ({"sessions_after": 17}, "the server had 17 sessions after the run"),
        ({"sessions_after": None}, "the server had None sessions after the run"),
        ({"stayed": False}, "the driver of connections ended before the run did"),
    ],
)
def test_idle_connections_that_were_not_there_void_the_run(changed: dict[str, Any], said: str):
    (fault,) = faults({"load": IDLE | changed})
    assert said in fault


@pytest.mark.parametrize(("achieved", "is_fault"), [(190.0, False), (189.9, True), (None, True)])
def test_a_driver_below_95_percent_of_its_rate_is_not_data(achieved: float | None, is_fault: bool):
    found = faults({"load": SHORT | {"short": SHORT["short"] | {"achieved_per_s": achieved}, "error": "why"}})
    assert bool(found) == is_fault
    if is_fault:
        assert "short connections a second, 200 asked (why)" in found[0]


@pytest.mark.parametrize("asked", [{"load": {"idle_connections": 10}}, {"capture": True}])
def test_a_site_that_does_not_make_what_the_arm_asks_for_has_no_valid_run(asked: dict[str, Any]):
    plan = synthetic.planned(arm_setting={"access": "haproxy", **asked})
    run = corpus.healthy(synthetic.output(), plan, "", {"arrangement": {}})
    (key,) = asked
    assert checks_machine.arrangement(run, Limits()) == [f"the arm asks for {key}, and there was none"]


def test_a_capture_that_ended_early_voids_the_run_with_the_proxys_reason():
    found = faults({"capture": {"stayed": False, "error": "buffer is full", "written_mib": 3.0}})
    assert found == ["the capture ended before the run did: buffer is full"]


@pytest.mark.parametrize(
    ("cpu_s", "said"), [(3.49, []), (3.5, ["the client used 50 % of its cores, less than 50 %"])]
)
def test_a_client_that_uses_as_much_as_its_limit_is_at_its_limit(cpu_s: float, said: list[str]):
    """7 s on one core: 3.5 s are 50 %."""
    changed = {"client": {"cpu_s": cpu_s}, "sysbench_s": 7.0}
    run = corpus.healthy(synthetic.output(), synthetic.planned(), "", changed)
    assert checks_machine.client(run, Limits(client_cpu=0.5)) == said
