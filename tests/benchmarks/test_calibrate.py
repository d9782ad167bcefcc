"""Campaigns: each another study, whole or made again, recorded to the byte, and one on a real server."""

import math
import re
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchbook.commands import machine_noise
from benchbook.core.artifacts import record as index
from benchbook.core.artifacts import run_folder
from benchbook.core.study import interleaving
from benchbook.core.study.params import Limits
from benchbook.core.util import files
from benchbook.core.util.errors import BenchbookError, LockHeld, SiteError
from benchbook.evidence import sessions
from benchbook.sites.topology import teardown
from benchmarks import calibrate, campaigns
from tests import rooms
from tests.limits import LIMITS

DATA = Path(__file__).parents[1] / "data" / "calibration.tar.xz"


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BENCHBOOK_ROOT", str(tmp_path))
    return tmp_path


@pytest.fixture
def measured(clone: Path) -> Path:
    """A clone with the five campaigns that were measured for tests."""
    with tarfile.open(DATA) as tar:
        tar.extractall(campaigns.clone_folder(), filter="data")
    return clone


@pytest.fixture
def few(measured: Path) -> Path:
    """A clone with the two smallest of them."""
    for folder in campaigns.complete_folders(campaigns.clone_folder()):
        if not folder.name.startswith("lengths-"):
            shutil.rmtree(folder)
    return measured


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The campaigns that are made, by copying what was measured for tests instead of measuring."""
    names: list[str] = []

    def measure(of: Any, lab: Path, into: Path, *_: Any) -> None:
        names.append(into.name)
        assert not (into / "raw").exists()
        with campaigns.unpack_archives([DATA]) as folder:
            shutil.copytree(folder / "same-turns-1" / "raw", into / "raw")

    monkeypatch.setattr(machine_noise, "measure_runs", measure)
    return names


def archived() -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in campaigns.list_archives()}


def refuse_with(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """Let every campaign be refused."""

    def refuse(*_: Any) -> None:
        raise error

    monkeypatch.setattr(machine_noise, "measure_runs", refuse)


def firsts(number: int) -> list[calibrate.Campaign]:
    equal = calibrate.same()
    return [next(equal) for _ in range(number)]


def test_no_two_campaigns_of_equal_arms_are_the_same_study():
    found = firsts(100)
    assert len({one.name for one in found}) == 100
    assert len({one.of.plan.seed for one in found}) == 100
    assert len({one.of.site.port for one in found}) == 100
    assert {(one.of.plan.order, one.of.plan.blocks) for one in found} == {("turns", 5)}


def test_every_known_effect_is_measured_by_both_orders_next_to_each_other():
    found = list(calibrate.known(2))
    pairs = list(zip(found[::2], found[1::2], strict=True))
    for in_turns, whole in pairs:
        assert (in_turns.of.plan.order, whole.of.plan.order) == ("turns", "runs")
        assert in_turns.name.replace("-turns-", "-runs-") == whole.name
        assert (in_turns.what, in_turns.of.arms) == (whole.what, whole.of.arms)
        assert whole.of.plan.run_s == 2 * in_turns.of.plan.run_s
    cells = {(one.of.engine.name, one.what, *one.of.workloads) for one in found}
    assert {(engine, what) for engine, what, *_ in cells} == {
        ("mariadb", "haproxy"), ("mariadb", "burns"), ("mariadb", "rows"),
        ("tidb", "haproxy"), ("tidb", "burns"),
    }  # fmt: skip
    assert len(cells) == 13 and len(pairs) == 26
    assert {one.of.engine.name for one in calibrate.known(1, ("mariadb",))} == {"mariadb"}


def test_turns_can_be_had_for_every_campaign_that_asks_for_them():
    asked = [*calibrate.known(1), *calibrate.lengths(1), *firsts(1)]
    told = {one.name: interleaving.find_obstacles(one.of, name) for one in asked for name in one.of.workloads}
    assert not {name: reasons for name, reasons in told.items() if reasons}


def test_lengths_are_interleaved():
    found = list(calibrate.lengths(2))
    assert [one.of.plan.turn_ms for one in found] == [*calibrate.TURN_MS, *calibrate.TURN_MS]


def test_what_is_there_is_not_asked_for_again_whatever_its_number(measured: Path):
    (campaigns.clone_folder() / "same-turns-1").rename(campaigns.clone_folder() / "same-turns-2")
    assert [one.name for one in calibrate.wanted("same", 3)] == ["same-turns-1", "same-turns-3"]
    assert calibrate.wanted("same", 1) == []
    assert len(calibrate.wanted("known", 1, ("mariadb",))) == 14 - 2
    assert "lengths-20ms-1" not in {one.name for one in calibrate.wanted("lengths", 1)}


def test_one_that_was_cut_is_made_from_the_start_and_a_whole_one_is_left(clone: Path, made: list[str]):
    cut = campaigns.clone_folder() / "same-turns-1"
    (cut / "raw" / "half").mkdir(parents=True)
    assert calibrate.run("same", 2, say=lambda _: None) == 0
    assert made == ["same-turns-1", "same-turns-2"]
    told = files.read_json(cut / campaigns.CAMPAIGN)
    assert told["kind"] == "same" and told["seconds"] >= 0 and told["machine"]["cores"]
    assert calibrate.run("same", 2, say=lambda _: None) == 0
    assert len(made) == 2


def test_none_is_begun_after_the_minutes_that_were_given(clone: Path, made: list[str]):
    said: list[str] = []
    assert calibrate.run("lengths", 1, minutes=0, say=said.append) == 0
    assert made == [] and re.match("0 minutes are over; 7 ", said[-1])


def test_what_this_machine_cannot_make_keeps_no_other_back(clone: Path, monkeypatch: pytest.MonkeyPatch):
    refuse_with(monkeypatch, absent := SiteError("there is no such server here"))
    said: list[str] = []
    assert calibrate.run("known", 1, engines=("tidb",), say=said.append) == 1
    assert len(said) == 13 and said[1].endswith(f"not made: {absent}")
    assert campaigns.complete_folders(campaigns.clone_folder()) == []
    refuse_with(monkeypatch, LockHeld("held by another"))
    with pytest.raises(LockHeld):
        calibrate.run("lengths", 1, say=lambda _: None)


def test_recorded_campaigns_have_the_same_bytes_again_and_a_table_that_follows(measured: Path):
    told = calibrate.record()
    assert "5 campaigns" in told and re.search(r'^turns .*,"haproxy, mariadb, \w+"', told, re.M)
    first = archived()
    assert list(first) == ["known-1.tar.xz", "lengths-1.tar.xz", "same-1.tar.xz"]
    tables = [campaigns.record_folder() / name for name in (calibrate.TABLE, calibrate.RESULTS)]
    kept = [file.read_text() for file in tables]
    calibrate.record()
    assert archived() == first
    assert [file.read_text() for file in tables] == kept
    assert calibrate.check().startswith("5 recorded campaigns made again")
    assert list(sessions.find_unmatched(index.read_index())) == [], "it is no study of the record"


def test_further_campaigns_change_the_last_archive_of_their_kind_alone(few, monkeypatch):
    monkeypatch.setattr(calibrate, "OF_AN_ARCHIVE", 1)
    calibrate.record()
    before = archived()
    later = campaigns.clone_folder() / "lengths-0ms-1"
    shutil.copytree(campaigns.clone_folder() / "lengths-20ms-1", later)
    told = files.read_json(later / campaigns.CAMPAIGN)
    files.write_json(later / campaigns.CAMPAIGN, told | {"name": later.name, "began_utc": "2999"})
    calibrate.record()
    after = archived()
    assert set(after) - set(before) == {"lengths-3.tar.xz"}
    assert {name: after[name] for name in before} == before


def test_what_is_recorded_no_longer_is_told(few: Path):
    calibrate.record()
    shutil.rmtree(campaigns.clone_folder() / "lengths-20ms-1")
    assert re.search(r"1 campaign\n1 campaign .*, gone from it\n", calibrate.record())


def test_a_table_that_does_not_follow_is_named(few: Path):
    calibrate.record()
    file, row = campaigns.record_folder() / calibrate.TABLE, "lengths-20ms-1,lengths,,"
    file.write_text(file.read_text().replace(f"{row}mariadb", f"{row}tidb"))
    with pytest.raises(BenchbookError, match=r"campaigns\.csv does not .*engine"):
        calibrate.check()


def test_a_row_follows_from_the_raw_logs_and_a_run_that_was_edited_is_left_out(measured: Path):
    campaign, qps = campaigns.clone_folder() / "same-turns-1", {}
    folders = list(run_folder.list_folders(campaign / "raw"))
    for folder in folders:
        total = folder.text(run_folder.OUT).rpartition("queries performed:")[2].partition("total:")[2]
        key = folder.plan()["block"], folder.plan()["arm"]
        qps[key] = int(total.split()[0]) / folder.evidence()["turns"]["active_s"]
    by_hand = [math.log(qps[block, "other"] / qps[block, "one"]) for block in (1, 2, 3)]
    row = campaigns.row_of_campaign(campaign)
    assert (row["n"], row["runs"], row["order"], row["turn_ms"]) == (3, 6, "turns", 50)
    assert [float(ratio) for ratio in row["log_ratios"].split()] == pytest.approx(by_hand, abs=1e-7)
    edited = next(folder for folder in folders if folder.plan()["block"] == 1)
    (edited.path / run_folder.OUT).write_text(edited.text(run_folder.OUT) + "\n")
    row = campaigns.row_of_campaign(campaign)
    assert (row["runs"], row["n"], row["low"]) == (5, 2, None)


def test_nothing_made_is_nothing_to_record(clone: Path):
    with pytest.raises(BenchbookError, match="no campaign was made"):
        calibrate.record()
    with pytest.raises(BenchbookError, match="no calibration is recorded"):
        calibrate.check()


@pytest.mark.skipif(not campaigns.list_archives(), reason="no calibration is recorded yet")
@pytest.mark.slow
def test_the_recorded_table_follows_from_the_recorded_logs():
    assert "all as recorded" in calibrate.check()


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for labs that a server's own user can reach; nothing of it stays."""
    folder = Path(tempfile.mkdtemp(prefix="bb-campaigns-", dir=rooms.folder()))
    folder.chmod(0o711)
    monkeypatch.setenv("BENCHBOOK_LAB_DIR", str(folder / "labs"))
    monkeypatch.setenv("BENCHBOOK_LOCK", str(folder / "machine.lock"))
    yield folder
    assert teardown.tear_down(folder).is_clean
    shutil.rmtree(folder)


@pytest.mark.server
def test_a_campaign_on_a_real_server_is_whole_and_is_not_made_again(clone: Path, lab: Path):
    short = {"blocks": 2, "discard_s": 0.3, "run_s": 1}
    of = machine_noise.build_study({"threads": [1]}, rooms.port(470), order="turns", seed=5, **short)
    one = calibrate.Campaign("same-turns-1", campaigns.SAME, "", of)
    folder = calibrate.make(one, limits=Limits(**LIMITS))
    row = campaigns.row_of_campaign(folder, Limits(**LIMITS))
    assert (row["runs"], row["n"], row["order"]) == (4, 2, "turns")
    assert len(row["log_ratios"].split()) == 2 and row["seconds"] > 4
    written = {file: file.stat().st_mtime_ns for file in folder.rglob("*")}
    assert calibrate.make(one) == folder
    assert {file: file.stat().st_mtime_ns for file in folder.rglob("*")} == written
    assert [path.name for path in lab.rglob("calibration-*")] == [], "no lab of it is left"
