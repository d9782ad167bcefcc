"""Questions to a machine about its files, ports and processes; asking twice does no harm."""

from __future__ import annotations

import contextlib
import hashlib
import ipaddress
import os
import re
import resource
import shutil
import socket
import struct
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchbook.core.util.errors import SiteError
from benchbook.sites import workspace as labs
from benchbook.sites.processes import procfs
from benchbook.sites.processes.process import PATH, PLAIN

MOST_TEXT = 1 << 24
# Some hundred pieces are read in less than a second from any disk, however large the files are.
PIECE_BYTES, MOST_PIECES = 1 << 14, 256
SAYS_S = 20.0
SYSCTL = Path("/proc/sys")
# Each version of PostgreSQL has a folder of its own for its programs: Debian's, and those of others.
OF_VERSIONS = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/lib/postgresql*/bin")


class Files:
    """Files below a folder of this machine, and the ports and processes that its kernel shows."""

    _what = "the agent's folder"

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def private_folder(self, name: str, user: str | None = None) -> str:
        """Make a folder that only a user (None: we) and root can enter; return its path."""
        return str(labs.private_folder(self._inside(name), user))

    def write(self, name: str, text: str, user: str | None = None) -> str:
        """Write a file that only its owner reads, complete or not at all; return its SHA-256."""
        path = self._inside(name)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        labs.write_private(path, text, user)
        return hashlib.sha256(path.read_bytes()).hexdigest()

    def read(self, name: str, at: int = 0) -> str | None:
        """A file's text from a byte on, the last 16 MiB at most; None if there is no such file."""
        path = self._inside(name)
        if not path.is_file():
            return None
        with path.open("rb") as file:
            file.seek(max(at, path.stat().st_size - MOST_TEXT))
            return file.read().decode("utf-8", "replace")

    def sha256(self, path: str) -> str | None:
        """Hash of any file there, or None."""
        try:
            with open(path, "rb") as file:
                digest = hashlib.sha256()
                for piece in iter(lambda: file.read(1 << 20), b""):
                    digest.update(piece)
                return digest.hexdigest()
        except OSError:
            return None

    def size(self, name: str) -> int | None:
        """Bytes of a file, or the disk space of a folder; None if it is not there."""
        path = self._inside(name)
        if path.is_dir():
            return sum(entry.stat().st_blocks * 512 for entry in path.rglob("*") if not entry.is_symlink())
        return path.stat().st_size if path.exists() else None

    def usage(self, name: str) -> int:
        """Bytes of all files below a folder."""
        return sum(path.stat().st_size for path in self._inside(name).rglob("*") if path.is_file())

    def sample(self, name: str) -> str:
        """Digest of a folder's files: names, sizes, seconds of change, and pieces of their bytes."""
        folder, digest, at = self._inside(name), hashlib.sha256(), 0
        results = {path: path.stat() for path in sorted(folder.rglob("*")) if path.is_file()}
        step = max(PIECE_BYTES, sum(its.st_size for its in results.values()) // MOST_PIECES)
        for path, its in results.items():
            digest.update(f"{path.relative_to(folder)} {its.st_size} {int(its.st_mtime)}\n".encode())
            with path.open("rb", buffering=0) as file:
                for place in range(-at % step, its.st_size, step):
                    digest.update(os.pread(file.fileno(), PIECE_BYTES, place))
            at += its.st_size
        return digest.hexdigest()

    def free(self) -> int:
        """Free bytes of the disk that the folder is on."""
        return shutil.disk_usage(self._folder).free

    def remove(self, name: str) -> None:
        """Remove a file or folder, if it is there."""
        path = self._inside(name)
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)

    def rename(self, name: str, to: str) -> None:
        """Give a file or folder another name; done already is fine."""
        path, target = self._inside(name), self._inside(to)
        if path.exists() or not target.exists():
            path.rename(target)

    def programs(self, name: str) -> list[str]:
        """Paths of a program in all versions that are installed, the newest first."""
        return find_programs(name)

    def says(self, argv: list[str]) -> str:
        """Output of a program that ends at once, such as its version; empty if it can't be run."""
        return read_output(argv)

    def kernel_setting(self, name: str) -> str:
        return (SYSCTL / name).read_text(encoding="ascii").strip()

    def place(self, pid: int) -> dict[str, str]:
        """Placement of a process's threads: nice, policy, cores, groups, limits."""
        return procfs.describe_placement(pid)

    def affinity(self, pid: int) -> list[list[int]]:
        """Cores that each thread of a process may use."""
        tasks = sorted(int(name) for name in os.listdir(f"/proc/{pid}/task"))
        return [sorted(os.sched_getaffinity(task)) for task in tasks]

    def listeners(self, port: int) -> list[dict[str, Any]]:
        """Listeners on a port: address, pid and command."""
        return find_listeners(port)

    def listening(self, pid: int) -> list[tuple[str, int]]:
        """(address, port) of each TCP socket that a process listens on in its namespace."""
        if not (mine := {link for link in procfs.iter_links(pid) if link.startswith("socket:")}):
            return []
        there = _iter_listening(procfs.PROC / str(pid) / "net")
        return [(address, port) for address, port, link in there if link in mine]

    def strays(self, pid: int, allowed: str) -> list[str]:
        """ADDRESS:PORT of each socket that a process listens on beside loopback and one address."""
        # One of IPv6 may stand for one of IPv4.
        places = [(address, port, ipaddress.ip_address(address)) for address, port in self.listening(pid)]
        return [
            f"{address}:{port}"
            for address, port, its in places
            if address != allowed and not (getattr(its, "ipv4_mapped", None) or its).is_loopback
        ]

    def source(self, address: str, port: int) -> str:
        """Address that this machine's connections to another come from; sends nothing."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((address, port))
            return str(probe.getsockname()[0])

    def _inside(self, name: str) -> Path:
        path = Path(os.path.normpath(self._folder / name))
        if self._folder not in path.parents:
            raise SiteError(f"{name}: not below {self._what}")
        return path


def find_programs(name: str) -> list[str]:
    """Paths of a program in all versions that are installed, the newest first."""
    folders = [str(path) for pattern in OF_VERSIONS for path in Path("/").glob(pattern[1:])]
    # Each path once, and one without a version last.
    results = {path for folder in (*folders, PATH) if (path := shutil.which(name, path=folder))}
    return sorted(results, key=lambda path: [int(part) for part in re.findall(r"\d+", path)], reverse=True)


def read_output(argv: list[str], env: Mapping[str, str] = PLAIN) -> str:
    """Output of a program that ends at once, such as its version; empty if it can't be run."""
    how: dict[str, Any] = {"capture_output": True, "text": True, "errors": "replace", "timeout": SAYS_S}
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, env=env, **how)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return str(done.stdout + done.stderr)


