"""How tests are dealt out to several processes: file by file, what takes longest first.

A file's tests share what is dear to make: a server with its data, a study with its pages. One process takes
them all, but for files of which each test stands by itself.
"""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling

# In this order; what is not named comes after. The last to begin should be short, for the others wait for it.
FIRST = (
    "pipeline/test_end_to_end.py",
    "sites/test_arrangements.py",
    "site/test_the_record.py",
    "sites/test_ssh.py",
    "sites/test_contract.py",
    "faults",
    "measure",
    "sites",
    "site",
    "commands",
    "compare",
    "show",
)
# Each of their tests has a server of its own anyway.
APART = ("measure/test_own.py", "measure/test_matrix.py", "measure/test_turns.py", "measure/test_loads.py")
# Floors whose files share what one of them makes.
TOGETHER = ("show",)


def rank(path: str) -> int:
    """Return the place in the order of a file, given from `tests/` on."""
    return next((at for at, name in enumerate(FIRST) if f"{path}/".startswith(f"{name}/")), len(FIRST))


def unit(nodeid: str) -> str:
    """Return the name of what is dealt out together with a test."""
    path = nodeid.split("::", 1)[0].removeprefix("tests/")
    if path in APART:
        return nodeid
    floor = path.partition("/")[0]
    return floor if floor in TOGETHER else path


class Dealing(LoadScopeScheduling):
    """Deals the units out in the order that tests are collected in."""

    def _split_scope(self, nodeid: str) -> str:
        return unit(nodeid)
