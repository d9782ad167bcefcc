"""What facts, data, schedule and plans of a study say of each other: each sentence, and where none is due."""

from types import SimpleNamespace
from typing import Any

import pytest

from benchbook.core.study.model import compute_fingerprint
from benchbook.core.study.study import StudySpec
from benchbook.plan import plan_consistency, schedule
from tests.goldens import assert_golden
from tests.plan.test_schedule import make

STUDY = make()
SIZES = {"tables": 2, "table_size": 1000, "rows": {"sbtest1": 1000, "sbtest2": 1000}}


def loaded(**changes: Any) -> dict[str, Any]:
    """What dataset.json says, with the fingerprint of what it says."""
    data = SIZES | {"seed": STUDY.dataset.seed} | changes
    return {"fingerprint": compute_fingerprint(data)} | data


BESIDE = {"loads": {"direct": {"seconds": 2}}, "events": ["the prepared copy is gone"]}
FEW = loaded(table_size=999, rows={"sbtest1": 999, "sbtest2": 1000})
SUMMED = {"checksums": {"sbtest1": 7}}

FACTS = {arm: {"machine": {"cores": 2, "load": 0.1}} for arm in ("direct", "proxy")}
DATA = {"fingerprint": "d1"}
DUE = schedule.run_conditions(FACTS, DATA)


def planned(**conditions: dict[str, str]) -> tuple[Any, ...]:
    """Two runs of the first arm and one of the second, each made under what their arm had."""
    arms = {"r1": "direct", "r2": "direct", "r3": "proxy"}
    plans = {run: {"arm": arm, "conditions": DUE[arm] | conditions.get(run, {})} for run, arm in arms.items()}
    return FACTS, DATA, STUDY, plans


def shown(**settings: Any) -> dict[str, Any]:
    found = {name: {"asked": value, "from": "study"} for name, value in settings.items()}
    return {"direct": {"engine": {"settings": found | {"port": {"asked": "1", "from": "benchbook"}}}}}


def asking(**settings: Any) -> StudySpec:
    return make(engine={"settings": settings})


ASKING = asking(max_connections=200, log_bin=False, local_infile=True)
WAS = {"max_connections": "200", "log_bin": "OFF", "local_infile": "ON"}
# A server that was there before does not tell who asked for what.
UNTOLD = [{"direct": {"engine": {"settings": one}}} for one in
          (None, {"max_connections": "151"}, {"max_connections": {"asked": "151"}})]  # fmt: skip

RUNS = schedule.plan_runs("s", STUDY, {})
(NAME, PLAN), *_ = PLANS = [(run.run_id, run.to_dict()) for run in RUNS]
HEAD, *LINES = schedule.schedule_table(RUNS).to_csv(index=False, lineterminator="\n").splitlines()
SECOND = LINES[1].replace(f",{RUNS[1].arm},", ",other,")
MOVED = {name: plan | {"position": 99} for name, plan in PLANS}


CASES = {
    "dataset": [(loaded(), STUDY), (loaded() | BESIDE, STUDY), (loaded() | SUMMED, STUDY), (FEW, STUDY)],
    "conditions": [planned(), planned(r2={"facts": "f0"}, r3={"data": "d0"}),
                   planned(r1={"data": "d8"}, r2={"data": "d9"})],
    # An arm that the study has no more asks for nothing.
    "settings": [(shown(**WAS), ASKING), (shown(**WAS | {"log_bin": "ON"}), ASKING),
                 (shown(**WAS), asking(max_connections=200, log_bin=False)), (shown(), asking(flush=200)),
                 *((untold, asking(max_connections=200)) for untold in UNTOLD),
                 ({"gone": shown()["direct"]}, asking(max_connections=200))],
    "schedule": [(RUNS, "\n".join(lines)) for lines in
                 ([HEAD, *LINES], [HEAD, LINES[0], SECOND, *LINES[2:]], [HEAD, *LINES[:-1]])],
    # A run may stand anywhere in the order.
    "plans": [(RUNS, MOVED), (RUNS, dict(PLANS) | {NAME: PLAN | {"seed": 1, "more": True}}),
              (RUNS, {"b09-x": PLAN})],
    "name": [(name, plan, "raw") for name, plan in
             ((NAME, PLAN), ("other", PLAN), (NAME, PLAN | {"run_id": "other"}), (NAME, PLAN | {"seed": 1}))],
}  # fmt: skip


def test_what_contradicts_the_study_is_named_and_nothing_else():
    answers = []
    for check, cases in CASES.items():
        answers.append(f"{check}\n")
        for given in cases:
            messages = [*getattr(plan_consistency, f"check_{check}")(*given)] or ["agrees"]
            answers.append("  - " + "\n    ".join(messages) + "\n")
    assert_golden("plan_consistency.txt", "".join(answers))


def runs(blocks: int) -> list[Any]:
    """Two groups of two runs in each block."""
    return [
        SimpleNamespace(block=block, group=f"g{block}{group}", run_id=f"{block}{group}{run}")
        for block in range(1, blocks + 1)
        for group in "ab"
        for run in "xy"
    ]


WHY = "due and not there, and void does not say why"
THIRD = ["3ax", "3ay", "3bx", "3by"]


@pytest.mark.parametrize(
    ("gone", "given_up", "first_stop", "expected"),
    [
        ([], [], None, []),
        (["1ax"], [], None, [f"g1a: 1ax was {WHY}"]),
        (["2bx", "2by"], [], None, [f"g2b: 2bx and 1 more were {WHY}"]),
        (["2bx", "2by"], ["g2b"], None, []),
        (["2bx", "3ax"], ["g3a"], None, [f"g2b: 2bx was {WHY}"]),
        # After two blocks it may stop: the third is then left out whole.
        (THIRD, [], 2, []),
        (THIRD, [], 3, ["g3a", "g3b"]),
        (THIRD, [], None, ["g3a", "g3b"]),
        # A block that was begun is no block that was left out, and neither is one before it.
        (["3ax", "3ay"], [], 2, ["g3a"]),
        (["2ax", "2ay"], [], 2, ["g2a"]),
    ],
)
def test_what_is_missing_was_given_up_or_left_out_after_a_look(gone, given_up, first_stop, expected):
    there = {run.run_id for run in runs(3)} - set(gone)
    messages = plan_consistency.check_missing(runs(3), there, given_up, first_stop)
    due = zip(messages, expected, strict=True)
    assert [text if ":" in one else text.partition(":")[0] for text, one in due] == expected
