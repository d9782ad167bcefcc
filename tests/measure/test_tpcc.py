"""TPC-C's layout against two servers that others run: the same tables on both, proven, and valid runs."""

from functools import partial

import pytest

from benchbook import sites
from benchbook.core.study.params import Limits
from benchbook.measure import dataset, scheduler, warm_up
from benchbook.measure.data_plan import plan_data
from benchbook.plan import pilot_parameters, schedule
from benchbook.read import tidy, validity
from tests import small

pytestmark = pytest.mark.server
PASSWORD = "Pa55 w#rd"
SCRIPT = "tests/others/tpcc_like/tpcc.lua"
TPCC = {"script": SCRIPT, "options": {"tables": 2, "scale": 1, "use_fk": 0, "trx_level": "RC"}}
ALLOWED = (
    f"CREATE USER 'bench'@'127.0.0.1' IDENTIFIED BY '{PASSWORD}'",
    "CREATE DATABASE bench",
    "GRANT ALL PRIVILEGES ON bench.* TO 'bench'@'127.0.0.1'",
)


@pytest.fixture
def endpoints(open_folder, make_study, monkeypatch):
    """Two servers of somebody's on loopback, each with an account and an empty schema for us."""
    two = {"one": {}, "two": {"engine": {"settings": {"max_connect_errors": 101}}}}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BENCHBOOK_LOCK", str(open_folder / "theirs.lock"))
        theirs = sites.open_site(make_study(arms=two), open_folder / "theirs")
        with theirs as site:
            patch.undo()
            monkeypatch.setenv("BENCH_PASSWORD", PASSWORD)
            found = [site.up(arm) for arm in two]
            for arm in two:
                with site.admin(arm).connect() as connection:
                    for statement in ALLOWED:
                        connection.exec_driver_sql(statement)
            yield found


def test_tpcc_on_two_servers_that_others_run(endpoints, lab, tmp_path, monkeypatch):
    first, second = endpoints
    account = {"user": "bench", "password_env": "BENCH_PASSWORD", "database": "bench"}
    study = small.study(
        site={"kind": "existing", "existing": {"host": first.host, "port": first.port, **account}},
        arms={"single": {}, "galera": {"endpoint": {"host": second.host, "port": second.port}}},
        dataset={"tables": 1, "table_size": 100},
        # Two cores would make thousands, which say no more.
        workloads={"tpcc": {**TPCC, "rate": 20}},
        threads=(2,),
        aa=None,
        plan={"seed": 3, "blocks": 1, "discard_s": 1, "run_s": 3, "order": "runs"},
        warm_up={"pilot_s": 1},
    )
    monkeypatch.setenv("BENCHBOOK_LOCK", str(lab.parent / "machine.lock"))
    limits = Limits(client_wait=10, pause_ms=10_000, steal_pct=100).model_dump()
    data = plan_data(study)
    with sites.open_site(study, lab) as site:
        loaded = dataset.load_data(site, data)
        warm_up.warm_up_data(site, study)
        found = warm_up.record_custom_scripts(site, study)
        folders = warm_up.run_pilots("test", study, site, tmp_path / "pilots", limits, lambda _: None)
        known = pilot_parameters.script_record(found, tidy.pilot_totals(folders))
        # What the pilots wrote is found on the servers, which keep no copy, and both are loaded again.
        events = dataset.ensure_data(site, data, loaded, known["own"])["events"]
        assert [event for event in events if "orders1 has" in event and "loaded again" in event]
        runs = schedule.plan_runs("test", study, {}, known)
        judge = partial(validity.judge_run, limits=limits)
        where = (tmp_path / "raw", tmp_path / "void")
        matrix = scheduler.MatrixRunner(study, runs, site, *where, judge, limits, lambda _: None)
        state = scheduler.run_missing(matrix)
        assert not state.abandoned and state.done == 2
        removed = " ".join(site.remove())
    tables = known["own"]["tables"]
    due = {"customer1": 300, "stock2": 100, "orders1": 0}
    assert {name: tables[name]["rows"] for name in due} == due
    assert tables["customer1"]["checksum"] != tables["customer2"]["checksum"]
    assert "benchbook_lab" not in tables and "order_line2" in removed
