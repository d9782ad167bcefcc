"""A ladder on the page: the answer, the figure with its numbers in words, every pair, no empty table."""

from __future__ import annotations

import dataclasses
import math

import pandas as pd
import pytest

from benchbook.compare import findings
from benchbook.core.params import Analysis
from benchbook.core.study import Study
from benchbook.show import answer, figures
from tests.found import changed, runs
from tests.show import conftest, synthetic

ARMS = {"pool-8": 1.0, "pool-32": 1.3, "pool-128": 1.301}


@pytest.fixture(scope="module")
def found():
    """Make the findings of a ladder of three arms, 30 % between the first two and nothing after."""
    rows, noise = [], (0.001, -0.001, 0.0005, -0.0005, 0.0)
    for block in range(1, 6):
        for place, (arm, ratio) in enumerate(ARMS.items()):
            rows.append(
                {
                    "run_id": f"{block}-{arm}", "block": block, "position": len(rows), "group": f"{block}",
                    "arm": arm, "workload": "oltp_point_select", "threads": 4, "started_s": 10.0 * len(rows),
                    "sysbench_s": 10.0, "qps": 1000 * ratio * math.exp(noise[(block + place) % 5]),
                    "steal_pct": 0.1,
                    "warnings": "",
                }
            )  # fmt: skip
    study = Study.model_validate(
        {
            "title": "Pools", "question": "How large?", "site": {}, "engine": {},
            "arms": {arm: {} for arm in ARMS},
            "aa": None, "dataset": {"tables": 1, "table_size": 100},
            "workloads": {"oltp_point_select": {}}, "threads": [4],
            "plan": {"seed": 1, "blocks": 5, "discard_s": 1, "run_s": 5, "ladder": list(ARMS)},
            "warm_up": {}, "claims": [],
        }
    )  # fmt: skip
    voids = pd.DataFrame(
        columns=["run_id", "attempt", "block", "arm", "workload", "threads", "status", "reasons"]
    )
    tidy = {"runs": runs(rows), "voids": voids, "histograms": pd.DataFrame(columns=["run_id"])}
    return findings.make("pools", study, tidy, Analysis())


def test_the_answer_names_the_best_arm(found):
    text = answer.opening(found).text.replace("\xa0", " ")
    assert "Best up to pool-128 on point selects: pool-32." in text
    assert 'href="#ladder"' in text


def test_the_figure_has_a_line_an_arm_against_the_first(found):
    drawn, table = figures.ladder(found)
    assert [row.name for row in drawn.rows] == ["pool-32", "pool-128"]
    assert drawn.rows[0].told.startswith("+30.") and drawn.rows[0].direction == "higher"
    assert [row[0] for row in table.rows] == [
        "pool-32 against pool-8", "pool-128 against pool-8", "pool-128 against pool-32",
    ]  # fmt: skip
    assert [cell.text.count("no practical difference") for cell in table.rows[2][5:]] == [1, 1]


def test_a_study_without_one_shows_none(made):
    assert figures.ladder(made.findings) == []


def test_the_page_of_a_study_has_it(found, made, tmp_path):
    """The whole report notebook, on the made-up study with a ladder in its findings."""
    with_ladder = dataclasses.replace(made, findings=changed(made.findings, ladder=found.ladder))
    soup = conftest.build(with_ladder, tmp_path).soup
    assert soup.find(id="ladder") and soup.find(id="ladder-1")
    assert synthetic.evidence().findings.ladder is None
