"""Walk a schedule of two runs and die by SIGKILL before the N-th step of the store's own work.

    python -m tests.faults.stepper STORE LAB PORT N

A step is a folder made, a file brought to the disk, renamed or removed below STORE. With N = 0 the walk ends
by itself; the last line says how many steps it took. The hook is here and not in the library.
"""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchbook import sites
from benchbook.core.study.study import StudySpec
from benchbook.measure import dataset, scheduler
from benchbook.measure.data_plan import plan_data
from benchbook.plan import schedule
from tests import small, walks
from tests.faults.scene import STUDY
from tests.limits import LIMITS

PLAN = {"seed": 5, "blocks": 1, "discard_s": 0, "run_s": 2, "max_repeats": 5}


def study(port: int) -> StudySpec:
    """Return the study: two runs of two seconds."""
    return small.study(**{**STUDY, "site": {"port": port}, "plan": PLAN})


def count_steps(store: Path, last: int) -> list[str]:
    """Count the steps from here on, and die before step number `last`."""
    steps: list[str] = []

    def hook(name: str) -> None:
        real: Callable[..., Any] = getattr(os, name)

        def stepping(*args: Any, **kwargs: Any) -> Any:
            what = args[0]
            path = os.readlink(f"/proc/self/fd/{what}") if isinstance(what, int) else os.fspath(what)
            if os.path.abspath(path).startswith(str(store)):
                steps.append(f"{name} {path}")
                if len(steps) == last:
                    os.kill(os.getpid(), signal.SIGKILL)
            return real(*args, **kwargs)

        setattr(os, name, stepping)

    for name in ("mkdir", "rename", "replace", "fsync", "unlink"):
        hook(name)
    return steps


def main() -> None:
    """Do what the arguments say."""
    store, lab, port, last = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    asked = study(port)
    with sites.open_site(asked, lab) as site:
        if not site.has_snapshot(plan_data(asked).label):
            dataset.load_data(site, plan_data(asked))
        steps = count_steps(store, last)
        runs = schedule.plan_runs("steps", asked, {})
        where = (site, store / "raw", store / "void")
        scheduler.run_missing(scheduler.MatrixRunner(asked, runs, *where, walks.judge, LIMITS))
    print(f"steps: {len(steps)}")


if __name__ == "__main__":
    main()
