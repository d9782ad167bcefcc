"""Tests are dealt out to several processes: what is dear is made once, what takes long begins first."""

from tests import dealing
from tests.house import tree

TESTS = tree.ROOT / "tests"


def test_a_file_is_dealt_out_whole_but_where_each_test_stands_by_itself():
    first, second = (f"tests/read/test_tidy.py::test_{name}[a::b]" for name in "ab")
    assert dealing.unit(first) == dealing.unit(second) == "read/test_tidy.py"
    own = [f"tests/{dealing.APART[0]}::test_{name}" for name in "ab"]
    assert len({dealing.unit(one) for one in own}) == 2
    assert dealing.unit("tests/show/test_page.py::test_a") == dealing.unit(
        "tests/show/test_tables.py::test_b"
    )
    assert dealing.unit("tests/show/test_audit_page.py::test_a") == "published", "the first that names it"


def test_tests_that_are_alone_come_when_all_others_are_short_wherever_they_stand(request):
    assert dealing.alone(), "none is found; does the mark look otherwise now?"
    alone = "tests/pipeline/test_end_to_end.py::" + min(dealing.alone())
    named = [name for names in dealing.ORDER for name in names]
    short, *long = ["tests/core/test_paths.py::test_a", *(f"tests/{name}::test_a" for name in named)]
    assert max(map(dealing.rank, long)) < dealing.rank(alone) < dealing.rank(short)
    collected = {
        item.originalname
        for item in request.session.items
        if (mark := item.get_closest_marker("alone")) is not None and not mark.args
    }
    assert collected <= dealing.alone()


def test_what_it_names_is_there():
    together = (name for those in dealing.TOGETHER.values() for name in those)
    for name in (*(name for names in dealing.ORDER for name in names), *dealing.APART, *together):
        assert (TESTS / name).exists(), f"tests/{name}: gone; tests/dealing.py names it"
