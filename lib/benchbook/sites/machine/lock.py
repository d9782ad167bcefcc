"""One measurement at a time on one machine.

The lock is an flock(2) that children inherit, so it stays held until the last of them has ended: a lock
that can be taken also proves that nothing was left behind. The kernel drops it with the processes; a file
left over by a crash holds nothing.
"""

import fcntl
import ipaddress
import json
import os
import socket
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import psutil

from benchbook.core.util.errors import LockHeld, SiteError
from benchbook.sites.processes import procfs
from benchbook.sites.workspace import read_record

PATIENCE_S = 0.5


def lock_file() -> Path:
    """The machine's lock file: BENCHBOOK_LOCK, else one name in /run/lock that all users share."""
    named = os.environ.get("BENCHBOOK_LOCK")
    if named:
        return Path(named)
    shared = Path("/run/lock")
    return (shared if shared.is_dir() else Path(tempfile.gettempdir())) / "benchbook.lock"


@dataclass
class Lock:
    """The machine's lock while it is held; `fd` goes to every child."""

    path: Path
    fd: int

    def release(self) -> None:
        """Let go of our own hold; children that inherited it keep theirs until they end."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def is_local_address(address: str) -> bool:
    """True if a name or an address is one of this machine's."""
    try:
        results = {row[4][0] for row in socket.getaddrinfo(address, None)}
    except OSError:
        return False
    addresses = {item.address for each in psutil.net_if_addrs().values() for item in each}
    return any(item in addresses or ipaddress.ip_address(str(item)).is_loopback for item in results)


def acquire_lock(folder: Path, path: Path | None = None) -> Lock:
    """Take the machine's lock for a lab, or another at `path`; LockHeld within a second names the holder."""
    path = path or lock_file()
    fd = _open_file(path)
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if time.monotonic() > deadline:
                message = _describe_holder(path)
                os.close(fd)
                raise LockHeld(message) from None
            time.sleep(0.05)
    me = procfs.read_stat(os.getpid())
    record = {
        "pid": os.getpid(),
        "started": me.started if me else 0,
        "command": procfs.read_command(os.getpid()),
        "since": datetime.now(UTC).isoformat(timespec="seconds"),
        "folder": str(folder),
    }
    try:
        os.ftruncate(fd, 0)
        os.pwrite(fd, json.dumps(record).encode(), 0)
    except OSError:
        pass  # Another user's file, open for reading: the hold counts, the note is only for people.
    return Lock(path, fd)


def _open_file(path: Path) -> int:
    """Open the lock file, made by the first process, without following a link that was left there."""
    flags = os.O_CLOEXEC | os.O_NOFOLLOW
    for attempt in (os.O_RDWR, os.O_RDWR | os.O_CREAT | os.O_EXCL, os.O_RDWR, os.O_RDONLY):
        try:
            fd = os.open(path, attempt | flags, 0o644)
        except OSError as error:
            trouble = error
            continue
        if attempt & os.O_CREAT:
            # Every user may take the lock and leave a note; it holds nothing else.
            os.fchmod(fd, 0o666)
        return fd
    raise SiteError(
        f"{path}: the machine's lock cannot be opened: {trouble}; set BENCHBOOK_LOCK to a file you may write"
    )


def _describe_holder(path: Path) -> str:
    record = read_record(path)
    pid, since, started = record.get("pid"), record.get("since"), record.get("started")
    if isinstance(pid, int) and procfs.is_alive(pid, started if isinstance(started, int) else None):
        what = "this machine" if path == lock_file() else f"the study in {record.get('folder')}"
        remedy = "wait until it ends, or end it there (Ctrl-C), then try again"
        return f"{what} is being measured by pid {pid}, since {since}: {record.get('command')}; {remedy}"
    left = [f"{pid} ({procfs.read_command(pid)})" for pid in procfs.opened_by(path) if pid != os.getpid()]
    return (
        f"this machine is still held by what pid {pid} (gone, since {since}) left behind: "
        f"{', '.join(left) or 'processes of another user'}; run `make down`, then try again"
    )
