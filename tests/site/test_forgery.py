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


def of_file(name: str, edit: Callable[[Path], None], at: int = 3, place: str = "raw") -> Forgery:
    def forge(where: paths.StudyPaths) -> None:
        folder = [one.path for one in run_folder.list_folders(getattr(where, place))][at]
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
    reason = "V20 pauses: the machine paused for 999 ms"
    run_folder.void_folder(runs(where)[3], where.void, "invalid", [reason])


def no_partner(where: paths.StudyPaths) -> None:
    folder = runs(where)[6]
    run_folder.void_folder(folder, where.void, "partner", [f"stands next to {runs(where)[7].name}"])


def gone(where: paths.StudyPaths, *folders: Path) -> None:
    for folder in folders:
        shutil.rmtree(folder)


def at_once(where: paths.StudyPaths) -> None:
    first, second = (one / "evidence.json" for one in runs(where)[:2])
    known = json.loads(first.read_text())
    change(second, lambda seen: seen.update(started_utc=known["started_utc"], ended_utc=known["ended_utc"]))
    seal(second.parent)


def params(name: str, value: str) -> Forgery:
    return lambda where: text(f"{name}: {{}}", f"{name}: {value}")(where.base / "params.yaml")


# What is forged: how, and what verify says. The run folders' own manifests are always written anew.
NAMED: dict[str, tuple[Forgery, str]] = {
    "server version": (of_engine(version="11.4.2"), "facts.json: for arm direct its digest is"),
    "an arm less in facts": (of_facts(lambda facts: facts["arms"].pop("haproxy") and None),
        "raw/.*no run that the study"),
    "facts of another study": (of_facts(lambda facts: facts.update(study="other")),
        "facts.json is of the study 'other'"),
    "rows": (of_data(False, rows={f"sbtest{one}": 99 for one in range(1, 5)}),
        "dataset.json: its content has"),
    "data seed in the study": (of_study("table_size: 10000", "table_size: 10000, seed: 2"),
        "seed is 1, the study has 2"),
    "order seed": (of_study("seed: 7", "seed: 8"), "schedule.csv:2: .*seed is"),
    "a setting of the server": (of_study("{name: mariadb}",
        "{name: mariadb, settings: {max_connections: 500}}"),
        "asks for max_connections = 500, the server was asked for None"),
    "more blocks": (of_study("blocks: 5", "blocks: 6"), "b06-read-t0004: .* due and not there"),
    "swapped rows of the schedule": (of_rows(swapped), "schedule.csv:2: run_id is"),
    "a row less": (of_rows(lambda rows: rows[:-1]), "schedule.csv: 14 runs, the study gives 15"),
    "queries in a log": (of_file("sysbench.out", text("events:              ", "events:              9")),
        "raw/b02.*: invalid: V4 totals"),
    "the server's counters": (of_evidence(lambda seen: seen["ledger"]["after"].update(Com_select=10**9)),
        "V10 ledger: Com_select grew"),
    "a seed in a plan": (of_plan(lambda plan: plan.update(seed=5)), "plan.json gives the name"),
    "conditions in a plan": (of_plan(lambda plan: plan["conditions"].update(facts="0" * 10)),
        "were made under 0000000000|was made under 0000000000"),
    "one arm's files for the other": (same_seed, "raw/b01-read-t0004-haproxy.*: V5 options: .*--rand-seed"),
    "a file without its hash": (lambda where: text("thds", "thdz")(runs(where)[3] / "sysbench.out"),
        "its bytes are not those of the manifest"),
    "a run's number of attempts": (of_evidence(lambda seen: seen.update(attempt=2)),
        "attempt 2, and void has 0|attempt 1, evid"),
    "voided attempts taken out": (lambda where: gone(where, where.void),
        "evidence.json: attempt 2, and void has 0 attempts before it"),
    "a good run set aside": (set_aside,
        "b02-read-t0004-direct.* was due and not there, and void does not say why"),
    "a partner of none that failed": (no_partner, "no run of b.* in void failed"),
    "a note of another attempt": (lambda where: change(next(where.void.glob("*.void.json")),
        lambda note: note.update(attempt=3)), "its note is of"),
    "a note without its folder": (lambda where: gone(where,
        next(one.path for one in run_folder.list_folders(where.void))), "a note without its folder"),
    "a block less": (lambda where: gone(where, *runs(where)[6:9]),
        "b03-read-t0004: .* and 2 more were due and not there"),
    "when a run was": (of_evidence(lambda seen: seen.update(started_utc="2025-01-01T00:00:00.000+00:00")),
        "the run took 7.000 s"),
    "two runs at once": (at_once, "it began while .* was still running"),
    "facts that are no facts": (lambda where: change(where.facts, lambda _: [1, 2]),
        "it can't be used: ValueError: facts.json: the file"),
    "evidence that is none": (of_evidence(lambda _: {"argv": 5}),
        "raw/b02.*: indeterminate|it can't be used"),
}  # fmt: skip


@pytest.mark.parametrize("what", NAMED)
def test_what_is_forged_is_named(what, root, here):
    forge, said = NAMED[what]
    forge(paths.StudyPaths("made", root))
    found = prove(root, here)
    assert found.wrong, "nothing was noticed"
    assert re.search(said, "\n".join(found.wrong)), found.wrong


def test_a_settings_file_that_is_gone_is_named_with_its_arms(root, here):
    (settings,) = paths.StudyPaths("made", root).applied.glob("my-*")
    settings.unlink()
    found = prove(root, here)
    assert found.wrong == []
    gone = "engine.config_hash of direct, engine.config_hash of haproxy"
    assert found.noted == [f"applied/: no file has the digest that is named by {gone}"]


NOTED: dict[str, tuple[Forgery, str]] = {
    "a note's reason": (lambda where: change(next(where.void.glob("*.void.json")),
        lambda note: note.update(reasons=["the disk was full"])),
        "its note says .*disk was full.*the checks say"),
    "looser limits": (params("limits", "{pause_ms: 60000}"),
        "limits.pause_ms is 60000.0 in the archive, 250.0 here"),
    "limits at the run": (of_evidence(lambda seen: seen.update(limits={"pause_ms": 9})),
        "measured under other limits"),
    "the question": (of_study("every number", "some numbers"),
        "made.yaml: question: not as this clone has it"),
}  # fmt: skip


@pytest.mark.parametrize("what", NOTED)
def test_what_an_archive_brings_along_stands_beside_ours(what, root, here):
    forge, said = NOTED[what]
    forge(paths.StudyPaths("made", root))
    found = prove(root, here)
    assert found.wrong == []
    assert re.search(said, "\n".join(found.noted)), found.noted


def test_a_good_run_that_was_set_aside_is_named_by_the_checks_it_passes(root, here):
    set_aside(paths.StudyPaths("made", root))
    assert "passes every check of this version" in "\n".join(prove(root, here).noted)


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


def test_an_honest_archive_has_nothing_wrong_and_nothing_to_note(honest, here):
    found = prove(honest, here)
    assert (found.wrong, found.noted) == ([], [])
