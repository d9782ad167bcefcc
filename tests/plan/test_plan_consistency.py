"""What facts, data, schedule and plans of a study say of each other: each sentence, and where none is due."""

from types import SimpleNamespace
from typing import Any

import pytest

from benchbook.core.study.model import compute_fingerprint
from benchbook.core.study.study import StudySpec
from benchbook.plan import plan_consistency, schedule
from tests.plan.test_schedule import make

LOADED = {"tables": 2, "table_size": 1000, "seed": 3, "rows": {"sbtest1": 1000, "sbtest2": 1000}}


def loaded(**changes: Any) -> dict[str, Any]:
    """What dataset.json says, with the fingerprint of what it says."""
    data = LOADED | {"seed": make().dataset.seed} | changes
    return {"fingerprint": compute_fingerprint(data)} | data


def test_data_as_asked_for_contradict_nothing_and_notes_beside_them_are_not_in_their_fingerprint():
    assert list(plan_consistency.check_dataset(loaded(), make())) == []
    beside = {"loads": {"direct": {"seconds": 2}}, "events": ["the prepared copy is gone"]}
    assert list(plan_consistency.check_dataset(loaded() | beside, make())) == []


def test_data_that_are_others_are_named():
    changed = loaded() | {"checksums": {"sbtest1": 7}}
    made = compute_fingerprint({name: value for name, value in changed.items() if name != "fingerprint"})
    assert list(plan_consistency.check_dataset(changed, make())) == [
        f"dataset.json: its content has the fingerprint {made}, it says {changed['fingerprint']}"
    ]
    few = loaded(table_size=999, rows={"sbtest1": 999, "sbtest2": 1000})
    assert list(plan_consistency.check_dataset(few, make())) == [
        "dataset.json: table_size is 999, the study has 1000",
        "dataset.json: sbtest1 has 999 rows, the study has 1000",
    ]


FACTS = {arm: {"machine": {"cores": 2, "load": 0.1}} for arm in ("direct", "proxy")}


def planned(**conditions: dict[str, str]) -> dict[str, dict[str, Any]]:
    """Three runs: two of the first arm and one of the second, each made under what their arm had."""
    due = schedule.run_conditions(FACTS, {"fingerprint": "d1"})
    arms = {"r1": "direct", "r2": "direct", "r3": "proxy"}
    return {
        name: {"arm": arm, "conditions": due[arm] | conditions.get(name, {})} for name, arm in arms.items()
    }


def test_each_run_names_the_facts_and_the_data_that_it_was_made_under():
    data = {"fingerprint": "d1"}
    assert list(plan_consistency.check_conditions(FACTS, data, make(), planned())) == []
    mine = schedule.run_conditions(FACTS, data)["direct"]["facts"]
    messages = list(
        plan_consistency.check_conditions(FACTS, data, make(), planned(r2={"facts": "f0"}, r3={"data": "d0"}))
    )
    assert messages == [
        f"facts.json: for arm direct its digest is {mine}, and r2 was made under f0",
        "dataset.json: for arm proxy its digest is d1, and r3 was made under d0",
    ]
    (told_of_two,) = plan_consistency.check_conditions(
        FACTS, data, make(), planned(r1={"data": "d8"}, r2={"data": "d9"})
    )
    assert told_of_two.endswith("its digest is d1, and r1 and 1 more were made under d8")


def shown(**settings: Any) -> dict[str, Any]:
    found = {name: {"asked": value, "from": "study"} for name, value in settings.items()}
    return {"direct": {"engine": {"settings": found | {"port": {"asked": "1", "from": "benchbook"}}}}}


def asking(**settings: Any) -> StudySpec:
    return make(engine={"settings": settings})


def test_settings_that_the_study_asks_for_are_those_that_the_server_was_asked_for():
    study = asking(max_connections=200, log_bin=False, local_infile=True)
    due = {"max_connections": "200", "log_bin": "OFF", "local_infile": "ON"}
    assert list(plan_consistency.check_settings(shown(**due), study)) == []
    assert list(plan_consistency.check_settings(shown(**due | {"log_bin": "ON"}), study)) == [
        "facts.json: arms.direct: the study asks for log_bin = OFF, the server was asked for ON"
    ]
    assert list(
        plan_consistency.check_settings(shown(**due), asking(max_connections=200, log_bin=False))
    ) == ["facts.json: arms.direct: the study asks for local_infile = None, the server was asked for ON"]


