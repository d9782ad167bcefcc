"""Engines of two families are arms of one study: the same rows, the same indexes, valid runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchbook import sites
from benchbook.measure import dataset, ledger
from benchbook.sites.agent import files
from tests import rooms
from tests.sites.hosts.test_postgresql import SMALL
from tests.sites.local.test_socket import study
from tests.walks import judge, measured

THERE = all(files.programs(name) for name in ("mariadbd", "postgres"))


@pytest.mark.server
@pytest.mark.skipif(not THERE, reason="needs MariaDB and PostgreSQL")
def test_two_engines_hold_the_same_rows_and_are_measured(open_folder: Path, tmp_path: Path):
    asked = study(
        port=rooms.port(60),
        arms={"maria": {}, "postgres": {"engine": {"name": "postgresql", "settings": SMALL}}},
        dataset={"tables": 2, "table_size": 200},
        plan={"seed": 3, "blocks": 1, "discard_s": 1, "run_s": 2},
        threads=(1,),
    )
    with sites.open_site(asked, open_folder / "engines") as site:
        state = dataset.load(site, asked)
        assert state["indexes"] == {"sbtest1": ["id unique", "k"], "sbtest2": ["id unique", "k"]}
        assert len({*state["checksums"].values()}) == 2, "the tables hold different rows"
        for arm in asked.arms:
            judged = judge(measured(site, asked, arm, tmp_path / arm))
            assert (judged.reasons, judged.status, judged.ledger) == ([], "valid", "agrees")
        with ledger.session(site, "postgres") as connection:
            connection.exec_driver_sql("UPDATE sbtest2 SET pad = 'x' WHERE id = 7")
            connection.commit()
            changed = dataset.describe(connection, asked)["checksums"]
        # A single changed row of one engine is seen.
        assert changed["sbtest1"] == state["checksums"]["sbtest1"]
        assert changed["sbtest2"] != state["checksums"]["sbtest2"]
