"""Labs for the tests: one data folder a session, opened anew by each test, under a lock of their own."""

import shutil
from pathlib import Path

import pytest

from benchbook.core.study.study import StudySpec
from benchbook.sites.proxies.haproxy import HAProxy
from tests import rooms, small


@pytest.fixture(autouse=True)
def own_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep the machine's lock out of the tests, and the tests out of it."""
    path = tmp_path / "machine.lock"
    monkeypatch.setenv("BENCHBOOK_LOCK", str(path))
    return path


@pytest.fixture(scope="session")
def port() -> int:
    """The first of a hundred ports that are ours."""
    return rooms.port(0)


@pytest.fixture(scope="session")
def make_study(port: int):
    """Return a function that makes a study with the given engine settings and other engine keys."""

    def make(settings: dict | None = None, **engine) -> StudySpec:
        little = {"innodb_buffer_pool_size": "16M", "innodb_log_file_size": "8M"}
        return small.study(
            site={"port": port},
            engine={"settings": little | (settings or {}), **engine},
            arms={"direct": {}, "relay": {"access": "haproxy"}},
            dataset={"tables": 1, "table_size": 10},
            workloads={"oltp_point_select": {}},
            threads=(1,),
            plan={"seed": 1, "blocks": 1, "discard_s": 0, "run_s": 2},
            warm_up={},
        )

    return make


@pytest.fixture(scope="session")
def lab(open_folder: Path) -> Path:
    """The lab folder that most server tests share."""
    if shutil.which("mariadbd", path="/usr/sbin:/usr/bin") is None or HAProxy.installed() is None:
        pytest.skip("needs MariaDB and HAProxy: apt-get install mariadb-server haproxy")
    return open_folder / "main"
