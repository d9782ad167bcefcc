"""How tests are dealt out to several processes: file by file, what takes longest first.

A file's tests share what is dear to make: a server with its data, a study with its pages. One process takes
them all, but for files of which each test stands by itself.
"""

import os
import re
import zlib
from functools import cache
from pathlib import Path
from typing import Any

from xdist.scheduler import LoadScopeScheduling

# In this order. What one of these names is mixed, so that what waits for servers has what computes beside it,
# and what none names comes after: it is short, for all others wait for the last to end.
LONGEST = (
    *("pipeline/test_end_to_end.py", "pipeline/test_session.py", "sites/local/test_events.py"),
    *("sites/external", "site/test_the_record.py", "show"),
)
LONG = ("sites", "measure", "faults", "site", "commands", "compare", "lab", "benchmarks")
LONG += ("pipeline/test_repro.py",)
LAST = ("read/test_sysbench_log.py", "core/artifacts/test_artifact.py", "house/test_claims.py")
LAST += ("core/test_schema_docs.py",)
ORDER = (LONGEST, LONG, LAST)
# Each of their tests has a server of its own anyway.
APART = tuple(f"measure/test_{name}.py" for name in ("custom_data", "scheduler", "turns", "loads"))
APART += ("sites/local/test_events.py",)
# Files and floors that share what the first of them makes: the audits of all sources, all studies, a page,
# a clone with a study that was measured.
TOGETHER = {
    "published": (
        *("compare/claims/test_audit.py", "compare/claims/test_consistency.py"),
        *("read/test_published.py", "show/test_audit_page.py"),
    ),
    "studies": (
        *("house/test_claims.py", "house/test_studies.py"),
        *("house/test_cluster_studies.py", "house/test_host_studies.py"),
    ),
    "page": ("show",),
    "clone": ("lab",),
}
ALONE = re.compile(r"^@pytest\.mark\.alone\n(?:.*\n)*?def (\w+)", re.MULTILINE)
# Tests wait for servers, and for the seconds that a run lasts, more often than they compute.
A_CORE, OVER, MOST = 2, 1, 8


def workers() -> int:
    """Return how many processes suit this machine."""
    return min(A_CORE * len(os.sched_getaffinity(0)) + OVER, MOST)


def rank(nodeid: str) -> tuple[int, int, str]:
    """Return a test's place in the order: what waits until no other test runs comes when all are short."""
    path = f"{nodeid.partition('::')[0].removeprefix('tests/')}/"
    begins = (tuple(f"{name}/" for name in names) for names in ORDER)
    place = next((at for at, names in enumerate(begins) if path.startswith(names)), len(ORDER) + 1)
    return len(ORDER) if is_alone(nodeid) else place, zlib.crc32(unit(nodeid).encode()), path


def turned(found: list[Any], worker: str, workers: int) -> list[Any]:
    """Return what a worker has found in a folder, beginning elsewhere for each worker.

    In a fresh clone each then compiles modules that the others find compiled, and not all the same at once.
    """
    first = len(found) * int(worker.removeprefix("gw")) // workers
    return found[first:] + found[:first]


@cache
def alone() -> frozenset[str]:
    """Return the names of the tests that want the machine to themselves."""
    files = Path(__file__).parent.rglob("test_*.py")
    return frozenset(name for file in files for name in ALONE.findall(file.read_text(encoding="utf-8")))


def is_alone(nodeid: str) -> bool:
    """Say whether a test wants the machine to itself for a part of it, beside which others prepare theirs."""
    return nodeid.partition("::")[2].partition("[")[0] in alone()


@cache
def unit(nodeid: str) -> str:
    """Return the name of what is dealt out together with a test."""
    path = nodeid.partition("::")[0].removeprefix("tests/")
    if path in APART or is_alone(nodeid):
        return nodeid
    shared = (name for name, those in TOGETHER.items() if path in those or path.partition("/")[0] in those)
    return next(shared, path)


class Dealing(LoadScopeScheduling):
    """Deals the units out in the order that tests are collected in."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        return unit(nodeid)

    def _reschedule(self, node: Any) -> None:
        """Deal a worker a further unit when it is at its last test, which it begins once it knows the next.

        With two at hand, as xdist has it, one takes three of the long tests while others have none left.
        """
        if not self.workqueue or self._pending_of(self.assigned_work[node]) < 2:
            super()._reschedule(node)
