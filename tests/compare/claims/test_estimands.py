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
from tests.found import runs as runs_of

READ = {"holds": "confirmed", "does not hold": "contradicted", "not derivable": "inconclusive"}
SIDES = {"baseline": {"arm": "a"}, "treatment": {"arm": "b"}}
OTHER = {"one": {"arm": "a"}, "other": {"arm": "b"}}
LOAD = "oltp_point_select"
ALONG = {"along": "threads"}

YES, NO, OPEN = "confirmed", "contradicted", "inconclusive"


def ratios(*each: float, workload: str = LOAD) -> dict[tuple[str, str, int], float]:
    """Return 1000 of arm a and so many times as much of arm b, at 1, 2, 4 ... threads."""
    return {
        (arm, workload, 2**place): 1000.0 * (ratio if arm == "b" else 1.0)
        for place, ratio in enumerate(each)
        for arm in ("a", "b")
    }


def levels(arm: str = "a", workload: str = LOAD, **values: float) -> dict[tuple[str, str, int], float]:
    """Return what an arm has by threads: levels(t100=10.0) is 10 at 100 threads."""
    return {(arm, workload, int(name[1:])): value for name, value in values.items()}


def sizes(*values: float, threads: int = 4) -> dict[tuple[str, str, int], float]:
    """Return what arms with 2, 4, 8 ... processors have."""
    return {(f"cpus-{2 ** (place + 1)}", LOAD, threads): value for place, value in enumerate(values)}


TWO_LOADS = ratios(1.04) | ratios(1.16, workload="oltp_read_only")
SAME = levels(t1=100, t2=150, t4=200)

