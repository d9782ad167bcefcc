"""Engines and proxies of another package run on hosts, and an arm may set a proxy of ours there."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchbook.core.util.errors import SiteError
from benchbook.measure import dataset
from benchbook.measure.data_plan import plan_data
from benchbook.sites.agent import files
from tests import walks
from tests.installed import package
from tests.sites.hosts.test_postgresql import BOUNCER, SMALL, opened
from tests.sites.hosts.test_site import OF_HOSTS

pytestmark = OF_HOSTS


@pytest.fixture
def others(tmp_path: Path) -> Iterator[None]:
    with package(tmp_path):
        yield


@pytest.mark.skipif(shutil.which("socat") is None, reason="socat is not installed: apt-get install socat")
def test_a_proxy_and_an_engine_of_one_module_each_are_measured_on_hosts(rack, others, monkeypatch, tmp_path):
    small = {"innodb_log_file_size": "8M", "innodb_flush_log_at_trx_commit": 2}
    engine = {"name": "small", "settings": small}
    arms = {"direct": {}, "behind": {"access": "socat", "proxy": {"version": "1"}}}
    with opened(rack, monkeypatch, engine=engine, arms=arms) as site:
        dataset.load_data(site, plan_data(site.study))
        assert site.able == ["direct", "behind"]
        for arm in site.able:
            folder = walks.measured(site, site.study, arm, tmp_path / arm)
            walks.must_agree(folder)
        facts = site.facts("behind")
        assert (facts["engine"]["name"], facts["proxy"]["name"]) == ("small", "socat")
        # Its own default, as the server says it: 32 MB are 33,554,432 bytes.
        assert facts["engine"]["settings"]["innodb_buffer_pool_size"]["got"] == "33554432"


@pytest.mark.skipif(not (BOUNCER and files.find_programs("postgres")), reason="no PgBouncer or PostgreSQL")
def test_pgbouncer_has_the_version_and_the_settings_that_an_arm_asks_for(rack, monkeypatch):
    asked = {"settings": {"default_pool_size": 7, "query_wait_timeout": 30}}
    arms = {
        "direct": {},
        "pool": {"access": "pgbouncer", "proxy": {"version": "1", **asked}},
        "old": {"access": "pgbouncer", "proxy": {"version": "0.1"}},
    }
    with opened(rack, monkeypatch, engine={"name": "postgresql", "settings": SMALL}, arms=arms) as site:
        site.up("pool")
        held = site.identity("pool")["proxy_settings"]
        assert (held["default_pool_size"], held["query_wait_timeout"]) == ("7", "30")
        assert site.facts("pool")["proxy"]["settings"] == asked["settings"]
        with pytest.raises(SiteError, match=r"arms\.old\.proxy\.version: .*0\.1"):
            site.up("old")
