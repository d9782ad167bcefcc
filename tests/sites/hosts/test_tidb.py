"""TiDB on hosts: one program by its path, and clusters by `tiup`, whose stand-in starts the real parts."""

import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest

from benchbook.core.util.errors import SettingsDiffer
from benchbook.measure import dataset
from benchbook.measure.data_plan import plan_data
from benchbook.sites.tidb import build
from benchbook.sites.topology import teardown
from tests import beside, rooms, walks
from tests.sites import stand_in_tiup
from tests.sites.hosts.test_several import column, loaded, opened
from tests.sites.hosts.test_site import OF_HOSTS, study
from tests.sites.ssh_hosts import Rack, leftovers, racked

CONTROL = {"server1": ["pd", "tikv", "control"]}
PROGRAMS = [build.make_recipe("5.0", name).target for name in (build.SERVER, *build.PARTS)]
ADAPTER = Path(__file__).resolve().parents[3] / "tools" / "images" / "tidb" / "tikv-server"
BUILT = [*filter(Path.is_file, (build.make_recipe(version).target for version in build.list_versions()))]
pytestmark = [
    *(*OF_HOSTS, pytest.mark.slow),
    pytest.mark.skipif(not BUILT, reason="no TiDB is built; make tidb"),
]


needs_parts = pytest.mark.skipif(
    not all(path.is_file() for path in PROGRAMS),
    reason="no TiDB cluster was built here; `make tidb ARGS=--cluster` builds it",
)


@pytest.fixture(scope="module")
def rack() -> Iterator[Rack]:
    """A server with every role of a cluster, and a client; the program of TiDB beside them."""
    with racked(140 + rooms.number(), "server1", "client1") as made:
        put(BUILT[0], made.folder / "tidb-server")
        yield made


@pytest.fixture
def all_is_as_it_was(rack: Rack) -> Iterator[None]:
    """As on all hosts, but for what has ended and that the stand-in of tiup has not yet collected."""
    yield
    assert not [one for one in beside.gone(lambda: leftovers(rack), 20) if one]


def put(program: Path, there: Path) -> None:
    """Put a program where the hosts see it."""
    if there.parent.stat().st_dev == program.stat().st_dev:
        os.link(program, there)
    else:
        shutil.copy2(program, there)


@pytest.fixture
def tiup(rack: Rack) -> Path:
    """Put the stand-in where the inventory says that tiup is; return the folder of its state."""
    state = rack.folder / "tiup"
    state.mkdir(exist_ok=True)
    text = Path(stand_in_tiup.__file__).read_text()
    parts = rack.folder / "parts"
    if not parts.is_dir():
        parts.mkdir()
        for built in PROGRAMS:
            put(built, parts / built.name)
        adapter = ADAPTER.read_text().replace("#!/usr/bin/env python3", f"#!{sys.executable}", 1)
        (parts / "tikv-server").write_text(adapter)
        (parts / "tikv-server").chmod(0o755)
    text = text.replace("PROGRAMS_FOLDER", str(parts)).replace("STATE_FOLDER", str(state))
    program = rack.folder / "tiup-stand-in"
    program.write_text(f"#!{sys.executable}\n{text}")
    program.chmod(0o755)
    return state


def said(state: Path) -> list[list[str]]:
    """Return the commands that the stand-in was given, but for its version."""
    lines = (state / "commands.jsonl").read_text().splitlines()
    return [words[1:] for words in map(json.loads, lines) if words[0] == "cluster"]


ONE_STORE = {"log.level": "error", "replication.max-replicas": 1}
SMALL: dict[str, Any] = {"workloads": {"oltp_read_write": {}}, "dataset": {"tables": 2, "table_size": 200}}


def test_one_tidb_by_its_path_is_measured_and_closed_to_others(rack, monkeypatch, tmp_path):
    engine = {"name": "tidb", "settings": {"tidb_hashagg_final_concurrency": 1}}
    asked = study(engine=engine, arms={"direct": {}, "again": {}}, **SMALL)
    programs = {"tidb-server": str(rack.folder / "tidb-server")}
    with loaded(rack, monkeypatch, "tidb", asked, programs=programs) as site:
        assert site.missing("direct") is None
        folder = walks.measured(site, site.study, "direct", tmp_path / "raw")
        walks.must_agree(folder)
        assert sum(column(folder, "server", "cpu_cores")) > 0
        found = site.facts("direct")["engine"]
        taken = {"asked": "1", "got": "1", "from": "study"}
        assert found["settings"]["tidb_hashagg_final_concurrency"] == taken
        place = (rack.hosts["server1"].address, 33060)
        with pytest.raises(pymysql.err.OperationalError, match="Access denied"):
            site.runtime.machine("client1").connect(place, user="root", password="")
        site.restore(plan_data(asked).label)
        assert walks.judge(walks.measured(site, site.study, "again", tmp_path / "raw")).status == "valid"