def open_files() -> int:
    """Number of files that a program may open; negative: any number."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return -1 if hard == resource.RLIM_INFINITY else hard


LISTEN, ROWS = "0A", 512


def find_listeners(port: int) -> list[dict[str, Any]]:
    """Address, pid and command of each listener; pid is None if it belongs to another user."""
    links = {link: address for address, number, link in _iter_listening(Path("/proc/net")) if number == port}
    owners: dict[str, int] = {}
    for pid in procfs.list_pids() if links else ():
        for link in links.keys() & procfs.iter_links(pid):
            owners.setdefault(link, pid)
    commands = {link: procfs.read_command(pid) for link, pid in owners.items()}
    unseen = "a process of another user"
    return [
        {"address": address, "pid": owners.get(link), "command": commands.get(link, unseen)}
        for link, address in links.items()
    ]


def _iter_listening(net: Path) -> Iterator[tuple[str, int, str]]:
    """Address, port and link of each listening socket in a network: first rows of its tables."""
    # To come through the rest takes the kernel milliseconds, and a starting server is asked again and again.
    for table in ("tcp", "tcp6"):
        with contextlib.suppress(OSError), (net / table).open("rb", buffering=0) as rows:
            piece, rest, fields = bytes(ROWS), b"", ["", "", "", LISTEN]
            # A short piece is the last one.
            while len(piece) == ROWS and fields[3] in (LISTEN, "st"):
                piece = rows.read(ROWS)
                *lines, rest = (rest + piece).split(b"\n")
                for fields in (line.decode("ascii").split() for line in lines):
                    if fields[3] == LISTEN:
                        address, number = fields[1].rsplit(":", 1)
                        # In words of the processor's own order: 0100007F is 127.0.0.1.
                        words = [int(address[start : start + 8], 16) for start in range(0, len(address), 8)]
                        family = socket.AF_INET if len(words) == 1 else socket.AF_INET6
                        there = socket.inet_ntop(family, struct.pack(f"={len(words)}I", *words))
                        yield there, int(number, 16), f"socket:[{fields[9]}]"
