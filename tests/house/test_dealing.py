"""Files that `tests/dealing.py` names for the order of tests exist."""

from tests import dealing
from tests.house import tree

TESTS = tree.ROOT / "tests"


def test_what_it_names_is_there():
    together = (name for those in dealing.TOGETHER.values() for name in those)
    for name in (*(name for names in dealing.ORDER for name in names), *dealing.APART, *together):
        assert (TESTS / name).exists(), f"tests/{name}: gone; tests/dealing.py names it"
