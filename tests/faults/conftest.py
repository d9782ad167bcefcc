"""One lab for all faults, on a small disk of its own where we may mount one; the book they are counted in."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from benchbook import sites
from benchbook.core.study.study import StudySpec
from benchbook.measure import dataset
from benchbook.measure.data_plan import plan_data
from benchbook.sites.topology import teardown
from tests import rooms, small
from tests.faults import leftovers
from tests.faults.book import BOOK, Book, Injection
from tests.faults.scene import STUDY, Scene

PORT = rooms.port(360)
DISK = "1500m"


@pytest.fixture(scope="session")
def book() -> Book:
    return BOOK


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Let the book know how a test ended."""
    outcome = yield
    report = outcome.get_result()
    if report.when == "call":
        item.has_passed = report.passed  # type: ignore[attr-defined]


@pytest.fixture
def inject(request: pytest.FixtureRequest, book: Book) -> Iterator[Callable[..., None]]:
    """Return a function that enters a fault into the book: its row of the matrix and what is done."""
    mine: list[Injection] = []

    def enter(row: str, what: str) -> None:
        mine.append(Injection(row, what, request.node.nodeid))
        book.injections.append(mine[-1])

    yield enter
    for injection in mine:
        if hasattr(request.node, "has_passed"):
            injection.is_accounted = request.node.has_passed
        else:
            # Somebody interrupted the tests: what would have come of this fault is not known.
            book.injections.remove(injection)


@pytest.fixture(scope="session")
def make_study() -> Callable[..., StudySpec]:
    """Return a function that makes the study of these tests with other sections as given."""

    def make(**changes: Any) -> StudySpec:
        return small.study(**{**STUDY, "site": {"port": PORT}, **changes})

    return make


def refused(folder: Path, size: str) -> str:
    """Mount a disk of some size at a folder; return why it can't be, empty where it could."""
    if os.geteuid() != 0:
        return "it needs root"
    argv = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=0711", "benchbook-fault", str(folder)]
    done = subprocess.run(argv, capture_output=True, text=True)
    return done.stderr.strip() or "no word why" if done.returncode else ""


@pytest.fixture(scope="session")
def small_disk() -> Iterator[Callable[[Path, str], Path]]:
    """Return a function that mounts a disk of some size at a folder; all are gone at the end."""
    mounted: list[Path] = []

    def mount(folder: Path, size: str) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        if why := refused(folder, size):
            pytest.skip(f"no disk of its own here: {why}")
        mounted.append(folder)
        return folder

    yield mount
    for folder in reversed(mounted):
        subprocess.run(["umount", "-l", str(folder)], check=False)


@pytest.fixture(scope="session")
def lab() -> Iterator[Path]:
    """The folder of the lab, in memory where we may mount; nothing of it stays."""
    folder = Path(tempfile.mkdtemp(prefix="bb-faults-", dir="/var/tmp"))
    folder.chmod(0o711)
    has_disk = not refused(folder, DISK)
    yield folder / "lab"
    assert teardown.tear_down(folder).is_clean
    if has_disk:
        subprocess.run(["umount", str(folder)], check=True)
    shutil.rmtree(folder)
    assert leftovers.mounts(folder) == []


@pytest.fixture(scope="module")
def site(lab: Path, make_study: Callable[..., StudySpec], book: Book) -> Iterator[Any]:
    """The site with its data prepared; when it is closed, nothing of it is left some seconds later."""
    lock = lab.parent / "machine.lock"
    study = make_study()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BENCHBOOK_LOCK", str(lock))
        with sites.open_site(study, lab) as opened:
            if not opened.has_snapshot(plan_data(study).label):
                dataset.load_data(opened, plan_data(study))
            yield opened
        book.assert_no_orphans(lambda: leftovers.of_lab(lab, PORT, lock))


@pytest.fixture
def scene(site, make_study, tmp_path, book) -> Iterator[Callable[..., Scene]]:
    """Return a function that sets a scene; what its faults left in force is taken back."""
    made: list[Scene] = []

    def make(arm: str = "direct", limits: dict[str, Any] | None = None, **changes: Any) -> Scene:
        made.append(Scene(site, make_study(**changes), tmp_path, book, arm, limits or {}))
        return made[-1]

    yield make
    for one in made:
        one.settle()
