"""How each table's loader is called: what an arm asks of its data must reach sysbench."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest

from benchbook.core.model import Endpoint
from benchbook.core.study import Study
from benchbook.measure import sysbench
from benchbook.plan import order


@pytest.mark.parametrize(("index", "is_first"), [("before", True), ("after", False)])
def test_an_index_that_is_asked_for_before_the_rows_is_made_before_them(
    make_study: Callable[..., Study], index: str, is_first: bool
):
    study = make_study(arms={"direct": {"data": {"index": index}}, "proxy": {"access": "haproxy"}})
    found = sysbench.argvs(study, "direct", Endpoint("127.0.0.1", 23560, "sbtest", "/run/secret"))
    assert ["--index-first=on" in argv for argv in found] == [is_first, is_first]
    assert [argv[-1] for argv in found] == ["run", "run"]


def test_the_loader_gives_each_table_its_own_seed(make_study: Callable[..., Study]):
    study = make_study(dataset={"tables": 3, "table_size": 1000, "seed": 7})
    assert sysbench.argvs(study, "direct", Endpoint("127.0.0.1", 33061, "sbtest", "/run/secret"))[2] == [
        "sysbench",
        "--config-file=/run/secret",
        "--db-driver=mysql",
        "--mysql-host=127.0.0.1",
        "--mysql-port=33061",
        "--mysql-db=sbtest",
        "--mysql-ssl=off",
        "--threads=1",
        "--events=1",
        "--time=0",
        f"--rand-seed={order.table_seed(7, 3)}",
        "--rand-type=uniform",
        str(sysbench.LOAD),
        "--table-number=3",
        "--table-size=1000",
        "run",
    ]
    assert sysbench.LOAD.is_file()


class Held:
    """A loader that never ends by itself."""

    def __init__(self) -> None:
        self.popen, self.ended = self, []

    def poll(self) -> None:
        return None

    def kill(self) -> None:
        self.ended.append("killed")

    def wait(self) -> None:
        self.ended.append("waited for")


def test_loaders_that_do_not_end_are_killed_and_named_when_the_longest_time_is_over(
    make_study: Callable[..., Study], monkeypatch: pytest.MonkeyPatch
):
    """A minute, and for each of two tables 15 s and a second for each 2,000 of its 3,000 rows: 93 s."""
    loaders: list[Held] = []

    def client(start: object) -> Held:
        loaders.append(Held())
        return loaders[-1]

    now = iter([0.0, 92.9, 93.1])
    monkeypatch.setattr(sysbench.time, "monotonic", lambda: next(now))
    monkeypatch.setattr(sysbench.time, "sleep", lambda _: None)
    study = make_study(dataset={"tables": 2, "table_size": 3000})
    found = sysbench.load_tables(
        SimpleNamespace(client=client), study, "direct", Endpoint("127.0.0.1", 23560, "sbtest", "/run/secret")
    )
    assert found == (["loading did not end within 93 s"], 93.0)
    assert loaders and all(one.ended == ["killed", "waited for"] for one in loaders)


def test_a_sysbench_that_goes_on_ends_with_what_it_was_started_for():
    child = Held()
    with sysbench.started(SimpleNamespace(client=lambda start: child), object()) as given:
        assert given is child and child.ended == []
    assert child.ended == ["killed", "waited for"]
