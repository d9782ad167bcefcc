"""The same tables put to both makers of cells: printed once, and measured in five blocks that hardly differ.

Blocks differ by 0.02 % at most, so that intervals are some 0.05 % wide and no case lies that near to an end.
"""

from typing import Any

import pandas as pd
import pytest

from benchbook.compare.claims import evaluate, printed_cells
from benchbook.compare.claims.study_cells import StudyEvidence
from benchbook.core.published.claim import KINDS, ClaimSpec
from benchbook.core.published.source import Number
from benchbook.core.study.params import Analysis
from tests.compare.cases import read_cases
from tests.found import runs as runs_of

READ = {"holds": "confirmed", "does not hold": "contradicted", "not derivable": "inconclusive"}
LOAD = "oltp_point_select"
CASES = read_cases("estimands")
ASKED = [(kind, *case) for kind in CASES if kind in KINDS for case in CASES[kind]]
TELLS = {"claim": "So it is.", "stands": "Here", "metric": "qps"}


def cells_of(told: dict[str, Any]) -> dict[tuple[str, str, int], float]:
    """Return values by arm, workload and threads of a table as the cases tell it."""
    cells: dict[tuple[str, str, int], float] = {}
    for place, values in told.items():
        name, _, of = place.partition(" ")
        if name == "ratios":
            for step, ratio in enumerate(values):
                cells |= {(arm, of or LOAD, 2**step): 1000.0 * by for arm, by in (("a", 1.0), ("b", ratio))}
        elif name == "sizes":
            cells |= {(f"cpus-{2 ** (at + 1)}", LOAD, int(of or 4)): one for at, one in enumerate(values)}
        else:
            cells |= {(name, of or LOAD, threads): value for threads, value in values.items()}
    return cells


def tables(table: dict[tuple[str, str, int], float]) -> list[Number]:
    """Return a table as a document's numbers."""
    made = []
    for number, ((arm, workload, threads), value) in enumerate(table.items()):
        at = {"arm": arm, "workload": workload, "threads": threads}
        at |= {"vcpus": float(arm[5:])} if arm[:5] == "cpus-" else {}
        made.append(Number("t", number, "qps", "qps", value, f"{value:g}", 0.5, "1/s", "metric", at))
    return made


def runs(table: dict[tuple[str, str, int], float]) -> pd.DataFrame:
    """Return a table as runs of five blocks."""
    rows = [
        {
            "run_id": f"{block}-{place}", "block": block, "arm": arm, "workload": workload,
            "threads": threads, "qps": value * (1 + 1e-4 * ((7 * block + 3 * place) % 5 - 2)),
        }
        for block in range(1, 6)
        for place, ((arm, workload, threads), value) in enumerate(table.items())
    ]  # fmt: skip
    return runs_of(rows)


def by_blocks(make_study, claim: ClaimSpec, table: dict[tuple[str, str, int], float]) -> str:
    arms = {arm: {"plays": {"vcpus": int(arm[5:])}} if arm[:5] == "cpus-" else {} for arm, _, _ in table}
    study = make_study(
        arms={**arms, "never-measured": {}},
        workloads={workload: {} for _, workload, _ in table},
        threads=sorted({threads for _, _, threads in table}),
        settings={"max_connections": 2000},
    )
    evidence = StudyEvidence(study, runs(table), Analysis())
    found = evaluate.answer_claim(evidence, evaluate.AssignedClaim("s/c", claim, True))
    return found.verdict or "inconclusive"


@pytest.mark.parametrize(("kind", "title", "given", "told", "expected"), ASKED, ids=[one[1] for one in ASKED])
def test_both_makers_of_cells_say_the_same(make_study, kind, title, given, told, expected):
    claim, table = ClaimSpec.model_validate({"kind": kind, **TELLS, **given}), cells_of(told)
    assert READ[printed_cells.judge_printed(claim, tables(table))["verdict"]] == expected
    assert by_blocks(make_study, claim, table) == expected


def test_every_kind_is_among_them():
    assert {case[0] for case in ASKED} == set(KINDS) - {"text_only"}
    assert len(ASKED) >= 44


def test_a_text_has_no_verdict_by_any_table():
    claim = ClaimSpec(kind="text_only", claim="So.", stands="Here", published="fast", because="No table.")
    printed = printed_cells.judge_printed(claim, tables(cells_of({"a": {1: 100, 2: 150}})))
    assert printed["verdict"] == "not derivable"


@pytest.mark.parametrize("direction", ["rises", "falls"])
def test_equal_values_go_nowhere_and_blocks_leave_that_open(make_study, direction):
    """A printed number has no spread; of blocks within 0.02 % nobody can say that there is no step at all."""
    claim = ClaimSpec(kind="trend", along="threads", direction=direction, **TELLS)
    table = cells_of({"a": {1: 100, 2: 100}})
    assert READ[printed_cells.judge_printed(claim, tables(table))["verdict"]] == "contradicted"
    assert by_blocks(make_study, claim, table) == "inconclusive"
