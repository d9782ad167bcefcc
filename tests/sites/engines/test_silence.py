"""A MariaDB that lets us in and answers a SELECT, but never tells its counters."""

import contextlib
import ctypes
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import pymysql
import pytest

from benchbook import sites
from benchbook.measure import statement_counters
from tests import beside

pytestmark = pytest.mark.server

SEIZE, INTERRUPT, DETACH, ANY_KIND = 0x4206, 0x4207, 17, 0x40000000
TASK = "SELECT tid FROM information_schema.processlist WHERE id = CONNECTION_ID()"
# As it counts it holds what all who count must have.
ASK_ON = """
BEGIN NOT ATOMIC
  DECLARE number INT;
  WHILE 1 DO SELECT COUNT(*) INTO number FROM information_schema.global_status; END WHILE;
END"""


@contextmanager
def stopped(task: int) -> Iterator[None]:
    """Hold one thread of a server where it is, as a debugger does."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(SEIZE, task, None, None) != 0:
        pytest.skip(f"ptrace: {os.strerror(ctypes.get_errno())}")
    try:
        libc.ptrace(INTERRUPT, task, None, None)
        os.waitpid(task, ANY_KIND)
        yield
    finally:
        libc.ptrace(DETACH, task, None, None)


def answers(connect: Callable[..., pymysql.Connection], statement: str) -> bool:
    try:
        with connect(read_timeout=1) as session, session.cursor() as cursor:
            cursor.execute(statement)
    except pymysql.err.OperationalError:
        return False
    return True


@contextmanager
def hanging(connect: Callable[..., pymysql.Connection]) -> Iterator[None]:
    """Have a server hang in the block: a session is stopped where it holds what others wait for."""

    def ask_on(_: Event) -> None:
        with contextlib.suppress(pymysql.err.OperationalError):
            cursor.execute(ASK_ON)

    with connect() as other, connect() as session, session.cursor() as cursor:
        cursor.execute(TASK)
        (task,) = cursor.fetchone()
        with beside.working(ask_on):
            try:
                for number in range(2000):
                    # Time to get there, each time another.
                    time.sleep(0.0003 * (number % 11))
                    with stopped(task):
                        # It may also hold what every statement needs.
                        if not answers(connect, "SHOW GLOBAL STATUS") and answers(connect, "SELECT 1"):
                            yield
                            return
            finally:
                other.kill(session.thread_id())
    pytest.fail("it was never stopped in the right place")


def test_a_server_that_does_not_tell_its_counters_is_silent_after_the_run(
    make_study: Any, lab: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sites.open_site(make_study(), lab) as site:
        site.up("direct")
        server: Any = site.runtime.get(site.chains["direct"].server)  # type: ignore[attr-defined]
        with statement_counters.open_session(site, "direct") as connection:
            # Its own session, which makes it hang, is no stranger's.
            connection.info["only_user"] = "nobody"
            before = statement_counters.record_before(connection, 0)
            with hanging(server._connect):
                monkeypatch.setattr(statement_counters, "ANSWER_S", 1.0)
                began = time.monotonic()
                after = statement_counters.record_after(connection, before, 0, {})
                assert 1.0 <= time.monotonic() - began < 30
        assert (after["server_answers"], after["ledger"]["after"]) == (False, None)
