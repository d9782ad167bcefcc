"""Existing logs of sysbench as objects: tables, pictures and caveats as of a study."""

import os
from collections.abc import Callable, Mapping

import pandas as pd

from benchbook.api.lookup import Delegated, NotThere, T
from benchbook.log_analysis import tables
from benchbook.log_analysis.comparison import LogSet, judge_claim, read_logs
from benchbook.log_analysis.text import render_terminal
from benchbook.show import logs_page


def _from_logs(make: Callable[[LogSet], T], meaning: str) -> Delegated[T]:
    return Delegated(lambda logs: make(logs.read), meaning)


class Logs:
    """All runs of some logs beside each other; shows its comparison in a notebook."""

    def __init__(
        self,
        *paths: str | os.PathLike[str],
        by: str | None = None,
        arms: Mapping[str, str] | None = None,
        baseline: str | None = None,
    ) -> None:
        """Read logs of files, folders and globs; `arms` maps names to globs, `by` is a pattern of paths."""
        names = [os.fspath(path) for path in paths]
        self.read = read_logs(names, by, [*(arms or {}).items()], baseline, keeps_series=True)
        if not self.read.runs:
            reasons = "; ".join(map(str, self.read.left_out[:3]))
            raise NotThere(f"no run of sysbench in {', '.join(names)}" + (f" ({reasons})" if reasons else ""))

    arms = Delegated[tuple[str, ...]]("read.arms", "Arms in their order, the baseline first.")
    runs = _from_logs(tables.runs_table, "One row a run; rates per second, latencies in ms.")
    intervals = _from_logs(tables.intervals_table, "One row a report line.")
    histograms = _from_logs(tables.histograms_table, "One row a bucket of each run that printed a histogram.")
    effects = _from_logs(
        tables.effects_table,
        "One row a workload, level and arm: means, change as a fraction, its 95 % interval.",
    )
    scaling = _from_logs(logs_page.scaling_table, "Highest throughput, knee and scalability law of each arm.")
    read_as = Delegated[str](
        lambda logs: logs.read.layout.sentence(logs.read.runs),
        "Reading of arms, threads and repetitions, as options that say it again.",
    )

    @property
    def caveats(self) -> pd.DataFrame:
        """Possible faults, one row each, with file and line."""
        return pd.DataFrame(map(vars, self.read.caveats), columns=["path", "line", "kind", "text"])

    @property
    def left_out(self) -> pd.DataFrame:
        """Files, or parts of them, that are no run, each with the reason."""
        return pd.DataFrame(map(vars, self.read.left_out), columns=["path", "line", "reason"])

    def judge(self, claim: str) -> str:
        """Verdict of these logs on a claim such as "haproxy/direct = -5.8%"."""
        return judge_claim(self.read, claim)

    def plot(self) -> object:
        """Throughput over threads, every run a point."""
        return logs_page.throughput_picture(self.read)

    def plot_latency(self) -> object:
        """Mean latency over threads, of arms with three levels or more."""
        return logs_page.latency_picture(self.read)

    def plot_seconds(self) -> object:
        """Throughput by seconds at the highest level; None without report lines."""
        return logs_page.seconds_picture(self.read)

    def _repr_html_(self) -> str:
        return logs_page.comparison_table(self.read)._repr_html_()

    def __repr__(self) -> str:
        return render_terminal(self.read)


logs = Logs