def test_a_server_that_was_there_before_does_not_tell_who_asked_for_what():
    study = asking(max_connections=200)
    for found in (None, {"max_connections": "151"}, {"max_connections": {"asked": "151"}}):
        assert list(plan_consistency.check_settings({"direct": {"engine": {"settings": found}}}, study)) == []
    # An arm that the study has no more asks for nothing.
    assert list(plan_consistency.check_settings({"gone": shown()["direct"]}, study)) == []
    assert len(list(plan_consistency.check_settings(shown(), study))) == 1


def test_a_schedule_has_the_runs_of_its_study_line_by_line():
    runs = schedule.plan_runs("s", make(), {})
    text = schedule.schedule_table(runs).to_csv(index=False, lineterminator="\n")
    assert list(plan_consistency.check_schedule(runs, text)) == []
    first, *lines = text.splitlines()
    other = lines[1].replace(f",{runs[1].arm},", ",other,")
    assert list(plan_consistency.check_schedule(runs, "\n".join([first, lines[0], other, *lines[2:]]))) == [
        f"schedule.csv:3: arm is other, due is {runs[1].arm}"
    ]
    assert list(plan_consistency.check_schedule(runs, "\n".join([first, *lines[:-1]]))) == [
        f"schedule.csv: {len(runs) - 1} runs, the study gives {len(runs)}"
    ]


def test_each_folder_has_the_plan_that_its_study_gives_wherever_it_stood_in_the_order():
    runs = schedule.plan_runs("s", make(), {})
    plans = {run.run_id: run.to_dict() for run in runs}
    moved = {name: plan | {"position": 99} for name, plan in plans.items()}
    assert list(plan_consistency.check_plans(runs, moved)) == []
    name = runs[0].run_id
    messages = list(
        plan_consistency.check_plans(runs, plans | {name: plans[name] | {"seed": 1, "more": True}})
    )
    assert messages == [f"raw/{name}: plan.json: more is true, due is null; seed is 1, due is {runs[0].seed}"]
    assert list(plan_consistency.check_plans(runs, {"b09-x": plans[name]})) == [
        "raw/b09-x: no run that the study, the facts and the data ask for"
    ]


def test_a_folder_is_named_by_the_hash_of_its_plan():
    run = schedule.plan_runs("s", make(), {})[0]
    plan = run.to_dict()
    assert list(plan_consistency.check_name(run.run_id, plan, "raw")) == []
    messages = f"raw/other: plan.json gives the name {run.run_id}"
    assert list(plan_consistency.check_name("other", plan, "raw")) == [messages]
    assert len(list(plan_consistency.check_name(run.run_id, plan | {"run_id": "other"}, "raw"))) == 1
    assert len(list(plan_consistency.check_name(run.run_id, plan | {"seed": 1}, "raw"))) == 1


def runs(blocks: int) -> list[Any]:
    """Two groups of two runs in each block."""
    return [
        SimpleNamespace(block=block, group=f"g{block}{group}", run_id=f"{block}{group}{run}")
        for block in range(1, blocks + 1)
        for group in "ab"
        for run in "xy"
    ]


@pytest.mark.parametrize(
    ("gone", "given_up", "first_stop", "expected"),
    [
        ([], [], None, []),
        (["1ax"], [], None, ["g1a: 1ax was due and not there, and void does not say why"]),
        (["2bx", "2by"], [], None, ["g2b: 2bx and 1 more were due and not there, and void does not say why"]),
        (["2bx", "2by"], ["g2b"], None, []),
        (["2bx", "3ax"], ["g3a"], None, ["g2b: 2bx was due and not there, and void does not say why"]),
        # After two blocks it may stop: the third is then left out whole.
        (["3ax", "3ay", "3bx", "3by"], [], 2, []),
        (["3ax", "3ay", "3bx", "3by"], [], 3, ["g3a", "g3b"]),
        (["3ax", "3ay", "3bx", "3by"], [], None, ["g3a", "g3b"]),
        # A block that was begun is no block that was left out, and neither is one before it.
        (["3ax", "3ay"], [], 2, ["g3a"]),
        (["2ax", "2ay"], [], 2, ["g2a"]),
    ],
)
def test_what_is_missing_was_given_up_or_left_out_after_a_look(gone, given_up, first_stop, expected):
    there = {run.run_id for run in runs(3)} - set(gone)
    messages = list(plan_consistency.check_missing(runs(3), there, given_up, first_stop))
    cut = [
        text if ":" in due else text.partition(":")[0] for text, due in zip(messages, expected, strict=True)
    ]
    assert cut == expected
