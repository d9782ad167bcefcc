"""Who listens where on this machine."""

from pathlib import Path

import psutil

LISTEN = "0A"


def listeners(port: int | None = None) -> list[tuple[str, int, int]]:
    """Return (address, port, inode) of all listening TCP sockets, or of those on one port.

    Addresses are as the kernel writes them: 0100007F is 127.0.0.1.
    """
    found = []
    for table in ("tcp", "tcp6"):
        try:
            lines = Path("/proc/net", table).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            address, number = fields[1].rsplit(":", 1)
            if fields[3] == LISTEN and port in (None, int(number, 16)):
                found.append((address, int(number, 16), int(fields[9])))
    return found


def holders(port: int) -> list[int]:
    """Return the processes that listen on a port; empty if none does or we may not see them."""
    listening = [one for one in psutil.net_connections("tcp") if one.status == psutil.CONN_LISTEN]
    return sorted({one.pid for one in listening if one.pid and one.laddr and one.laddr.port == port})
