"""Connections beside a run are those that were asked for, by the driver's word and by the server's."""

import copy
from typing import Any

import pytest

from benchbook.core.study.params import Limits
from benchbook.read import checks_machine
from benchbook.read.evidence import Evidence
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


ASKED = {"idle": {"load": {"idle_connections": 5000}}, "short": {"load": {"new_connections_per_s": 200}}}
NOISY = {"stayed": True, "threads": 1, "shares": 2}


def faults(arrangement: dict[str, Any], asked: dict[str, Any] | None = None, **signs: Any) -> list[str]:
    """Return what is wrong with an arrangement; without `asked` it is of the kind that is there."""
    kind = next(iter({*ASKED} & {*arrangement.get("load", {})}), None)
    there = ASKED.get(kind or "", {}) | {key: True for key in arrangement if key == "capture"}
    plan = synthetic.planned(arm_setting={"access": "direct", **(there if asked is None else asked)})
    seen = {"arrangement": arrangement, **({"identity_before": signs} if signs else {})}
    return [*checks_machine.check_arrangement(corpus.healthy(synthetic.output(), plan, "", seen), Limits())]


def test_loads_that_were_there_are_no_fault():
    assert faults({"load": IDLE}) == faults({"load": SHORT}) == []
    assert faults({"capture": {"stayed": True, "error": "", "written_mib": 3.0}}) == []


ABSENT, PRESENT = "the arm asks for {}, and there was none", "there was {}, and the arm does not ask for it"
FEWER = "there were 5000 idle and 0 new connections a second, the arm asks for others"


@pytest.mark.parametrize(
    ("arrangement", "asked", "signs", "said"),
    [
        ({"load": IDLE}, {"load": {"idle_connections": 9000}}, {}, [FEWER]),
        ({"load": IDLE}, ASKED["short"], {}, [FEWER]),
        ({"load": IDLE}, {}, {}, [PRESENT.format("load")]),
        ({"neighbour": NOISY}, {}, {}, [PRESENT.format("neighbour")]),
        ({}, {"neighbour": {"processes": 1}}, {}, [ABSENT.format("neighbour")]),
        ({"neighbour": NOISY}, {"neighbour": {"processes": 1}}, {}, []),
        (
            {"neighbour": NOISY},
            {"neighbour": {"processes": 1, "shares": 512}},
            {},
            ["the neighbour had 1 threads of weight 2, the arm asks for 1 of 512"],
        ),
        # Only this machine's kernel tells of rules and networks.
        ({}, {"network": "pod", "access": "service"}, {}, []),
        ({}, {"network": "pod"}, {"place": {}}, [ABSENT.format("network: pod")]),
        ({}, {"network": "pod"}, {"place": {}, "namespace": "net:[1]"}, []),
        ({}, {}, {"place": {}, "namespace": "net:[1]"}, [PRESENT.format("network: pod")]),
        ({}, {"access": "service"}, {"place": {}}, [ABSENT.format("service")]),
        ({"service": {"connections": 4}}, {"access": "load_balancer"}, {"place": {}}, []),
        ({"service": {"connections": 4}}, {}, {"place": {}}, [PRESENT.format("service")]),
    ],
)
def test_a_run_shows_what_its_arm_asks_for_and_nothing_else(arrangement, asked, signs, said):
    assert faults(arrangement, asked, **signs) == said


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
    assert [*checks_machine.check_arrangement(run, Limits())] == [
        f"the arm asks for {key}, and there was none"
    ]


def test_a_capture_that_ended_early_voids_the_run_with_the_proxys_reason():
    found = faults({"capture": {"stayed": False, "error": "buffer is full", "written_mib": 3.0}})
    assert found == ["the capture ended before the run did: buffer is full"]


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


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"traced": {"server": "strace"}}, "the server was traced by strace"),
        ({"continued": ["proxy"]}, "the proxy was stopped in the run"),
        ({"stopped": {"server": 3}}, "the server was stopped in the run"),
        (
            {"limits": {"": [], "client": [], "server": [QUOTA]}},
            f"the server was under {QUOTA}, which neither its arm nor its stage has",
        ),
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
    assert [*checks_machine.check_strangers(run(**changes))] == [words]


def test_a_tracer_at_either_end_is_a_fault_and_one_of_the_stage_is_none():
    traced = {"traced": "gdb"}
    seen = {"identity_before": {"place": traced}, "identity_after": {"server_place": traced}}
    assert [*checks_machine.check_strangers(Evidence({}, seen, "", ""))] == [
        "server was traced by gdb after the run"
    ]


def test_in_turns_the_clock_alone_can_tell_whose_stops_they_are():
    stops = {"continued": ["server"], "stopped": {"client": 9}}
    one = run(TURNS, **stops)
    assert [*checks_machine.check_strangers(one)] == []
    one.seen["turns"] = {"halted": 12, "count": 200}
    stood = "at the end of 12 of its 200 turns a part of the arm stood still"
    assert [*checks_machine.check_strangers(one)] == [stood]
    one.seen["turns"] = {"halted": 0, "count": 200}
    assert [*checks_machine.check_strangers(one)] == []


def test_nineteen_segments_are_chance_whatever_their_share():
    assert [*checks_machine.check_strangers(run(connections={"sent": 100, "again": 19}))] == []
    assert [*checks_machine.check_strangers(run(connections={"sent": 100, "again": 20}))] != []
    assert [*checks_machine.check_strangers(run(connections=None))] == []


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
