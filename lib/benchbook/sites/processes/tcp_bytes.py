"""Bytes that TCP carried to and from a part, from the kernel's own count of each connection.

On loopback a device counts every packet of every program twice, so devices say nothing about one part. The
kernel counts what each socket sent and received (RFC 4898), without headers and without what was sent again;
sock_diag(7) tells it, also to ordinary users. On one machine only the sockets of those who connect are looked
at: they are in its own network namespace, wherever the server is. A host that has nothing but its own part
looks at that part's sockets, on whichever side they are.
"""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchbook.sites.processes.taskstats import iter_attributes

SOCK_DIAG = 4
BY_FAMILY, DONE, ERROR = 20, 3, 2
REQUEST_DUMP = 0x301
ESTABLISHED = 1 << 1
WITH_INFO = 1 << 1
BYTECODE, INFO = 1, 2
S_GE, S_LE, D_GE, D_LE = 2, 3, 4, 5
# Where in struct tcp_info the counts stand (linux/tcp.h, since 4.2; the last one since 5.1).
AGAIN, ACKED, RECEIVED, SEGMENTS, TWICE = 100, 120, 128, 136, 216
MESSAGE, ENTRY = 16, 72
# Where in struct inet_diag_msg own and peer's address and the socket's cookie stand.
OWN, PEER, COOKIE = 8, 24, 44
# With more connections than this counting them each second would take time from what is measured.
MOST = 1000
MIB = 1024 * 1024

Counts = dict[bytes, tuple[int, int, int, int]]
"""Of a connection's end by its cookie: bytes sent and received, segments sent, and those sent again.

A segment whose receiver says that it arrived twice (RFC 2883) was late and not lost: a busy machine asks
after the last segment of an answer before its acknowledgement comes (RFC 8985). Such are not counted.
"""


@dataclass(frozen=True)
class Hop:
    """An address that a client connects to, and a part at one end of it: it listens there, or connects if it
    `is_behind`. With `is_own` the sockets of who listens are looked at, not those of who connects."""

    part: str
    host: str
    port: int
    is_behind: bool = False
    is_own: bool = False


class Counter:
    """MiB/s received and sent by each part of some hops, from one look to the next; segments of both ends."""

    def __init__(self, hops: Sequence[Hop]) -> None:
        self.hops = tuple(hops)
        self.is_able = bool(hops)
        self._first: Counts = {}
        self._last: Counts = {}
        self._before: dict[Hop, Counts] = self._look() if hops else {}

    def look(self, span_s: float) -> dict[str, tuple[float, float]]:
        """MiB/s (received, sent) by part over the seconds since the last look; empty if unknown."""
        if not self.is_able:
            return {}
        now = self._look()
        results: dict[str, list[float]] = {}
        for hop, sockets in now.items():
            before = self._before.get(hop, {})
            sent = received = 0
            for cookie, (out, back, *_) in sockets.items():
                was = before.get(cookie, (0, 0))
                sent += out - was[0]
                received += back - was[1]
            # Who connects sends what the part receives, unless these are the part's own sockets.
            into, out_of = (received, sent) if hop.is_behind or hop.is_own else (sent, received)
            sums = results.setdefault(hop.part, [0.0, 0.0])
            sums[0] += into / MIB / span_s
            sums[1] += out_of / MIB / span_s
        self._before = now
        if not self.is_able:
            return {}
        return {part: (round(sums[0], 4), round(sums[1], 4)) for part, sums in results.items()}

    def segments(self) -> dict[str, int] | None:
        """Segments `sent` since this was created, and those sent `again`; None if it is unknown."""
        if not self.is_able:
            return None
        grown = [(row, self._first[cookie]) for cookie, row in self._last.items()]
        return {key: sum(row[at] - was[at] for row, was in grown) for key, at in (("sent", 2), ("again", 3))}

    def _look(self) -> dict[Hop, Counts]:
        results: dict[Hop, Counts] = {}
        for hop in self.hops:
            try:
                results[hop] = sockets_to(hop.host, hop.port, hop.is_own)
                # What was lost on its way back is sent again by the other end, where it is in this network.
                ends = {} if hop.is_own else sockets_to(hop.host, hop.port, True)
            except OSError:
                self.is_able = False
                return {}
            if len(results[hop]) > MOST:
                self.is_able = False
                return {}
            self._last |= results[hop] | ends
        self._first = self._last | self._first
        return results


def sockets_to(host: str, port: int, is_own: bool = False) -> Counts:
    """Bytes sent and received by connection (cookie) to an address, or of its end there (`is_own`)."""
    place = OWN if is_own else PEER
    wanted = socket.inet_aton(host)
    results: Counts = {}
    with contextlib.closing(socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, SOCK_DIAG)) as link:
        link.settimeout(2.0)
        link.send(_build_request(port, is_own))
        for body in iter_answers(link, "connections"):
            if body[place : place + 4] != wanted:
                continue
            # A kernel that does not count bytes has less to say.
            if len(info := dict(iter_attributes(body[ENTRY:])).get(INFO, b"")) >= SEGMENTS + 4:
                (again,) = struct.unpack_from("<I", info, AGAIN)
                (twice,) = struct.unpack_from("<I", info, TWICE) if len(info) >= TWICE + 4 else (0,)
                counts = struct.unpack_from("<QQI", info, ACKED)
                results[body[COOKIE : COOKIE + 8]] = (*counts, again - twice)
    return results


def _build_request(port: int, is_own: bool) -> bytes:
    """Ask for established connections to, or at, a port, filtered by the kernel."""
    code = struct.pack("=BBHBBH", S_GE if is_own else D_GE, 8, 20, 0, 0, port)
    code += struct.pack("=BBHBBH", S_LE if is_own else D_LE, 8, 12, 0, 0, port)
    body = struct.pack("=BBBBI", socket.AF_INET, socket.IPPROTO_TCP, WITH_INFO, 0, ESTABLISHED) + bytes(48)
    body += struct.pack("=HH", 4 + len(code), BYTECODE) + code
    return struct.pack("=IHHII", MESSAGE + len(body), BY_FAMILY, REQUEST_DUMP, 1, 0) + body


def iter_answers(link: socket.socket, what: str) -> Iterator[bytes]:
    """The kernel's answers over netlink; OSError if it does not tell of the question's subject."""
    while True:
        data = link.recv(1 << 18)
        place = 0
        while place + MESSAGE <= len(data):
            length, kind = struct.unpack_from("=IH", data, place)
            if kind == DONE:
                return
            if kind == ERROR:
                (number,) = struct.unpack_from("=i", data, place + MESSAGE)
                raise OSError(-number, f"the kernel does not tell of {what}")
            yield data[place + MESSAGE : place + length]
            place += (length + 3) & ~3
