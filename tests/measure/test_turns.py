"""Arms that take turns on a real server: what is kept, what it agrees with, and what ends it."""

import contextlib
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from sqlalchemy import text

from benchbook.core.artifacts import run_folder
from benchbook.core.study.study import StudySpec
from benchbook.plan import schedule
from benchbook.read import tidy
from benchbook.read.evidence import turns_of
from benchbook.sites.engines import dialect
from tests.beside import clients
from tests.limits import LIMITS
from tests.walks import Store

pytestmark = [pytest.mark.server, pytest.mark.usefixtures("few_transactions")]

Make = Callable[..., StudySpec]
PLAN = {"seed": 3, "blocks": 1, "discard_s": 0.3, "run_s": 1, "order": "turns", "max_repeats": 3}


@pytest.fixture
def store(site: Any, make_study: Make, tmp_path: Path, request: pytest.FixtureRequest) -> Store:
    """A walk in turns with one connection an arm, which takes a core; a test may ask for more."""
    threads = (getattr(request, "param", 1),)
    study = make_study(plan=PLAN, aa={}, workloads={"oltp_read_write": {}}, threads=threads)
    made = Store(site, study, tmp_path)
    site.study = study
    return made


@pytest.fixture
def pair(site: Any, make_study: Make, tmp_path: Path) -> Store:
    """A walk of two arms: what voids a group voids one of two arms as it does one of three, and sooner."""
    site.study = make_study(plan=PLAN, threads=(1,))
    return Store(site, site.study, tmp_path)


def clock() -> psutil.Process | None:
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.Error):
            if any(word.endswith("clock.py") for word in child.cmdline()):
                return child
    return None


def walk(pair: Store, act: Callable[[], None]) -> None:
    """Walk with something done once, in the middle of the first group's turns."""
    # 2 x 0.3 s of discard, then 2 x 1 s of turns.
    pair.walk_with(act, clients=2, after_s=1.3)
    pair.assert_complete()


def stopped() -> list[str]:
    """Return the names of children that stand still."""
    found = []
    for one in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            found += [one.name()] if one.status() == psutil.STATUS_STOPPED else []
    return found


def a_client_that_stands_still() -> psutil.Process:
    while True:
        for one in clients():
            with contextlib.suppress(psutil.Error):
                if one.status() == psutil.STATUS_STOPPED:
                    return one


def assert_costs(seen: dict[str, Any], runs: Any) -> None:
    """Hold what an arm's parts cost in its turns against what the clock saw, and the server's own counts."""
    costs, queries = seen["turns"]["costs"], sum(runs["queries"])
    assert set(costs) == set(seen["turns"]["cpu_s"])
    for part, spent in costs.items():
        assert spent["cpu_s"] == pytest.approx(seen["turns"]["cpu_s"][part], rel=0.1, abs=0.02)
        # Each query waits for its answer at least in the client, and the kernel counts each wait as a switch.
        assert spent["voluntary"] is None or spent["voluntary"] > 0
        assert spent["threads"] >= 1
    assert seen["turns"]["reading_s"] < 0.2
    books = seen["work"]
    rows = books["after"]["Handler_read_key"] - books["before"]["Handler_read_key"]
    assert rows > 0.5 * queries, "most statements of oltp_read_write look up a row by its key"


@pytest.mark.alone
@pytest.mark.parametrize("store", [2], indirect=True)
def test_a_group_leaves_a_folder_an_arm_whose_books_agree_to_the_query(store: Store):
    state = store.walk_undisturbed()
    store.assert_complete()
    tried = 3 + len(store.voids())
    assert (state.done, state.abandoned, store.wrong(), stopped()) == (tried, [], {}, []), store.said
    tables = tidy.read_study(store.raw, store.void, schedule.schedule_table(store.runs), LIMITS)
    runs = tables["runs"].to_pandas().set_index("arm")
    assert set(runs["order"]) == {"turns"} and set(runs["ledger"]) == {"agrees"}
    assert runs["stopped"].to_dict() == {
        "direct": "client", "direct_again": "client", "proxy": "client, proxy"
    }  # fmt: skip
    # 1 s of turns of 20 ms are 50 an arm; whole seconds of sysbench leave room for some more.
    (taken,) = set(runs["turns"])
    assert taken >= 50 and runs["active_s"].between(0.95, 1.6).all()
    assert (runs["qps"] - runs["queries"] / runs["active_s"]).abs().max() < 1e-6
    for folder in store.kept():
        assert_costs(folder.evidence(), runs)
    files = [turns_of(folder.text(run_folder.TURNS)) for folder in store.kept()]
    assert files[0] == files[1] == files[2], "each folder has the turns of the whole group"
    assert len(tables["turns"]) == 3 * taken
    assert store.walk().done == 0