def cluster_study(settings: dict[str, Any], arms: dict[str, Any], **tiup: Any) -> Any:
    """Return a study on a cluster of one PD, one store and one TiDB."""
    parts = {"pd": {"hosts": 1, "config": ONE_STORE}, "tikv": {"hosts": 1}, "tidb": {"hosts": 1}}
    site = {"kind": "ssh", "inventory": "rack", "port": 24000, "tiup": parts | tiup}
    engine = {"name": "tidb", "version": "5.0.0", "settings": settings}
    return study(site=site, engine=engine, arms=arms, **SMALL)


def by_tiup(rack: Rack) -> dict[str, Any]:
    """Return what the inventory of these hosts says beside."""
    return {"also": CONTROL, "programs": {"tiup": str(rack.folder / "tiup-stand-in")}}


@needs_parts
def test_a_cluster_is_deployed_once_started_and_stopped_and_removed_by_purge(
    rack: Rack, tiup: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    # The level of TiKV's log has unistore's name, which takes its place.
    how = {"login": "root", "identity_file": "~/.ssh/id_ed25519"}
    how["tikv"] = {"hosts": 1, "config": {"server.log-level": "error"}}
    how["tidb"] = {"hosts": 1, "config": {"performance.max-procs": 2}}
    settings = {"tidb_hashagg_final_concurrency": 1}
    asked = cluster_study(settings, {"direct": {}, "two": {"clients": 2}}, **how)
    home = rack.folder / "home" / "cluster"
    with loaded(rack, monkeypatch, "cluster", asked, **by_tiup(rack)) as site:
        assert site.missing("direct") is None
        commands = said(tiup)
        name = commands[0][1]
        assert commands[0][:3] == ["deploy", name, "v5.0.0"]
        key = str(Path.home() / ".ssh" / "id_ed25519")
        assert commands[0][4:] == ["--user", "root", "--yes", "--identity_file", key]
        assert commands[1] == ["start", name, "--yes"]
        assert commands[2] == ["display", name, "--format", "json"]
        for arm in ("direct", "two"):
            folder = walks.measured(site, site.study, arm, tmp_path / "raw")
            walks.must_agree(folder)
            for part in ("server", "tidb", "tikv"):
                assert sum(column(folder, part, "cpu_cores")) > 0, "found by its port"
        facts = site.facts("direct")
        assert facts["cluster"]["version"] == "v5.0.0" and facts["cluster"]["tiup"] == "1.99.0"
        assert {one["role"] for one in facts["cluster"]["parts"]} == {"pd", "tikv", "tidb"}
        assert facts["engine"]["settings"]["performance.max-procs"]["got"] == "2"
        identity = site.identity("direct")
        place = (rack.hosts["server1"].address, 24000)
        with pytest.raises(pymysql.err.OperationalError, match="Access denied"):
            site.runtime.machine("client1").connect(place, user="root", password="")
        secret = site.lab.password()
    assert said(tiup)[-1] == ["stop", name, "--yes"]
    assert secret not in (tiup / "commands.jsonl").read_text()
    before = len(said(tiup))
    with opened(rack, monkeypatch, "cluster", asked, **by_tiup(rack)) as site:
        # Its tables are there and are taken as they are; what a run changed is loaded again.
        assert site.has_snapshot(plan_data(asked).label) and not site.has_snapshot("other")
        known = dataset.ensure_data(site, plan_data(asked))
        assert known["rows"] == {"sbtest1": 200, "sbtest2": 200}
        again = site.identity("direct")
        assert again["cluster"] == identity["cluster"] and again["pids"] != identity["pids"]
    assert not [words for words in said(tiup)[before:] if words[0] in ("deploy", "destroy")]
    report = teardown.tear_down(home.parent, purge=True)
    assert report.is_clean and said(tiup)[-1] == ["destroy", name, "--yes"]


@needs_parts
def test_a_cluster_ends_with_the_lease_when_nobody_comes_back(rack, tiup, monkeypatch):
    """Its TiDB is no child of the agent and has nothing of ours about it: what was written down ends it."""
    asked = cluster_study({"tidb_no_such_variable": 1}, {"direct": {}, "again": {}})
    with opened(rack, monkeypatch, "lease", asked, **by_tiup(rack)) as site:
        site.up("direct")
        with pytest.raises(SettingsDiffer, match="tidb_no_such_variable"):
            site.facts("direct")
        assert any("tidb-server" in text for text in leftovers(rack))
        host = site.runtime.host("server1")
        pid = host.call("hello")["pid"]
        pids = rack.hosts["server1"].processes()
        (agent,) = [one for one in pids if f"NSpid:\t{one}\t{pid}\n" in status(one)]
        os.kill(agent, 15)
        assert not beside.gone(lambda: [text for text in leftovers(rack) if "tidb-server" in text], 30)
    assert teardown.tear_down(rack.folder / "home", purge=True).is_clean


def status(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return ""
