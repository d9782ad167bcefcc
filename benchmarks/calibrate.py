"""`make calibrate`: campaigns, each whole or made again, and their record.

Three questions whose answer is known: a server against itself; a difference made on purpose, by turns and by
whole runs; and how the error depends on the length of a turn.
"""

import argparse
import datetime
import io
import lzma
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count, product
from pathlib import Path
from typing import Any

import pandas as pd

from benchbook.commands import machine_noise, stage
from benchbook.commands import record as recording
from benchbook.core.study.interleaving import RULES, RUNS, TURNS
from benchbook.core.study.params import Limits
from benchbook.core.study.study import StudySpec
from benchbook.core.util import files, yaml_file
from benchbook.core.util.errors import BenchbookError, LockHeld
from benchbook.core.util.plural import count as counted
from benchbook.evidence import tarball
from benchbook.sites.machine import facts
from benchmarks import campaigns as store
from benchmarks.campaigns import KINDS, KNOWN, LENGTHS, ROWS, SAME

FORMAT = 1
TABLE, RESULTS = "campaigns.csv", "results.csv"
BRINGS = "`make calibrate ARGS=same` makes campaigns, `make calibrate ARGS=record` records them"
BLOCKS, RUN_S = 5, 2
"""Blocks of a campaign, and active seconds of a run in turns; a whole run has twice as many."""
TURN_MS = (5, 10, 20, 50, 100, 250, 500)
MADE_OF = yaml_file.read_mapping(Path(__file__).with_name("calibration.yaml")).data
EFFECTS: dict[str, dict[str, dict[str, Any]]] = MADE_OF["effects"]
"""What the other arm has, by engine and effect."""
FIRST_PORT, PORTS_EACH, PORT_RANGE = 24000, 10, 100
# `xz -7e` remembers 16 MB, as much as an archive holds, and makes a tenth less of it than `xz -6`.
PRESET = 7 | lzma.PRESET_EXTREME
OF_AN_ARCHIVE = 40
"""Campaigns of an archive, 16 kB each: no file in git is larger than 1 MB."""

# Campaigns of equal arms in all; repetitions of each known effect, and of each length of a turn.
USUAL = {"same": 100, "known": 1, "lengths": 5}
Say = Callable[[str], None]


@dataclass(frozen=True)
class Campaign:
    """One study whose answer is known; `what` is the known effect, empty for equal arms."""

    name: str
    kind: str
    what: str
    of: StudySpec


def same() -> Iterator[Campaign]:
    """Yield campaigns of equal arms without end."""
    for number in count(1):
        of = machine_noise.build_study(
            port=_port(number), order=TURNS, blocks=BLOCKS, run_s=RUN_S, seed=100 + number
        )
        yield Campaign(f"same-turns-{number}", SAME, "", of)


def known(repetitions: int, engines: tuple[str, ...] = tuple(EFFECTS)) -> Iterator[Campaign]:
    """Yield campaigns of known effects, each by turns and next by whole runs, repetition by repetition."""
    places = count()
    for number in range(1, repetitions + 1):
        for engine in engines:
            asked: list[tuple[str, str, dict[str, Any]]] = [
                (what, f"{what}-{load}", {"arms": {"one": {}, "other": other}, "workloads": {load: {}}})
                for (what, other), load in product(EFFECTS[engine].items(), MADE_OF["workloads"])
            ]
            if rows := MADE_OF["rows"].get(engine):
                asked.append((ROWS, ROWS, {"workloads": rows}))
            for (what, name, parts), order in product(asked, (TURNS, RUNS)):
                plan = _plan(order, number, next(places))
                of = machine_noise.build_study({**parts, **MADE_OF["engines"][engine]}, **plan)
                yield Campaign(f"known-{engine}-{name}-{order}-{number}", KNOWN, what, of)


def lengths(repetitions: int) -> Iterator[Campaign]:
    """Yield campaigns of equal arms at each length of a turn, repetition by repetition."""
    for number, turn_ms in product(range(1, repetitions + 1), TURN_MS):
        plan = _plan(TURNS, number, number) | {"seed": 2000 + number, "turn_ms": turn_ms}
        yield Campaign(f"lengths-{turn_ms}ms-{number}", LENGTHS, "", machine_noise.build_study(**plan))


