"""The one-second series of pilot runs."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from benchbook.core import runfolder
from benchbook.core.runfolder import RunFolder
from benchbook.read import sysbench_log

COLUMNS = ("arm", "workload", "threads", "pilot", "second", "qps")


def series(folders: Iterable[RunFolder]) -> pd.DataFrame:
    """Return arm, workload, threads, pilot (1), second (from 1) and qps of every pilot, one row a second."""
    rows = []
    for folder in folders:
        plan = folder.plan()
        log = sysbench_log.parse(folder.text(runfolder.OUT))
        for second, interval in enumerate(log.intervals, start=1):
            rows.append((plan["arm"], plan["workload"], plan["threads"], 1, second, interval.qps))
    return pd.DataFrame(rows, columns=list(COLUMNS))
