"""Runs of the record are told as another arm's, another block's or another server's: the checks name it.

Nothing of what was measured is made up here. Whole files are exchanged between arms, or the arms are told
otherwise, and all hashes and names are made again.
"""

import csv
import io
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchbook.core import files, paths, runfolder
from benchbook.evidence import archive, proof
from benchbook.evidence.unpacked import Unpacked
from benchbook.plan import schedule
from tests.site import forging
from tests.site.conftest import ROOT

pytestmark = pytest.mark.usefixtures("logs_parsed_once")

QUICK = "quick/20261125T0406Z-f075"
NETWORK = "lab-network/20261125T0130Z-ccde"
POOLS = "lab-ladder/20261123T2340Z-0c26"
REPLICAS = "lab-cluster-replicas/20261125T1404Z-f4fd"
# What stays with a run's own plan, place and time when all else of two runs is exchanged.
OWN = ("limits", "attempt", "begins")
TIMES = ("started_utc", "ended_utc", "started_monotonic_s", "ended_monotonic_s", "sysbench_s")
Forgery = Callable[[paths.StudyPaths], None]


def groups(where: paths.StudyPaths) -> list[dict[str, Path]]:
    """Return the run folders of each group by arm."""
    found: dict[str, dict[str, Path]] = {}
    for folder in runfolder.listing(where.raw):
        plan = folder.plan()
        found.setdefault(plan["group"], {})[plan["arm"]] = folder.path
    return list(found.values())


def read(file: Path) -> Any:
    return json.loads(file.read_text())


def change(folder: Path, edit: Callable[[dict[str, Any]], Any]) -> None:
    seen = read(folder / "evidence.json")
    edit(seen)
    files.write_json(folder / "evidence.json", seen)
    forging.seal(folder)


def kept_beside(where: paths.StudyPaths) -> None:
    """Let each run keep of those beside it what their folders have now."""
    outs = {one.name: one.text(runfolder.OUT) for one in runfolder.listing(where.raw)}

    def edit(seen: dict[str, Any]) -> None:
        for one in seen.get("beside") or ():
            one["clients"][0]["out"] = outs[one["plan"]["run_id"]]

    for folder in runfolder.listing(where.raw):
        change(folder.path, edit)


def logs(one: str, other: str, fitted: bool = False) -> Forgery:
    """Exchange the logs of two arms; `fitted` moves each checkpoint by what their first turns lie apart."""

    def forge(where: paths.StudyPaths) -> None:
        for group in groups(where):
            both, texts = [group[one], group[other]], []
            turns = list(csv.reader(io.StringIO((group[one] / runfolder.TURNS).read_text())))[1:]
            begun = [next(int(row[2]) / 1e6 for row in turns if row[1] == name) for name in (one, other)]
            for folder, later_s in zip(both, (begun[1] - begun[0], begun[0] - begun[1]), strict=True):
                text = (folder / runfolder.OUT).read_text()
                texts.append(forging.timed(text, checkpoint_s=later_s) if fitted else text)
            for folder, text in zip(both, reversed(texts), strict=True):
                (folder / runfolder.OUT).write_text(text)
                forging.seal(folder)
        kept_beside(where)

    return forge


def contents(one: str, other: str, *more: str) -> Forgery:
    """Exchange all that was measured of two arms, but for the turns and `more` of the evidence."""

    def forge(where: paths.StudyPaths) -> None:
        for group in groups(where):
            both = [group[one], group[other]]
            seen = [read(each / "evidence.json") for each in both]
            for name in (runfolder.OUT, runfolder.MONITOR):
                mine, theirs = ((each / name).read_bytes() for each in both)
                (both[0] / name).write_bytes(theirs)
                (both[1] / name).write_bytes(mine)
            for folder, own, taken in zip(both, seen, reversed(seen), strict=True):
                made = taken | {key: own[key] for key in (*OWN, *more) if key in own}
                if "turns" in own:
                    made["turns"] |= {key: own["turns"][key] for key in ("active_s", "count")}
                files.write_json(folder / "evidence.json", made)
                forging.seal(folder)
        kept_beside(where)

    return forge


def planned_again(where: paths.StudyPaths) -> None:
    """Make plans, ids, names and schedule again after the study or the facts were changed."""
    held = Unpacked(where.base, where.name)
    held.__dict__["conditions"] = schedule.conditions(held.facts.arms, held.data)
    due = {(run.block, run.arm, run.workload, run.threads): run for run in held.runs}
    plans = {
        name: due[tuple(plan[key] for key in ("block", "arm", "workload", "threads"))].to_dict()
        for name, plan in held.plans.items()
    }
    for name, plan in plans.items():
        folder = where.raw / name
        for file, key in (("plan.json", None), ("manifest.json", "run_id")):
            files.write_json(folder / file, plan if key is None else read(folder / file) | {key: plan[key]})

        def beside(seen: dict[str, Any]) -> None:
            for one in seen.get("beside") or ():
                one["plan"] = json.loads(json.dumps(plans[one["plan"]["run_id"]]))

        change(folder, beside)
        folder.rename(where.raw / plan["run_id"])
    files.write_csv(where.schedule, schedule.table(list(held.runs)))
    shutil.rmtree(where.void, ignore_errors=True)


