"""What others did to an arm voids its run where it touched the arm, and else is said of it."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from benchbook.read import checks_strangers
from benchbook.read.evidence import Evidence

NETWORK = {"parts": ["client", "server"], "is_shared": True, "rules": 0, "dropped": 0, "sent": 9, "again": 0}
QUIET: dict[str, Any] = {
    "traced": {},
    "looks": 12,
    "stopped": {},
    "continued": [],
    "counting": [],
    "networks": [NETWORK],
    "connections": {"sent": 100_000, "again": 10},
}
TURNS = {"order": "turns", "partners": ["a", "b"]}


def run(plan: dict[str, Any] | None = None, where: str = "machine", **changes: Any) -> Evidence:
    seen = {"strangers": {where: copy.deepcopy(QUIET) | changes}}
    return Evidence(plan or {"order": "runs"}, seen, "", "")


def test_a_quiet_run_and_one_made_before_this_was_looked_for_have_nothing_to_say():
    # 10 of 100,000 segments are the share that chance may have.
    for one in (run(), Evidence({}, {}, "", ""), Evidence({}, {"strangers": None}, "", "")):
        assert (checks_strangers.faults(one), list(checks_strangers.words(one))) == ([], [])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"traced": {"server": "strace"}}, "the server was traced by strace"),
        ({"continued": ["proxy"]}, "the proxy was stopped in the run"),
        ({"stopped": {"server": 3}}, "the server was stopped in the run"),
        (
            {"connections": {"sent": 200_000, "again": 21}},
            "21 of 200000 segments were sent again (0.01 %), at most 0.01 %",
        ),
        (
            {"networks": [NETWORK | {"is_shared": False, "sent": 1000, "again": 20}]},
            "20 of 1000 segments were sent again (2.00 %), at most 0.01 %",
        ),
    ],
)
def test_what_touches_an_arm_is_a_fault(changes: dict[str, Any], words: str):
    assert checks_strangers.faults(run(**changes)) == [words]


def test_a_tracer_at_either_end_is_a_fault_and_one_of_the_stage_is_none():
    traced = {"traced": "gdb"}
    seen = {"identity_before": {"place": traced}, "identity_after": {"server_place": traced}}
    assert checks_strangers.faults(Evidence({}, seen, "", "")) == ["server was traced by gdb after the run"]


def test_in_turns_the_clock_alone_can_tell_whose_stops_they_are():
    stops = {"continued": ["server"], "stopped": {"client": 9}}
    one = run(TURNS, **stops)
    assert checks_strangers.faults(one) == []
    one.seen["turns"] = {"halted": 12, "count": 200}
    assert checks_strangers.faults(one) == ["at the end of 12 of its 200 turns a part of the arm stood still"]
    one.seen["turns"] = {"halted": 0, "count": 200}
    assert checks_strangers.faults(one) == []


def test_nineteen_segments_are_chance_whatever_their_share():
    assert checks_strangers.faults(run(connections={"sent": 100, "again": 19})) == []
    assert checks_strangers.faults(run(connections={"sent": 100, "again": 20})) != []
    assert checks_strangers.faults(run(connections=None)) == []


def test_between_machines_what_is_sent_again_is_said_and_voids_nothing():
    one = run(where="machine_server", connections={"sent": 1000, "again": 100})
    assert checks_strangers.faults(one) == []
    assert list(checks_strangers.words(one)) == [
        "100 of 1000 segments were sent again (10.00 %) (machine_server)"
    ]


def test_what_may_have_touched_an_arm_is_said():
    one = run(counting=["perf"], networks=[NETWORK | {"rules": 3000, "dropped": 7}])
    where = "in the network of client and server"
    assert checks_strangers.faults(one) == []
    assert list(checks_strangers.words(one)) == [
        "perf counted events of performance; of which processes, the kernel does not say",
        f"3000 rules of the firewall that are not ours {where}",
        f"rules of the firewall dropped 7 packets {where}",
    ]
