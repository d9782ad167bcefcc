"""A cause that was planted on real servers is the one that the page names, with the size that it has."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchbook.core.artifacts.bottlenecks import Cause
from benchbook.core.study.study import Study
from benchbook.show import bottleneck_section
from tests.pipeline import planted

pytestmark = [pytest.mark.server, pytest.mark.slow, pytest.mark.alone]


@pytest.fixture
def lab() -> Iterator[Path]:
    with planted.laboratory() as folder:
        yield folder


def named(study: Study, lab: Path, tmp_path: Path) -> dict[int, Cause]:
    """Measure a study and return the causes that its page names, by level."""
    return {
        one.threads: one for one in bottleneck_section.select_causes(planted.measured(study, lab, tmp_path))
    }


def test_a_server_that_burns_time_is_named(lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    burnt = planted.slowed(monkeypatch, lab, "server", BURN_US=60)
    found = named(planted.asked(planted.ARMS), lab, tmp_path)
    assert burnt and found[1].short.endswith(" longer with planted, most of it server CPU")
    # What was planted is 60 us a query.
    assert 50 < found[1].predicted.value < 80
    # Where other programs take a part of its core, it is not full for certain: then it waits for it.
    assert 8 not in found or re.search("server( CPU-bound|'s core)", found[8].sentence)


def test_a_client_that_burns_time_is_named(lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    burnt = planted.slowed(monkeypatch, lab, "client", BURN_US=60)
    found = named(planted.asked(planted.ARMS), lab, tmp_path)
    assert burnt and found[1].short.endswith(" longer with planted, most of it client CPU")
    assert 50 < found[1].predicted.value < 80
    assert 8 not in found or re.search("client( CPU-bound|'s core)", found[8].sentence)


def test_a_proxy_with_a_small_buffer_is_named(lab: Path, tmp_path: Path):
    found = named(planted.asked(planted.SMALL_BUFFER, workloads=planted.ranges(1000)), lab, tmp_path)
    assert "proxy CPU" in found[1].sentence
    assert 8 not in found or "client and proxy" in found[8].sentence


def test_a_cold_pool_is_named(lab: Path, tmp_path: Path):
    """Each run begins with an empty pool, and ends before most of the data have been read."""
    found = planted.measured(planted.cold(), lab, tmp_path)
    (one,) = (cause for cause in found.causes.contrasts if cause.threads == 1)
    pages = "pages not in its memory a query, against hardly any"
    assert one.qps.high < 0 and any(pages in text for text in one.beside)
    # Where other programs take the machine, no cause is sure.
    assert pages in one.sentence if one.sentence else one.reason.startswith("other programs")
