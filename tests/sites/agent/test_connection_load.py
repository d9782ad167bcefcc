"""Logging in by hand is what a full driver does, and a refusal is told in the server's words."""

import asyncio

import pytest
from pymysql._auth import scramble_native_password

from benchbook.sites.agent import connection_load
from benchbook.sites.agent.connection_load import Account, ClientSession, LoginRefused, frame_packet

ACCOUNT = Account(b"benchbook", b"a word", b"sbtest")
SALT = bytes(range(1, 21))
# Version 10, a name of the server, a thread's number, both parts of the salt, and the plugin.
GREETING = (
    b"\x0a10.11.6-MariaDB\0" + (7).to_bytes(4, "little") + SALT[:8] + b"\0"
    + b"\xff\xf7\x2d\x02\0\xff\x81\x15" + bytes(10) + SALT[8:] + b"\0" + connection_load.NATIVE + b"\0"
)  # fmt: skip


class Wire(asyncio.Transport):
    """The client's end of a connection, as a list of what it wrote."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.is_aborted = False

    def write(self, data: bytes) -> None:
        self.written.append(bytes(data))

    def is_closing(self) -> bool:
        return self.is_aborted

    def abort(self) -> None:
        self.is_aborted = True


def test_the_answer_to_a_salt_is_that_of_an_independent_driver():
    for password in (b"a word", b"", "pässwörd".encode()):
        assert connection_load.scramble_password(password, SALT) == scramble_native_password(password, SALT)


def talk(*packets: bytes, step: int = 1 << 20) -> tuple[ClientSession, Wire]:
    """Let a server say some packets, in pieces of `step` bytes."""

    async def play() -> tuple[ClientSession, Wire]:
        session, wire = ClientSession(ACCOUNT, asyncio.get_running_loop()), Wire()
        session.connection_made(wire)
        said = b"".join(packets)
        for place in range(0, len(said), step):
            session.data_received(said[place : place + step])
        return session, wire

    return asyncio.run(play())


@pytest.mark.parametrize("step", [1, 7, 1 << 20])
def test_a_login_goes_through_however_the_bytes_come(step: int):
    session, wire = talk(frame_packet(GREETING, 0), frame_packet(b"\0\0\0\2\0\0\0", 2), step=step)
    assert session.entered.result() is None and session.is_counted
    (answer,) = wire.written
    proof = scramble_native_password(b"a word", SALT)
    assert answer[3] == 1 and b"benchbook\0" + bytes([20]) + proof + b"sbtest\0" in answer
    session.quit()
    assert wire.written[-1] == b"\x01\0\0\0\x01"


def test_another_salt_is_answered_if_the_server_asks_again():
    """TiProxy greets with a salt of its own and then passes on the server's."""
    other = bytes(range(100, 120))
    ask = b"\xfe" + connection_load.NATIVE + b"\0" + other + b"\0"
    session, wire = talk(frame_packet(GREETING, 0), frame_packet(ask, 2), frame_packet(b"\0\0\0\2\0\0\0", 4))
    assert session.entered.result() is None
    assert wire.written[1] == frame_packet(scramble_native_password(b"a word", other), 3)


@pytest.mark.parametrize(
    ("packets", "said", "is_counted"),
    [
        ([b"\xff\x10\x04Too many connections"], "1040: Too many connections", False),
        ([GREETING, b"\xff\x15\x04#28000Access denied"], "1045: #28000Access denied", True),
        ([GREETING, b"\xfecaching_sha2_password\0" + SALT], "we know native only", True),
        ([b"HTTP/1.1 400 Bad Request"], "", False),
    ],
)
def test_who_is_refused_knows_why_and_whether_the_server_has_counted(packets, said: str, is_counted: bool):
    session, wire = talk(*(frame_packet(packet, 2 * place) for place, packet in enumerate(packets)))
    assert session.is_counted == is_counted and wire.is_aborted
    error = session.entered.exception()
    assert isinstance(error, LoginRefused) and said in str(error)
