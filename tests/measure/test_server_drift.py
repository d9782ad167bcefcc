"""What is done to a real server between two runs is found before the second one, and named."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest
from ruamel.yaml import YAML

from benchbook.measure import server_drift, servers, statement_counters
from benchbook.read import checks_server
from benchbook.read.evidence import Evidence
from benchbook.sites.engines.mariadb import SOCKET

pytestmark = pytest.mark.server
FILE = Path(__file__).parents[1] / "data" / "server_changes.yaml"
CHANGES: dict[str, dict[str, Any]] = YAML(typ="safe").load(FILE)


class Scene:
    """One server between runs that have no sysbench: the looks around them, and somebody else's session."""

    def __init__(self, site: Any, make_study: Callable[..., Any]) -> None:
        self.site, self.study = site, make_study()

    def say(self, *statements: str) -> None:
        """Say something to the server over a connection that is not the site's."""
        server = self.site._server("direct")
        path = server.machine.socket(f"{server.role}/{SOCKET}")
        with (
            pymysql.connect(unix_socket=path, user="root", autocommit=True) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute("USE sbtest")
            for statement in statements:
                cursor.execute(statement)

    @property
    def pid(self) -> int:
        return self.site.monitored("direct")["server"][0]

    def between(self, act: Callable[[Scene], None]) -> list[str]:
        """Return what is found wrong with a run before which something was done, after one that was sound."""
        with servers.open_sessions(self.site, self.study, ["direct"]) as connections:
            (connection,) = connections["direct"]
            server_drift.arm_at_start(connection, "direct", self.site.identity("direct"))
            assert self.faults(connection) == []
            assert self.faults(connection) == []
            act(self)
            return self.faults(connection)

    def faults(self, connection: Any, within: Callable[[Scene], None] = lambda _: None) -> list[str]:
        """Look at the server as around a run, and return what the checks say."""
        self.site.endpoints("direct")
        identity = self.site.identity("direct")
        at_start = server_drift.arm_at_start(connection, "direct", identity)
        seen = {"identity_before": identity, "identity_at_start": at_start}
        was = statement_counters.record_before(connection, 2)
        within(self)
        seen |= statement_counters.record_after(connection, was, 2, {})
        run = Evidence({"arm_setting": {}}, seen, "", "")
        looks = ("arm", "settings", "tables", "between")
        checks = [getattr(checks_server, f"check_{look}") for look in looks]
        return [fault for check in checks for fault in check(run)]


@pytest.fixture
def scene(site: Any, make_study: Callable[..., Any]) -> Iterator[Scene]:
    site.up("direct")
    yield Scene(site, make_study)


def said(*statements: str) -> Callable[[Scene], None]:
    return lambda scene: scene.say(*statements)


def elsewhere(pid: int) -> None:
    """Let a process use all cores, or one where it has them all already."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(pid, {min(cores)} if os.sched_getaffinity(pid) == cores else cores)


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_changed_between_two_runs_is_named(name: str, scene: Scene):
    change = CHANGES[name]
    try:
        assert change["said"] in "\n".join(scene.between(said(*change["do"])))
    finally:
        if change["undo"] is None:
            scene.site.restore()
        else:
            scene.say(*change["undo"])


@pytest.mark.skipif(os.geteuid() != 0, reason="lowering nice again needs root")
def test_a_server_that_was_moved_between_two_runs_is_named(scene: Scene):
    cores = os.sched_getaffinity(scene.pid)
    try:
        for act in (lambda _: os.setpriority(os.PRIO_PROCESS, scene.pid, 5), lambda _: elsewhere(scene.pid)):
            assert "_place changed from" in "\n".join(scene.between(act))
    finally:
        os.setpriority(os.PRIO_PROCESS, scene.pid, 0)
        os.sched_setaffinity(scene.pid, cores)


def test_what_is_changed_in_a_run_is_named_too(scene: Scene):
    with servers.open_sessions(scene.site, scene.study, ["direct"]) as connections:
        (connection,) = connections["direct"]
        found = scene.faults(connection, said("SET GLOBAL general_log = ON"))
        assert CHANGES["general log"]["said in a run"] in found
        scene.say("SET GLOBAL general_log = OFF")


def test_a_setting_that_was_changed_stays_found_in_every_later_block(scene: Scene):
    """A server that can't be started again keeps what was done to it."""
    change = CHANGES["flush"]
    assert scene.between(said(*change["do"])) != []
    with servers.open_sessions(scene.site, scene.study, ["direct"]) as connections:
        found = scene.faults(connections["direct"][0])
    scene.say(*change["undo"])
    assert change["said"] in found


def test_the_looks_are_quick(scene: Scene):
    with servers.open_sessions(scene.site, scene.study, ["direct"]) as connections:
        (connection,) = connections["direct"]
        taken = []
        for _ in range(10):
            begun = time.monotonic()
            server_drift.take_snapshot(connection)
            taken.append((time.monotonic() - begun) * 1000)
    print(f"one look at settings and definitions: {min(taken):.1f} ms")
    # A busy machine may add to each of them, and can't take away.
    assert min(taken) < 150


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("set maxconn global 7", "proxy_limits changed from"),
        ("set weight server/db 0", "proxy_servers changed"),
    ],
)
def test_a_proxy_that_is_told_something_else_between_two_runs_is_named(command, words, scene):
    """Its settings file and its process stay the same."""
    scene.site.up("proxy")
    before = scene.site.identity("proxy")
    assert scene.site.identity("proxy") == before
    part = next(part for part in scene.site.chains["proxy"].hops if part.kind == "haproxy")
    proxy = scene.site.runtime.get(part)
    proxy._ask(command)
    try:
        after = scene.site.identity("proxy")
    finally:
        proxy.stop()
    run = Evidence({"arm_setting": {}}, {"identity_at_start": before, "identity_before": after}, "", "")
    assert words in "\n".join(checks_server.check_arm(run))
