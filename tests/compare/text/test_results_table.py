"""Rows of results: every decided level has its own, and every sentence of a cause is true of its cell."""

import math
import re

import pytest

from benchbook.compare.text.results_table import _NOISY, _sign_among, build_results, rows_of_finding
from benchbook.core.util.estimate import Estimate
from tests.found import changed, finding, level
from tests.recorded_findings import recorded_findings


def test_every_level_of_the_record_has_one_row_with_its_own_number():
    known = recorded_findings()
    assert len(known) > 100
    for found in known.values():
        rows = {(row.finding, row.threads): row for row in build_results(found).rows}
        for one in found.findings:
            for part in one.levels:
                if part.effect is None:
                    continue
                row = rows[one.id, part.threads] if len(one.threads) > 1 else rows[one.id, one.threads[0]]
                assert (row.change.value, row.metric) == (part.effect, one.metric)
                if part.label in ("higher", "lower", "no practical difference"):
                    assert row.label == part.label
            # A row over all levels stands only where the levels do not differ.
            if (whole := rows.get((one.id, None))) and len(one.levels) > 1:
                decided = {part.label for part in one.levels} & {"higher", "lower"}
                assert decided <= {whole.label}


def test_every_number_of_a_recorded_cause_is_that_of_its_cell():
    """Time that a query takes longer, and the change of its CPU time, against the fields beside them."""
    checked = 0
    for found in recorded_findings().values():
        for cause in found.causes.contrasts if found.causes else ():
            text = (cause.sentence or "").replace("\xa0", " ")
            if longer := re.search(r"a query takes ([\d.]+) µs(?: \[[\d., ]+\])? (longer|less) with", text):
                added = cause.added_latency_us.value
                assert float(longer[1]) == pytest.approx(abs(added), abs=0.51)
                assert (added > 0) == (longer[2] == "longer")
                checked += 1
            if changed := re.search(r"^(\S+) CPU-bound; .*its CPU time per query (\w+) by (\d+) %", text):
                share = cause.cost[changed[1]].value
                assert float(changed[3]) == pytest.approx(abs(100 * share), abs=0.51)
                assert (share > 0) == (changed[2] == "rises")
                checked += 1
    assert checked > 150


@pytest.mark.parametrize(("half", "comparisons", "sign"), [(0.99, 1, 1), (0.81, 2, 1), (0.82, 2, 0)])
def test_the_side_of_zero_is_that_of_the_interval_that_several_comparisons_leave(half, comparisons, sign):
    """Of 98 % two comparisons leave 99 % to each: with n = 5 it is 4.604 / 3.747 = 1.229 times as wide."""
    for side in (1, -1):
        low, high = sorted(math.expm1(side + end) for end in (-half, half))
        assert _sign_among(Estimate(math.expm1(side), low, high, 0.98, 5), comparisons) == side * sign


@pytest.mark.parametrize(
    ("low", "high", "label"),
    [(0.91, 2.61, "higher"), (-0.1, 2.61, "no useful interval"), (-1.0, 2.61, "no useful interval")],
)
def test_a_sure_direction_is_said_though_the_size_is_not(low, high, label):
    one = finding(effect=1.6, low=low, high=high, label="no useful interval", withheld="Too wide.")
    (row,) = rows_of_finding(one)
    assert row.label == label and row.notes
    # Equal arms that came out too far apart leave no direction, however wide the interval itself is.
    noisy = changed(
        one, levels=[level(4, 1.6, low, high, label="no useful interval", note="Equal arms came out apart.")]
    )
    (row,) = rows_of_finding(noisy)
    assert row.label == "no useful interval" and row.notes == (_NOISY,)
    narrow = changed(one, low=1.5, high=1.7, withheld="Equal arms came out apart.")
    assert next(rows_of_finding(narrow)).notes == (_NOISY,)


@pytest.mark.parametrize(("agrees", "reason"), [(False, "Heavy-tailed"), (True, "Holm"), (None, "Holm")])
def test_an_interval_without_zero_that_shows_nothing_has_its_reason(agrees, reason):
    second = {"method": "ranks", "low": -0.2, "high": 0.1, "agrees": agrees}
    (row,) = rows_of_finding(finding(label="not shown", second_opinion=second))
    assert row.label == "not shown" and reason in row.notes[0]
