"""Every sentence that is left is true of each cell that its words cover, and no decided cell is left out."""

import re
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchbook.compare.text.conclusions import name_metric, summarize_rows
from benchbook.compare.text.results_table import ResultRow, build_results, rows_of_finding
from benchbook.core.util.estimate import Estimate
from tests.found import finding, level
from tests.goldens import assert_golden
from tests.recorded_findings import chosen_findings, recorded_findings

NUMBER = r"[−+]?[\d,]+(?:\.\d+)?"
PLACE = re.compile(
    r"(?:^| )(?:over all thread levels together"
    r"|at (?P<levels>[\d, and]+) threads?(?P<all> and over all levels)?)"
    r" on (?P<workloads>.+?)(?=, and (?:at \d|over all)|$)"
)
STARTS = {
    "no practical difference": "no practical difference",
    "no difference was shown": "not shown",
    "no useful interval": "no useful interval",
    "nothing is decided yet": "not decided yet",
    "no number": "not computed",
}


@dataclass
class Clause:
    """What one clause of a sentence says, read from its words alone."""

    label: str
    cells: set[tuple[str, int | None]]
    amount: tuple[float, float] | None
    ends: tuple[float, float] | None


def number(text: str) -> float:
    return float(text.replace("−", "-").replace("+", "").replace(",", "")) / 100


def read_clause(text: str, workloads: list[str]) -> Clause:
    body, _, bracket = text.rpartition(" (")
    interval = re.match(rf"\d+(?:\.\d+)? % intervals?(?: within)? ({NUMBER}) to ({NUMBER}) %", bracket)
    if interval is None and not re.search(r"(?:blocks?|[^)]*)\)$", text):
        body = text
    amount = re.search(rf"({NUMBER})(?: to ({NUMBER}))? % (lower|higher)\b", body)
    start = next((label for words, label in STARTS.items() if body.lower().startswith(words)), None)
    cells = set()
    for place in PLACE.finditer(body):
        named = place["workloads"]
        on = workloads if named.startswith("all ") else [one for one in workloads if _is_named(one, named)]
        levels = [int(one.replace(",", "")) for one in re.findall(r"\d[\d,]*", place["levels"] or "")]
        at = [*levels, *([None] if place["all"] or not levels else [])]
        cells |= {(workload, threads) for workload in on for threads in at}
    return Clause(
        start or amount[3],
        cells,
        (number(amount[1]), number(amount[2] or amount[1])) if amount and not start else None,
        (number(interval[1]), number(interval[2])) if interval else None,
    )


def _is_named(workload: str, text: str) -> bool:
    return bool(re.search(rf"(?:^|, | and ){re.escape(workload)}(?:$|, | and )", text))


def check(rows: list[ResultRow]) -> None:
    """Hold each sentence against its rows: names, labels, numbers, and that nothing is left out."""
    for conclusion in summarize_rows(rows):
        text = conclusion.text.replace("\xa0", " ")
        first = conclusion.rows[0]
        assert name_metric(first.metric).lower() in text.lower()
        assert first.treatment in text or first.treatment[1:] in text
        assert first.baseline in text
        workloads = list(dict.fromkeys(row.workload for row in conclusion.rows))
        by_cell = {(row.workload, row.threads): row for row in conclusion.rows}
        covered = set()
        for part in re.split(r"; (?=[\d−+,.]+(?: to|\s%)|no |nothing )", text.rstrip(".")):
            clause = read_clause(part, workloads)
            assert clause.cells, part
            assert not clause.cells & covered, part
            covered |= clause.cells
            for cell in clause.cells:
                row = by_cell[cell]
                assert row.label == clause.label, (cell, part)
                if clause.amount:
                    low, high = clause.amount
                    assert low - 0.00051 <= abs(row.change.value) <= high + 0.0051, (cell, part)
                    assert (row.change.value > 0) == (clause.label == "higher")
                if clause.ends and row.change.ends:
                    assert clause.ends[0] - 0.0051 <= row.change.low, (cell, part)
                    assert row.change.high <= clause.ends[1] + 0.0051, (cell, part)
        levels = {cell for cell in by_cell if cell[1] is not None}
        assert levels <= covered
        decided = {cell for cell, row in by_cell.items() if row.label in ("higher", "lower")}
        assert decided - covered <= {(workload, None) for workload, _ in levels & covered & decided}


def test_every_sentence_of_the_record_is_true_of_every_cell_that_it_covers():
    known = recorded_findings()
    assert len(known) > 100
    for found in known.values():
        check([*build_results(found).rows])


LABELS = ("higher", "lower", "not shown", "no practical difference", "no useful interval", "not decided yet")


@st.composite
def drawn_rows(draw) -> list[ResultRow]:
    rows = []
    for workload in draw(
        st.lists(st.sampled_from(["reads", "writes", "scans (10)"]), min_size=1, unique=True)
    ):
        for threads in draw(st.lists(st.sampled_from([1, 8, 64, 1024]), min_size=1, unique=True)):
            label = draw(st.sampled_from(LABELS))
            size = draw(st.floats(0.02, 3.0))
            value = -min(size, 0.9) if label == "lower" else size
            ends = {"higher": (value / 2, value * 2), "lower": (value - 0.05, value / 2)}.get(
                label, (-0.5, 4)
            )
            change = Estimate(value, *ends, 0.98, draw(st.sampled_from([5, 10])))
            rows.append(
                ResultRow(
                    "id", "HAProxy", "direct connections", workload, "qps", threads, None, change, label
                )
            )
    return rows


@settings(max_examples=150, deadline=None)
@given(drawn_rows())
def test_every_sentence_of_drawn_rows_is_true_of_every_cell_that_it_covers(rows):
    check(rows)


def test_the_sentences_that_dropped_a_level_name_it_now():
    """At 1 thread a loss is shown and at 8 threads none: the sentence says both, each with its level."""
    levels = [level(1, -0.236, -0.289, -0.18, label="lower"), level(8, 0.065, -0.101, 0.263)]
    (row_1, row_8) = rows_of_finding(
        finding(treatment="haproxy", baseline="direct", levels=levels, threads=[1, 8])
    )
    (conclusion,) = summarize_rows([row_1, row_8])
    text = conclusion.text.replace("\xa0", " ")
    assert "23.6 % lower" in text and "at 1 thread" in text
    assert "no difference was shown at 8 threads" in text and "−10.1 to +26.3 %" in text


@pytest.mark.parametrize(
    ("low", "high", "label"), [(0.91, 2.61, "higher"), (-0.1, 2.61, "no useful interval")]
)
def test_a_sure_direction_is_said_though_the_size_is_not(low, high, label):
    one = finding(
        effect=1.6, low=low, high=high, label="no useful interval", withheld="The interval is too wide."
    )
    (row,) = rows_of_finding(one)
    assert row.label == label and row.notes
    noisy = finding(
        effect=1.6, low=low, high=high, label="no useful interval", withheld="Equal arms (A/A) ..."
    )
    assert next(rows_of_finding(noisy)).label == "no useful interval"


STUDIES = ("quick", "lab-access", "lab-engines", "lab-proxies", "lab-rates", "lab-zones", "cluster-access")


def test_sentences_of_recorded_studies():
    text = "".join(
        f"{study}\n"
        + "".join(f"  {one.text}\n" for one in summarize_rows(build_results(chosen_findings(study)).rows))
        for study in STUDIES
    )
    assert_golden("conclusions.txt", text.replace("\xa0", " "))
