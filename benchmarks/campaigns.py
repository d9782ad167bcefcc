"""Campaigns of a calibration: their folders and archives, a row each from their raw logs, joint results.

A campaign is a folder: `campaign.json` says what it is and is written last, `study.json` is its study of one
cell, `raw` and `void` have its run folders as the pipeline keeps them. Of a campaign nothing counts but its
log ratios, one a block.
"""

import json
import math
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from lzma import LZMAError
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import chdtri, stdtrit

from benchbook.commands import machine_noise
from benchbook.commands.machine_noise import LEVEL
from benchbook.compare.meta.prediction_check import SHARE_LEVEL, Share, share_of
from benchbook.compare.stats import tolerance
from benchbook.compare.stats.intervals import Interval, t_interval
from benchbook.core.study.params import Limits
from benchbook.core.study.study import StudySpec
from benchbook.core.util import files, numeric_equality, parallel, paths
from benchbook.core.util.errors import BenchbookError
from benchbook.plan import schedule
from benchbook.plan.earlier_rules import lift_warm_up
from benchbook.read import tidy

CAMPAIGN, STUDY, RAW, VOID = "campaign.json", "study.json", "raw", "void"
SAME, KNOWN, LENGTHS = "same", "known", "lengths"
KINDS = (SAME, KNOWN, LENGTHS)
ROWS = "rows"
"""The known effect whose sides are two workloads on equal arms; those of all others are two arms."""
NAME = "calibration"
"""Name of the study that every campaign is, in its run folders."""
RUNS_OF_A_CAMPAIGN = 10
DECIMALS = 8
# Keys of arms that were written as null when campaigns were recorded, and that no study has any more.
GONE = ("price_per_hour",)


def read_study(folder: Path) -> StudySpec:
    """Study of a campaign; ValueError or KeyError if it is none."""
    reported_json = files.read_json(folder / STUDY)
    for arm in reported_json["arms"].values():
        for key in GONE:
            if key in arm and arm[key] is None:
                del arm[key]
    return StudySpec.model_validate_json(json.dumps(reported_json))


def clone_folder() -> Path:
    """Folder of the campaigns that were made in this clone."""
    return paths.find_root() / "data" / "calibration"


def record_folder() -> Path:
    """Folder of the recorded campaigns: archives and their table."""
    return paths.record_folder() / "calibration"


def list_archives() -> list[Path]:
    """Archives of the recorded campaigns, sorted by name."""
    return sorted(record_folder().glob("*.tar.xz"))


def complete_folders(folder: Path) -> list[Path]:
    """Folders of the campaigns below one that are whole, sorted by name."""
    return sorted(file.parent for file in folder.glob(f"*/{CAMPAIGN}"))


def read_campaigns(folder: Path) -> pd.DataFrame:
    """Table of all complete campaigns below a folder, sorted, made from their logs in parallel."""
    whole = complete_folders(folder)
    with parallel.map_tasks(RUNS_OF_A_CAMPAIGN * len(whole)) as each:
        rows = list(each(row_of_campaign, whole))
    table = pd.DataFrame(rows)
    table = table.astype(dict.fromkeys(("effect", "low", "high"), float))
    return table.sort_values(["kind", "began_utc", "name"], ignore_index=True)


def row_of_campaign(folder: Path, limits: Limits | None = None) -> dict[str, Any]:
    """Row of one campaign, by limits (None: the defaults); BenchbookError if it is damaged."""
    try:
        json = files.read_json(folder / CAMPAIGN)
        of = read_study(folder)
        planned = schedule.schedule_table(schedule.plan_runs(NAME, of, {}, lift_warm_up(of, json)))
        tables = tidy.read_study(folder / RAW, folder / VOID, planned, limits)
        runs = tables["runs"].to_pandas()
        ratios = sorted(ratios_of(of, json["what"], runs).items())
        matching_interval = t_interval([round(ratio, DECIMALS) for _, ratio in ratios], LEVEL)
        machine = json["machine"]
        named = {name: json[name] for name in ("name", "kind", "what")}
        lasted = {"began_utc": json["began_utc"]} | {
            name: round(json[name], 2) for name in ("seconds", "load_1min")
        }
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
        "log_ratios": text_of([ratio for _, ratio in ratios]),
        "machine": f"{machine.get('cores')} cores of {machine.get('cpu_model')}, {machine.get('system')}",
    }


def ratios_of(of: StudySpec, what: str, runs: pd.DataFrame) -> pd.Series:
    """Return the log ratio of each block of a campaign, between its arms or, for `rows`, its workloads."""
    side, names = ("workload", of.workloads) if what == ROWS else ("arm", of.arms)
    baseline, treatment = names
    if not {baseline, treatment} <= set(runs[side]):
        return pd.Series(dtype=float)
    return machine_noise.log_ratios(runs, baseline, treatment, side=side)


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


def text_of(ratios: Sequence[float]) -> str:
    """Write log ratios as a table keeps them: `0.01234567 -0.00200000`."""
    return " ".join(f"{ratio:.8f}" for ratio in ratios)


def parse_ratios(text: str) -> np.ndarray:
    """Log ratios that `text_of` wrote."""
    return np.array([float(item) for item in text.split()])


_NUMBERS = ("effect", "low", "high", "difference", "times")


def count_false_alarms(table: pd.DataFrame) -> Share | None:
    """Count of equal-arm campaigns with an interval that leaves out zero, with its exact interval;
    None where no campaign has an interval."""
    ends = table[["low", "high"]].dropna().to_numpy()
    return share_of([tolerance.is_outside(low, high, 0, 0) for low, high in ends])


