"""Who listens on a port of this host, from the kernel's own tables."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import socket
import struct
from pathlib import Path
from typing import Any

from benchbook.sites.processes import procfs

LISTEN = "0A"


def on(port: int) -> list[dict[str, Any]]:
    """Return address, pid and command of each listener; pid is None where it belongs to another user."""
    inodes: dict[int, str] = {}
    for table in ("tcp", "tcp6"):
        try:
            lines = Path("/proc/net", table).read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            address, number = fields[1].rsplit(":", 1)
            if fields[3] == LISTEN and int(number, 16) == port:
                inodes[int(fields[9])] = readable(address)
    owners = _owners(set(inodes)) if inodes else {}
    return [
        {
            "address": address,
            "pid": owners.get(inode),
            "command": procfs.command(owners[inode]) if inode in owners else "a process of another user",
        }
        for inode, address in inodes.items()
    ]


def readable(address: str) -> str:
    """Return an address of the kernel's table as people write it: 0100007F is 127.0.0.1."""
    words = [int(address[start : start + 8], 16) for start in range(0, len(address), 8)]
    packed = b"".join(struct.pack("=I", word) for word in words)
    return socket.inet_ntop(socket.AF_INET if len(packed) == 4 else socket.AF_INET6, packed)


def of_process(pid: int) -> list[tuple[str, int]]:
    """Return (address, port) of each TCP socket that a process listens on, as its own namespace has it."""
    mine: set[str] = set()
    try:
        for entry in os.scandir(procfs.PROC / str(pid) / "fd"):
            with contextlib.suppress(OSError):
                mine.add(os.readlink(entry.path))
    except OSError:
        return []
    # The kernel takes milliseconds for its tables, and a server that starts is asked again and again.
    if not any(name.startswith("socket:") for name in mine):
        return []
    found = []
    for table in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for line in (procfs.PROC / str(pid) / "net" / table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == LISTEN and f"socket:[{fields[9]}]" in mine:
                    address, number = fields[1].rsplit(":", 1)
                    found.append((readable(address), int(number, 16)))
    return found


def strays(pid: int, allowed: str) -> list[str]:
    """Return ADDRESS:PORT of what a process listens on beside loopback and one address that it may have."""
    return [
        f"{address}:{port}"
        for address, port in of_process(pid)
        if address != allowed and not _is_loopback(address)
    ]


def _is_loopback(address: str) -> bool:
    found = ipaddress.ip_address(address)
    mapped = getattr(found, "ipv4_mapped", None)
    return (mapped or found).is_loopback


def _owners(inodes: set[int]) -> dict[int, int]:
    wanted = {f"socket:[{inode}]": inode for inode in inodes}
    found: dict[int, int] = {}
    for pid in procfs.pids():
        try:
            for entry in os.scandir(procfs.PROC / str(pid) / "fd"):
                inode = wanted.get(os.readlink(entry.path))
                if inode is not None:
                    found.setdefault(inode, pid)
        except OSError:
            continue
    return found
