"""What is done before measuring is kept, never counted, and leaves the data as it was."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchbook.core.study.study import StudySpec
from benchbook.measure import dataset, warm_up
from benchbook.measure.data_plan import plan_data
from benchbook.measure.statement_counters import open_session
from tests import beside
from tests.goldens import assert_golden
from tests.limits import LIMITS

Make = Callable[..., StudySpec]


def test_a_study_without_pilots_says_so_and_keeps_none(make_study: Make, tmp_path: Path):
    (tmp_path / "pilots" / "old").mkdir(parents=True)
    said: list[str] = []
    study, folder = make_study(warm_up={"pilot_s": 0}), tmp_path / "pilots"
    made = warm_up.run_pilots("s", study, None, folder, LIMITS, said.append)
    assert (made, list((tmp_path / "pilots").iterdir())) == ([], [])
    assert len(said) == 1 and "warm_up.pilot_s is 0" in said[0]


@pytest.mark.server
def test_pilots_are_whole_runs_and_the_data_is_put_back(site: Any, make_study: Make, tmp_path: Path):
    study = make_study(warm_up={"pilot_s": 1})
    known = dataset.ensure_data(site, plan_data(study))
    said: list[str] = []
    folders = warm_up.run_pilots("s", study, site, tmp_path / "pilots", LIMITS, said.append)
    plans = [folder.plan() for folder in folders]
    assert [(plan["arm"], plan["block"]) for plan in plans] == [("direct", 0), ("proxy", 0)]
    for folder in folders:
        assert folder.verify() == []
        assert folder.evidence()["exit_code"] == 0
        assert "report-checkpoints" not in " ".join(folder.evidence()["argv"])
    assert_golden("measure/pilots-of-a-second.txt", "\n".join([*said, ""]))
    with open_session(site) as connection:
        assert dataset.describe_data(connection, plan_data(study))["fingerprint"] == known["fingerprint"]


@pytest.mark.server
def test_a_pilot_whose_server_dies_is_made_once_more(site: Any, make_study: Make, tmp_path: Path):
    """The server's sysbench fails and our session with it is dead; the next pilots have a server again."""
    study = make_study(warm_up={"pilot_s": 2})
    said: list[str] = []
    site.up("direct")
    pid, pilots = site.identity("direct")["pid"], tmp_path / "pilots"
    with beside.once(lambda: beside.begun(pilots), lambda: os.kill(pid, signal.SIGKILL), 0.5):
        folders = warm_up.run_pilots("s", study, site, pilots, LIMITS, said.append)
    assert len(said) == 3 and said[1].endswith("; the pilot is made once more")
    assert [folder.evidence()["exit_code"] for folder in folders] == [0, 0]
    assert [folder.evidence()["attempt"] for folder in folders] == [2, 1]
    assert sorted(path.name for path in pilots.iterdir()) == sorted(folder.name for folder in folders)


@pytest.mark.server
def test_warming_up_keeps_the_statistics_and_the_rows(site: Any, make_study: Make):
    study = make_study()
    known = dataset.ensure_data(site, plan_data(study))
    answers = warm_up.warm_up_data(site, study)
    assert {answer["Table"] for answer in answers} == {"sbtest.sbtest1", "sbtest.sbtest2"}
    assert any(answer["Msg_text"] == "OK" for answer in answers)
    again = dataset.ensure_data(site, plan_data(study), known)
    assert again.pop("events") == []
    assert again["fingerprint"] == known["fingerprint"]
