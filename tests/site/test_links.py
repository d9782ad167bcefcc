"""The site hangs together: every link and anchor arrives, from a number down to its raw log."""

import re
import shutil
from functools import cache
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from benchbook.commands import pages as stand_ins
from benchbook.core.artifacts import run_folder
from tests.goldens import assert_golden_case


@cache
def soup(page: Path) -> BeautifulSoup:
    return BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser")


def pages(folder: Path) -> list[Path]:
    found = sorted(folder.rglob("*.html"))
    assert len(found) == 8  # first page, claims, method, story, a study, its runs, two sources
    return found


def arrives(page: Path, link: str) -> bool:
    name, _, anchor = link.partition("#")
    target = (page.parent / name).resolve() if name else page
    return target.is_file() and (not anchor or soup(target).find(id=anchor) is not None)


def test_every_local_link_and_anchor_arrives(site, public):
    for folder in (site / "reports", public):
        _all_arrive(folder)


def _all_arrive(folder: Path) -> None:
    for page in pages(folder):
        links = {link["href"] for link in soup(page).find_all("a", href=True)}
        local = [link for link in links if "://" not in link and not link.startswith("mailto:")]
        assert not [link for link in local if not arrives(page.resolve(), link)], page


@pytest.mark.parametrize("gone", ["runs/made/index.html", "studies/made.html", "method.html"])
def test_every_link_arrives_after_a_stage_failed(site, tmp_path, gone):
    root = shutil.copytree(site, tmp_path / "repository", symlinks=True)
    (root / "reports" / gone).unlink()
    assert stand_ins.stand_in(root) == [root / "reports" / gone]
    _all_arrive(root / "reports")


def test_no_page_asks_for_another_file(public):
    for page in pages(public):
        for tag in soup(page).find_all(True):
            for name in ("src", "srcset", "data", "poster", "action"):
                assert str(tag.get(name, "data:")).startswith("data:"), (page, tag.name)
            assert tag.name != "link" or tag["href"].startswith("data:")
        assert soup(page).find("meta", {"http-equiv": "Content-Security-Policy"})
        assert page.stat().st_size < 2_000_000


def test_a_number_leads_down_to_cells_runs_and_raw_logs(site):
    """From the answer by clicks alone: evidence, thread levels or cells, a run, its log."""
    page = site / "reports" / "studies" / "made.html"
    way = soup(page).select_one("section.answer table.results td a")["href"]
    row = soup(page).find(id=way[1:]).find_parent("tr")
    below = next(link["href"] for link in row.find_all("a", href=True) if link["href"].startswith("#cell-"))
    cells = soup(page).find(id=below[1:]).find_parent("tr")
    runs = [link["href"] for link in cells.find_all("a")]
    assert len(runs) == 5  # one a block
    listed = (page.parent / runs[0].partition("#")[0]).resolve()
    row = soup(listed).find(id=runs[0].partition("#")[2]).find_parent("tr")
    log = (listed.parent / row.find("a", string="log")["href"]).resolve()
    assert log.parent.name in runs[0] or log.parent.name.lower() in runs[0]
    assert log.read_text().startswith("sysbench 1.0.20")


def test_every_run_and_every_voided_attempt_has_its_row(site):
    page = soup(site / "reports" / "runs" / "made" / "index.html")
    there = {tag["id"] for tag in page.find_all("span", id=True) if tag["id"].startswith("run-")}
    data = site / "data" / "made"
    folders = [*run_folder.list_folders(data / "raw"), *run_folder.list_folders(data / "void")]
    assert len(folders) == 16
    assert there == {f"run-{folder.name}" for folder in folders}
    void = page.find(id="voids").find_next("tbody").get_text()
    assert "V1 exit code: exit code 1" in void and len(page.find_all("script")) == 1


def test_pages_lead_to_each_other(site):
    reports = site / "reports"
    for page in pages(reports):
        links = soup(page).select("header.site a")
        crumbs = {(page.parent / link["href"].partition("#")[0]).resolve() for link in links}
        wanted = {"index.html", "method.html"}
        if "made" in str(page.relative_to(reports)):
            wanted |= {"studies/made.html", "runs/made/index.html"}
        assert {(reports / name).resolve() for name in wanted} - {page.resolve()} <= crumbs, page
        named = {link.get_text() for link in links}
        assert {"Studies", "Sources"} <= named, page
        assert page.name == "method.html" or "Method" in named
        assert "Runs" in named or page.parent.name == "made"


def test_the_first_page_is_one_table_with_a_row_a_question_and_ways_to_all_evidence(site):
    file = site / "reports" / "index.html"
    page = soup(file)
    assert file.stat().st_size < 400_000
    told = [line.get_text(" ", strip=True) for line in page.select("main > p.verdict, main > p.lead")]
    sentences = " ".join(told).split(". ")
    assert len(told) == 2 and all(len(one.split()) <= 25 for one in sentences)
    row = next(one for one in page.select(".first tbody tr") if "made-up proxy" in one.th.get_text())
    assert row.th.a["href"] == "studies/made.html"
    line = row.select_one(".line")
    assert "HAProxy" in line.get_text() and line.a["href"].startswith("studies/made.html#finding-")
    assert line.img["src"].startswith("data:image/svg+xml") and "fewer" not in line.get_text()


def test_the_page_of_claims_says_in_two_sentences_what_holds(site):
    page = soup(site / "reports" / "claims.html")
    told = page.find(class_="verdict").get_text()
    assert told.count(".") == 2 and re.match(r"Of \d\d\xa0published claims", told)


def test_the_story_counts_the_claims_of_a_report_and_what_was_measured_for_them(site):
    page = soup(site / "reports" / "story.html")
    row, _ = page.find(id="reports").find_next("tbody").find_all("tr")
    # Of its nine claims none can be held against a table without repetition but by its own numbers.
    assert sum(int(cell.get_text()) for cell in row.find_all("td")) == 9
    assert row.th.a["href"] == "sources/mysql-kubernetes.html"
    assert "run `make pages` first" in page.get_text()


def test_the_method_page_has_every_aa_pair(site):
    page = soup(site / "reports" / "method.html")
    told = page.select_one(".verdict").get_text().replace("\xa0", " ")
    assert_golden_case("made_site.txt", "verdict of the method page", told)
    (row,) = page.find(id="aa-record").find_next("tbody").find_all("tr")
    assert row.th.get_text() == "made"
