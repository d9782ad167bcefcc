"""HAProxy between client and server, as a plain TCP relay."""

from __future__ import annotations

import csv
import itertools
import os
import re
import resource
import shutil
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchbook.core import files
from benchbook.core.errors import SiteError
from benchbook.sites import lab as labs
from benchbook.sites import process
from benchbook.sites.supervised import Supervised

INSTALL = "apt-get install haproxy"
MAX_CONNECTIONS = 4096
FOR_SYSBENCH = 1024
# Of what it tells of itself, what can be set while it runs.
LIMITS = ("Maxconn", "Nbthread", "ConnRateLimit", "SessRateLimit", "SslRateLimit", "MaxZlibMemUsage_MB")

# What it is asked over its socket; the last gives one row of the backend, with how it balances.
INFO, SERVERS, BACKEND = "show info", "show servers state", "show stat server 2 -1"

# How connections are relayed, on every site.
DEFAULTS = """
defaults
    mode tcp
    balance leastconn
    timeout connect 10s
    timeout client 1h
    timeout server 1h
"""
# No health checks: each would be a connection in the server's books that no client made.
CONFIG = f"""global
    maxconn {{maxconn}}
    nbthread {{threads}}
    stats socket {{socket}} mode 600 level admin
{DEFAULTS}
frontend client
    bind {{address}}:{{port}}
    maxconn {{maxconn}}
    default_backend server

backend server
{{servers}}
"""


class HAProxy(Supervised):
    """One relay of TCP, in the foreground under our supervision. Nothing is started until `ensure`.

    `server` is what it relays to, as ADDRESS:PORT; `others` are further servers, which it takes alike.
    """

    what = "the proxy"

    def __init__(
        self,
        lab: labs.Lab,
        place: labs.Place,
        server: str,
        keep: tuple[int, ...] = (),
        others: Sequence[str] = (),
    ) -> None:
        found = shutil.which("haproxy", path=process.PATH)
        if found is None:
            raise SiteError(
                f"haproxy is not installed; run `{INSTALL}`, or leave the arm with `access: haproxy` out"
            )
        super().__init__(lab, place, keep, labs.service_user("haproxy"))
        self.servers, self.binary = (server, *others), Path(found)
        self.socket = lab.socket(self.folder / "p.sock")
        self.config = self.folder / "haproxy.cfg"
        self.leftovers = (self.socket,)

    def ensure(self) -> None:
        """Start the proxy if it does not run, and prove that the port is its own without connecting."""
        if self.is_up:
            return
        self._must_have_ports(self.place.port)
        threads = len(self.place.where.cpus or os.sched_getaffinity(0))
        allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        text = CONFIG.format(
            maxconn=most_connections(self.place.connections, allowed),
            threads=threads,
            socket=self.socket,
            address=self.place.address,
            port=self.place.port,
            servers=server_lines(self.servers),
        )
        labs.write_private(self.config, text, self.user)
        self.socket.unlink(missing_ok=True)
        self._begin([str(self.binary), "-db", "-f", str(self.config)], self._is_answering)

    def identity(self) -> dict[str, Any]:
        """Return what tells this very proxy from any other, and what was set over its socket since it began;
        makes no connection through it."""
        child = self.running()
        try:
            held = in_force(self._info(), self._ask(SERVERS))
        except OSError as error:
            raise SiteError(f"the proxy does not answer on {self.socket}: {error}; see {self.log}") from None
        return {
            "proxy_pid": child.pid,
            "proxy_started": child.started,
            "proxy_config_hash": self.config_hash,
            **held,
        }

    def facts(self) -> dict[str, Any]:
        """Return what the proxy says it is, asked over its own socket."""
        self.running()
        said = self._info()
        return {
            "name": "haproxy",
            "version": said["Version"],
            "binary": str(self.binary),
            "binary_sha256": files.sha256(self.binary),
            **read_back(said, self._ask(BACKEND)),
            **({"servers": len(self.servers)} if len(self.servers) > 1 else {}),
            "config_hash": self.config_hash,
        }

    def _is_answering(self) -> bool:
        return int(self._info()["Pid"]) == self.running().pid and self._holds_port()

    def _info(self) -> dict[str, str]:
        return parsed(self._ask(INFO))

    def _ask(self, command: str) -> str:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(2.0)
            client.connect(str(self.socket))
            client.sendall(f"{command}\n".encode())
            return b"".join(iter(lambda: client.recv(65536), b"")).decode()


def server_lines(servers: Sequence[str]) -> str:
    """Return the lines of the backend that name its servers, each ADDRESS:PORT."""
    names = ("db" if rank == 1 else f"db{rank}" for rank in itertools.count(1))
    return "\n".join(f"    server {name} {one}" for name, one in zip(names, servers, strict=False))


def most_connections(connections: int, allowed: int) -> int:
    """Return how many connections a proxy is to take, which has `connections` beside sysbench's to bear and
    may open `allowed` files (negative: any number).

    Connections beyond it wait unheard. Each takes two sockets, and HAProxy has some for itself (its manual,
    `maxconn`).
    """
    most = max(MAX_CONNECTIONS, connections + FOR_SYSBENCH)
    return most if allowed < 0 else min(most, (allowed - 200) // 2)


def parsed(said: str) -> dict[str, str]:
    """Return what a proxy answers to INFO by name."""
    return dict(line.split(": ", 1) for line in said.splitlines() if ": " in line)


def in_force(info: Mapping[str, str], servers: str) -> dict[str, Any]:
    """Return what can be set while it runs, from its answers to INFO and SERVERS: limits, and its servers'
    addresses, states and weights; what follows these are times and counts."""
    states = [" ".join(line.split()[3:9]) for line in servers.splitlines()[2:] if line.strip()]
    return {"proxy_limits": {name: info[name] for name in LIMITS if name in info}, "proxy_servers": states}


def read_back(info: Mapping[str, str], backend: str) -> dict[str, Any]:
    """Return threads, connections and balance as the proxy has them, from its answers to INFO and BACKEND."""
    header, *rows = csv.reader(backend.removeprefix("# ").splitlines())
    (row,) = (one for one in rows if len(one) > 1 and one[1] == "BACKEND")
    return {
        "threads": int(info["Nbthread"]),
        "max_connections": int(info["Maxconn"]),
        "balance": row[header.index("algo")],
    }


def version() -> str | None:
    """Return the version of the installed HAProxy, or None."""
    found = shutil.which("haproxy", path=process.PATH)
    if found is None:
        return None
    match = re.search(
        r"version ([^ ]+)", subprocess.run([found, "-v"], capture_output=True, text=True, timeout=20).stdout
    )
    return match[1] if match else None
