"""Where the uncertainty of measured sessions comes from, and how much of their time was measured.

`python -m benchmarks.variance [ARCHIVE ...]`: archives of sessions (.tar.gz, .tar.xz), by default the newest
recorded session of five studies. For each the A/A pair, or else the first treatment: its interval over all
cells, the interval at each level, the parts of its variance, and measured seconds over those from the first
run's start to the last one's end.
"""

import argparse
import tarfile
import tempfile
from pathlib import Path

import pandas as pd

from benchbook.compare.stats.intervals import t_interval
from benchbook.compare.stats.variance_components import log_ratio_table, variance_components
from benchbook.core.artifacts import record
from benchbook.core.study.params import Limits
from benchbook.core.study.study import TWIN
from benchbook.core.util import paths
from benchbook.read import tidy
from benchmarks.table import Row, format_interval, show

STUDIES = ("quick", "lab-proxies", "lab-zones", "lab-cpu", "lab-engines")
LEVEL = 0.98


def rows(is_full: bool) -> list[Row]:
    """Rows of the newest recorded session of each study; with `is_full` of all of them."""
    return [row for archive in recorded(is_full) for row in of_session(archive)]


def recorded(is_full: bool) -> list[Path]:
    """Archives of the five studies in the record."""
    index = record.read_index()
    return [
        paths.recorded_paths(name, session).archive
        for name in STUDIES
        for session in index.studies[name].sessions
        if is_full or session == index.studies[name].newest
    ]


def of_session(archive: Path) -> list[Row]:
    """Rows of one session, read and judged from its raw files."""
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")
        data = next(Path(folder).rglob("schedule.csv")).parent
        schedule = pd.read_csv(data / "schedule.csv", keep_default_na=False)
        tables = tidy.read_study(data / "raw", data / "void", schedule, Limits())
    runs, costs = (tables[name].to_pandas() for name in ("runs", "costs"))
    of_server = costs[costs.part == "server"].drop_duplicates("run_id").set_index("run_id")["cpu_us"]
    runs = runs.assign(server_us=runs.run_id.map(of_server))
    arms = list(dict.fromkeys(schedule.sort_values("position").arm))
    treatment = next((arm for arm in arms if arm.endswith(TWIN)), arms[-1])
    baseline = treatment.removesuffix(TWIN) if treatment.endswith(TWIN) else arms[0]
    ratios = log_ratio_table(runs, baseline, treatment)
    found = variance_components(runs, baseline, treatment)
    if found is None:
        return [Row(f"{data.name}: {treatment}", "fewer than three blocks")]
    whole = t_interval(ratios.mean(axis=1).to_numpy(), LEVEL)
    levels = [
        f"{' '.join(map(str, cell))}: {format_interval(t_interval(ratios[cell].to_numpy(), LEVEL))}"
        for cell in ratios
    ]
    measured_s = float(runs.active_s.fillna(runs.run_s).sum())
    lasted_s = float((runs.started_s + runs.sysbench_s).max() - runs.started_s.min())
    parts = "; ".join(
        f"{row.component.split(':')[0]} {row.sd_pct:.2f} %" for row in found.table().itertuples()
    )
    speed = "" if found.speed_share is None else f"; speed explains {found.speed_share:.0%}"
    what = f"{data.name}, {'/'.join(sorted(set(runs.order)))}, {baseline} : {treatment}"
    return [
        Row(what, format_interval(whole), f"{found.blocks} blocks, {found.cells} cells",
            f"{measured_s:.0f} of {lasted_s:.0f} s measured", "", None),
        *(Row(f"  {text}", "") for text in levels),
        Row(f"  {parts}{speed}", ""),
    ]  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("archives", nargs="*", type=Path)
    parser.add_argument("--full", action="store_true", help="all recorded sessions of the five studies")
    asked = parser.parse_args()
    show([row for archive in asked.archives or recorded(asked.full) for row in of_session(archive)])
