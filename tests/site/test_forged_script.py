"""A script of one's own in an archive is bound by hash to every run: a forged byte or option is named."""

import hashlib
import re
import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from benchbook.compare import steady
from benchbook.core import files, paths, runfolder, yamlfile
from benchbook.core.explain import validate
from benchbook.core.model import PlannedRun
from benchbook.core.study import Study
from benchbook.evidence import archive, proof
from benchbook.measure import sysbench
from benchbook.plan import schedule, settling
from benchbook.read import tidy
from tests.read import synthetic
from tests.site import conftest
from tests.site.test_forgery import change

TEXT = "require('common')\nfunction event() one_read_one_write() end\n"
MODULE = "function one_read_one_write() end\n"
STUDY = conftest.STUDY.replace(
    "{script: oltp_read_write}", "{script: ../beside/mine.lua, options: {accounts: 50}}"
).replace("aa: {threads: [4]}", "aa: null")
PARAMS = "studies: [made]\nsources: []\nanalysis: {}\nlimits: {}\n"
# BEGIN, a SELECT, an UPDATE, COMMIT.
EVENT = (1, 1, 2)


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


DIGESTS = {"mine.lua": digest(TEXT), "common.lua": digest(MODULE)}


def run(into: Path, planned: PlannedRun, began: str, tps: int) -> None:
    """Leave a valid run of the script: the server's statements are sysbench's, one connection a thread."""
    out = synthetic.output(
        tps=tps, seed=planned.seed, discard_s=planned.discard_s, run_s=planned.run_s, statements=EVENT
    )
    events = tps * (planned.discard_s + planned.run_s)
    books = {"Com_select": 1, "Statements": 4, "Rows_sent": 1}
    grown = {name: count * events for name, count in books.items()} | {"Connections": planned.threads}
    grown["Statements"] += planned.threads
    sides = {
        "before": dict.fromkeys(grown, 1000),
        "after": {name: 1000 + count for name, count in grown.items()},
    }
    end = f"{began[:17]}{planned.discard_s + planned.run_s:02d}{began[19:]}"
    seen = {
        "started_utc": began, "ended_utc": end, "machine_cores": 2, "script": DIGESTS,
        "argv": sysbench.run(conftest.ENDPOINT, planned), "ledger": sides,
    }  # fmt: skip
    synthetic.folder(into, planned.to_dict(), out, seen)


@pytest.fixture(scope="module")
def honest(tmp_path_factory) -> Path:
    """An archive of a study with an own script, as it is unpacked."""
    root = tmp_path_factory.mktemp("own") / "root"
    (root / "studies").mkdir(parents=True)
    (root / "studies" / "made.yaml").write_text(STUDY)
    (root / "params.yaml").write_text(PARAMS)
    (root / archive.README).write_text(archive.ABOUT.format(study="made"))
    where, facts, data = paths.StudyPaths("made", root), conftest.fact_file(), conftest.data_file()
    spec = validate(yamlfile.parse(STUDY.encode(), "studies/made.yaml"), Study)
    for number, planned in enumerate(schedule.pilot_runs("made", spec)):
        run(where.pilots, planned, f"2026-01-05T09:{number:02d}:00.000+00:00", conftest.ARMS[planned.arm])
    pilots = list(runfolder.listing(where.pilots))
    scripts = {"read": {"text": {"mine.lua": TEXT, "common.lua": MODULE}, "sha256": DIGESTS}}
    tables = {"account": {"rows": 50, "checksum": 1}}
    learned = settling.own_record({"scripts": scripts, "tables": tables}, tidy.pilot_totals(pilots))
    advice = {
        "analyze": [],
        **asdict(steady.discard_advice(tidy.pilot_series(pilots))),
        "rates": [],
        **learned,
    }
    conditions = schedule.conditions(facts["arms"], data)
    runs = schedule.plan_runs("made", spec, conditions, advice)
    for number, planned in enumerate(runs):
        tps = conftest.ARMS[planned.arm] + conftest.NOISE[planned.block - 1]
        run(where.raw, planned, f"2026-01-05T10:{number:02d}:00.000+00:00", tps)
    files.write_csv(where.schedule, schedule.table(runs))
    for file, content in ((where.facts, facts), (where.dataset, data), (where.warm_up, advice)):
        files.write_json(file, content)
    return root


def own(edit: Callable[[dict[str, Any]], Any]) -> Callable[[paths.StudyPaths], None]:
    def forge(where: paths.StudyPaths) -> None:
        change(where.warm_up, lambda seen: edit(seen["own"]) and None)

    return forge


def another_text(one: dict[str, Any], with_digest: bool) -> None:
    read = one["scripts"]["read"]
    read["text"]["mine.lua"] = TEXT.replace("one_read", "0ne_read")
    if with_digest:
        read["sha256"]["mine.lua"] = digest(read["text"]["mine.lua"])


def asked(old: str, new: str) -> Callable[[paths.StudyPaths], None]:
    def forge(where: paths.StudyPaths) -> None:
        assert old in where.file.read_text()
        where.file.write_text(where.file.read_text().replace(old, new))

    return forge


FORGED = {
    "a byte of the script": (
        own(lambda one: another_text(one, with_digest=False)),
        "warm_up.json: own.scripts.read: the texts are not those of its digests",
    ),
    "a byte of the script, with its digest": (
        own(lambda one: another_text(one, with_digest=True)),
        "raw/b01-read-t0004-.*: no run that the study",
    ),
    "a module left out": (
        own(lambda one: one["scripts"]["read"]["text"].pop("common.lua")),
        "own.scripts.read: the texts are not those of its digests",
    ),
    "another script in the study": (
        asked("mine.lua", "other.lua"),
        "own.scripts.read: the texts are not those of its digests",
    ),
    "an option": (asked("accounts: 50", "accounts: 51"), "raw/b01-read-t0004-.*: no run that the study"),
    "one option more": (
        asked("accounts: 50", "accounts: 50, more: 1"),
        "raw/b01-read-t0004-.*: no run that the study",
    ),
    "statements of an event": (
        own(lambda one: one["statements"]["read"]["event"].update(reads=2)),
        "warm_up.json: own.statements: .* due is",
    ),
    "no script": (own(lambda one: one["scripts"].clear()), r"own scripts of \[\], the study has \['read'\]"),
}  # fmt: skip


def test_an_honest_archive_with_an_own_script_stands(honest):
    proved = proof.prove(honest, "made", honest)
    assert not proved.wrong, proved.wrong


@pytest.mark.parametrize("what", FORGED)
def test_a_forged_script_or_option_is_named(what, honest, tmp_path):
    forge, named = FORGED[what]
    root = tmp_path / "root"
    shutil.copytree(honest, root)
    forge(paths.StudyPaths("made", root))
    wrong = "\n".join(proof.prove(root, "made", honest).wrong)
    assert re.search(named, wrong), wrong
