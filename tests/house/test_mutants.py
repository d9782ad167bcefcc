"""The mutants that are drawn are those that are meant, and their counts can be drawn again."""

import ast
import importlib.util
import sys
from types import ModuleType

import pytest

from tests.house import tree

TEXT = '''
def chosen(values: list[int], n: int = 2) -> list[float]:
    """Say which 3 of them."""
    if not values and n >= 2:
        log(f"{n:.1f}")
    return [v * 1.5 for v in values if v < n][n:]
'''


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("mutants", tree.ROOT / "tools" / "mutants.py")
    assert spec and spec.loader
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = loaded
    spec.loader.exec_module(loaded)
    return loaded


def test_each_place_is_broken_in_each_way_there_is(tool: ModuleType):
    parsed = ast.parse(TEXT)
    made = [
        tool.mutated(TEXT, tool.Mutant("", number, *what))
        for number, (node, _, parent) in enumerate(tool.nodes(parsed))
        for what in tool.kinds(node, parent)
    ]
    assert sorted((line, told) for _, line, told in made) == sorted([
        (2, "2 => 3"),
        (2, "2 => 1"),
        (4, "not values and n >= 2 => not (not values and n >= 2)"),
        (4, "not values and n >= 2 => not values or n >= 2"),
        (4, "not values => values"),
        (4, "n >= 2 => n > 2"),
        (4, "n >= 2 => n < 2"),
        (4, "2 => 3"),
        (4, "2 => 1"),
        (5, "log(f'{n:.1f}') => pass"),
        (6, "return [v * 1.5 for v in values if v < n][n:] => return None"),
        (6, "v * 1.5 => v / 1.5"),
        (6, "1.5 => 2.5"),
        (6, "1.5 => 0.5"),
        (6, "v < n => not v < n"),
        (6, "v < n => v <= n"),
        (6, "v < n => v >= n"),
        (6, "n: => n + 1:"),
    ])  # fmt: skip
    texts = {text for text, _, _ in made}
    assert len(texts) == len(made) and ast.unparse(parsed) not in texts


def test_a_seed_draws_the_same_places_and_no_line_twice(tool: ModuleType):
    found, of_all = tool.drawn(7, 12)
    assert (found, of_all) == tool.drawn(7, 12)
    assert len({(one.file, tool.mutated((tree.ROOT / one.file).read_text(), one)[1]) for one in found}) == 12
    assert {one.file.split("/")[2] for one in found} <= set(tool.ROOMS)
