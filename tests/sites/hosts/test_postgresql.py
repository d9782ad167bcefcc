"""PostgreSQL and PgBouncer on hosts of their own, and how a session is held there."""

import time
from typing import Any

import pandas as pd
import psycopg
import pytest

from benchbook import sites
from benchbook.core.study import inventory
from benchbook.measure import dataset, statement_counters
from benchbook.measure.data_plan import plan_data
from benchbook.sites import workspace as labs
from benchbook.sites.agent import files
from benchbook.sites.engines import postgresql as accounts
from benchbook.sites.machine import local_machine
from tests import walks
from tests.sites.hosts.test_site import OF_HOSTS, PATIENCE, PORT, SHORT, study
from tests.sites.ssh_hosts import Rack

SMALL = {"shared_buffers": "32MB", "max_wal_size": "256MB", "synchronous_commit": "off"}
BOUNCER = local_machine.find_program("pgbouncer")
NOT_THERE = "PostgreSQL is not installed: apt-get install postgresql"
pytestmark = [*OF_HOSTS, pytest.mark.skipif(not files.find_programs(accounts.PROGRAM), reason=NOT_THERE)]


def opened(rack: Rack, monkeypatch: pytest.MonkeyPatch, **asked: Any) -> Any:
    """Return the site of a study on the hosts, not yet open; PgBouncer is where this machine has it."""
    programs = {"pgbouncer": BOUNCER} if BOUNCER else None
    monkeypatch.setenv(inventory.VARIABLE, str(rack.inventory(programs=programs, **PATIENCE)))
    # Long enough that the monitor of each host has seen its parts also on a busy machine.
    asked |= {"plan": {**SHORT, "run_s": 4}, "threads": (1,), "workloads": {"oltp_read_write": {"rate": 20}}}
    return sites.open_site(study(**asked), rack.folder / "home" / "others")


@pytest.fixture
def site(rack: Rack, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A server, a pool (or HAProxy, where there is no PgBouncer) on a host of its own, and the client's."""
    arms = {"direct": {}, "behind": {"access": "pgbouncer" if BOUNCER else "haproxy"}}
    engine = {"name": "postgresql", "settings": SMALL}
    with opened(rack, monkeypatch, engine=engine, arms=arms) as there:
        dataset.load_data(there, plan_data(there.study))
        yield there


def test_a_postgresql_on_a_host_is_held_to_the_query_and_its_data_are_put_back(site, rack, tmp_path):
    server, label = rack.hosts["server1"], plan_data(site.study).label
    for arm in site.able:
        folder = walks.measured(site, site.study, arm, tmp_path / arm)
        walks.must_agree(folder)
        # Its sessions are processes: the first, which begins them, uses next to nothing. On a busy machine
        # client and sessions get little alike.
        used = pd.read_csv(folder.path / "monitor.csv").groupby("part")["cpu_cores"].mean()
        assert used["server"] > 0.2 * used["client"] > 0
    assert site.able == list(site.study.arms)
    assert server.listening() == {f"{server.address}:{PORT}"}
    facts = site.facts("direct")["engine"]
    assert (facts["name"], facts["settings"]["synchronous_commit"]["got"]) == ("postgresql", "off")
    # Whoever has no password, or comes from elsewhere, is not let in.
    with pytest.raises(psycopg.OperationalError, match=r"password authentication failed|no pg_hba.conf"):
        psycopg.connect(host=server.address, port=PORT, user=labs.USER, password="x", dbname=labs.SCHEMA)
    before = site.identity("direct")
    assert site.has_snapshot(label)
    site.restore(label)
    again = site.identity("direct")
    assert again["word"] != before["word"] and again["server_uid"] == before["server_uid"]
    with statement_counters.open_session(site, "direct") as connection:
        data = plan_data(site.study)
        assert dataset.find_problems(dataset.describe_data(connection, data), data) == []


def test_a_session_far_away_is_over_when_it_is_closed_and_asks_nothing_meanwhile(site: Any):
    site.up("direct")
    server = site.runtime.get(site.chains["direct"].server)
    host = server.machine.on
    count = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
    with accounts.connect_admin(server.machine, server.socket) as one:
        for _ in range(3):
            accounts.connect_admin(server.machine, server.socket).close()
            row = one.execute(count).fetchone()
            assert row == (1,), "a closed one is no longer there"
        # More than one piece of an answer, and more than one in a question.
        (long,) = one.execute("SELECT repeat('x', 3000000) || %s", ["y" * 300_000]).fetchone() or ("",)
        assert len(long) == 3_300_000
        asked, real = [], host.call
        host.call = lambda do, **how: asked.append(do) or real(do, **how)
        try:
            time.sleep(1.0)
        finally:
            del host.call
        assert set(asked) <= {"hello"}, "only the lease is renewed"
        with pytest.raises(psycopg.errors.DivisionByZero):
            one.execute("SELECT 1 / 0")
        assert one.execute("SELECT 7").fetchone() == (7,)
