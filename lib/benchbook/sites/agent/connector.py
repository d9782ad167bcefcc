"""A client that only connects: it holds idle connections and makes short ones at a steady rate.

    python -m benchbook.sites.agent.connector 127.0.0.1:35001 sbtest SECRET_FILE IDLE NEW_PER_S

Each second it writes a line of JSON that tells what it did. TERM ends it when all have said goodbye.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import resource
import signal
import sys
import time
from pathlib import Path

from benchbook.sites.agent.handshake import Account, Refused, Session
from benchbook.sites.lab import read_secret

AT_ONCE = 128
PATIENCE_S = 20.0
GOODBYE_S = 20.0
A_BATCH = 200
# On hosts with a Python before 3.11 this is not TimeoutError.
LATE = asyncio.TimeoutError


class Driver:
    """The connections of one run. `counted` are those that the server has in its books."""

    def __init__(self, host: str, port: int, account: Account) -> None:
        self.host, self.port, self.account = host, port, account
        self.loop = asyncio.get_running_loop()
        self.held: set[Session] = set()
        self.counted = self.made = self.failed = self.lost = self.under_way = 0
        self.error = ""
        self.is_ending = asyncio.Event()

    async def connect(self) -> Session | None:
        """Open one connection and log in; None, and a word about it, if that fails."""
        session = Session(self.account, self.loop)
        try:
            await asyncio.wait_for(self._enter(session), PATIENCE_S)
        except (OSError, LATE, Refused) as error:
            self.failed += 1
            self.error = self.error or f"{type(error).__name__}: {error}"
            session.abort()
            # What is not asked about any more would be reported as forgotten.
            session.entered.cancelled() or session.entered.cancel()
            return None
        finally:
            self.counted += session.is_counted
        return session

    async def _enter(self, session: Session) -> None:
        await self.loop.create_connection(lambda: session, self.host, self.port)
        await session.entered

    async def hold(self, number: int) -> None:
        """Open idle connections, some at once, and keep them."""
        waiting = iter(range(number))

        async def open_some() -> None:
            for _ in waiting:
                if self.is_ending.is_set() or (session := await self.connect()) is None:
                    return
                self.held.add(session)
                session.ended.add_done_callback(functools.partial(self._gone, session))

        await asyncio.gather(*(open_some() for _ in range(min(AT_ONCE, number))))

    async def make(self, rate: int) -> None:
        """Begin `rate` short connections a second, evenly; what can't be started in time is left out."""
        due, tasks = self.loop.time(), set()
        while not self.is_ending.is_set():
            due += 1 / rate
            late = self.loop.time() - due
            if late < 0:
                await asyncio.sleep(-late)
            elif late > 1:
                due = self.loop.time()
            if self.under_way < 2 * rate:
                task = asyncio.create_task(self._short())
                tasks.add(task)
                task.add_done_callback(tasks.discard)
        await asyncio.gather(*tasks)

    async def tell(self) -> None:
        """Write a line for every second."""
        due = self.loop.time()
        while not self.is_ending.is_set():
            before, due = self.made, due + 1
            with contextlib.suppress(LATE):
                await asyncio.wait_for(self.is_ending.wait(), due - self.loop.time())
                return
            self.say(second_at=round(time.monotonic(), 3), open=len(self.held), made=self.made - before)

    async def leave(self) -> None:
        """Say goodbye on all idle connections and wait until the server has closed them."""
        leaving = list(self.held)
        for place, session in enumerate(leaving):
            session.quit()
            if place % A_BATCH == A_BATCH - 1:
                await asyncio.sleep(0)
        if leaving:
            await asyncio.wait([session.ended for session in leaving], timeout=GOODBYE_S)
        for session in leaving:
            session.abort()

    def say(self, **told: object) -> None:
        print(json.dumps(told), flush=True)

    def _gone(self, session: Session, _: object) -> None:
        self.held.discard(session)
        self.lost += not self.is_ending.is_set()

    async def _short(self) -> None:
        self.under_way += 1
        try:
            if (session := await self.connect()) is None:
                return
            session.quit()
            with contextlib.suppress(LATE):
                await asyncio.wait_for(session.ended, PATIENCE_S)
                self.made += 1
            session.abort()
        finally:
            self.under_way -= 1


async def serve(host: str, port: int, account: Account, idle: int, rate: int) -> None:
    """Drive until TERM."""
    driver = Driver(host, port, account)
    driver.loop.add_signal_handler(signal.SIGTERM, driver.is_ending.set)
    begun = time.monotonic()
    await driver.hold(idle)
    driver.say(opened=len(driver.held), took_s=round(time.monotonic() - begun, 3), error=driver.error)
    tasks = [asyncio.create_task(driver.tell())]
    if rate:
        tasks.append(asyncio.create_task(driver.make(rate)))
    await driver.is_ending.wait()
    held = len(driver.held)
    await asyncio.gather(*tasks)
    await driver.leave()
    driver.say(
        held=held, lost=driver.lost, failed=driver.failed, connections=driver.counted, error=driver.error
    )


def main(argv: list[str]) -> None:
    """Serve as the arguments say."""
    host, _, port = argv[0].rpartition(":")
    user, password = read_secret(Path(argv[2]))
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    account = Account(user.encode(), password.encode(), argv[1].encode())
    asyncio.run(serve(host, int(port), account, int(argv[3]), int(argv[4])))


if __name__ == "__main__":
    main(sys.argv[1:])
