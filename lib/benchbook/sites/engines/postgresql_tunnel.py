"""A connection to PostgreSQL that somebody else holds for us, such as a host's agent, handed to libpq.

libpq takes no socket of ours, so it connects to one here, in a folder that only we can enter, and a thread
carries the bytes. It asks for more only while an answer is due: a connection that idles costs nothing there.
"""

import contextlib
import shutil
import socket
import threading
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg

from benchbook.sites.machine.contract import Far
from benchbook.sites.workspace import Lab

READ_S, ACCEPT_S, CLOSE_S = 600.0, 30.0, 5.0
PIECE = 1 << 16
# Types of messages in PostgreSQL's protocol 3: a client's that ask for an answer (its first has no type), and
# a server's that ends one. Of those about passwords all wait for the client but these two codes.
ASKING, READY, PASSWORDS, GOING_ON = (b"", b"p", b"Q", b"S", b"F"), b"Z", b"R", (0, 12)
FLUSH = b"H"


class TunnelConnection(psycopg.Connection[Any]):
    """A connection that is carried. `close` returns when the server has closed its session too."""

    carrier: "Carrier | None" = None

    def close(self) -> None:
        """Close it; a session that still ended would be counted as a stranger's."""
        super().close()
        if self.carrier is not None:
            self.carrier.join(CLOSE_S)


def open_tunnel(far: Far, lab: Lab, **account: Any) -> TunnelConnection:
    """Open a connection over `far` as its carrier, with psycopg's own arguments for the account."""
    far.settimeout(READ_S)
    folder = lab.private_folder(f"run/pg-{uuid.uuid4().hex[:8]}", None)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as entrance:
            path: Path = lab.socket(folder / ".s.PGSQL.1")
            entrance.bind(str(path))
            entrance.listen(1)
            entrance.settimeout(ACCEPT_S)
            carrier = Carrier(far, entrance)
            carrier.start()
            tunnel_connection = TunnelConnection.connect(host=str(folder), port=1, **account)
            tunnel_connection.carrier = carrier
            return tunnel_connection
    except BaseException:
        far.close()
        raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Carrier(threading.Thread):
    """Carries the bytes of one connection, from the one client that an entrance lets in to a far end."""

    def __init__(self, far: Far, entrance: socket.socket) -> None:
        super().__init__(daemon=True)
        self._far, self._entrance = far, entrance

    def run(self) -> None:
        """Carry until either end closes; a lost way closes both."""
        try:
            with contextlib.suppress(OSError):
                near, _ = self._entrance.accept()
                with near:
                    self._carry(near)
        finally:
            self._far.close()

    def _carry(self, near: socket.socket) -> None:
        messages, answered = Messages(is_request, is_bare=True), Messages(has_answered)
        while data := near.recv(PIECE):
            self._far.sendall(data)
            is_due = messages.take(data)
            while is_due:
                if not (answer := self._far.receive()):
                    return
                near.sendall(answer)
                is_due = not answered.take(answer)
        # It has said good-bye: the server's session is over when nothing more comes.
        self._far.settimeout(CLOSE_S)
        while self._far.receive():
            pass


class Messages:
    """Messages of one direction, each a type, its length and its contents; the first may be bare."""

    def __init__(self, gives_turn: Callable[[bytes, bytes], bool | None], is_bare: bool = False) -> None:
        self._gives_turn, self._is_bare, self._kept = gives_turn, is_bare, bytearray()

    def take(self, data: bytes) -> bool:
        """Add bytes; True if they end with a message that gives the turn to the other side."""
        self._kept += data
        is_turn = False
        while len(self._kept) >= (head := 4 if self._is_bare else 5):
            size = head - 4 + int.from_bytes(self._kept[head - 4 : head], "big")
            if len(self._kept) < size:
                break
            turn = self._gives_turn(bytes(self._kept[: head - 4]), bytes(self._kept[head:size]))
            is_turn = is_turn if turn is None else turn
            del self._kept[:size]
            self._is_bare = False
        return is_turn and not self._kept


def is_request(kind: bytes, body: bytes) -> bool | None:
    """True if a client's message asks for an answer; None: it belongs to an earlier request."""
    return None if kind == FLUSH else kind in ASKING


def has_answered(kind: bytes, body: bytes) -> bool:
    """True if a server waits for the client after a message of its own."""
    return kind == READY or (kind == PASSWORDS and int.from_bytes(body[:4], "big") not in GOING_ON)
