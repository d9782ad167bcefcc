"""The tables of line kinds must be whole: a state that nothing leads to, or out of, is never noticed."""

from dataclasses import fields

import pytest

from benchbook.read import grammar
from benchbook.read.log import Header, Summary
from benchbook.read.sysbench_legacy import LEGACY, LINES

TABLES = [(grammar.STRICT, grammar.LINES), (grammar.RELAXED, grammar.LINES), (LEGACY, LINES)]


@pytest.mark.parametrize("rules, lines", TABLES, ids=["strict", "relaxed", "legacy"])
def test_every_state_is_a_line_that_leads_on_and_stands_once(rules, lines):
    leads = {state.rstrip("~") for state in rules.followers}
    assert leads <= {*rules.kinds, "start", "bar"}
    assert {*rules.kinds} - leads - {"thread_time"} <= (
        {"histogram_end"} if rules is grammar.RELAXED else set()
    )
    assert len(rules.kinds) == len(lines)


def test_what_a_line_says_is_a_field_of_header_or_totals():
    known = {one.name for part in (Header, Summary) for one in fields(part)}
    patterns = [line for rules, _ in TABLES for line in rules.kinds.values() if not isinstance(line, str)]
    assert {field for one in patterns for field in one.groupindex} == known - {"line", "is_checkpoint"}


@pytest.mark.parametrize("rules, lines", TABLES, ids=["strict", "relaxed", "legacy"])
def test_no_line_is_of_two_kinds_after_one_state(rules, lines):
    shown = [line for line in rules.kinds.values() if isinstance(line, str)]
    for kinds in rules.followers.values():
        for line in shown:
            assert sum(rules.read_fields(kind, line) is not None for kind in kinds) <= 1
