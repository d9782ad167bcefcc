"""A client that only connects: it holds idle connections and makes short ones at a steady rate.

    python -m benchbook.sites.agent.connection_load 127.0.0.1:35001 sbtest SECRET_FILE IDLE NEW_PER_S

Each second it writes a line of JSON that tells what it did. TERM ends it when all have said goodbye. It logs
in by itself, for a full driver takes about a millisecond of processor time to connect, and this a third of it
(the protocol's documentation, "Connection Phase" and "Native Authentication").
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
import json
import operator
import resource
import signal
import struct
import sys
import time
from pathlib import Path
from typing import NamedTuple

from benchbook.sites.workspace import read_secret

AT_ONCE, A_BATCH = 128, 200
PATIENCE_S, GOODBYE_S = 20.0, 20.0
# On hosts with a Python before 3.11 this is not TimeoutError.
LATE = asyncio.TimeoutError


class Driver:
    """Connections of one run; `counted` are those that the server counts."""

    def __init__(self, host: str, port: int, account: Account) -> None:
        self.host, self.port, self.account = host, port, account
        self.loop = asyncio.get_running_loop()
        self.held: set[ClientSession] = set()
        self.counted = self.made = self.failed = self.lost = self.under_way = 0
        self.error = ""
        self.is_ending = asyncio.Event()

    async def connect(self) -> ClientSession | None:
        """Open one connection and log in; None if that fails, the first reason in `error`."""
        session = ClientSession(self.account, self.loop)
        try:
            await asyncio.wait_for(self._enter(session), PATIENCE_S)
        except (OSError, LATE, LoginRefused) as error:
            self.failed += 1
            self.error = self.error or f"{type(error).__name__}: {error}"
            session.abort()
            # What is not asked about any more would be reported as forgotten.
            session.entered.cancelled() or session.entered.cancel()
            return None
        finally:
            self.counted += session.is_counted
        return session

    async def _enter(self, session: ClientSession) -> None:
        await self.loop.create_connection(lambda: session, self.host, self.port)
        await session.entered

    async def open_idle(self, number: int) -> None:
        """Open idle connections, some at once, and keep them."""
        waiting = iter(range(number))

        async def open_some() -> None:
            for _ in waiting:
                if self.is_ending.is_set() or (session := await self.connect()) is None:
                    return
                self.held.add(session)
                session.ended.add_done_callback(functools.partial(self._count_lost, session))

        await asyncio.gather(*(open_some() for _ in range(min(AT_ONCE, number))))

    async def open_short(self, rate: int) -> None:
        """Open `rate` short connections a second, evenly; those that would start late are left out."""
        due, tasks = self.loop.time(), set()
        while not self.is_ending.is_set():
            due += 1 / rate
            late = self.loop.time() - due
            if late < 0:
                await asyncio.sleep(-late)
            elif late > 1:
                due = self.loop.time()
            if self.under_way < 2 * rate:
                task = asyncio.create_task(self._open_and_close())
                tasks.add(task)
                task.add_done_callback(tasks.discard)
        await asyncio.gather(*tasks)

    async def report_seconds(self) -> None:
        """Write a line for every second."""
        due = self.loop.time()
        while not self.is_ending.is_set():
            before, due = self.made, due + 1
            with contextlib.suppress(LATE):
                await asyncio.wait_for(self.is_ending.wait(), due - self.loop.time())
                return
            second_at = round(time.monotonic(), 3)
            self.print_line(second_at=second_at, open=len(self.held), made=self.made - before)

    def print_line(self, **messages: object) -> None:
        print(json.dumps(messages), flush=True)

    def _count_lost(self, session: ClientSession, _: object) -> None:
        self.held.discard(session)
        self.lost += not self.is_ending.is_set()

    async def _open_and_close(self) -> None:
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
    """Hold and make connections until TERM."""
    driver = Driver(host, port, account)
    driver.loop.add_signal_handler(signal.SIGTERM, driver.is_ending.set)
    begun = time.monotonic()
    await driver.open_idle(idle)
    driver.print_line(opened=len(driver.held), took_s=round(time.monotonic() - begun, 3), error=driver.error)
    tasks = [asyncio.create_task(driver.report_seconds())]
    if rate:
        tasks.append(asyncio.create_task(driver.open_short(rate)))
    await driver.is_ending.wait()
    held = len(driver.held)
    await asyncio.gather(*tasks)
    # We say goodbye on all of them and wait until the server has closed them.
    leaving = list(driver.held)
    for place, session in enumerate(leaving, start=1):
        session.quit()
        if place % A_BATCH == 0:
            await asyncio.sleep(0)
    if leaving:
        await asyncio.wait([session.ended for session in leaving], timeout=GOODBYE_S)
    for session in leaving:
        session.abort()
    results = {"lost": driver.lost, "failed": driver.failed, "connections": driver.counted}
    driver.print_line(held=held, **results, error=driver.error)


def main(argv: list[str]) -> None:
    """Hold and make connections as the arguments say."""
    host, _, port = argv[0].rpartition(":")
    user, password = read_secret(Path(argv[2]))
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    account = Account(user.encode(), password.encode(), argv[1].encode())
    asyncio.run(serve(host, int(port), account, int(argv[3]), int(argv[4])))


LONG_PASSWORD, CONNECT_WITH_DB, PROTOCOL_41 = 0x1, 0x8, 0x200
TRANSACTIONS, SECURE_CONNECTION, PLUGIN_AUTH = 0x2000, 0x8000, 0x80000
ABLE = LONG_PASSWORD | CONNECT_WITH_DB | PROTOCOL_41 | TRANSACTIONS | SECURE_CONNECTION | PLUGIN_AUTH
NATIVE = b"mysql_native_password"
CHARSET = 45  # utf8mb4_general_ci
MAX_PACKET = 1 << 24
HEADER = 4
QUIT = b"\x01\x00\x00\x00\x01"
OK, SWITCH, ERROR = 0x00, 0xFE, 0xFF


class LoginRefused(Exception):
    """The server did not let a connection in, with this answer."""


class Account(NamedTuple):
    """Account and schema of a login."""

    user: bytes
    password: bytes
    database: bytes


def scramble_password(password: bytes, salt: bytes) -> bytes:
    """Answer to a server's salt of 20 bytes; empty for an empty password."""
    if not password:
        return b""
    once = hashlib.sha1(password).digest()
    mixed = hashlib.sha1(salt[:20] + hashlib.sha1(once).digest()).digest()
    return bytes(map(operator.xor, once, mixed))


