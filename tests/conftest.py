"""What a test may ask of this machine: real servers and a browser, or a reason for their absence."""

import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

# Its plugin imports it when all tests are done, and Python 3.11 may fail to compile it so deep in the stack.
import hypothesis
import pytest

from benchbook.sites.topology import teardown
from tests import browser, programs, rooms
from tests.faults.book import BOOK
from tests.tracebacks import pytest_runtest_makereport  # noqa: F401

SERVER_PROGRAMS = ("sysbench", "mariadbd", "haproxy")


def pytest_configure(config: pytest.Config) -> None:
    """Look for servers where an ordinary user's PATH does not; hear the signals that a terminal sends.

    Under nohup, or in the background of a shell, hang-up and Ctrl-C are ignored, and all that is started
    from there would inherit it.
    """
    # A busy machine takes longer over an example, and that is no failure.
    hypothesis.settings.register_profile(
        "patient", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
    )
    hypothesis.settings.load_profile("patient")
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ["PATH"] += ":/usr/local/sbin:/usr/sbin:/sbin"
    # Workers have both from the process that starts them. Threads for sums would look for work all the time.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if not hasattr(config, "workerinput"):
        config.add_cleanup(programs.begin())


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Let Python look for garbage only among what comes later: the modules and tests collected here stay.

    It looks each 50,000 objects, not each 700, which took every tenth second of a worker.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(50_000)
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Let each of several workers begin its collection with another part of a folder."""
    report = yield
    worker = getattr(collector.config, "workerinput", None)
    if worker is not None and isinstance(collector, pytest.Directory):
        from tests import dealing

        report.result = dealing.turned(report.result, worker["workerid"], worker["workercount"])
    return report


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With several workers, put the tests into the order in which they are dealt out."""
    if hasattr(config, "workerinput"):
        from tests import dealing

        items.sort(key=lambda item: dealing.rank(item.nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Say what `-n auto` is, but where somebody looks at one test in a debugger."""
    from tests import dealing

    return 0 if config.option.usepdb else dealing.workers()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Deal the tests out as `tests/dealing.py` says, each worker with labs, locks and ports of its own."""
    if config.getvalue("dist") == "no":
        return None
    from tests import dealing

    return dealing.Dealing(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Let a test hold the machine beside others, and the things of it that its mark `alone` names alone."""
    mark = item.get_closest_marker("alone")
    things, is_calm = mark.args if mark else (), item.get_closest_marker("slow") is None
    with rooms.machine(alone=False), rooms.things(*things), programs.calm(is_calm):
        return (yield)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Let a worker hand over the faults that it has injected, and end without a last look for garbage.

    pytest and Python look at their ends, and among the 600 MB of a worker each look takes seconds.
    """
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["faults"] = BOOK.pages()
        gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Enter a worker's faults into the one book."""
    if pages := getattr(node, "workeroutput", {}).get("faults"):
        BOOK.add(pages)


def pytest_terminal_summary(terminalreporter: Any, exitstatus: int) -> None:
    """Print the one line that all faults add up to; the long set writes it down when nothing stopped it."""
    if BOOK.injections:
        terminalreporter.write_line(BOOK.sentence())
        is_whole = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
        if os.environ.get("BENCHBOOK_WRITE_FAULTS") and is_whole:
            BOOK.write()


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
    folder = Path(tempfile.mkdtemp(prefix="bb-", dir=rooms.folder()))
    folder.chmod(0o711)
    yield folder
    assert teardown.tear_down(folder).is_clean
    shutil.rmtree(folder)
