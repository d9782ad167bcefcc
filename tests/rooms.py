"""What tests on this machine share, be they of another worker or of another clone: ports, cores, memory.

    PORT = rooms.port(60)

Each process that runs tests holds one of twenty rooms of 500 ports for as long as it lives.
"""

import contextlib
import fcntl
import os
import socket
import tempfile
import time
from collections.abc import Iterator
from contextvars import ContextVar
from functools import cache
from pathlib import Path

import psutil

from tests import ports as listening

# Below what the kernel gives to connections that go out, and below site.port of a study file.
FIRST, ROOM, ROOMS = 12000, 500, 20
_held: list[socket.socket] = []


@cache
def number() -> int:
    """Return the number of this process's room, 0 to 19; RuntimeError if all are taken.

    A name in the kernel's list of sockets is the lock: it ends with the process, whatever its end.
    """
    taken = {port for _, port, _ in listening.listeners()}
    for room in range(ROOMS):
        first = FIRST + room * ROOM
        if taken & set(range(first, first + ROOM)):
            continue
        lock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            lock.bind(f"\0benchbook-tests-{first}")
        except OSError:
            lock.close()
            continue
        _held.append(lock)
        return room
    raise RuntimeError(f"all {ROOMS} rooms of ports from {FIRST} on are taken by other tests on this machine")


def port(offset: int) -> int:
    """Return a port of this process's room, 0 to 499."""
    assert 0 <= offset < ROOM
    return FIRST + number() * ROOM + offset


MEMORY, DISK = "/dev/shm", "/var/tmp"
# What the labs of five processes take at the most is half of it.
NEEDED_BYTES = 8 << 30


@cache
def folder() -> str:
    """Return where labs lie: in memory, where no server waits for a disk, if there is room for them."""
    if not os.path.ismount(MEMORY) or not os.access(MEMORY, os.W_OK):
        return DISK
    seen = os.statvfs(MEMORY)
    free = min(seen.f_bavail * seen.f_frsize, psutil.virtual_memory().available)
    return MEMORY if free > NEEDED_BYTES and not seen.f_flag & os.ST_NOEXEC else DISK


PATIENCE_S = 300.0
# The two files of the lock by which a test holds the machine.
_machine: ContextVar[tuple[int, int] | None] = ContextVar("machine", default=None)


@contextlib.contextmanager
def machine(alone: bool) -> Iterator[None]:
    """Hold this machine beside all other tests of this user, or alone; after five minutes go on regardless.

    A test that waits to be alone holds the door meanwhile, so that the others' tests end and none begins.
    """
    with opened("door") as door, opened("inside") as inside:
        _enter(door, inside, alone)
        before = _machine.set((door, inside))
        try:
            yield
        finally:
            _machine.reset(before)


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Hold this machine alone for a part of a test: for what is timed, not for what is prepared before it."""
    held = _machine.get()
    assert held is not None, "no test holds the machine here"
    _enter(*held, alone=True)
    try:
        yield
    finally:
        _enter(*held, alone=False)


def _enter(door: int, inside: int, alone: bool) -> None:
    deadline = time.monotonic() + PATIENCE_S
    # Two that hold it beside each other and want it alone would wait for each other.
    fcntl.flock(inside, fcntl.LOCK_UN)
    _take(door, fcntl.LOCK_EX, deadline)
    _take(inside, fcntl.LOCK_EX if alone else fcntl.LOCK_SH, deadline)
    fcntl.flock(door, fcntl.LOCK_UN)


@contextlib.contextmanager
def things(*names: str) -> Iterator[None]:
    """Hold things that a machine has one of, such as its kernel settings, each by its name."""
    with contextlib.ExitStack() as stack:
        for name in sorted(names):
            _take(stack.enter_context(opened(name)), fcntl.LOCK_EX, time.monotonic() + PATIENCE_S)
        yield


@contextlib.contextmanager
def opened(name: str) -> Iterator[int]:
    """Open a file that all tests of this user share, for a lock on it."""
    path = Path(tempfile.gettempdir()) / f"benchbook-tests-{os.getuid()}.{name}"
    opened = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        yield opened
    finally:
        os.close(opened)


def _take(file: int, how: int, deadline: float) -> None:
    while True:
        try:
            return fcntl.flock(file, how | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                return None
            time.sleep(0.02)
