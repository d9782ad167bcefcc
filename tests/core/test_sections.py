"""A stage reads what it declares and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from benchbook.core.errors import BenchbookError
from benchbook.core.load import Sections


class Model(BaseModel):
    one: int = 1
    two: int = 2

    @property
    def three(self) -> int:
        return self.one + self.two

    def times(self, factor: int) -> int:
        return factor * self.one


def test_declared_sections_are_read():
    seen: Any = Sections(Model(), ["one"])
    assert seen.one == 1
    assert seen.times(5) == 5


def test_another_section_is_refused_with_what_to_declare():
    seen: Any = Sections(Model(), ["one"])
    with pytest.raises(BenchbookError, match=r"reads `two` but does not declare it; add it to load\.study"):
        _ = seen.two


def test_a_property_is_refused_when_it_reads_another_section():
    assert Sections(Model(), ["one", "two"]).three == 3
    with pytest.raises(BenchbookError, match="reads `two`"):
        _ = Sections(Model(), ["one"]).three


def test_a_section_that_does_not_exist_is_refused_at_once():
    with pytest.raises(BenchbookError, match="four: not a section of Model"):
        Sections(Model(), ["one", "four"])


def test_a_wrong_name_is_an_ordinary_mistake():
    with pytest.raises(AttributeError, match="Model has no five"):
        _ = Sections(Model(), ["one"]).five
