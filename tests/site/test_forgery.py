"""What contradicts the rest of an archive is named; what is only this archive's stands beside ours."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchbook.core.artifacts import run_folder
from benchbook.core.artifacts.run_folder import RunFolder
from benchbook.core.study.model import compute_fingerprint
from benchbook.core.util import files, paths
from benchbook.evidence import archive, consistency_checks
from benchbook.evidence.archive_reader import ArchiveContents
from tests.goldens import assert_golden
from tests.site import conftest
from tests.site.conftest import STUDY

pytestmark = pytest.mark.usefixtures("logs_parsed_once")

Forgery = Callable[[paths.StudyPaths], None]


def clone(root: Path) -> Path:
    """Write the made-up study into an empty clone."""
    (root / "studies").mkdir(parents=True)
    (root / "studies" / "made.yaml").write_text(STUDY)
    (root / "params.yaml").write_text("studies: [made]\nsources: []\nanalysis: {}\nlimits: {}\n")
    return root


@pytest.fixture(scope="module")
def honest(tmp_path_factory) -> Path:
    """An archive of the made-up study as it is unpacked, before any stage runs there."""
    root = clone(tmp_path_factory.mktemp("honest") / "root")
    (root / archive.README).write_text(archive.ABOUT.format(study="made"))
    conftest.measure(root)
    (root / "aside").rmdir()
    return root


@pytest.fixture(scope="module")
def here(tmp_path_factory) -> Path:
    """This clone with the same study in it."""
    return clone(tmp_path_factory.mktemp("here"))


@pytest.fixture
def root(honest: Path, tmp_path: Path) -> Path:
    """A copy of the archive that a test may forge."""
    return shutil.copytree(honest, tmp_path / "root")


def seal(folder: Path) -> None:
    """Write a run's manifest again, as a forger would."""
    manifest = json.loads((folder / "manifest.json").read_text())
    for name in manifest["files"]:
        file = folder / name
        manifest["files"][name] = {"sha256": files.digest_file(file), "bytes": file.stat().st_size}
    files.write_json(folder / "manifest.json", manifest)


def prove(root: Path, here: Path) -> consistency_checks.ConsistencyReport:
    return consistency_checks.check_consistency(root, "made", here)


def change(file: Path, edit: Callable[[Any], Any]) -> None:
    """Change a JSON file in place; `edit` changes what it is given or returns another."""
    value = json.loads(file.read_text())
    made = edit(value)
    files.write_json(file, value if made is None else made)


def text(old: str, new: str) -> Callable[[Path], None]:
    """Replace text in a file, which must be there."""

    def edit(file: Path) -> None:
        was = file.read_text()
        assert old in was
        file.write_text(was.replace(old, new))

    return edit


def runs(where: paths.StudyPaths) -> list[Path]:
    return [folder.path for folder in run_folder.list_folders(where.raw)]


def of_facts(edit: Callable[[Any], Any]) -> Forgery:
    return lambda where: change(where.facts, edit)


def of_engine(**values: Any) -> Forgery:
    return of_facts(lambda facts: [one["engine"].update(values) for one in facts["arms"].values()] and None)


def of_data(is_whole: bool = True, **values: Any) -> Forgery:
    def edit(data: dict[str, Any]) -> None:
        data.update(values)
        content = {name: data[name] for name in data if name not in ("fingerprint", "loads")}
        data["fingerprint"] = compute_fingerprint(content) if is_whole else data["fingerprint"]

    return lambda where: change(where.dataset, edit)


def of_study(old: str, new: str) -> Forgery:
    return lambda where: text(old, new)(where.file)


def of_file(name: str, edit: Callable[[Path], None]) -> Forgery:
    def forge(where: paths.StudyPaths) -> None:
        folder = runs(where)[3]
        edit(folder / name)
        seal(folder)

    return forge


def of_plan(edit: Callable[[Any], Any]) -> Forgery:
    return of_file("plan.json", lambda file: change(file, edit))


def of_evidence(edit: Callable[[Any], Any]) -> Forgery:
    return of_file("evidence.json", lambda file: change(file, edit))


def of_rows(edit: Callable[[list[str]], list[str]]) -> Forgery:
    def forge(where: paths.StudyPaths) -> None:
        first, *rows = where.schedule.read_text().splitlines()
        where.schedule.write_text("\n".join([first, *edit(rows)]) + "\n")

    return forge


def swapped(rows: list[str]) -> list[str]:
    """Exchange the arms of two rows and leave their positions."""
    (a, one), (b, two) = (row.split(",", 1) for row in rows[:2])
    return [f"{a},{two}", f"{b},{one}", *rows[2:]]


def same_seed(where: paths.StudyPaths) -> None:
    """Put one arm's files under the other arm's plan."""
    direct = next(one for one in runs(where) if "-direct-" in one.name)
    other = next(one for one in runs(where) if "-haproxy-" in one.name)
    for name in ("sysbench.out", "evidence.json", "monitor.csv"):
        shutil.copy(direct / name, other / name)
    seal(other)


def set_aside(where: paths.StudyPaths) -> None:
    """Void a good run that does not please, with a reason."""
    why = ["V20 pauses: the machine paused for 999 ms"]
    run_folder.void_folder(runs(where)[3], where.void, "invalid", why)


