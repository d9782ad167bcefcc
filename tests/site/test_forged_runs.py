"""Whole runs of the record are exchanged or their logs rewritten, with every hash made again.

What physics can tell is named; what it can't stands by name in what `verify` says is not proven.
"""

import json
import re
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchbook.core import files, histogram, paths, runfolder
from benchbook.evidence import archive, proof
from benchbook.read import evidence
from tests.site import forging
from tests.site.conftest import ROOT

# Whole runs, one arm half a millisecond away from its server and the other beside it.
NAME, SESSION = "lab-zones", "20261125T0145Z-0033"
NEAR, FAR = "one-zone", "several-zones"
# What an archive binds to the arm by a plan, a command line or facts; all else is exchanged.
BOUND = ("argv", "limits", "attempt", "begins")


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive as it is unpacked."""
    root = tmp_path_factory.mktemp("record") / "root"
    archive.unpack(ROOT / "data" / "record" / NAME / f"{SESSION}.tar.xz", root)
    return root


def folders(where: paths.StudyPaths, arm: str) -> list[Path]:
    found = [folder.path for folder in runfolder.listing(where.raw)]
    return [one for one in found if json.loads((one / "plan.json").read_text())["arm"] == arm]


def exchange(where: paths.StudyPaths) -> None:
    """Let each run of the near arm be what was measured of the far one, and the reverse."""
    for one, other in zip(folders(where, NEAR), folders(where, FAR), strict=True):
        seen: list[dict[str, Any]] = [
            json.loads((each / "evidence.json").read_text()) for each in (one, other)
        ]
        for name in ("sysbench.out", "monitor.csv"):
            mine, theirs = (one / name).read_bytes(), (other / name).read_bytes()
            (one / name).write_bytes(theirs)
            (other / name).write_bytes(mine)
        for folder, own, taken in ((one, *seen), (other, *reversed(seen))):
            files.write_json(folder / "evidence.json", taken | {key: own[key] for key in BOUND})
            forging.seal(folder)


def later(where: paths.StudyPaths) -> None:
    """Let the slower transactions of the far arm, up to its own percentile, take a fifth longer.

    As many of the others take one bucket less, so that the sum of all stays what it was.
    """
    for folder in folders(where, FAR):
        file = folder / "sysbench.out"
        text = file.read_text()
        bars = evidence.parse(text).histogram
        assert bars is not None
        counts, whole = bars.full().astype(int), bars.events
        ends = np.cumsum(counts)
        last = int(np.searchsorted(ends, 0.99 * whole))
        made, moved = counts.copy(), 0.0
        for bucket in range(int(np.searchsorted(ends, 0.94 * whole)) + 1, last - 1):
            up = min(bucket + 10, last - 1)
            made[bucket] -= counts[bucket]
            made[up] += counts[bucket]
            moved += counts[bucket] * (histogram.value_of(up) - histogram.value_of(bucket))
        for bucket in np.flatnonzero(counts[: int(np.searchsorted(ends, 0.9 * whole))])[1:]:
            step = histogram.value_of(bucket) - histogram.value_of(bucket - 1)
            many = int(min(counts[bucket], moved / step))
            made[bucket] -= many
            made[bucket - 1] += many
            moved -= many * step
        lines = [f"{histogram.value_of(at):12.3f} |{'':40} {made[at]}" for at in np.flatnonzero(made)]
        file.write_text(
            forging.HISTOGRAM.sub(lambda found, lines=lines: found[1] + "\n".join(lines) + found[3], text)
        )
        forging.seal(folder)


def of_logs(edit: Callable[[str], str]) -> Callable[[paths.StudyPaths], None]:
    """Write another text into each log of the far arm."""

    def forge(where: paths.StudyPaths) -> None:
        for folder in folders(where, FAR):
            file = folder / "sysbench.out"
            file.write_text(edit(file.read_text()))
            forging.seal(folder)

    return forge


def renamed(where: paths.StudyPaths) -> None:
    text = where.file.read_text()
    for old, new in (("one zone", "XX"), ("several zones", "one zone"), ("XX", "several zones")):
        text = text.replace(f"name: {old}\n", f"name: {new}\n")
    where.file.write_text(text)


def forged(honest: Path, root: Path, forge: Callable[[paths.StudyPaths], None]) -> proof.Proof:
    shutil.copytree(honest, root)
    forge(paths.StudyPaths(NAME, root))
    return proof.prove(root, NAME, ROOT)


# What the far arm's logs say otherwise: 0.05 s of a window of four are 1.3 % more queries a second, 0.1 s at
# its end 2.4 % fewer.
SECONDS = {
    "its checkpoint": (partial(forging.timed, checkpoint_s=0.05), "the checkpoint came 0.05"),
    "its end": (partial(forging.timed, end_s=0.1), "it ended 0.1"),
}


@pytest.mark.parametrize("what", SECONDS)
def test_a_window_that_is_told_shorter_or_longer_is_named(what: str, honest: Path, tmp_path: Path) -> None:
    edit, said = SECONDS[what]
    wrong = forged(honest, tmp_path / "root", of_logs(edit)).wrong
    assert sum(said in line for line in wrong) == len(folders(paths.StudyPaths(NAME, honest), FAR)), wrong


def test_an_answer_that_comes_sooner_than_its_way_lets_it_is_named(honest: Path, tmp_path: Path) -> None:
    wrong = "\n".join(forged(honest, tmp_path / "root", exchange).wrong)
    assert re.search(
        r"V26 physics: a transaction took 0\.\d+ ms, its statements are under way for 1 ms", wrong
    )


@pytest.mark.parametrize(
    ("forge", "listed"), [(later, "sysbench.out: how long its transactions took"), (renamed, "arms.*.name")]
)
def test_what_no_check_can_hold_is_listed_by_name(forge, listed, honest, tmp_path) -> None:
    before = proof.prove(honest, NAME, ROOT)
    found = forged(honest, tmp_path / "root", forge)
    assert found.wrong == before.wrong == []
    assert any(listed in line for line in found.unproven)
