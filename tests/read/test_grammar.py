"""The table of line kinds must be whole: a state that nothing leads to, or out of, would never be noticed."""

from dataclasses import fields

from benchbook.read import grammar
from benchbook.read.log import Header, Summary


def test_every_state_is_a_line_of_the_table():
    assert {state.rstrip("~") for state in grammar.FOLLOWERS} <= {*grammar.KINDS, "start"}


def test_every_line_but_the_last_leads_on():
    leads = {state.rstrip("~") for state in grammar.FOLLOWERS}
    assert {*grammar.KINDS} - leads == set()


def test_names_are_given_once():
    assert len(grammar.KINDS) == len(grammar.LINES)


def test_what_a_line_says_is_a_field_of_header_or_totals():
    known = {one.name for part in (Header, Summary) for one in fields(part)}
    patterns = [line for line in grammar.KINDS.values() if not isinstance(line, str)]
    assert {field for one in patterns for field in one.groupindex} == known - {"line", "is_checkpoint"}


def test_no_line_is_of_two_kinds_after_one_state():
    shown = [line for _, line, _ in grammar.LINES if isinstance(line, str)]
    for kinds in grammar.FOLLOWERS.values():
        for line in shown:
            assert sum(grammar.said(kind, line) is not None for kind in kinds) <= 1
