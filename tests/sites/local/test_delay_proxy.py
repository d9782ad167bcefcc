"""The delaying hop loses nothing, keeps the order, and takes as long as it should in each direction."""

import contextlib
import hashlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from tests import beside


@pytest.fixture
def echo() -> Iterator[tuple[str, int]]:
    """A server that says hello first, like a database, and then sends everything back."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listening:

        def serve(one: socket.socket) -> None:
            with one:
                one.sendall(b"hello")
                while data := one.recv(65536):
                    one.sendall(data)

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    threading.Thread(target=serve, args=(listening.accept()[0],), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield listening.getsockname()


@pytest.fixture
def relay(echo):
    """Return a function that starts a relay with a delay and returns its address and process id."""
    started: list[subprocess.Popen] = []

    def start(delay_ms: float) -> tuple[tuple[str, int], int]:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            address = probe.getsockname()
        words = [f"{host}:{port}" for host, port in (address, echo)]
        argv = [sys.executable, "-m", "benchbook.sites.local.delay_proxy", *words, str(delay_ms)]
        started.append(subprocess.Popen(argv))
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError), socket.create_connection(address, 5):
                return address, started[-1].pid
            time.sleep(0.05)
        raise AssertionError("the relay did not start")

    yield start
    for popen in started:
        popen.kill()
        popen.wait()


def ask(one: socket.socket, data: bytes) -> bytes:
    threading.Thread(target=one.sendall, args=(data,), daemon=True).start()
    got = b""
    while len(got) < len(data):
        got += one.recv(1 << 20)
    return got


@pytest.mark.parametrize("delay_ms", [0, 3])
def test_every_byte_arrives_in_order(relay, delay_ms: float) -> None:
    address, _ = relay(delay_ms)
    data = os.urandom(3_000_000)
    with socket.create_connection(address, 20) as one:
        assert one.recv(5) == b"hello"
        assert hashlib.sha256(ask(one, data)).digest() == hashlib.sha256(data).digest()


def test_each_direction_takes_the_delay_and_not_much_more(relay) -> None:
    """20 ms each way is 40 ms there and back; a busy machine may add, but can't take away."""
    address, _ = relay(20)
    with socket.create_connection(address, 20) as one:
        assert one.recv(5) == b"hello"
        taken = []
        for _ in range(9):
            begun = time.perf_counter()
            assert ask(one, b"x") == b"x"
            taken.append(time.perf_counter() - begun)
    assert min(taken) >= 0.040
    assert min(taken) < 0.060


def test_connections_that_end_are_let_go_on_both_sides(relay) -> None:
    address, pid = relay(1)
    before = len(os.listdir(f"/proc/{pid}/fd"))
    for _ in range(20):
        with socket.create_connection(address, 20) as one:
            assert one.recv(5) == b"hello"
    assert beside.until(lambda: len(os.listdir(f"/proc/{pid}/fd")) <= before)
