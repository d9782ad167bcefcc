"""What is loaded is what the study asks for, the same every time, or it is said what is wrong."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchbook import sites
from benchbook.core.study.study import StudySpec
from benchbook.core.util.errors import BenchbookError
from benchbook.measure import dataset, statement_counters
from benchbook.measure.data_plan import plan_data
from benchbook.measure.statement_counters import open_session
from benchbook.sites.agent import files
from tests import rooms
from tests.goldens import assert_golden
from tests.sites.hosts.test_postgresql import SMALL
from tests.sites.local.test_socket import study
from tests.walks import judge, measured

Make = Callable[..., StudySpec]


def state(rows: dict[str, int], indexes: dict[str, list[str]] | None = None) -> dict[str, Any]:
    """Return what `describe` says of tables with these rows, each with its index unless said otherwise."""
    found = {name: [f"k_{name[6:]}", "PRIMARY"] for name in rows}
    return {"rows": rows, "indexes": found | (indexes or {}), "checksums": None}


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (state({"sbtest1": 200, "sbtest2": 200}), []),
        (state({"sbtest1": 200, "sbtest2": -1}), ["sbtest2 is missing"]),
        (state({"sbtest1": 0, "sbtest2": 200}), ["sbtest1 has 0 rows, the study says 200"]),
        (state({"sbtest1": 200, "sbtest2": 201}), ["sbtest2 has 201 rows, the study says 200"]),
        (state({"sbtest1": 200, "sbtest2": 200}, {"sbtest2": ["PRIMARY"]}), ["sbtest2 has no index k_2"]),
        (state({"sbtest1": -1, "sbtest2": 199}),
         ["sbtest1 is missing", "sbtest2 has 199 rows, the study says 200"]),
    ],
)  # fmt: skip
def test_what_is_missing_is_said_in_words(make_study: Make, found: dict[str, Any], said: list[str]):
    assert dataset.find_problems(found, plan_data(make_study())) == said


def test_another_data_set_has_another_copy(make_study: Make):
    first = {"tables": 2, "table_size": 200}
    sets = [first, first | {"tables": 3}, first | {"table_size": 201}, first | {"seed": 2}]
    labels = [plan_data(make_study(dataset=one)).label for one in sets]
    assert len(set(labels)) == 4
    assert plan_data(make_study(threads=(5,))).label == labels[0]


@pytest.mark.server
def test_the_same_seed_loads_the_same_rows(site: Any, make_study: Make):
    study = make_study()
    once, twice = dataset.load_data(site, plan_data(study)), dataset.load_data(site, plan_data(study))
    assert once == twice
    assert once["rows"] == {"sbtest1": 200, "sbtest2": 200}
    assert len(set(once["checksums"].values())) == 2, "tables differ from each other"


@pytest.mark.server
def test_damaged_data_is_said_and_put_back(site: Any, make_study: Make):
    study = make_study()
    known = dataset.ensure_data(site, plan_data(study))
    assert known.pop("events") == []
    with open_session(site) as connection:
        connection.exec_driver_sql("TRUNCATE TABLE sbtest1")
        connection.exec_driver_sql("ALTER TABLE sbtest2 DROP INDEX k_2")
    again = dataset.ensure_data(site, plan_data(study), known)
    assert_golden("measure/damaged-data.txt", "\n".join([*again.pop("events"), ""]))
    assert again == known


@pytest.mark.server
def test_changed_rows_are_put_back_without_a_word(site: Any, make_study: Make):
    """Writing workloads change rows; that is no fault, and every block starts from the same bytes."""
    study = make_study()
    known = dataset.ensure_data(site, plan_data(study))
    with open_session(site) as connection:
        connection.exec_driver_sql("UPDATE sbtest1 SET k = k + 1")
    assert dataset.ensure_data(site, plan_data(study), known) == known


@pytest.mark.server
def test_a_lost_copy_is_loaded_again_as_it_was(site: Any, make_study: Make, monkeypatch: pytest.MonkeyPatch):
    study = make_study()
    known = dataset.ensure_data(site, plan_data(study))
    monkeypatch.setattr(site, "has_snapshot", lambda label=None, arm=None: False)
    again = dataset.ensure_data(site, plan_data(study), known)
    assert again["fingerprint"] == known["fingerprint"]
    assert_golden("measure/lost-copy.txt", "\n".join([*again["events"], ""]))


@pytest.mark.server
def test_data_that_cannot_be_what_was_recorded_is_refused(site: Any, make_study: Make):
    study = make_study()
    known = dataset.ensure_data(site, plan_data(study))
    recorded = known | {"fingerprint": "0", "checksums": {"sbtest1": 1, "sbtest2": 2}}
    refused = r"could not be brought back as it was: checksums is .*prepare@STUDY"
    with pytest.raises(BenchbookError, match=refused):
        dataset.ensure_data(site, plan_data(study), recorded)


@pytest.mark.server
def test_a_server_that_does_not_write_fails_the_stage(site: Any, make_study: Make):
    """sysbench's own prepare would exit 0."""
    site.up("direct")
    with open_session(site) as connection:
        connection.exec_driver_sql("SET GLOBAL read_only = ON")
        try:
            with pytest.raises(BenchbookError, match=r"prepare failed: sbtest1 .*1290"):
                dataset.load_data(site, plan_data(make_study()))
        finally:
            connection.exec_driver_sql("SET GLOBAL read_only = OFF")
    events = dataset.ensure_data(site, plan_data(make_study()))["events"]
    assert events[0].startswith("sbtest1 is missing; ")


