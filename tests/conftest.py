"""What a test may ask of this machine: real servers and a browser, or a reason for their absence."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Generator
from pathlib import Path

# Its plugin imports it when all tests are done, and Python 3.11 may fail to compile it so deep in the stack.
import hypothesis  # noqa: F401
import pytest

from benchbook.sites import clean
from tests import browser, rooms

SERVER_PROGRAMS = ("sysbench", "mariadbd", "haproxy")
# What takes longest goes first, so that no worker is left with it at the end.
FIRST = (
    "pipeline/test_end_to_end.py",
    "site/test_the_record.py",
    "sites/test_arrangements.py",
    "faults",
    "sites/test_ssh.py",
    "sites/test_contract.py",
    "measure",
    "sites",
    "site",
    "commands",
    "compare",
    "show",
)
# Floors whose files share what is dear to make.
TOGETHER = {"faults", "show"}
# Files of which each test stands by itself; of the others a worker takes all tests, for they share what is dear.
APART = ("measure/test_own.py", "measure/test_matrix.py", "measure/test_turns.py", "measure/test_loads.py")


def pytest_configure(config: pytest.Config) -> None:
    """Look for servers where an ordinary user's PATH does not; hear the signals that a terminal sends.

    Under nohup, or in the background of a shell, hang-up and Ctrl-C are ignored, and all that is started
    from there would inherit it.
    """
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ["PATH"] += ":/usr/local/sbin:/usr/sbin:/sbin"


# Before xdist's own, which reads the groups.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With several workers (`-n 4 --dist loadgroup`), keep a file's tests together, and those of some floors.

    Each worker has labs, locks and ports of its own (`tests/rooms.py`).
    """
    if not hasattr(config, "workerinput"):
        return
    for item in items:
        path = _path(item)
        floor = path.partition("/")[0]
        if path not in APART:
            item.add_marker(pytest.mark.xdist_group(floor if floor in TOGETHER else path))
    items.sort(key=lambda item: _rank(_path(item)))


def _path(item: pytest.Item) -> str:
    return item.path.relative_to(Path(__file__).parent).as_posix()


def _rank(path: str) -> int:
    return next((at for at, name in enumerate(FIRST) if f"{path}/".startswith(f"{name}/")), len(FIRST))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Let a test marked `alone` have the machine, or the things of it that it names, to itself."""
    mark = item.get_closest_marker("alone")
    with rooms.machine(alone=mark is not None and not mark.args), rooms.things(*(mark.args if mark else ())):
        return (yield)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what this machine can't do; under `make test`, which installs the servers, fail instead."""
    if item.get_closest_marker("server"):
        absent = [program for program in SERVER_PROGRAMS if shutil.which(program) is None]
        if absent and os.environ.get("BENCHBOOK_REQUIRE_SERVER"):
            pytest.fail(f"{', '.join(absent)}: not in PATH, though make test has just set this machine up")
        if absent:
            pytest.skip(f"{', '.join(absent)}: not installed; `make setup` installs them")
    if item.get_closest_marker("browser") and browser.program() is None:
        pytest.skip("no Chromium or Chrome on this machine")


@pytest.fixture(scope="session")
def open_folder():
    """A folder that a server's own user can reach, unlike pytest's."""
    folder = Path(tempfile.mkdtemp(prefix="bb-", dir="/var/tmp"))
    folder.chmod(0o711)
    yield folder
    assert clean.down(folder).is_clean
    shutil.rmtree(folder)
