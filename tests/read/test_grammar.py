"""The table of line kinds must be whole: a state that nothing leads to, or out of, would never be noticed."""

from __future__ import annotations

from benchbook.read import grammar


def test_every_state_is_a_line_of_the_table():
    assert {state.rstrip("~") for state in grammar.FOLLOWERS} <= {*grammar.KINDS, "start"}


def test_every_line_but_the_last_leads_on():
    leads = {state.rstrip("~") for state in grammar.FOLLOWERS}
    assert {*grammar.KINDS} - leads == set()


def test_names_are_given_once():
    assert len(grammar.KINDS) == len(grammar.LINES)


def test_fields_belong_to_lines_that_say_them():
    for name, filled in {**grammar.OF_HEADER, **grammar.OF_TOTALS}.items():
        assert grammar.KINDS[name].line.groups == len(filled), name


def test_no_line_is_of_two_kinds_after_one_state():
    shown = [line for _, line, _ in grammar.LINES if isinstance(line, str)]
    for kinds in grammar.FOLLOWERS.values():
        for line in shown:
            assert sum(kind.match(line) is not None for kind in kinds) <= 1
