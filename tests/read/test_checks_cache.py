"""V25: what a server held in memory at its first query, for arms that begin cold and warm."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from benchbook.core.params import Limits
from benchbook.read import checks_physics, checks_server
from benchbook.read.evidence import Evidence, Excused
from tests.read import corpus, synthetic

# 4 tables of 250,000 rows of at least 206 bytes: 206 MB, 12,574 pages of 16 KiB.
TABLES = {"tables": 4, "table_size": 250_000}


def begun(begins: str | None, pages: int, of_pool: int = 32_768, **changed: Any) -> Evidence:
    run = corpus.healthy(synthetic.output(), synthetic.planned())
    held = {"pages": pages, "pages_of_pool": of_pool, "page_bytes": 16_384, "pages_read": 9, "bytes_read": 9}
    seen = {"begins": begins, "cache": {"before": held, "after": held}} | changed
    return replace(run, plan=run.plan | TABLES, seen=run.seen | seen)


def faults(run: Evidence) -> list[str]:
    return [*checks_server.cache(run, Limits())]


@pytest.mark.parametrize(
    ("begins", "pages", "of_pool", "said"),
    [
        ("cold", 280, 32_768, None),
        # A tenth of 206 MB and 8 MiB are 28.99 MB: 1,769 pages.
        ("cold", 1_769, 32_768, None),
        ("cold", 1_770, 32_768, "to begin cold, and 29.0 MB of at least 206.0 MB were in memory"),
        ("warm", 14_000, 32_768, None),
        # Three quarters of 206 MB: 9,430 pages are 154,501,120 bytes.
        ("warm", 9_429, 32_768, "to begin warm, and 154.5 MB of at least 206.0 MB"),
        ("warm", 9_430, 32_768, None),
        # A pool of 12 MiB has 768 pages and never holds this data: 60 to 240 were seen in one.
        ("warm", 60, 768, None),
        # 206,000,000 bytes are 12,573.2 pages: the smallest pool that could be warm.
        ("warm", 575, 12_573, None),
        ("warm", 575, 12_574, "to begin warm, and 9.4 MB of at least 206.0 MB"),
        (None, 0, 32_768, None),
    ],
)
def test_a_cold_arm_holds_next_to_nothing_and_a_warm_one_most(
    begins: str | None, pages: int, of_pool: int, said: str | None
):
    found = faults(begun(begins, pages, of_pool))
    assert (said is None and found == []) or (said is not None and said in found[0]), found


def test_runs_made_before_this_was_looked_at_have_nothing_to_show():
    assert faults(corpus.healthy(synthetic.output(), synthetic.planned())) == []


def test_a_server_that_does_not_say_what_it_holds_excuses_a_cold_start_in_words():
    with pytest.raises(Excused, match="from its start right before the run alone"):
        faults(begun("cold", 0, cache={"before": None}))
    assert faults(begun("warm", 0, cache={"before": None})) == []


@pytest.mark.parametrize(
    ("pages", "reads", "ahead", "is_told"),
    [
        (494, 494, 128, False),  # what was read ahead is in both counters
        (622, 494, 128, False),  # or in the one that counts pages
        (510, 494, None, False),  # 16 pages may be underway
        (511, 494, None, True),
        (477, 494, 128, True),
        (639, 494, 128, True),
    ],
)
def test_two_counters_of_the_same_pages_agree_whichever_has_those_read_ahead(
    pages: int, reads: int, ahead: int | None, is_told: bool
):
    work = {"Innodb_buffer_pool_reads": reads} | (
        {} if ahead is None else {"Innodb_buffer_pool_read_ahead": ahead}
    )
    held = {"pages": 9, "pages_of_pool": 99, "page_bytes": 16_384, "pages_read": pages}
    held["bytes_read"] = pages * 16_384
    run = Evidence({}, {"cache": {"before": held}, "work": {"before": work}}, "", None)
    said = [one for one in checks_physics._memory(run) if "by one counter" in one]
    assert bool(said) is is_told
