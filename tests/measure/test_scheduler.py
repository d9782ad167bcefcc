"""A walk on a real server: what goes wrong is voided, repeated and kept, and nothing is lost."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchbook.core.artifacts import run_folder
from benchbook.core.artifacts.run_folder import RunFolder
from benchbook.core.study.study import StudySpec
from benchbook.plan import schedule
from benchbook.read import validity
from tests import beside
from tests.walks import Store, judge

pytestmark = [pytest.mark.server, pytest.mark.usefixtures("few_transactions")]

Make = Callable[..., StudySpec]


@pytest.fixture
def store(site: Any, make_study: Make, tmp_path: Path, request: pytest.FixtureRequest) -> Store:
    """A walk with one connection, which takes a core where two take two; a test may ask for more.

    Others' tests change the rules of the machine's network, which voids a group as often as it happens.
    """
    study = make_study(threads=(getattr(request, "param", 1),))
    plan = study.plan.model_copy(update={"max_repeats": 5})
    return Store(site, study.model_copy(update={"plan": plan}), tmp_path)


@pytest.mark.parametrize("store", [2], indirect=True)
def test_a_walk_makes_every_run_and_a_second_walk_none(store: Store):
    state = store.walk()
    store.assert_complete()
    assert (state.done, state.abandoned, store.wrong()) == (2 + len(store.voids()), [], {})
    assert state.table()["runs planned"][0] == 2
    assert "[2/2] block 1 · oltp_read_write" in "\n".join(store.said)
    before = {path: path.stat().st_mtime_ns for path in store.raw.rglob("*")}
    assert store.walk().done == 0
    word = store.site.lab.password().encode()
    assert len(word) > 20
    assert not [path for path in store.raw.rglob("*") if path.is_file() and word in path.read_bytes()]
    assert {path: path.stat().st_mtime_ns for path in store.raw.rglob("*")} == before

    # On a machine that stood still a group may have been made more than once.
    known = store.voids()
    number = len(known) // 2 + 1
    first, second = sorted(store.kept(), key=lambda folder: folder.plan()["position"])
    # A kill in the middle of the second run leaves a folder without its manifest.
    half = second.path.rename(second.path.with_name(f"{second.name}.part"))
    (half / run_folder.MANIFEST).unlink()
    (half / run_folder.EVIDENCE).unlink()
    done = store.walk().done
    store.assert_complete()
    arm, other = (RunFolder(store.raw / one.name).plan()["arm"] for one in (second, first))
    voids = store.voids()
    killed = {
        f"{arm} {number}": ("killed", "the run was killed before it ended"),
        f"{other} {number}": ("apart", "its partners are missing, and a group is made together"),
    }
    assert {**voids, **killed} == voids, "a pair is made together, so its other half is made again too"
    assert done == len(voids) - len(known)


def test_a_killed_client_voids_its_group_which_is_repeated(store: Store):
    store.walk_with(lambda: beside.clients()[0].kill(), "proxy")
    store.assert_complete()
    status, reasons = store.voids()["proxy 1"]
    assert status == "invalid" and "V1 exit code" in reasons
    evidence = RunFolder(next(store.void.glob("*-proxy-*.a1"))).evidence()
    assert (evidence["exit_code"], evidence["ended_by"]) == (-signal.SIGKILL, "signal")
    assert all(RunFolder(path).verify() == [] for path in store.void.glob("*.a?"))
    attempts = {folder.plan()["arm"]: folder.manifest().attempt for folder in store.kept()}
    assert attempts["proxy"] == 2


def test_a_killed_server_is_started_again_and_its_run_repeated(store: Store):
    def kill() -> None:
        os.kill(store.site.monitored("direct")["server"][0], signal.SIGKILL)

    store.walk_with(kill, "direct")
    store.assert_complete()
    assert store.voids()["direct 1"][0] in ("invalid", "indeterminate")


def test_a_server_that_goes_away_between_two_runs_costs_one_repeat(store: Store):
    def kill(folder: RunFolder) -> validity.Judgement:
        judged = judge(folder)
        if judged.status == "valid":
            store.judge = judge
            os.kill(store.site.monitored("direct")["server"][0], signal.SIGKILL)
        return judged

    store.judge = kill
    state = store.walk()
    store.assert_complete()
    first, second = store.runs
    voids = store.voids()
    wrong = list(store.wrong())
    assert [name.split()[0] for name in wrong] == [second.arm], voids
    status, reason = voids[wrong[0]]
    assert status == "invalid", voids
    assert reason.startswith("the server went away "), voids
    partners = [name.split()[0] for name, (status, _) in voids.items() if status == "partner"]
    assert first.arm in partners, "half a pair is no pair"
    assert state.done == len(store.kept()) + len(voids) - 1, "all but the one that had no server"


def test_the_facts_that_are_part_of_a_run_are_found_on_a_real_site(site: Any):
    """A fact that is misspelt in the list would silently be part of no run's id."""
    site.up("proxy")
    found: Any = site.facts("proxy")
    missing = []
    of_others = ("cluster.", "node.", "qos_class", "resources", "encryption")
    for name in (name for name in schedule.LASTING if not name.startswith(of_others)):
        value = found
        for part in name.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if value is None:
            missing.append(name)
    assert not missing