@pytest.mark.server
def test_an_account_without_the_right_fails_the_stage(site: Any, make_study: Make):
    site.up("direct")
    with open_session(site) as connection:
        told = connection.exec_driver_sql("SHOW GRANTS FOR benchbook@'127.0.0.1'")
        (grants,) = [row[0] for row in told if "sbtest" in row[0]]
        connection.exec_driver_sql("REVOKE CREATE ON sbtest.* FROM benchbook@'127.0.0.1'")
        try:
            with pytest.raises(BenchbookError, match=r"prepare failed: sbtest1 .*1142"):
                dataset.load_data(site, plan_data(make_study()))
        finally:
            connection.exec_driver_sql(grants)
    assert dataset.ensure_data(site, plan_data(make_study()))["rows"] == {"sbtest1": 200, "sbtest2": 200}


THERE = all(files.find_programs(name) for name in ("mariadbd", "postgres"))


@pytest.mark.server
@pytest.mark.skipif(not THERE, reason="needs MariaDB and PostgreSQL")
def test_two_engines_hold_the_same_rows_and_are_measured(open_folder: Path, tmp_path: Path):
    asked = study(
        port=rooms.port(60),
        arms={"maria": {}, "postgres": {"engine": {"name": "postgresql", "settings": SMALL}}},
        dataset={"tables": 2, "table_size": 200},
        # Each arm is measured by itself, which in turns it can't be.
        plan={"seed": 3, "blocks": 1, "discard_s": 1, "run_s": 2, "order": "runs"},
        threads=(1,),
    )
    with sites.open_site(asked, open_folder / "engines") as site:
        state = dataset.load_data(site, plan_data(asked))
        assert state["indexes"] == {"sbtest1": ["id unique", "k"], "sbtest2": ["id unique", "k"]}
        assert len({*state["checksums"].values()}) == 2, "the tables hold different rows"
        for arm in asked.arms:
            judged = judge(measured(site, asked, arm, tmp_path / arm))
            assert (judged.reasons, judged.status, judged.ledger) == ([], "valid", "agrees")
        with statement_counters.open_session(site, "postgres") as connection:
            connection.exec_driver_sql("UPDATE sbtest2 SET pad = 'x' WHERE id = 7")
            connection.commit()
            changed = dataset.describe_data(connection, plan_data(asked))["checksums"]
        # A single changed row of one engine is seen.
        assert changed["sbtest1"] == state["checksums"]["sbtest1"]
        assert changed["sbtest2"] != state["checksums"]["sbtest2"]