def compare_orders(table: pd.DataFrame) -> pd.DataFrame:
    """Comparison of both orders for each known effect, a row each: effects with intervals, their
    difference with its interval, whether that holds zero, and how many times the seconds of turns whole runs
    need for the same error.

    The blocks of repeated campaigns are taken together, since servers and clients start again in each.
    """
    rows = []
    for (what, engine, workload), campaigns in table.groupby(["what", "engine", "workload"], sort=False):
        by = {}
        for order, part in campaigns.groupby("order"):
            ratios = np.concatenate([parse_ratios(text) for text in part.log_ratios])
            # With the active seconds of a block.
            by[order] = ratios, float(part.active_s.sum()) / max(len(ratios), 1)
        if not {"turns", "runs"} <= set(by):
            continue
        intervals = {order: t_interval(ratios, LEVEL) for order, (ratios, _) in by.items()}
        rows.append(
            {
                "what": what,
                "engine": engine,
                "workload": workload,
                **{
                    f"{order}_{name}": getattr(intervals[order], name)
                    for order in ("turns", "runs")
                    for name in ("effect", "low", "high", "n")
                },
                **_effect_difference(intervals["turns"], intervals["runs"]),
                "times": _time_ratio(by["turns"], by["runs"]),
            }
        )
    table = pd.DataFrame(rows)
    # Without an interval there is none, and a column of such alone would be no numbers.
    return table.astype({name: float for name in table if name.endswith(_NUMBERS)})


def estimate_spreads(table: pd.DataFrame) -> pd.DataFrame:
    """Spread of a block's log ratio for each length of a turn, pooled over campaigns, with its
    interval, and the number of campaigns and blocks."""
    rows = []
    for turn_ms, campaigns in table.groupby("turn_ms"):
        parts = [ratios for ratios in map(parse_ratios, campaigns["log_ratios"]) if len(ratios) > 1]
        df = sum(len(part) - 1 for part in parts)
        if not df:
            continue
        squares = sum(float(((part - part.mean()) ** 2).sum()) for part in parts)
        tail = (1 - SHARE_LEVEL) / 2
        ends = [math.sqrt(squares / chdtri(df, probability)) for probability in (tail, 1 - tail)]
        blocks = df + len(parts)
        rows.append((int(turn_ms), math.sqrt(squares / df), *ends, len(parts), blocks))
    return pd.DataFrame(rows, columns=["turn_ms", "spread", "low", "high", "campaigns", "blocks"])


def _effect_difference(turns: Interval, runs: Interval) -> dict[str, Any]:
    """Effect of turns over that of whole runs, less one, with Welch's interval."""
    if turns.standard_error is None or runs.standard_error is None:
        return dict.fromkeys(("difference", "difference_low", "difference_high", "is_same"))
    parts = [interval.standard_error**2 for interval in (turns, runs) if interval.standard_error is not None]
    error = math.sqrt(sum(parts))
    df = error**4 / sum(
        part**2 / (interval.n - 1) for part, interval in zip(parts, (turns, runs), strict=True)
    )
    mean = (turns.log_mean or 0.0) - (runs.log_mean or 0.0)
    half = float(stdtrit(df, (1 + LEVEL) / 2)) * error
    ends = {"difference": mean, "difference_low": mean - half, "difference_high": mean + half}
    return {name: math.expm1(value) for name, value in ends.items()} | {
        "is_same": tolerance.is_below(abs(mean), half)
    }


def _time_ratio(turns: tuple[np.ndarray, float], runs: tuple[np.ndarray, float]) -> float | None:
    """Ratio of variances at equal active seconds; None if it is unknown."""
    if min(len(turns[0]), len(runs[0])) < 2 or not turns[0].std():
        return None
    per_second = [float(ratios.var(ddof=1)) * seconds for ratios, seconds in (runs, turns)]
    return per_second[0] / per_second[1]


def tabulate_results(table: pd.DataFrame) -> pd.DataFrame:
    """Results, a row a question and case; values whose `unit` is % are fractions."""
    columns = ("question", "case", "unit", "campaigns", "n", "value", "low", "high", "level")
    rows: list[tuple[Any, ...]] = []
    ends: Sequence[Any]
    same = table[table.kind == SAME]
    if alarms := count_false_alarms(same):
        blocks = int(same.n.sum())
        ends = (alarms.share, alarms.low, alarms.high, SHARE_LEVEL)
        rows.append(("alarms of equal arms", "", "%", alarms.of, blocks, *ends))
    campaigns = table[table.kind == KNOWN]
    effects = compare_orders(campaigns)
    for known in effects.itertuples():
        case = f"{known.what}, {known.engine}, {known.workload}"
        for question, prefix in (("by turns", "turns_"), ("by whole runs", "runs_")):
            ends = [getattr(known, f"{prefix}{name}") for name in ("n", "effect", "low", "high")]
            rows.append((f"known effect, {question}", case, "%", None, *ends, LEVEL))
        ends = [known.difference, known.difference_low, known.difference_high]
        rows.append(("turns over whole runs", case, "%", None, known.turns_n + known.runs_n, *ends, LEVEL))
    if len(effects) and len(times := effects.times.dropna()):
        case, mean = "geometric mean of known effects", float(np.exp(np.log(times).mean()))
        rows.append(("seconds of whole runs for the error of turns", case, "times", None, None, mean))
    for length in estimate_spreads(table[table.kind == LENGTHS]).itertuples():
        ends = [length.blocks, length.spread, length.low, length.high]
        rows.append(
            ("spread of a block", f"turns of {length.turn_ms} ms", "%", length.campaigns, *ends, SHARE_LEVEL)
        )
    results = pd.DataFrame([dict(zip(columns, row, strict=False)) for row in rows], columns=columns)
    return results.round(DECIMALS).astype({"campaigns": "Int64", "n": "Int64"})