def no_partner(where: paths.StudyPaths) -> None:
    folder = runs(where)[6]
    run_folder.void_folder(folder, where.void, "partner", [f"stands next to {runs(where)[7].name}"])


def gone(*folders: RunFolder) -> None:
    for folder in folders:
        shutil.rmtree(folder.path)


def at_once(where: paths.StudyPaths) -> None:
    first, second = (one / "evidence.json" for one in runs(where)[:2])
    known = json.loads(first.read_text())
    change(second, lambda seen: seen.update(started_utc=known["started_utc"], ended_utc=known["ended_utc"]))
    seal(second.parent)


def params(name: str, value: str) -> Forgery:
    return lambda where: text(f"{name}: {{}}", f"{name}: {value}")(where.base / "params.yaml")


def of_note(**values: Any) -> Forgery:
    return lambda where: change(next(where.void.glob("*.void.json")), lambda note: note.update(values))


# What is forged, and how; what verify says is in the golden. The run folders' own manifests are written anew.
NAMED: dict[str, Forgery] = {
    "server version": of_engine(version="11.4.2"),
    "an arm less in facts": of_facts(lambda facts: facts["arms"].pop("haproxy") and None),
    "facts of another study": of_facts(lambda facts: facts.update(study="other")),
    "rows": of_data(False, rows={f"sbtest{one}": 99 for one in range(1, 5)}),
    "data seed in the study": of_study("table_size: 10000", "table_size: 10000, seed: 2"),
    "order seed": of_study("seed: 7", "seed: 8"),
    "a setting of the server": of_study("mariadb}", "mariadb, settings: {max_connections: 500}}"),
    "more blocks": of_study("blocks: 5", "blocks: 6"),
    "swapped rows of the schedule": of_rows(swapped),
    "a row less": of_rows(lambda rows: rows[:-1]),
    "queries in a log": of_file("sysbench.out", text("events:              ", "events:              9")),
    "the server's counters": of_evidence(lambda seen: seen["ledger"]["after"].update(Com_select=10**9)),
    "a seed in a plan": of_plan(lambda plan: plan.update(seed=5)),
    "conditions in a plan": of_plan(lambda plan: plan["conditions"].update(facts="0" * 10)),
    "one arm's files for the other": same_seed,
    "a file without its hash": lambda where: text("thds", "thdz")(runs(where)[3] / "sysbench.out"),
    "a run's number of attempts": of_evidence(lambda seen: seen.update(attempt=2)),
    "voided attempts taken out": lambda where: shutil.rmtree(where.void),
    "a good run set aside": set_aside,
    "a partner of none that failed": no_partner,
    "a note of another attempt": of_note(attempt=3),
    "a note without its folder": lambda where: gone(*run_folder.list_folders(where.void)),
    "a block less": lambda where: gone(*list(run_folder.list_folders(where.raw))[6:9]),
    "when a run was": of_evidence(lambda seen: seen.update(started_utc="2025-01-01T00:00:00.000+00:00")),
    "two runs at once": at_once,
    "facts that are no facts": lambda where: change(where.facts, lambda _: [1, 2]),
    "evidence that is none": of_evidence(lambda _: {"argv": 5}),
}
NOTED: dict[str, Forgery] = {
    "a note's reason": of_note(reasons=["the disk was full"]),
    "looser limits": params("limits", "{pause_ms: 60000}"),
    "limits at the run": of_evidence(lambda seen: seen.update(limits={"pause_ms": 9})),
    "the question": of_study("every number", "some numbers"),
    "a settings file that is gone": lambda where: next(where.applied.glob("my-*")).unlink(),
    "nothing": lambda where: None,
}


def test_what_is_forged_is_named_and_what_an_archive_brings_along_stands_beside_ours(honest, here, tmp_path):
    told = []
    for what, forge in (NAMED | NOTED).items():
        root = shutil.copytree(honest, tmp_path / what)
        forge(paths.StudyPaths("made", root))
        found = prove(root, here)
        assert bool(found.wrong) == (what in NAMED), (what, found.wrong)
        lines = [f"wrong: {line}" for line in found.wrong] + [f"noted: {line}" for line in found.noted]
        told.append("\n  ".join([what, *lines]))
    assert_golden("forgeries.txt", re.sub(r"\b[0-9a-f]{10,64}\b", "…", "\n".join(told)) + "\n")


def test_a_partner_of_a_run_with_earlier_settings_is_no_forgery(root):
    """A run of a changed arm has another name, so the one that failed is planned no more."""
    where = paths.StudyPaths("made", root)
    (failed,) = [RunFolder(path) for path in where.void.iterdir() if path.is_dir()]
    group, name = failed.planned().group, failed.planned().run_id
    beside = next(path for path in runs(where) if RunFolder(path).planned().group == group)
    run_folder.void_folder(beside, where.void, "partner", [f"stands next to {name}"])
    held = ArchiveContents(root, "made")
    (partner,) = [one for one in held.voids if one[0].status == "partner"]
    held.__dict__["runs"] = [run for run in held.runs if run.run_id != name]
    assert not list(consistency_checks._of_void(held, *partner))
