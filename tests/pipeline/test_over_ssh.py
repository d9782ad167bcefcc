"""The whole pipeline over SSH: a study of seconds on three hosts, from its file to the report."""

import json
import shutil
from collections.abc import Iterator

import pandas as pd
import pytest

from benchbook.core.artifacts.run_folder import RunFolder
from tests.pipeline import clone as clones
from tests.sites.ssh_hosts import Rack, unable

UNABLE = unable()
HAS_HOSTS = pytest.mark.skipif(UNABLE is not None, reason=str(UNABLE))
pytestmark = [pytest.mark.server, pytest.mark.slow, HAS_HOSTS]
STUDY = """
title: A study of seconds on hosts
question: Does the pipeline find its way over SSH?
site: {kind: ssh, inventory: rack, port: 33060}
engine:
  name: mariadb
  settings: {innodb_buffer_pool_size: 64M, innodb_log_file_size: 8M, innodb_flush_log_at_trx_commit: 2}
arms:
  direct: {access: direct}
  haproxy: {access: haproxy}
aa: null
dataset: {tables: 2, table_size: 500}
workloads:
  oltp_point_select: {}
threads: [2]
plan: {seed: 7, blocks: 3, discard_s: 1, run_s: 2, max_repeats: 3}
warm_up: {pilot_s: 2}
claims: []
"""


@pytest.fixture(scope="module")
def measured() -> Iterator[tuple[clones.Clone, Rack, str]]:
    """A clone whose study has been measured on a rack of hosts, the rack, and what was printed."""
    with clones.with_rack("server1", "proxy1", "client1") as (clone, rack):
        (clone.path / "studies" / "tiny.yaml").write_text(STUDY)
        (clone.path / "inventories").mkdir()
        shutil.copy(rack.inventory(), clone.path / "inventories" / "rack.yaml")
        code, said = clone.run("benchbook", "repro", timeout_s=900)
        assert code == 0, said
        yield clone, rack, said


def test_every_run_is_valid_and_the_books_agree(measured):
    clone, _, said = measured
    runs = pd.read_parquet(clone.data / "tidy" / "runs.parquet")
    assert len(runs) == 6, said
    assert set(runs["ledger"]) == {"agrees"}
    for folder in clone.runs():
        evidence = RunFolder(folder).evidence()
        assert evidence["arrangement"]["hosts"]["client"] == "client1"
        assert evidence["identity_before"] == evidence["identity_after"]


def test_the_report_says_which_hosts_it_is_about(measured):
    clone, _, _ = measured
    findings = json.loads((clone.data / "findings.json").read_text())
    assert findings["scope"] == "these hosts, these hours" and findings["blocks"]["complete"] == 3
    assert [one["treatment"] for one in findings["findings"]] == ["haproxy"]
    page = (clone.path / "reports" / "studies" / "tiny.html").read_text()
    assert "hosts of their own" in page and "server server1" in page


def test_nothing_of_it_runs_on_the_hosts_and_purge_takes_the_data(measured):
    clone, rack, _ = measured
    left = [text for host in rack.hosts.values() for text in host.commands().values()]
    assert not [text for text in left if "sshd" not in text]
    assert not any(host.listening() for host in rack.hosts.values())
    code, said = clone.run("benchbook", "plan", "tiny")
    assert code == 0 and f"server1 ({rack.hosts['server1'].address})" in said


def test_measured_again_with_nothing_changed_it_asks_no_host(measured):
    """The hosts are off: what is there already needs none of them."""
    clone, rack, _ = measured
    for host in rack.hosts.values():
        host.kill()
    code, said = clone.run("benchbook", "repro")
    assert code == 0, said
    assert "Running stage" not in said.replace("Running stage 'findings'", ""), said
