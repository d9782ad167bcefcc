"""What the kernel says was carried is what was sent, in each direction, to each part."""

import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from benchbook.sites.processes import tcp_bytes
from benchbook.sites.processes.tcp_bytes import MIB, Counter, Hop

HERE = "127.0.0.1"


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with socket.create_server((HERE, 0)) as one:
        yield one


def exchange(client: socket.socket, server: socket.socket, there: int, back: int) -> None:
    """Send so many bytes there, then so many back."""
    for sender, receiver, size in ((client, server, there), (server, client, back)):
        sending = threading.Thread(target=sender.sendall, args=(bytes(size),))
        sending.start()
        left = size
        while left:
            left -= len(receiver.recv(min(left, 1 << 16)))
        sending.join()


def test_a_server_receives_what_its_clients_send_and_a_proxy_counts_both_its_sides(listening: socket.socket):
    port = listening.getsockname()[1]
    with ExitStack() as stack, socket.create_server((HERE, 0)) as behind:
        inner = behind.getsockname()[1]
        hops = [Hop("server", HERE, inner), Hop("proxy", HERE, port), Hop("proxy", HERE, inner, True)]
        counter = Counter(hops)
        for there, back in ((3000, 500_000), (1000, 40_000)):
            for place in (listening, behind):
                client = stack.enter_context(socket.create_connection(place.getsockname()))
                server = stack.enter_context(place.accept()[0])
                exchange(client, server, there, back)
        # 4000 bytes there and 540,000 back over each hop: the proxy receives both, and sends both.
        seen = {part: [round(rate * 2 * MIB) for rate in both] for part, both in counter.look(2.0).items()}
        assert seen["server"] == pytest.approx([4000, 540_000], abs=200)
        assert seen["proxy"] == pytest.approx([544_000, 544_000], abs=400)
        # The second look counts only what came after the first.
        assert set(counter.look(1.0).values()) == {(0.0, 0.0)}


def test_connections_elsewhere_are_not_counted(listening: socket.socket):
    port = listening.getsockname()[1]
    with socket.create_connection((HERE, port)) as client, listening.accept()[0] as server:
        exchange(client, server, 10_000, 10)
        assert len(tcp_bytes.sockets_to(HERE, port)) == 1
        assert tcp_bytes.sockets_to("127.0.0.2", port) == {}


def test_with_very_many_connections_nothing_is_said(listening, monkeypatch):
    monkeypatch.setattr(tcp_bytes, "MOST", 1)
    port = listening.getsockname()[1]
    counter = Counter([Hop("server", HERE, port)])
    with socket.create_connection((HERE, port)) as one, socket.create_connection((HERE, port)) as two:
        assert (one, two) and counter.look(1.0) == {}
    assert not counter.is_able and counter.look(1.0) == {}


def test_a_segment_that_came_late_and_so_came_twice_was_not_lost(listening: socket.socket):
    with socket.create_connection(listening.getsockname()) as client, listening.accept()[0] as server:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        again = 0
        for _ in range(200):
            # Two small segments, acknowledged after some 40 ms: the kernel asks by sending one again.
            server.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)
            client.send(b"a")
            client.send(b"b")
            time.sleep(0.05)
            server.send(server.recv(10))
            client.recv(10)
            info = client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
            again = struct.unpack_from("<I", info, 100)[0]
            if again >= 3:
                break
        (counts,) = tcp_bytes.sockets_to(HERE, listening.getsockname()[1]).values()
    assert again >= 3
    assert counts[3] == 0
