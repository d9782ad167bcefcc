"""The section of a run shows what every client of it printed."""

from __future__ import annotations

from pathlib import Path

from benchbook.read.validity import CHECKS, judge
from benchbook.show import run_page
from tests.read import synthetic


def test_a_run_of_three_clients_shows_three_logs_and_links_all_their_files(tmp_path: Path):
    folder = synthetic.folder_of_three(tmp_path / "raw")
    shown = run_page.section(
        run_page.Section(folder, judge(folder)), tmp_path / "pages" / "block-1.html", 10_000, ["direct"]
    ).text.replace("\u00a0", " ")
    for name in ("Log (sysbench.out)", "Log (client-1/sysbench.out)", "Log (client-2/sysbench.out)"):
        assert shown.count(f'aria-label="{name}"') == 1
    assert "3 clients, started within 6 ms" in shown
    assert f"{len(CHECKS)} of {len(CHECKS)} checks passed" in shown
    assert 'href="../raw/' in shown and "/client-2/sysbench.err" in shown


def test_a_run_of_one_client_says_nothing_of_clients(tmp_path: Path):
    folder = synthetic.folder(tmp_path / "raw", synthetic.planned(), synthetic.output())
    shown = run_page.section(
        run_page.Section(folder, judge(folder)), tmp_path / "x.html", 10_000, ["direct"]
    ).text
    assert "client-1" not in shown and "started within" not in shown


def test_a_run_of_turns_says_that_its_seconds_are_shared(tmp_path: Path):
    for order in ("turns", "runs"):
        folder = synthetic.folder(tmp_path / order, synthetic.planned(), synthetic.output())
        run = run_page.Section(folder, judge(folder))
        run.plan.update(order=order, partners=["direct", "haproxy"])
        shown = run_page.section(run, tmp_path / "x.html", 10_000, ["direct"]).text
        assert ("holds the turns of all arms" in shown) == (order == "turns")