CASES: list[tuple[str, str, dict[str, Any], dict[tuple[str, str, int], float], str]] = [
    # An effect, by the mean of all cells where a point is claimed: 1.02, 1.12 and so on are +2, +12 %.
    ("a point, inside", "effect", {**SIDES, "band": {"point": "7 %"}}, ratios(1.06, 1.08), YES),
    ("a point, by the mean alone", "effect", {**SIDES, "band": {"point": "7 %"}}, ratios(1.02, 1.12), YES),
    ("a point, outside", "effect", {**SIDES, "band": {"point": "7 %"}}, ratios(1.12, 1.12), NO),
    ("a point of every cell", "effect", {**SIDES, "band": {"point": "7 %"}, "judged_by": "every_cell"},
     ratios(1.02, 1.12), NO),
    ("a point of most cells", "effect", {**SIDES, "band": {"point": "7 %"}, "judged_by": "most_cells"},
     ratios(1.07, 1.06, 1.30), YES),
    ("half of the cells are not most", "effect",
     {**SIDES, "band": {"point": "7 %"}, "judged_by": "most_cells"}, ratios(1.07, 1.30), NO),
    ("a mean over two loads: sqrt(1.04 * 1.16) is 1.098", "effect", {**SIDES, "band": {"point": "10 %"}},
     TWO_LOADS, YES),
    ("the load that is meant", "effect",
     {**SIDES, "band": {"point": "10 %"}, "cells": {"workload": LOAD}}, TWO_LOADS, NO),
    ("a range is asked of every cell", "effect", {**SIDES, "band": {"range": ["10 %", "30 %"]}},
     ratios(1.02, 1.40), NO),
    ("a range that every cell is in", "effect", {**SIDES, "band": {"range": ["10 %", "30 %"]}},
     ratios(1.12, 1.28), YES),
    ("a range by its mean, where that is asked for", "effect",
     {**SIDES, "band": {"range": ["10 %", "30 %"]}, "judged_by": "mean"}, ratios(1.02, 1.40), YES),
    ("a bound from above, in every cell", "effect", {**SIDES, "band": {"below": "-2 %"}},
     ratios(0.95, 0.97), YES),
    ("a bound that one cell exceeds", "effect", {**SIDES, "band": {"below": "-2 %"}}, ratios(0.95, 0.99), NO),
    ("a bound from below", "effect", {**SIDES, "band": {"above": "-5 %"}}, ratios(0.96, 1.2), YES),
    # A claim with a direction never holds in the other one.
    ("1.21 % lower is no rise", "effect", {**SIDES, "band": {"point": "-1.21 %"}}, ratios(1.007), NO),
    ("1.21 % lower is not nothing", "effect", {**SIDES, "band": {"point": "-1.21 %"}}, ratios(0.999), NO),
    ("1.21 % lower is about 1.5 % lower", "effect", {**SIDES, "band": {"point": "-1.21 %"}},
     ratios(0.985), YES),
    ("1 to 3 % more is no loss", "effect", {**SIDES, "band": {"range": ["1 %", "3 %"]}}, ratios(0.995), NO),
    ("0 to 3 % more is no loss either", "effect", {**SIDES, "band": {"range": ["0 %", "3 %"]}},
     ratios(0.99), NO),
    ("a source's own tolerance ends at nothing", "effect",
     {**SIDES, "band": {"point": "-1 %", "tolerance": "3 %"}}, ratios(1.01), NO),
    ("almost no effect allows 2 points both ways", "effect", {**SIDES, "band": {"point": "0 %"}},
     ratios(1.015, 0.985), YES),
    ("thread counts as arms", "effect",
     {"baseline": {"threads": 1}, "treatment": {"threads": 4}, "cells": {"arm": "a"},
      "band": {"point": "100 %"}}, levels(t1=100, t2=150, t4=200), YES),
    # A value: 2 % around it, its mean for a point, every cell for a bound.
    ("a value", "value", {"cells": {"arm": "a"}, "band": {"point": 100}}, levels(t4=101), YES),
    ("a value by the mean: sqrt(90 * 111) is 99.9", "value", {"cells": {"arm": "a"}, "band": {"point": 100}},
     levels(t4=90, t8=111), YES),
    ("a value in every cell", "value",
     {"cells": {"arm": "a"}, "band": {"point": 100}, "judged_by": "every_cell"}, levels(t4=90, t8=111), NO),
    ("a bound of values", "value", {"cells": {"arm": "a"}, "band": {"below": 120}},
     levels(t4=90, t8=111), YES),
    ("a bound that one value reaches", "value", {"cells": {"arm": "a"}, "band": {"below": 110}},
     levels(t4=90, t8=111), NO),
    ("most values", "value", {"cells": {"arm": "a"}, "band": {"range": [90, 120]}, "judged_by": "most_cells"},
     levels(t4=100, t8=110, t16=200), YES),
    ("values where a key is above a number", "value",
     {"cells": {"arm": "a"}, "band": {"above": 150}, "where": [{"key": "threads", "above": 8}]},
     levels(t4=100, t8=110, t16=200), YES),
    # A trend: every step counts.
    ("it rises", "trend", {**ALONG, "direction": "rises", "cells": {"arm": "a"}}, SAME, YES),
    ("it does not fall", "trend", {**ALONG, "direction": "falls", "cells": {"arm": "a"}}, SAME, NO),
    ("one step down is no rise", "trend", {**ALONG, "direction": "rises", "cells": {"arm": "a"}},
     levels(t1=100, t2=150, t4=140, t8=200), NO),
    ("two loads, one of which falls", "trend", {**ALONG, "direction": "rises", "cells": {"arm": "a"}},
     SAME | levels(workload="oltp_read_only", t1=100, t2=90), NO),
    ("a loss becomes smaller", "trend", {**SIDES, **ALONG, "direction": "shrinks"}, ratios(0.7, 0.9), YES),
    ("so it does not grow", "trend", {**SIDES, **ALONG, "direction": "grows"}, ratios(0.7, 0.9), NO),
    ("but the ratio rises", "trend", {**SIDES, **ALONG, "direction": "rises"}, ratios(0.7, 0.9), YES),
    ("a loss of 20 % becomes a gain of 30 %: larger", "trend", {**SIDES, **ALONG, "direction": "grows"},
     ratios(0.8, 1.3), YES),
    ("a loss of 20 % becomes a gain of 5 %: smaller", "trend", {**SIDES, **ALONG, "direction": "shrinks"},
     ratios(0.8, 1.05), YES),
    ("smaller, then larger the other way", "trend", {**SIDES, **ALONG, "direction": "shrinks"},
     ratios(0.8, 0.95, 1.1), NO),
    ("one level has no trend", "trend", {**ALONG, "direction": "rises", "cells": {"arm": "a"}},
     levels(t1=100), OPEN),
    # A proportion: a power of 1 within a fifth, of the highest rate at each level.
    ("twice as much of twice as many", "proportional", {"along": "vcpus"}, sizes(100, 200, 400), YES),
    ("half as much again is log2(1.5) = 0.585", "proportional", {"along": "vcpus"}, sizes(100, 150, 225), NO),
    # The best of each is 100, 195, 380: log2(3.8) / 2 is 0.963. All six through one line: 0.52 and less.
    ("the highest of each counts", "proportional", {"along": "vcpus", "band": {"range": [0.9, 1.1]}},
     sizes(100, 195, 380) | sizes(98, 100, 104, threads=1), YES),
    ("along threads, each load by itself", "proportional", {**ALONG, "band": {"range": [0.9, 1.1]}},
     levels(t1=10, t2=20, t4=40) | levels(workload="oltp_read_only", t1=1, t2=2, t4=4), YES),
    ("one level is no proportion", "proportional", {"along": "vcpus"}, sizes(100), OPEN),
    # A peak: the best inside against the best outside.
    ("a peak before what lies beyond", "peak", {**ALONG, "band": {"below": 500}},
     levels(t100=10, t200=30, t400=20, t800=25), YES),
    ("0.7 % more beyond is no other peak", "peak", {**ALONG, "band": {"below": 500}},
     levels(t100=10, t200=20, t400=30, t800=30.2), YES),
    ("2 % more beyond is one", "peak", {**ALONG, "band": {"below": 500}},
     levels(t100=10, t200=20, t400=30, t800=30.6), NO),
    ("a peak that lies below the band", "peak", {**ALONG, "band": {"range": [300, 900]}},
     levels(t100=10, t200=30, t400=20, t800=25), NO),
    ("the best is the last, so nobody saw it fall", "peak", {**ALONG, "band": {"above": 500}},
     levels(t100=10, t200=20, t400=25, t800=30), OPEN),
    ("nothing was measured beyond", "peak", {**ALONG, "band": {"below": 5000}},
     levels(t100=10, t200=30, t400=20), OPEN),
    # The same effect: near the other's, so 45 % allows 36 to 54 %, and 1 % allows -1 to 3 %.
    ("alike", "same_effect", {**OTHER, **ALONG}, SAME | levels("b", t1=200, t2=290, t4=390), YES),
    ("not alike at one level", "same_effect", {**OTHER, **ALONG},
     SAME | levels("b", t1=200, t2=290, t4=320), NO),
    ("both next to nothing, with other signs", "same_effect", {**OTHER, **ALONG},
     levels(t1=100, t2=99.5) | levels("b", t1=100, t2=101), YES),
    ("levels that only one has are left out", "same_effect", {**OTHER, **ALONG},
     SAME | levels("b", t1=200, t4=390), YES),
    ("no level in common", "same_effect", {**OTHER, **ALONG}, SAME | levels("b", t8=200, t16=290), OPEN),
    # A unit: the metric that was written must fit.
    ("as written", "unit", {"candidates": ["qps", "tps"], "cells": {"arm": "a"}, "band": {"point": 100}},
     levels(t4=101), YES),
    ("not as written", "unit", {"candidates": ["qps", "tps"], "cells": {"arm": "a"}, "band": {"point": 100}},
     levels(t4=1600), NO),
]  # fmt: skip


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
            "threads": threads,
            "qps": value * (1 + 1e-4 * ((7 * block + 3 * place) % 5 - 2)),
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
    (found,) = evaluate.answer_claims(evidence, [evaluate.AssignedClaim("s/c", claim, True)])
    return found.verdict or "inconclusive"


