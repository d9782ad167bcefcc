"""How each table's loader is called: what an arm asks of its data must reach sysbench."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from benchbook.core.model import Endpoint
from benchbook.core.study import Study
from benchbook.measure import sysbench


@pytest.mark.parametrize(("index", "is_first"), [("before", True), ("after", False)])
def test_an_index_that_is_asked_for_before_the_rows_is_made_before_them(
    make_study: Callable[..., Study], index: str, is_first: bool
):
    study = make_study(arms={"direct": {"data": {"index": index}}, "proxy": {"access": "haproxy"}})
    found = sysbench.argvs(study, "direct", Endpoint("127.0.0.1", 23560, "sbtest", "/run/secret"))
    assert ["--index-first=on" in argv for argv in found] == [is_first, is_first]
    assert [argv[-1] for argv in found] == ["run", "run"]