def told_otherwise(one: str, other: str, old: str, new: str, *keys: str) -> Forgery:
    """Exchange what the study says of two arms, `old` of one and `new` of the other, and `keys` of facts."""

    def forge(where: paths.StudyPaths) -> None:
        text = where.file.read_text().replace(old, "XX").replace(new, old).replace("XX", new)
        where.file.write_text(text)
        facts = read(where.facts)
        engines = [facts["arms"][arm]["engine"] for arm in (one, other)]
        for key in keys:
            engines[0][key], engines[1][key] = engines[1][key], engines[0][key]
        files.write_json(where.facts, facts)
        planned_again(where)

    return forge


def unpaid(where: paths.StudyPaths) -> None:
    """Say that no server kept books."""
    for folder in runfolder.listing(where.raw):
        change(folder.path, lambda seen: seen["ledger"].update(available=False, reason="not allowed"))


def attempts(where: paths.StudyPaths) -> None:
    """Put a good attempt that was set aside beside a bad one in the place of the one that counts."""
    for note in where.void.glob(f"*.{runfolder.VOID}"):
        record, aside = runfolder.read_note(note), runfolder.voided_by(note).path
        if record.status != "partner" or not (counts := where.raw / record.run_id).is_dir():
            continue
        numbers = [read(each / "evidence.json")["attempt"] for each in (counts, aside)]
        aside.rename(where.base / "aside")
        counts.rename(aside)
        (where.base / "aside").rename(counts)
        for folder, number in zip((counts, aside), numbers, strict=True):
            manifest = read(folder / "manifest.json") | {"attempt": number}
            files.write_json(folder / "manifest.json", manifest)
            change(folder, lambda seen, number=number: seen.update(attempt=number))


FORGED: dict[str, tuple[str, Forgery, str]] = {
    "logs of two arms at one server": (
        *(QUICK, logs("direct", "haproxy")),
        r"b01-\w+-t0001: by first turn and log its clients were let go \d+ ms apart",
    ),
    "the same, fitted to the turns": (
        *(QUICK, logs("direct", "haproxy", fitted=True)),
        r"V26 physics: \d+ queries a second, for which the client's threads stopped \d+ times",
    ),
    "all of two networks but the turns": (
        *(NETWORK, contents("pod", "host")),
        "V21 arrangement: there was network: pod, and the arm does not ask for it",
    ),
    "whole runs of two arms": (
        *("lab-cluster-howto/20261123T0612Z-4d54", contents("index-first", "index-last")),
        "it was made before .*, the schedule has it after that",
    ),
    "settings of two arms in study, facts and plans": (
        POOLS,
        told_otherwise("pool-8m", "pool-128m", "pool_size: 8388608", "pool_size: 134217728", "settings"),
        "arms.pool-8m.engine.settings: innodb_buffer_pool_size is 134217728, its file has 8388608",
    ),
    "idle connections of two arms": (
        *("lab-idle/20261125T1430Z-7212", contents("idle-5000", "idle-9000", *TIMES)),
        "V21 arrangement: there were 9000 idle and 0 new connections a second, the arm asks for others",
    ),
    "weights of two servers": (
        *("lab-qos/20261125T1638Z-c77b", contents("best-effort", "guaranteed", *TIMES)),
        "V12 identity: the server had a weight of 1024, its arm asks for qos best_effort",
    ),
    "no server's books": (
        *("lab-zones/20261122T2157Z-79c4", unpaid),
        r"there is no ledger \(not allowed\), and its server has one",
    ),
    "attempts": (
        *("lab-proxy-scaling/20261123T1344Z-e8fb", attempts),
        r"void/.*\.a\d: it was made after the attempt that counts",
    ),
    "replicas of two clusters": (
        *(REPLICAS, contents("one-replica", "three-replicas", *TIMES)),
        "the cluster has 3 stores, facts.json has 1",
    ),
}


@pytest.mark.parametrize("what", FORGED)
def test_a_run_of_another_arm_is_refused_and_named(what: str, tmp_path: Path) -> None:
    place, forge, said = FORGED[what]
    archive.unpack(ROOT / "data" / "record" / f"{place}.tar.xz", tmp_path)
    where = paths.StudyPaths(place.partition("/")[0], tmp_path)
    forge(where)
    wrong = "\n".join(proof.prove(tmp_path, where.name, ROOT).wrong)
    assert re.search(said, wrong), wrong[:2000]
