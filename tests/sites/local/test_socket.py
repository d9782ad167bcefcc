"""Arms that reach the server over its Unix socket, beside arms that come over TCP."""

import os
from typing import Any

import pandas as pd
import pytest

from benchbook import sites
from benchbook.core.study import descriptors
from benchbook.core.study.study import StudySpec
from benchbook.measure import dataset
from benchbook.measure.data_plan import plan_data
from tests import rooms, small
from tests.walks import Store, judge

SETTINGS: dict[str, dict[str, Any]] = {
    "mariadb": {"innodb_buffer_pool_size": "32M", "innodb_log_file_size": "8M"},
    "mysql": {"innodb_buffer_pool_size": "32M", "innodb_redo_log_capacity": "16M"},
    "postgresql": {"shared_buffers": "32MB", "max_wal_size": "256MB"},
}
TURNS = {"discard_s": 0.3, "run_s": 1}
OVER = {"mariadb": "--mysql-socket=", "mysql": "--mysql-socket=", "postgresql": "--pgsql-host=/"}


def study(name: str = "mariadb", port: int | None = None, **changes: Any) -> StudySpec:
    defaults = {
        "site": {"port": rooms.port(90) if port is None else port},
        "engine": {"name": name, "settings": SETTINGS[name]},
        "arms": {"direct": {}, "socket": {"access": "socket"}},
        "dataset": {"tables": 2, "table_size": 500},
        "workloads": {"oltp_read_only": {}},
        "plan": {"seed": 3, "blocks": 1} | TURNS,
    }
    return small.study(**defaults | changes)


@pytest.mark.server
@pytest.mark.alone
@pytest.mark.parametrize(
    "engine", [name for name, one in descriptors.load_engines().items() if one.has_socket]
)
def test_both_ways_lead_to_one_server_in_turns_and_agree_with_its_ledger(engine, open_folder, port, tmp_path):
    spec = study(engine, port + 35)
    ask = sites.load(descriptors.find_engine(engine).code).obstacle
    if (why := ask(spec.engine)) is not None:
        pytest.skip(why)
    with sites.open_site(spec, open_folder / f"socket-{engine}") as site:
        dataset.load_data(site, plan_data(spec))
        store = Store(site, spec, tmp_path)
        assert store.runs[0].order == "turns"
        store.walk_undisturbed()
        store.assert_complete()
        assert store.wrong() == {}
        assert site.server_of("direct") == site.server_of("socket")
        for folder in store.kept():
            assert judge(folder).ledger == "agrees"
            evidence, is_socket = folder.evidence(), "-socket-" in folder.path.name
            assert any(word.startswith(OVER[engine]) for word in evidence["argv"]) is is_socket
            rows = pd.read_csv(folder.path / "monitor.csv")
            carried = rows[rows.part == "server"].sent_mib_s
            assert carried.isna().all() if is_socket else carried.max() > 0
        # The folder of the socket is the server's own.
        assert os.stat(open_folder / f"socket-{engine}" / "server").st_mode & 0o077 == 0
