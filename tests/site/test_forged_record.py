"""A committed archive of the record is forged, with every hash made again: the checks name it."""

import csv
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchbook.core import files, paths, runfolder
from benchbook.evidence import archive, proof
from tests.site import forging
from tests.site.conftest import ROOT

pytestmark = pytest.mark.usefixtures("logs_parsed_once")

# Five blocks of five pool sizes in turns, each with a server of its own.
NAME, SESSION = "lab-ladder", "20261124T0456Z-0530"
BEFORE_STOPS = "20261123T2340Z-0c26"
IDENTITIES = ("identity_at_start", "identity_before", "identity_after")
Rows = list[list[str]]


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive as it is unpacked, without what is not looked at here."""
    root = tmp_path_factory.mktemp("record") / "root"
    archive.unpack(ROOT / "data" / "record" / NAME / f"{SESSION}.tar.xz", root)
    return root


def folders(where: paths.StudyPaths, arm: str | None = None) -> list[Path]:
    found = [folder.path for folder in runfolder.listing(where.raw)]
    return [one for one in found if arm is None or f"-t0004-{arm}-" in one.name]


def change(folder: Path, edit: Callable[[dict[str, Any]], None]) -> None:
    """Change a run's evidence in place, and make its hashes again."""
    file = folder / "evidence.json"
    seen = json.loads(file.read_text())
    edit(seen)
    files.write_json(file, seen)
    forging.seal(folder)


def retimed(edit: Callable[[Rows], Rows], share: float) -> Callable[[paths.StudyPaths], None]:
    """Forge the turns of all arms alike, and what each arm says of its own in proportion."""

    def forge(where: paths.StudyPaths) -> None:
        for folder in folders(where):
            file, arm = folder / "turns.csv", json.loads((folder / "plan.json").read_text())["arm"]
            first, *rows = csv.reader(file.read_text().splitlines())
            rows = edit(rows)
            rows = [[str(number), *row[1:]] for number, row in enumerate(rows, 1)]
            file.write_text("\n".join(map(",".join, [first, *rows])) + "\n")
            mine = [int(end) - int(begin) for _, name, begin, end in rows if name == arm]

            def edit_seen(seen: dict[str, Any], mine: list[int] = mine) -> None:
                told = seen["turns"]
                told["count"], told["active_s"] = len(mine), sum(mine) / 1e6
                told["cpu_s"] = {part: share * used for part, used in told["cpu_s"].items()}
                seen["client"]["cpu_s"] *= share

            change(folder, edit_seen)

    return forge


