"""Calibration as a table: every campaign parsed again from its raw logs, and a joint result."""

from __future__ import annotations

import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from lzma import LZMAError
from pathlib import Path
from typing import Any

import pandas as pd

from benchbook.api.columns import document_table
from benchbook.api.lookup import Delegated, NotThere
from benchbook.compare.stats import calibration as compare
from benchbook.compare.stats.intervals import t_interval
from benchbook.core.artifacts import calibration_store
from benchbook.core.study.params import Limits
from benchbook.core.study.study import Study
from benchbook.core.util import files, numeric_equality, parallel
from benchbook.core.util.errors import BenchbookError
from benchbook.plan import schedule
from benchbook.read import tidy
from benchbook.show.markup import join_html, make_element

NAME = "calibration"
"""Name of the study that every campaign is, in its run folders."""
RUNS_OF_A_CAMPAIGN = 10
DECIMALS = 8
BRINGS = "`make calibrate ARGS=same` makes campaigns, `make calibrate ARGS=record` records them"


@dataclass(frozen=True, repr=False)
class Calibration:
    """Campaigns with a known answer, one row each in `campaigns`, and their joint result."""

    is_recorded: bool = False

    @cached_property
    def campaigns(self) -> pd.DataFrame:
        """One row a campaign, made from its raw logs."""
        if not self.is_recorded:
            return read_campaigns(calibration_store.clone_folder())
        with unpack_archives(calibration_store.list_archives()) as folder:
            return read_campaigns(folder)

    same = Delegated[pd.DataFrame](
        lambda item: item._of(compare.SAME),
        "The campaigns of equal arms in turns, of which each difference is a false alarm.",
    )
    known = Delegated[pd.DataFrame](
        lambda item: compare.compare_orders(item._of(compare.KNOWN)),
        "Each known effect by turns and by whole runs.",
    )
    lengths = Delegated[pd.DataFrame](
        lambda item: compare.estimate_spreads(item._of(compare.LENGTHS)),
        "The spread of a block's log ratio at each length of a turn.",
    )
    alarms = Delegated[compare.Share | None](
        lambda item: compare.count_false_alarms(item.same),
        "The false alarms of equal arms, with the interval of their share.",
    )
    sentences = Delegated[list[str]](
        lambda item: list(compare.render_sentences(item.campaigns)), "What it shows, a sentence a question."
    )

    def _of(self, kind: str) -> pd.DataFrame:
        return self.campaigns[self.campaigns.kind == kind].reset_index(drop=True)

    def __repr__(self) -> str:
        whose = "recorded" if self.is_recorded else "made in this clone"
        return "\n".join([f"calibration, {whose}: {len(self.campaigns)} campaigns", *self.sentences])

    def _repr_html_(self) -> str:
        first, *rest = repr(self).splitlines()
        return join_html(
            [make_element("p", make_element("b", first)), *(make_element("p", text) for text in rest)]
        ).text


def calibration(is_recorded: bool = False) -> Calibration:
    """Calibration of this clone, or else the recorded one; NotThere if neither is there."""
    if not is_recorded and calibration_store.complete_folders(calibration_store.clone_folder()):
        return Calibration()
    if calibration_store.list_archives():
        return Calibration(is_recorded=True)
    raise NotThere(f"no calibration is recorded in this clone, and none was made here; {BRINGS}")


def read_campaigns(folder: Path) -> pd.DataFrame:
    """Table of all complete campaigns below a folder, sorted, made from their logs in parallel."""
    whole = calibration_store.complete_folders(folder)
    with parallel.map_tasks(RUNS_OF_A_CAMPAIGN * len(whole)) as each:
        rows = list(each(row_of_campaign, whole))
    table = document_table("campaigns", pd.DataFrame(rows))
    table = table.astype(dict.fromkeys(("effect", "low", "high"), float))
    return table.sort_values(["kind", "began_utc", "name"], ignore_index=True)


def row_of_campaign(folder: Path, limits: Limits | None = None) -> dict[str, Any]:
    """Row of one campaign, by limits (None: the defaults); BenchbookError if it is damaged."""
    try:
        json = files.read_json(folder / calibration_store.CAMPAIGN)
        of = calibration_store.read_study(folder)
        # Without a number they were planned by the first rules.
        planned = schedule.schedule_table(schedule.plan_runs(NAME, of, {}, {"rules": json.get("rules", 1)}))
        tables = tidy.read_study(
            folder / calibration_store.RAW, folder / calibration_store.VOID, planned, limits
        )
        runs = tables["runs"].to_pandas()
        ratios = sorted(ratios_of(of, json["what"], runs).items())
        matching_interval = t_interval([round(ratio, DECIMALS) for _, ratio in ratios], compare.LEVEL)
        machine = json["machine"]
        named = {name: json[name] for name in ("name", "kind", "what", "began_utc")}
        lasted = {name: round(json[name], 2) for name in ("seconds", "load_1min")}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BenchbookError(
            f"{folder.name}: no campaign that can be read: {type(error).__name__}: {error}"
        ) from None
    interval = {
        "effect": matching_interval.effect,
        "low": matching_interval.low,
        "high": matching_interval.high,
    }
    return {
        **named,
        "engine": of.engine.name,
        "workload": " and ".join(of.workloads),
        "threads": of.threads[0],
        "order": of.plan.order,
        "turn_ms": int(planned["turn_ms"].max()),
        "blocks": of.plan.blocks,
        "run_s": of.plan.run_s,
        "seed": of.plan.seed,
        **lasted,
        "active_s": round(numeric_equality.exact_sum(runs.measured_s), 3),
        "runs": len(runs),
        "voids": tables["voids"].num_rows,
        "n": matching_interval.n,
        **{name: None if value is None else round(value, DECIMALS) for name, value in interval.items()},
        "log_ratios": compare.text_of([ratio for _, ratio in ratios]),
        "machine": f"{machine.get('cores')} cores of {machine.get('cpu_model')}, {machine.get('system')}",
    }


def ratios_of(of: Study, what: str, runs: pd.DataFrame) -> pd.Series:
    """Return the log ratio of each block of a campaign, between its arms or, for `rows`, its workloads."""
    side, names = ("workload", of.workloads) if what == compare.ROWS else ("arm", of.arms)
    baseline, treatment = names
    if not {baseline, treatment} <= set(runs[side]):
        return pd.Series(dtype=float)
    return compare.log_ratios(runs, baseline, treatment, side=side)


@contextmanager
def unpack_archives(archives: Sequence[Path]) -> Iterator[Path]:
    """Folder with the campaigns of some archives, as a context; nothing of it stays."""
    with tempfile.TemporaryDirectory(prefix="benchbook-calibration-") as folder:
        for archive in archives:
            try:
                with tarfile.open(archive, "r:xz") as tar:
                    tar.extractall(folder, filter="data")
            except (OSError, tarfile.TarError, EOFError, LZMAError) as error:
                raise BenchbookError(f"{archive.name}: can't be unpacked: {error}") from None
        yield Path(folder)
