"""HAProxy between client and server, as a plain TCP relay."""

from __future__ import annotations

import os
import re
import resource
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

from benchbook.core.errors import SiteError
from benchbook.sites import lab as labs
from benchbook.sites import ports, process, settings
from benchbook.sites.mariadb_install import sha256, tail

INSTALL = "apt-get install haproxy"
START_S = 20.0
MAX_CONNECTIONS = 4096

# No health checks: each would be a connection in the server's books that no client made.
CONFIG = """global
    maxconn {maxconn}
    nbthread {threads}
    stats socket {socket} mode 600 level admin

defaults
    mode tcp
    balance leastconn
    timeout connect 10s
    timeout client 1h
    timeout server 1h

frontend client
    bind {address}:{port}
    maxconn {maxconn}
    default_backend server

backend server
    server db {server}
"""


class HAProxy:
    """One relay of TCP, in the foreground under our supervision. Nothing is started until `ensure`.

    `server` is what it relays to, as ADDRESS:PORT.
    """

    def __init__(self, lab: labs.Lab, place: labs.Place, server: str, keep: tuple[int, ...] = ()) -> None:
        self.lab, self.place, self.server, self.keep = lab, place, server, keep
        self.role = place.name
        self.child: process.Child | None = None
        self.user = labs.service_user("haproxy")
        found = shutil.which("haproxy", path=process.PATH)
        if found is None:
            raise SiteError(
                f"haproxy is not installed; run `{INSTALL}`, or leave the arm with `access: haproxy` out"
            )
        self.binary = Path(found)
        self.folder = lab.own(self.role, self.user)
        self.socket = lab.socket(self.folder / "p.sock")
        self.config = self.folder / "haproxy.cfg"
        self.log = lab.run / f"{self.role}.log"

    @property
    def config_hash(self) -> str:
        """SHA-256 of the settings file as it is on disk now."""
        return settings.hash_config(self.config, self.folder)

    def ensure(self) -> None:
        """Start the proxy if it does not run, and prove that the port is its own without connecting."""
        if self.child is not None and self.child.is_alive:
            return
        ports.must_be_free(self.place.port, "the proxy")
        threads = len(self.place.where.cpus or os.sched_getaffinity(0))
        # Two sockets for each connection, and some for itself (HAProxy manual, `maxconn`).
        allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        most = (
            MAX_CONNECTIONS
            if allowed == resource.RLIM_INFINITY
            else min(MAX_CONNECTIONS, (allowed - 200) // 2)
        )
        text = CONFIG.format(
            maxconn=most,
            threads=threads,
            socket=self.socket,
            address=self.place.address,
            port=self.place.port,
            server=self.server,
        )
        labs.write_private(self.config, text, self.user)
        self.socket.unlink(missing_ok=True)
        self.child = process.start(
            self.role,
            [str(self.binary), "-db", "-f", str(self.config)],
            token=self.lab.token,
            folder=self.lab.folder,
            out=self.log,
            pidfile=self.lab.pidfile(self.role),
            user=self.user,
            where=self.place.where,
            keep=self.keep,
            cwd=self.folder,
        )
        try:
            self._wait_ready()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> bool:
        """End the proxy and the connections through it."""
        if self.child is None:
            return True
        clean = process.stop(self.child, grace_s=5.0)
        self.child = None
        for leftover in (self.lab.pidfile(self.role), self.socket):
            leftover.unlink(missing_ok=True)
        return clean

    def identity(self) -> dict[str, Any]:
        """Return what tells this very proxy from any other; makes no connection through it."""
        child = self._running()
        return {"proxy_pid": child.pid, "proxy_started": child.started, "proxy_config_hash": self.config_hash}

    def facts(self) -> dict[str, Any]:
        """Return what the proxy says it is, asked over its own socket."""
        self._running()
        said = self._info()
        return {
            "name": "haproxy",
            "version": said["Version"],
            "binary": str(self.binary),
            "binary_sha256": sha256(self.binary),
            "threads": int(said["Nbthread"]),
            "max_connections": int(said["Maxconn"]),
            "balance": "leastconn",
            "config_hash": self.config_hash,
        }

    def _running(self) -> process.Child:
        if self.child is None or not self.child.is_alive:
            raise SiteError(f"the proxy does not run; see {self.log}, then call site.up(arm) again")
        return self.child

    def _wait_ready(self) -> None:
        deadline = time.monotonic() + START_S
        while self.child is not None and self.child.is_alive:
            try:
                if int(self._info()["Pid"]) == self.child.pid and self.child.pid in ports.holders(
                    self.place.port
                ):
                    return
            except (OSError, KeyError):
                pass
            if time.monotonic() > deadline:
                raise SiteError(f"the proxy was not ready within {START_S:.0f} s; see {self.log}")
            time.sleep(0.02)
        raise SiteError(f"the proxy did not start; see {self.log}:\n  {tail(self.log)}")

    def _info(self) -> dict[str, str]:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(2.0)
            client.connect(str(self.socket))
            client.sendall(b"show info\n")
            said = b"".join(iter(lambda: client.recv(65536), b"")).decode()
        return dict(line.split(": ", 1) for line in said.splitlines() if ": " in line)


def version() -> str | None:
    """Return the version of the installed HAProxy, or None."""
    found = shutil.which("haproxy", path=process.PATH)
    if found is None:
        return None
    match = re.search(
        r"version ([^ ]+)", subprocess.run([found, "-v"], capture_output=True, text=True, timeout=20).stdout
    )
    return match[1] if match else None
