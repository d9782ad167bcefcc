import pytest

from benchbook.core.artifacts.planned_event import describe_event

KILLED = {"asked": {"what": "kill"}, "killed_s": 125.0, "started_s": 135.0, "ready_s": 135.3}
STORE = {"store": "store1", "led": 3, "regions": 9, "killed_s": 140.0, "started_s": 180.0, "ready_s": 181.2}


@pytest.mark.parametrize(
    ("arrangement", "line"),
    [
        (
            {"event": KILLED},
            "planned: the server was killed at 25.0 s, started again at 35.0 s, ready at 35.3 s; "
            "4 transactions ended in an error",
        ),
        (
            {"cluster": {"event": STORE}},
            "planned: store1, which led 3 of 9 regions, was killed at 40.0 s, started again at 80.0 s, and "
            "answered at 81.2 s",
        ),
        # It broke off before the server answered again, or none was planned.
        ({"event": {"asked": {"what": "kill"}, "killed_s": 125.0}}, ""),
        ({"cluster": {"event": None}}, ""),
        (None, ""),
    ],
)
def test_an_event_is_described_by_moments_of_its_run(arrangement, line):
    observed = {"arrangement": arrangement, "started_monotonic_s": 100.0}
    assert describe_event(observed, lambda: 4) == line
