"""The calibration read through the API: raw logs parsed again, one row a campaign."""

import json
import math
import shutil
from pathlib import Path

import pytest

import benchbook as bb
from benchbook.api import calibration as api
from benchbook.core.artifacts import calibration_store, run_folder

SAME = "same-turns-1"


@pytest.fixture
def own(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone of its own with the same campaigns, to be spoilt."""
    shutil.copytree(made / "data" / "calibration", tmp_path / "data" / "calibration")
    monkeypatch.setenv("BENCHBOOK_ROOT", str(tmp_path))
    return calibration_store.clone_folder()


def test_every_campaign_is_a_row_that_follows_from_its_raw_logs():
    table = bb.calibration().campaigns
    assert table["name"].is_unique and set(table["kind"]) == {"same", "known", "lengths"}
    assert list(table) == list(bb.columns("campaigns").index)
    one = table.set_index("name").loc[SAME]
    assert (one["n"], one["runs"], one["order"], one["turn_ms"]) == (3, 6, "turns", 50)
    by_hand = []
    folders = list(run_folder.list_folders(calibration_store.clone_folder() / SAME / "raw"))
    for block in (1, 2, 3):
        qps = {}
        for folder in folders:
            plan, seen = folder.plan(), folder.evidence()
            if plan["block"] == block:
                total = folder.text(run_folder.OUT).rpartition("queries performed:")[2].partition("total:")[2]
                qps[plan["arm"]] = int(total.split()[0]) / seen["turns"]["active_s"]
        by_hand.append(math.log(qps["other"] / qps["one"]))
    assert [float(one) for one in one["log_ratios"].split()] == pytest.approx(by_hand, abs=1e-7)


def test_it_says_what_it_shows_question_by_question():
    found = bb.calibration()
    assert repr(found).startswith("calibration, made in this clone: 5 campaigns\nOf 1 campaigns")
    assert len(found.sentences) == 3 and "<b>calibration" in found._repr_html_()
    assert found.known[["what", "engine", "workload"]].to_numpy().tolist() == [
        ["haproxy", "mariadb", "oltp_point_select"]
    ]
    assert found.lengths["turn_ms"].tolist() == [20, 100]


def test_a_campaign_that_was_cut_is_no_row(own: Path):
    (own / SAME / calibration_store.CAMPAIGN).unlink()
    assert SAME not in set(bb.calibration().campaigns["name"])


def test_a_run_that_is_not_as_it_was_written_is_left_out(own: Path):
    folder = next(one for one in run_folder.list_folders(own / SAME / "raw") if one.plan()["block"] == 1)
    (folder.path / run_folder.OUT).write_text(folder.text(run_folder.OUT) + "\n")
    row = api.row_of_campaign(own / SAME)
    assert (row["runs"], row["n"], row["low"]) == (5, 2, None)


def test_a_damaged_campaign_is_named(own: Path):
    (own / SAME / calibration_store.CAMPAIGN).write_text(json.dumps({"name": SAME}))
    with pytest.raises(bb.NotThere.__mro__[1], match=f"{SAME}: no campaign that can be read: KeyError"):
        bb.calibration().campaigns  # noqa: B018 - it is read when it is asked for


def test_where_none_was_made_and_none_is_recorded_it_says_what_brings_one(own: Path):
    shutil.rmtree(own)
    with pytest.raises(bb.NotThere, match="make calibrate ARGS=same"):
        bb.calibration()