def test_arms_on_one_server_share_its_books_and_leave_it_as_it_is(store: Store):
    """Counting by account changes what MariaDB serves, so that it must stay off (docs/turns.md)."""
    store.walk()
    seen = {folder.plan()["arm"]: folder.evidence() for folder in store.kept()}
    assert set(seen) == {"direct", "direct_again", "proxy"}
    for arm, one in seen.items():
        books = one["ledger"]
        assert books["after"]["Connections"] - books["before"]["Connections"] == 3, "a thread of each arm"
        beside = {other["plan"]["arm"]: other["clients"] for other in one["beside"]}
        assert set(beside) == set(seen) - {arm}
        assert all("queries performed" in client["out"] for (client,) in beside.values())
    with store.site.admin().connect() as connection:
        assert dialect.get_dialect(connection).variables(connection)["userstat"] == "OFF"


def test_one_statement_of_a_stranger_in_the_turns_voids_the_group(pair: Store):
    def ask() -> None:
        with pair.site.admin().connect() as connection:
            connection.execute(text("SELECT 1"))

    walk(pair, ask)
    told = [reasons for _, reasons in pair.voids().values() if reasons.startswith("V10")]
    assert told and all("Connections grew by 3" in one and "Com_select grew by" in one for one in told)


@pytest.mark.parametrize("target", ["clock", "client", "proxy", "server"])
def test_a_kill_in_the_turns_voids_the_whole_group_and_leaves_nobody_stopped(pair: Store, target: str):
    def kill() -> None:
        pids = {
            "clock": lambda: clock().pid,  # type: ignore[union-attr]
            "client": lambda: a_client_that_stands_still().pid,
            "proxy": lambda: pair.site.monitored("proxy")["proxy"][0],
            "server": lambda: pair.site.monitored("direct")["server"][0],
        }
        os.kill(pids[target](), signal.SIGKILL)

    walk(pair, kill)
    assert stopped() == []
    voids = pair.voids()
    assert {name.split()[0] for name in voids} == {"direct", "proxy"}
    assert "invalid" in {status for status, _ in voids.values()}
    # A busy machine may cost one more.
    attempts = {folder.manifest().attempt for folder in pair.kept()}
    assert len(attempts) == 1 and min(attempts) >= 2
    # What befell all runs of a group is told once.
    told = [line for line in pair.said if line.startswith("    ")]
    assert told and max(map(told.count, told)) < min(attempts)


def test_a_stranger_that_lets_a_client_go_on_out_of_turn_voids_the_group(store: Store):
    def go_on() -> None:
        # Without a pause: beside other programs the client would be stopped again before it has a core.
        victim, end = clients()[0].pid, time.monotonic() + 4.0
        with contextlib.suppress(ProcessLookupError):
            while time.monotonic() < end:
                os.kill(victim, signal.SIGCONT)

    voids: dict[str, tuple[str, str]] = {}
    # Where other programs have both cores, the client may be stopped again before it did anything.
    for number in range(3):
        walked = Store(store.site, store.study, store.raw.parent / str(number))
        walk(walked, go_on)
        voids |= walked.voids()
        if any("out of its turn" in reasons for _, reasons in voids.values()):
            return
    pytest.fail(f"no client was seen out of its turn: {voids}")


def test_a_clock_that_stands_still_makes_a_turn_too_long_and_voids_the_group(pair: Store):
    def hold() -> None:
        watched = clock()
        assert watched is not None
        watched.suspend()
        time.sleep(0.3)
        watched.resume()

    walk(pair, hold)
    reasons = " ".join(reasons for _, reasons in pair.voids().values())
    assert "a turn lasted" in reasons or "different times" in reasons or "overlap" in reasons