def _plan(order: str, number: int, place: int) -> dict[str, Any]:
    run_s = RUN_S if order == TURNS else 2 * RUN_S
    return {"order": order, "blocks": BLOCKS, "run_s": run_s, "seed": 1000 + number, "port": _port(place)}


def _port(place: int) -> int:
    return FIRST_PORT + PORTS_EACH * (place % PORT_RANGE)


def wanted(kind: str, campaigns: int, engines: tuple[str, ...] = tuple(EFFECTS)) -> list[Campaign]:
    """Return the campaigns of a kind that are asked for and not there yet.

    `campaigns` counts those of equal arms that are to be there in the end, whatever their numbers; of the
    other kinds, repetitions of each.
    """
    there = {folder.name for folder in store.complete_folders(store.clone_folder())}
    if kind == SAME:
        missing = max(0, campaigns - sum(name.startswith("same-turns-") for name in there))
        open_ones = (one for one in same() if one.name not in there)
        return [next(open_ones) for _ in range(missing)]
    asked = known(campaigns, engines) if kind == KNOWN else lengths(campaigns)
    return [one for one in asked if one.name not in there]


def run(
    kind: str,
    campaigns: int,
    minutes: float | None = None,
    engines: tuple[str, ...] = tuple(EFFECTS),
    say: Say = print,
) -> int:
    """Make the campaigns that are missing, none begun after `minutes`; return 1 if one could not be made."""
    began, asked, failed = time.monotonic(), wanted(kind, campaigns, engines), 0
    say(f"{kind}: {counted(len(asked), 'campaign')} to make")
    for place, one in enumerate(asked, 1):
        if minutes is not None and time.monotonic() - began > 60 * minutes:
            say(f"{minutes:g} minutes are over; {len(asked) - place + 1} left for another time")
            break
        try:
            row = store.row_of_campaign(make(one))
        except LockHeld:
            raise
        except BenchbookError as error:
            failed += 1
            say(f"{place} of {len(asked)}  {one.name}: not made: {error}")
            continue
        shown = f"{row['n']} blocks, so no interval"
        if row["low"] is not None:
            effect, low, high = (100 * row[key] for key in ("effect", "low", "high"))
            shown = f"{effect:+.1f} % [{low:+.1f}, {high:+.1f}]"
        say(f"{place} of {len(asked)}  {one.name}: {shown}")
    return 1 if failed else 0


def make(one: Campaign, say: Say = lambda _: None, limits: Limits | None = None) -> Path:
    """Measure one campaign, unless it is whole, and return its folder; one that was cut is removed first."""
    folder = store.clone_folder() / one.name
    if (folder / store.CAMPAIGN).is_file():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    files.write_text(folder / store.STUDY, one.of.model_dump_json() + "\n")
    told = {
        "format": FORMAT,
        "rules": RULES,
        **{"name": one.name, "kind": one.kind, "what": one.what},
        "began_utc": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "load_1min": os.getloadavg()[0],
        "machine": facts.collect_facts(),
        "commit": stage.current_commit(),
    }
    began = time.monotonic()
    with machine_noise.make_lab() as base:
        machine_noise.measure_runs(one.of, base / "lab", folder, limits, say)
    # Written last: it marks a campaign as whole.
    files.write_json(folder / store.CAMPAIGN, told | {"seconds": time.monotonic() - began})
    return folder


def record() -> str:
    """Pack the campaigns of this clone beside the recorded studies with their table; say what they show."""
    whole = store.complete_folders(store.clone_folder())
    target = store.record_folder()
    if not whole:
        raise BenchbookError(f"no campaign was made in this clone; {BRINGS}")
    before = read_names(target / TABLE)
    with recording.open_staging() as folder:
        made = folder / target.name
        made.mkdir()
        packed = [pack(part, made / f"{name}.tar.xz") for name, part in parts(whole)]
        size = sum(file.stat().st_size for file in packed)
        there = sum(file.stat().st_size for file in store.list_archives())
        if why := recording.capacity_problem(size - there):
            remedy = "take campaigns out of data/calibration"
            raise BenchbookError(f"calibration: not recorded: {why}; or {remedy}")
        for name, text in made_tables(packed).items():
            files.write_text(made / name, text)
        shutil.rmtree(target, ignore_errors=True)
        made.replace(target)
    names = read_names(target / TABLE)
    first = f"data/record/{target.name}: {size / 1e3:.0f} kB, {counted(len(names), 'campaign')}"
    gone = len(before - names)
    lost = [f"{counted(gone, 'campaign')} recorded before, not in this clone, gone from it"] if gone else []
    return "\n".join([first, *lost, (target / RESULTS).read_text(), "`git add data/record` and commit"])