def frame_packet(payload: bytes, number: int) -> bytes:
    """A payload as one packet."""
    return len(payload).to_bytes(3, "little") + bytes([number]) + payload


class ClientSession(asyncio.Protocol):
    """One connection: `entered` once the server let it in, `ended` at its close; `is_counted` if greeted."""

    def __init__(self, account: Account, loop: asyncio.AbstractEventLoop) -> None:
        self.account = account
        self.entered: asyncio.Future[None] = loop.create_future()
        self.ended: asyncio.Future[None] = loop.create_future()
        self.is_counted = False
        self._transport: asyncio.Transport | None = None
        self._early = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        """Answer greeting and questions until the server says yes or no; nothing comes after that."""
        self._early += data
        while len(self._early) >= HEADER and not self.entered.done():
            length = int.from_bytes(self._early[:3], "little")
            if len(self._early) < HEADER + length:
                return
            number, payload = self._early[3], self._early[HEADER : HEADER + length]
            self._early = self._early[HEADER + length :]
            try:
                self._answer(payload, number)
            except (LoginRefused, ValueError, IndexError) as error:
                self.entered.set_exception(LoginRefused(str(error)))
                if self._transport is not None:
                    self._transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.entered.done():
            self.entered.set_exception(LoginRefused(f"closed while logging in: {error or 'no reason'}"))
        if not self.ended.done():
            self.ended.set_result(None)

    def quit(self) -> None:
        """Say goodbye; the server closes, so that none of our ports waits for stray packets."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(QUIT)

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _answer(self, payload: bytes, number: int) -> None:
        assert self._transport is not None
        user, password, database = self.account
        if not self.is_counted:
            if payload[:1] == bytes([ERROR]):
                raise LoginRefused(_describe_answer(payload))
            # The greeting has the salt in two parts, somewhere after the server's name.
            rest = payload.index(b"\0", 1) + 1
            salt = payload[rest + 4 : rest + 12] + payload[rest + 31 : rest + 43]
            self.is_counted = True
            proof = scramble_password(password, salt)
            head = struct.pack("<IIB23x", ABLE, MAX_PACKET, CHARSET)
            words = (head + user, bytes([len(proof)]) + proof + database, NATIVE, b"")
            self._transport.write(frame_packet(b"\0".join(words), number + 1))
        elif payload[0] == OK:
            self.entered.set_result(None)
        elif payload[0] == SWITCH:
            plugin, _, salt = payload[1:].partition(b"\0")
            if plugin != NATIVE:
                wanted = plugin.decode(errors="replace")
                raise LoginRefused(f"the server asks for {wanted}, we know native only")
            self._transport.write(frame_packet(scramble_password(password, salt), number + 1))
        else:
            raise LoginRefused(_describe_answer(payload))


def _describe_answer(payload: bytes) -> str:
    if payload[:1] == bytes([ERROR]) and len(payload) > 3:
        code = int.from_bytes(payload[1:3], "little")
        return f"{code}: {payload[3:].decode(errors='replace')}"
    return f"an answer that begins with {payload[:4].hex()}"


if __name__ == "__main__":
    main(sys.argv[1:])