def halved(rows: Rows) -> Rows:
    return [[n, arm, begin, str((int(begin) + int(end)) // 2)] for n, arm, begin, end in rows]


def shortened(arm: str) -> Callable[[Rows], Rows]:
    return lambda rows: [
        [n, name, begin, str(int(end) - (500 if name == arm else 0))] for n, name, begin, end in rows
    ]


def renamed(one: str, other: str) -> Callable[[Rows], Rows]:
    names = {one: other, other: one}
    return lambda rows: [[row[0], names.get(row[1], row[1]), *row[2:]] for row in rows]


def thinned(rows: Rows) -> Rows:
    """Leave every second round of five out."""
    return [row for number, row in enumerate(rows) if number // 5 % 2 == 0]


def exchanged(*names: str, keys: tuple[str, ...] = ()) -> Callable[[paths.StudyPaths], None]:
    """Exchange files and parts of the evidence between two treatments, in every block."""

    def forge(where: paths.StudyPaths) -> None:
        for one, other in zip(folders(where, "pool-32m"), folders(where, "pool-256m"), strict=True):
            for name in names:
                mine, theirs = (one / name).read_bytes(), (other / name).read_bytes()
                (one / name).write_bytes(theirs)
                (other / name).write_bytes(mine)
            first, second = (json.loads((each / "evidence.json").read_text()) for each in (one, other))
            for theirs_, folder in ((second, one), (first, other)):
                taken = {key: theirs_[key] for key in keys}
                change(folder, lambda now, taken=taken: now.update(taken))

    return forge


def of_each(edit: Callable[[dict[str, Any]], None]) -> Callable[[paths.StudyPaths], None]:
    return lambda where: [change(folder, edit) for folder in folders(where, "pool-128m")] and None


def every(key: str, factor: float) -> Callable[[dict[str, Any]], None]:
    return lambda seen: seen["turns"]["cpu_s"].update({key: factor * seen["turns"]["cpu_s"][key]})


def as_one_server(where: paths.StudyPaths) -> None:
    first, second = folders(where, "pool-128m")[:2]
    who = json.loads((first / "evidence.json").read_text())["identity_before"]
    change(second, lambda seen: seen.update(dict.fromkeys(IDENTITIES, who)))


def moved(where: paths.StudyPaths) -> None:
    """Let one arm have done half of its discard in its window: more queries, and no statement more in all."""
    made = {}
    for folder in folders(where, "pool-128m"):
        made[folder.name] = forging.moved((folder / "sysbench.out").read_text(), 0.5)
        (folder / "sysbench.out").write_text(made[folder.name])
        forging.seal(folder)
    for folder in folders(where):

        def beside(seen: dict[str, Any]) -> None:
            for one in seen.get("beside") or ():
                if (text := made.get(one["plan"]["run_id"])) is not None:
                    one["clients"][0]["out"] = text

        change(folder, beside)


FORGED: dict[str, tuple[Callable[[paths.StudyPaths], None], str]] = {
    # 50 ms become 25; of 25.75 ms with a gap of 1.5 ms each the half is unused.
    "turns halved, work untouched": (retimed(halved, 0.5), r"V23 turns: .*no arm had one"),
    "turns of one arm 1 % shorter": (
        retimed(shortened("pool-128m"), 1.0),
        r"a turn lasted 49\.\d+ ms, no clock ends one before its 50",
    ),
    "half of the turns": (
        retimed(lambda rows: rows[: len(rows) // 2], 0.5),
        r"its log has queries in \d+ seconds after the last turn of its arm",
    ),
    "every second round left out": (retimed(thinned, 0.5), r"for 5\d % of the time .* no arm had one"),
    "arms' names in the turns": (
        retimed(renamed("pool-32m", "pool-256m"), 1.0),
        r"turn \d+ is of pool-(32|256)m, by the plan of pool-(256|32)m",
    ),
    "logs of two arms": (exchanged("sysbench.out"), "V10 ledger: Com_select grew by"),
    "logs, ledgers and work of two arms": (
        exchanged("sysbench.out", "monitor.csv", keys=("ledger", "work")),
        "V26 physics: .*before the run the server had read .* pages by one counter",
    ),
    "all that two servers counted": (
        exchanged("sysbench.out", "monitor.csv", keys=("ledger", "work", "cache")),
        r"cache.before: the pool has \d+ pages of 16384 bytes, facts.json has a pool of",
    ),
    "another server's port": (
        of_each(
            lambda seen: seen.update(argv=[re.sub(r"(port=)\d+", r"\g<1>23999", w) for w in seen["argv"]])
        ),
        r"the client connected to port 23999, the arm's server has \d+",
    ),
    "the client's processor time": (
        of_each(lambda seen: seen["client"].update(cpu_s=2 * seen["client"]["cpu_s"])),
        r"V26 physics: the client used .* its monitor saw",
    ),
    "what a server had counted before": (
        # Each server serves one run of a block here; the second is made to be the first one's.
        as_one_server,
        r"Connections is \d+ before it, was \d+ after b01",
    ),
    "half of the discard in the window": (
        moved,
        r"V26 physics: \d+ queries a second, for which the client's threads stopped \d+ times",
    ),
    # 3.9 s of 4.0 s become 11.7.
    "the server's processor time": (
        of_each(every("server", 3.0)),
        r"V26 physics: in its turns the arm's parts used .* cores, and the machine has 2",
    ),
}


@pytest.mark.parametrize("what", FORGED)
def test_what_is_forged_in_a_committed_archive_is_refused_and_named(what, honest, tmp_path) -> None:
    forge, said = FORGED[what]
    root = tmp_path / "root"
    shutil.copytree(honest, root)
    where = paths.StudyPaths(NAME, root)
    forge(where)
    found = proof.prove(root, NAME, ROOT)
    assert re.search(said, "\n".join(found.wrong)), found.wrong[:5]


def test_the_committed_archive_itself_contradicts_nothing(honest: Path) -> None:
    assert proof.prove(honest, NAME, ROOT).wrong == []


def test_what_falls_into_the_discard_is_listed_where_no_stops_were_counted(tmp_path: Path) -> None:
    archive.unpack(ROOT / "data" / "record" / NAME / f"{BEFORE_STOPS}.tar.xz", tmp_path)
    moved(paths.StudyPaths(NAME, tmp_path))
    found = proof.prove(tmp_path, NAME, ROOT)
    assert found.wrong == []
    listed = "sysbench.out: how its transactions lie over the seconds, and how many of all are in its discard"
    assert any(line.startswith(listed) for line in found.unproven)
