"""Connections beside a run are those that were asked for, by the driver's word and by the server's."""

import copy
from typing import Any

import pytest

from benchbook.core.study.params import Limits
from benchbook.read import checks_machine
from benchbook.read.evidence import Evidence
from tests.read import synthetic


@pytest.mark.parametrize(
    ("cpu_s", "said"), [(3.49, []), (3.5, ["the client used 50 % of its cores, less than 50 %"])]
)
def test_a_client_that_uses_as_much_as_its_limit_is_at_its_limit(cpu_s: float, said: list[str]):
    """7 s on one core: 3.5 s are 50 %."""
    changed = {"client": {"cpu_s": cpu_s}, "sysbench_s": 7.0}
    run = synthetic.healthy_run(changed)
    assert [*checks_machine.check_client(run, Limits(client_cpu=0.5))] == said


NETWORK = {"parts": ["client", "server"], "is_shared": True, "rules": 0, "dropped": 0, "sent": 9, "again": 0}
QUIET: dict[str, Any] = {
    "traced": {},
    "looks": 12,
    "stopped": {},
    "continued": [],
    "counting": [],
    "networks": [NETWORK],
    "connections": {"sent": 100_000, "again": 10},
    "limits": {"": [], "client": [], "server": []},
    "held_back": {},
}
QUOTA = "a CPU quota of 0.2 cores at /slow.slice"
TURNS = {"order": "turns", "partners": ["a", "b"]}


def run(plan: dict[str, Any] | None = None, where: str = "machine", **changes: Any) -> Evidence:
    seen = {"strangers": {where: copy.deepcopy(QUIET) | changes}}
    return Evidence(plan or {"order": "runs"}, seen, "", "")


def test_a_quiet_run_and_one_made_before_this_was_looked_for_have_nothing_to_say():
    # 10 of 100,000 segments are the share that chance may have.
    for one in (run(), Evidence({}, {}, "", ""), Evidence({}, {"strangers": None}, "", "")):
        assert (
            [*checks_machine.check_strangers(one)],
            list(checks_machine.describe_near_strangers(one)),
        ) == ([], [])


def test_in_turns_the_clock_alone_can_tell_whose_stops_they_are():
    stops = {"continued": ["server"], "stopped": {"client": 9}}
    one = run(TURNS, **stops)
    assert [*checks_machine.check_strangers(one)] == []
    one.observed["turns"] = {"halted": 12, "count": 200}
    stood = "at the end of 12 of its 200 turns a part of the arm stood still"
    assert [*checks_machine.check_strangers(one)] == [stood]
    one.observed["turns"] = {"halted": 0, "count": 200}
    assert [*checks_machine.check_strangers(one)] == []


def test_between_machines_what_is_sent_again_is_said_and_voids_nothing():
    one = run(where="machine_server", connections={"sent": 1000, "again": 100})
    assert [*checks_machine.check_strangers(one)] == []
    assert list(checks_machine.describe_near_strangers(one)) == [
        "100 of 1000 segments were sent again (10.00 %) (machine_server)"
    ]


def test_what_may_have_touched_an_arm_is_said():
    held = {"/slow.slice": {"periods": 20, "seconds": 1.53, "memory": 3}}
    limits = {"": [QUOTA], "client": [QUOTA], "server": []}
    networks = [NETWORK | {"rules": 3000, "dropped": 7}]
    one = run(counting=["perf"], networks=networks, limits=limits, held_back=held)
    where = "in the network of client and server"
    assert [*checks_machine.check_strangers(one)] == []
    assert list(checks_machine.describe_near_strangers(one)) == [
        "perf counted events of performance; of which processes, the kernel does not say",
        f"all ran under {QUOTA}, which no arm asks for, but for server",
        "the CPU quota of /slow.slice held the run back for 1.53 s",
        "the memory limit of /slow.slice was met 3 times",
        f"3000 rules of the firewall that are not ours {where}",
        f"rules of the firewall dropped 7 packets {where}",
    ]