@pytest.mark.parametrize(("kind", "given", "table", "expected"), [case[1:] for case in CASES],
                         ids=[case[0] for case in CASES])  # fmt: skip
def test_both_makers_of_cells_say_the_same(make_study, kind, given, table, expected):
    told = {"claim": "So it is.", "stands": "Here", "metric": "qps"}
    claim = ClaimSpec.model_validate({"kind": kind, **told, **given})
    assert READ[printed_cells.judge_printed(claim, tables(table))["verdict"]] == expected
    assert by_blocks(make_study, claim, table) == expected


def test_every_kind_is_among_them():
    assert {case[1] for case in CASES} == set(KINDS) - {"text_only"}
    assert len(CASES) >= 44


def test_a_text_is_a_text_for_both(make_study):
    claim = ClaimSpec(
        kind="text_only", claim="It is fast.", stands="Here", published="fast", because="No table."
    )
    assert printed_cells.judge_printed(claim, tables(SAME))["verdict"] == "not derivable"
    (left,) = evaluate.assign_claims(make_study(), {"s/c": claim}, {}).left
    assert left == "Claim s/c is not answered: it is a text without a number."


@pytest.mark.parametrize(("direction", "by_print"), [("rises", NO), ("falls", NO)])
def test_equal_values_go_nowhere_and_blocks_leave_that_open(make_study, direction, by_print):
    """A printed number has no spread; of blocks within 0.02 % nobody can say that there is no step at all."""
    claim = ClaimSpec(kind="trend", claim="So.", stands="Here", metric="qps", direction=direction, **ALONG)
    table = levels(t1=100, t2=100)
    assert READ[printed_cells.judge_printed(claim, tables(table))["verdict"]] == by_print
    assert by_blocks(make_study, claim, table) == OPEN
