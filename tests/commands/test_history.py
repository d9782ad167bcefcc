"""A study's series: kept once a measurement, the same bytes, and a page that says what changed and when."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from bs4 import BeautifulSoup

from benchbook.commands import history
from benchbook.compare import history as compared
from benchbook.core import load
from benchbook.core.errors import BenchbookError
from benchbook.show import history as shown
from benchbook.show import page
from tests.core.test_load import TABLE
from tests.show import notebooks

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "history.ipynb"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a study `good` and what it left: findings of one contrast, and the runs behind them."""
    monkeypatch.setenv("BENCHBOOK_ROOT", str(tmp_path))
    (tmp_path / "studies").mkdir()
    (tmp_path / "studies" / "good.yaml").write_text(TABLE["study"])
    measured(tmp_path / "data" / "good", "2026-11-20T08:00:00Z", -0.1)
    return tmp_path


def measured(folder: Path, started: str, effect: float) -> Path:
    (folder / "tidy").mkdir(parents=True)
    found = {
        "id": "oltp_point_select.haproxy.qps", "workload": "oltp_point_select", "baseline": "direct",
        "treatment": "haproxy", "metric": "qps", "effect": effect, "low": effect - 0.02,
        "high": effect + 0.02,
        "level": 0.98, "n": 5, "label": "lower", "headline": True,
    }  # fmt: skip
    (folder / "findings.json").write_text(json.dumps({"study": "good", "findings": [found]}))
    runs = pd.DataFrame(
        {
            "arm": ["direct", "haproxy"], "workload": ["oltp_point_select"] * 2,
            "qps": [8000.0, 7200.0], "started_utc": [started, started],
        }
    )  # fmt: skip
    runs.to_parquet(folder / "tidy" / "runs.parquet")
    return folder


def test_a_measurement_is_kept_once_and_the_next_one_after_it(root):
    file = root / "data" / "history" / "good.csv"
    assert "1 measurement, this one kept now" in history.keep("good", root / "data" / "good")
    first = file.read_bytes()
    assert "has the measurement of 2026-11-20" in history.keep("good", root / "data" / "good")
    assert file.read_bytes() == first
    earlier = measured(root / "elsewhere", "2026-11-19T08:00:00Z", -0.12)
    assert "2 measurements" in history.keep("good", earlier)
    table = history.read(file)
    assert list(table["measured_at"].str[:10]) == ["2026-11-19", "2026-11-20"]
    assert list(table["baseline_qps"]) == [8000.0, 8000.0]
    assert history.text(table).encode() == file.read_bytes()


def test_what_is_not_there_or_another_study_s_is_refused(root):
    with pytest.raises(BenchbookError, match="name an archive, or a folder with findings and tidy"):
        history.keep("good", root / "nowhere")
    found = root / "data" / "good" / "findings.json"
    found.write_text(json.dumps({"study": "other", "findings": []}))
    with pytest.raises(BenchbookError, match="findings of other, not of good"):
        history.keep("good", root / "data" / "good")
    found.unlink()
    with pytest.raises(BenchbookError, match="make repro STUDY=good"):
        history.keep("good", root / "data" / "good")


def test_words_and_prices_leave_it_the_same_study_and_lengths_do_not(root):
    study = load.study("good")
    digest = history.settings(study)
    assert history.settings(study.model_copy(update={"title": "Another title"})) == digest
    first = study.arms[study.baseline].model_copy(update={"name": "the n1 machine"})
    named = study.model_copy(update={"arms": {**study.arms, study.baseline: first}})
    assert history.settings(named) == digest
    more = study.model_copy(update={"plan": study.plan.model_copy(update={"blocks": 20})})
    assert history.settings(more) == digest
    longer = study.model_copy(update={"plan": study.plan.model_copy(update={"run_s": 60})})
    assert history.settings(longer) != digest


def test_the_page_says_what_changed_from_when_on(root):
    """Thirty mornings; from the 21st of them on the treatment is 8 % slower than before."""
    random, rows = np.random.default_rng(7), []
    for day in range(30):
        effect = float(np.expm1(np.log(0.9) + random.normal(0, 0.008) + np.log(0.92) * (day >= 20)))
        rows.append(
            {
                "study": "good", "measured_at": f"2026-09-{day + 1:02d}T05:00:00Z",
                "contrast": "oltp_point_select.haproxy.qps", "workload": "oltp_point_select",
                "baseline": "direct", "treatment": "haproxy", "metric": "qps", "effect": effect,
                "low": effect - 0.02, "high": effect + 0.02, "level": 0.98, "n": 5, "label": "lower",
                "baseline_qps": 8000 * float(np.exp(random.normal(0, 0.03))), "settings": "s", "commit": "c",
                "machine": "m",
            }
        )  # fmt: skip
    file = root / "data" / "history" / "good.csv"
    file.parent.mkdir()
    file.write_text(history.text(pd.DataFrame(rows)[list(compared.COLUMNS)]))
    soup = BeautifulSoup(page.html(notebooks.execute(NOTEBOOK, root, study="good")), "html.parser")
    answer = soup.find(class_="answer").get_text().replace("\xa0", " ")
    assert "HAProxy against direct connections on point selects" in answer
    size = float(re.search(r"From 2026-09-21 on the treatment is −([\d.]+) %", answer)[1])
    assert size == pytest.approx(8, abs=1)
    assert "the baseline, which shows no change" in answer
    assert soup.find(id="changes").find_next("td").get_text() == "2026-09-21"
    assert soup.find(id="series-1")
    assert len(soup.find(id="measurements").find_next("tbody").find_all("tr")) == 30
    study = root / "studies" / "good.yaml"
    study.write_text(TABLE["study"].replace("{access: direct}", "{access: direct, name: the plain server}"))
    soup = BeautifulSoup(page.html(notebooks.execute(NOTEBOOK, root, study="good")), "html.parser")
    assert "HAProxy against plain server on point selects" in soup.find(class_="answer").get_text()
    every = BeautifulSoup(page.html(notebooks.execute(NOTEBOOK, root, study="")), "html.parser")
    assert every.find("a", href="good.html") and "2026-09-21" in every.find(class_="answer").get_text()


def test_every_series_that_git_has_is_read_judged_and_drawn(monkeypatch: pytest.MonkeyPatch):
    """The pipeline renders one of them in its test."""
    monkeypatch.setenv("BENCHBOOK_ROOT", str(NOTEBOOK.parents[1]))
    known = sorted(file.stem for file in (NOTEBOOK.parents[1] / "data" / "history").glob("*.csv"))
    assert known
    for name in known:
        seen = shown.load(name)
        assert seen.series and len(shown.pictures(seen)) == len(seen.series)
        assert f"{name} over time" in shown.opening(seen).text
        # Where no measurement has one effect for all threads, the table says so and has no row.
        assert shown.measurements(seen)._repr_html_() and shown.changes(seen)._repr_html_()
    assert {name for name, _ in shown.load().every} == set(known)
