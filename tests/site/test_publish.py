"""A publication is whole, replaces only an earlier one, and keeps nothing that no page leads to."""

import shutil
from pathlib import Path

import pytest

from benchbook.commands import pages
from benchbook.core.util.errors import BenchbookError
from tests.goldens import assert_golden_case
from tests.site.conftest import contents, publish


def test_it_has_pages_raw_files_and_the_summary_beside_each_other(public: Path, site: Path):
    pages = {f"{name}.html" for name in ("index", "claims", "method", "story")}
    folders = {"studies", "sources", "runs", "data"}
    assert {path.name for path in public.iterdir()} == {*pages, *folders, ".nojekyll"}
    logs = list((public / "data").rglob("sysbench.out"))
    assert len(logs) == 16
    for log in logs:
        assert log.read_bytes() == (site / log.relative_to(public)).read_bytes()
    assert not list(public.rglob("*.parquet")) and not (public / "data" / "published").exists()


def test_again_gives_the_same_and_a_page_that_is_gone_goes(public: Path, site: Path):
    before = contents(public)
    (public / "old.html").write_text("old")
    publish(site, public)
    assert contents(public) == before


def test_a_folder_with_something_else_in_it_is_left_alone(site: Path, tmp_path: Path):
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(BenchbookError, match="no earlier publication"):
        publish(site, tmp_path)
    assert (tmp_path / "mine").read_text() == "mine"


def test_a_dead_link_or_a_stand_in_for_a_page_stops_it(site: Path, tmp_path: Path):
    root = tmp_path / "repository"
    shutil.copytree(site / "reports", root / "reports")
    with pytest.raises(BenchbookError, match="links lead nowhere"):
        publish(root, tmp_path / "public")
    assert not (tmp_path / "public").exists()
    with pytest.raises(BenchbookError, match="make repro comes first"):
        publish(tmp_path, tmp_path / "public")
    root = shutil.copytree(site, tmp_path / "whole", symlinks=True)
    (root / "reports" / "method.html").unlink()
    pages.stand_in(root)
    with pytest.raises(BenchbookError) as refused:
        publish(root, tmp_path / "public")
    assert_golden_case("made_site.txt", "a stand-in is not published", str(refused.value))


def test_a_link_in_a_log_is_text_and_stays_as_it_is():
    text = '<a href="../../data/x/raw/r/sysbench.out">log</a> &lt;a href="../../data/y">'
    changed = pages._UP_TO_DATA.sub(r"\1\2", text)
    assert changed == '<a href="../data/x/raw/r/sysbench.out">log</a> &lt;a href="../../data/y">'
