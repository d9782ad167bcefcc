"""What a record of two thousand sessions costs: to read it, take one more, pool all, and its size in git.

The sessions are real ones, resampled: effects are drawn again from their intervals, under a new id and hour.
Their archives lie in a remote; what is measured is what git has.
"""

import json
import math
import os
import random
import resource
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchbook.commands import rebuild_record
from benchbook.commands import record as recording
from benchbook.core.artifacts import effects, record
from benchbook.core.util import parallel, paths
from benchbook.evidence import archive, sessions
from benchmarks.table import Row, main

SESSIONS = 2000
TAKE_S, POOL_S, CLONE_MB = 1.0, 10.0, 30.0
Known = tuple[record.RecordedSession, dict[str, Any]]


def rows(is_full: bool) -> list[Row]:
    """Make a record of 2,000 sessions (a tenth of them as quick) in a temporary folder, and time it."""
    many = SESSIONS if is_full else SESSIONS // 10
    real = record.read_index()
    known = [(session, json.loads(session.where.results.read_bytes())) for session in real.sessions()]
    archives = [
        session.where.archive for session in real.sessions("quick") if session.where.archive.is_file()
    ]
    with tempfile.TemporaryDirectory(prefix="bb-record-") as place, paths.use_root(Path(place)):
        resample(real, known, many, random.Random(1))
        what = f"record of {many} sessions"
        read_s, index = timed(record.read_index)
        manifest = archive.read_manifest(archives[-1])
        names = sorted(index.studies)

        def take() -> None:
            """All that taking a session asks of the record itself; its own archive is verified before."""
            known = record.read_index()
            list(recording.known_already(known, "20300101T0000Z-0000", manifest))
            recording.capacity_problem(10)
            newest = known.newest("quick")
            where = paths.recorded_paths("quick", "20300101T0000Z-0000")
            sessions.write_results(where.results, newest.results)
            record.write_study("quick", known.studies["quick"].with_session(where.session_id, newest.entry))

        take_s, _ = timed(take)
        paths.recorded_paths("quick", "20300101T0000Z-0000").results.unlink()
        record.write_study("quick", index.studies["quick"])
        for name in names:
            newest = index.newest(name).where.findings
            newest.parent.mkdir(parents=True, exist_ok=True)
            newest.write_text("{}", encoding="utf-8")
        cpu_s = cpu_seconds()
        pool_s, _ = timed(lambda: pool_all(names, index))
        cpu_s = cpu_seconds() - cpu_s
        effects_s, _ = timed(effects.refresh_files)
        again_s, _ = timed(effects.refresh_files)
        packed_mb = git_mb(Path(place))
        table_mb = sum(file.stat().st_size for file in effects.dataset_folder().rglob("*.parquet")) / 1e6
    return [
        Row(f"{what}: read the index", f"{read_s:.2f} s"),
        Row(f"{what}: take one more", f"{take_s:.2f} s", goal=f"≤ {TAKE_S:g} s", met=take_s <= TAKE_S),
        Row(
            f"{what}: pool all",
            f"{pool_s:.1f} s, {cpu_s:.1f} s of CPU",
            goal=f"≤ {POOL_S:g} s",
            met=pool_s <= POOL_S,
        ),
        Row(
            f"{what}: Parquet dataset, made; again", f"{effects_s:.1f} s; {again_s:.2f} s; {table_mb:.1f} MB"
        ),
        Row(f"{what}: in git", f"{packed_mb:.1f} MB", goal=f"≤ {CLONE_MB:g} MB", met=packed_mb <= CLONE_MB),
    ]


def pool_all(names: list[str], index: record.Index) -> None:
    """Pool every study, as `make pages` does where all changed."""
    with parallel.process_pool() as submit:
        root = paths.find_root()
        for task in [submit(pool, str(root), name) for name in names]:
            task.result()


def pool(root: str, name: str) -> None:
    """Pool one study below a root, in a process of its own."""
    with paths.use_root(Path(root)):
        rebuild_record.write_joint_results(name, record.read_index())


def resample(real: record.Index, known: Sequence[Known], many: int, draw: random.Random) -> None:
    """Write a record of so many sessions below the present root, drawn from those of a real one."""
    of_study: dict[str, list[Known]] = {}
    for session, results in known:
        of_study.setdefault(session.where.name, []).append((session, results))
    new: dict[str, dict[str, record.Entry]] = {name: {} for name in of_study}
    names = sorted(of_study)
    for number in range(many):
        name = names[number % len(names)]
        session, results = draw.choice(of_study[name])
        begun = datetime(2027, 1, 1, tzinfo=UTC) + timedelta(hours=7 * number)
        name_of = f"{begun:%Y%m%dT%H%MZ}-{number % 65536:04x}"
        entry = session.entry.model_copy(
            update={
                "measured": f"{begun:%Y-%m-%dT%H:%MZ}",
                "logs": " ".join(f"{draw.getrandbits(48):012x}" for _ in session.entry.logs.split()),
            }
        )
        document = json.loads(json.dumps(results))
        for found in document["findings"]["findings"]:
            for part in (found, *found.get("levels", ())):
                redraw(part, draw)
        where = paths.recorded_paths(name, name_of)
        written = sessions.write_results(where.results, record.Results.parse(document, where.results))
        new[name][name_of] = entry.model_copy(update={"results": written})
    for name, entries in new.items():
        record.write_study(name, real.studies[name].model_copy(update={"sessions": entries}))


def redraw(part: dict[str, Any], draw: random.Random) -> None:
    """Draw an effect again from its interval, and move the interval with it."""
    if None in (part.get("effect"), part.get("low"), part.get("high")):
        return
    low, high = math.log1p(part["low"]), math.log1p(part["high"])
    moved = draw.gauss(0, (high - low) / 4)
    for key in ("effect", "low", "high"):
        part[key] = round(math.expm1(math.log1p(part[key]) + moved), 6)


def git_mb(root: Path) -> float:
    """Megabytes that git takes for the record, packed as a clone gets it."""
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull}
    for argv in (["init", "-q"], ["add", "data/record"], ["repack", "-adq"]):
        if argv[0] == "repack":
            user = ["-c", "user.name=b", "-c", "user.email=b@b"]
            subprocess.run(["git", *user, "commit", "-qm", "b"], cwd=root, env=environment, check=True)
        subprocess.run(["git", *argv], cwd=root, env=environment, check=True)
    return sum(file.stat().st_size for file in (root / ".git").rglob("*.pack")) / 1e6


def cpu_seconds() -> float:
    """CPU seconds of this process and of those it has waited for, which load beside it does not change."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds on the wall that a call takes, and what it returns."""
    begun = time.monotonic()
    found = call()
    return time.monotonic() - begun, found


if __name__ == "__main__":
    main(rows, __doc__)
