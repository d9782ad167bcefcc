"""An engine and a proxy of another package, a module each, are measured on this machine as ours are."""

import shutil
from pathlib import Path

import pytest

from benchbook import sites
from benchbook.measure import dataset
from benchbook.measure.data_plan import plan_data
from benchbook.sites.local import doctor
from tests import rooms, walks
from tests.installed import package
from tests.sites.local.test_socket import study

pytestmark = [
    pytest.mark.server,
    pytest.mark.skipif(shutil.which("socat") is None, reason="socat is not installed: apt-get install socat"),
]


def test_a_proxy_and_an_engine_of_one_module_each_are_measured_here(open_folder: Path, tmp_path: Path):
    with package(tmp_path):
        asked = study(
            port=rooms.port(70),
            engine={"name": "small", "settings": {"innodb_log_file_size": "8M"}},
            arms={"direct": {}, "behind": {"access": "socat"}},
            plan={"seed": 3, "blocks": 1, "discard_s": 1, "run_s": 2, "order": "runs"},
            threads=(1,),
        )
        with sites.open_site(asked, open_folder / "others") as site:
            dataset.load_data(site, plan_data(site.study))
            for arm in asked.arms:
                walks.must_agree(walks.measured(site, asked, arm, tmp_path / arm))
            facts = site.facts("behind")
            assert (facts["engine"]["name"], facts["proxy"]["name"]) == ("small", "socat")
        told = {one.name: one for one in doctor.examine()}
        assert told["socat"].ok and told["small"].ok and "percona" in told
