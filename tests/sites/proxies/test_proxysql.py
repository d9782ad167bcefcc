"""ProxySQL's module against a stand-in for its program: what it is given, what it took, and a valid run."""

from pathlib import Path

import pytest

from benchbook import sites
from benchbook.core.study import descriptors
from benchbook.core.util.errors import SiteError
from benchbook.measure import dataset
from benchbook.measure.data_plan import plan_data
from benchbook.sites.topology import feasibility
from tests import rooms, walks
from tests.goldens import assert_golden
from tests.sites.local.test_socket import study

STAND_IN = Path(__file__).parents[2] / "others" / "stand_in_proxysql.py"


@pytest.fixture
def program(open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = open_folder / "proxysql"
    made.write_text("#!/usr/bin/python3\n" + STAND_IN.read_text())
    made.chmod(0o755)
    monkeypatch.setenv("BENCHBOOK_PROXYSQL", str(made))
    return made


@pytest.mark.server
def test_a_run_through_proxysql_is_valid_and_its_settings_are_read_back(program, open_folder, tmp_path):
    asked = study(
        port=rooms.port(70),
        arms={"direct": {}, "proxysql": {"access": "proxysql", "proxy": {"settings": {"threads": 2}}}},
        plan={"seed": 3, "blocks": 1, "discard_s": 1, "run_s": 2, "order": "runs"},
        threads=(1,),
    )
    assert feasibility.find_infeasible(asked) == {}
    with sites.open_site(asked, open_folder / "proxied") as site:
        dataset.load_data(site, plan_data(asked))
        judged = walks.judge(walks.measured(site, asked, "proxysql", tmp_path / "run"))
        assert (judged.reasons, judged.status) == ([], "valid")
        proxy = site.facts("proxysql")["proxy"]
        told = (proxy["version"], proxy["threads"], proxy["max_connections"])
        assert told == ("2.7.1", 2, 4096)
        applied = "".join(text for _, text in site.applied("proxysql"))
        assert "multiplexing=false" in applied and site.lab.password() not in applied
        # A setting that it does not take is a mistake of the study, said by name.
        text = program.read_text()
        broken = text.replace("variables)\n    host", 'variables.replace("=2", "=3"))\n    host')
        program.write_text(broken)
        site.down()
        with pytest.raises(SiteError, match="threads is 3, asked 2"):
            site.up("proxysql")
            site.facts("proxysql")


def test_where_it_is_not_installed_the_way_that_works_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("BENCHBOOK_PROXYSQL", "/nowhere/proxysql")
    arms = {"direct": {}, "proxysql": {"access": "proxysql"}}
    (why,) = feasibility.find_infeasible(study(arms=arms)).values()
    assert_golden("proxies/proxysql-absent.txt", f"{why}\n")


def test_settings_that_say_where_it_listens_are_not_a_studys():
    refused = descriptors.find_proxy("proxysql").refused
    assert refused({"interfaces": "0.0.0.0:1"}, 0)
    assert refused({"threads": 4, "max_connections": 100}, 0) is None