def read_names(file: Path) -> set[str]:
    """Names of the campaigns of a table; none where it is not there."""
    return set(pd.read_csv(file, usecols=["name"]).name) if file.is_file() else set()


def parts(whole: list[Path]) -> Iterator[tuple[str, list[Path]]]:
    """Yield the archives of campaigns with names, by kind and beginning: further ones change the last."""
    told = {folder: files.read_json(folder / store.CAMPAIGN) for folder in whole}
    ordered = sorted(whole, key=lambda folder: (told[folder]["began_utc"], folder.name))
    for kind in KINDS:
        own = [folder for folder in ordered if told[folder]["kind"] == kind]
        for place, start in enumerate(range(0, len(own), OF_AN_ARCHIVE), 1):
            yield f"{kind}-{place}", own[start : start + OF_AN_ARCHIVE]


def pack(whole: list[Path], target: Path) -> Path:
    """Write campaigns to an archive, files of one name together; the same campaigns give the same bytes."""
    found = [
        file for folder in whole for file in folder.rglob("*") if files.describe_kind(file) != files.FOLDER
    ]
    if odd := [file for file in found if files.describe_kind(file) is not None]:
        raise BenchbookError(
            f"not recorded: {odd[0]} is {files.describe_kind(odd[0])}; put the plain file there"
        )
    found.sort(key=lambda file: (file.name, file.as_posix()))
    root = whole[0].parent
    return tarball.write_tar(target, ((file.relative_to(root).as_posix(), file) for file in found), PRESET)


def made_tables(archives: list[Path]) -> dict[str, str]:
    """Tables that follow from the raw logs of archives, as CSV, by file: the campaigns and their results."""
    with store.unpack_archives(archives) as folder:
        table = store.read_campaigns(folder)
    results = store.tabulate_results(table)
    return {TABLE: table.to_csv(index=False), RESULTS: results.to_csv(index=False)}


def check() -> str:
    """Say that the recorded tables follow from the recorded raw logs; BenchbookError with what differs."""
    archives, folder = store.list_archives(), store.record_folder()
    if not archives or not all((folder / name).is_file() for name in (TABLE, RESULTS)):
        raise BenchbookError(f"no calibration is recorded; {BRINGS}")
    for name, made in made_tables(archives).items():
        try:
            frames = [read_numbers(text) for text in ((folder / name).read_text(encoding="utf-8"), made)]
            pd.testing.assert_frame_equal(*frames, rtol=0, atol=1.5 * 10**-store.DECIMALS)
        except (AssertionError, ValueError) as error:
            raise BenchbookError(
                f"data/record/calibration/{name} does not follow from the archives: {error}"
            ) from None
    return f"{counted(len(read_names(folder / TABLE)), 'recorded campaign')} made again: all as recorded"


def read_numbers(text: str) -> pd.DataFrame:
    """Table with one row for each number of a cell that holds several."""
    table = pd.read_csv(io.StringIO(text))
    if "log_ratios" not in table:
        return table
    ratios = table.log_ratios.astype(str).str.split()
    return table.assign(log_ratios=ratios).explode("log_ratios").astype({"log_ratios": float})


def main() -> None:
    """Make, record or check campaigns."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=[*USUAL, "record", "check"])
    parser.add_argument("--campaigns", type=int, help=f"how many, or how often each: {USUAL}")
    parser.add_argument("--minutes", type=float, help="begin none after so many minutes")
    parser.add_argument("--engine", action="append", choices=list(EFFECTS), help="known: these only")
    asked = parser.parse_args()
    try:
        if asked.what in USUAL:
            engines = tuple(asked.engine or EFFECTS)
            sys.exit(run(asked.what, asked.campaigns or USUAL[asked.what], asked.minutes, engines))
        print(record() if asked.what == "record" else check())
    except BenchbookError as error:
        sys.exit(f"{asked.what}: {error}")


if __name__ == "__main__":
    main()
