"""One real server for the tests of measuring, with tiny data, in a lab and under a lock of its own."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from benchbook import sites
from benchbook.core.study.study import StudySpec
from benchbook.measure import dataset
from benchbook.measure.data_plan import plan_data
from benchbook.sites.processes import process
from benchbook.sites.topology import teardown
from tests import rooms, small

PORT = rooms.port(200)


@pytest.fixture
def few_transactions(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of what does not depend on how many transactions there are: turns, strangers, order."""
    monkeypatch.setitem(process.PLAIN, "BENCHBOOK_TESTS_WAIT_US", "12000")


@pytest.fixture(scope="session")
def make_study() -> Callable[..., StudySpec]:
    """Return a function that makes a study of seconds with other sections as given."""

    def make(**changes: Any) -> StudySpec:
        engine = {"settings": {"innodb_buffer_pool_size": "32M", "innodb_log_file_size": "8M"}}
        return small.study(**{"site": {"port": PORT}, "engine": engine, **changes})

    return make


@pytest.fixture(scope="session")
def lab() -> Iterator[Path]:
    """A folder that a server's own user can reach, unlike pytest's; nothing of it stays."""
    folder = Path(tempfile.mkdtemp(prefix="bb-measure-", dir=rooms.folder()))
    folder.chmod(0o711)
    yield folder / "lab"
    assert teardown.tear_down(folder).is_clean
    shutil.rmtree(folder)


@pytest.fixture
def site(lab: Path, make_study: Callable[..., StudySpec], monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The site of the study, with its data prepared; the server is started by the first who asks."""
    monkeypatch.setenv("BENCHBOOK_LOCK", str(lab.parent / "machine.lock"))
    study = make_study()
    with sites.open_site(study, lab) as opened:
        if not opened.has_snapshot(plan_data(study).label):
            dataset.load_data(opened, plan_data(study))
        yield opened
