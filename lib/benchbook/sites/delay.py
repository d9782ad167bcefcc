"""The delaying hop as a part of a lab: started, proven to be ours, measured, ended."""

from __future__ import annotations

import statistics
import sys
import time
from typing import Any

import pymysql

from benchbook.core.errors import SiteError
from benchbook.sites import lab as labs
from benchbook.sites import ports, process
from benchbook.sites.mariadb_install import tail

START_S = 20.0
PINGS = 21


class Delay:
    """A relay that holds every byte back for `latency_ms` each way. Nothing is started until `ensure`.

    `server` is what it relays to, as ADDRESS:PORT.
    """

    def __init__(
        self,
        lab: labs.Lab,
        place: labs.Place,
        server: str,
        keep: tuple[int, ...] = (),
        latency_ms: float = 0.0,
    ) -> None:
        self.lab, self.place, self.server, self.keep = lab, place, server, keep
        self.latency_ms = latency_ms
        self.role = place.name
        self.child: process.Child | None = None
        self.log = lab.run / f"{self.role}.log"

    def ensure(self) -> None:
        """Start the relay if it does not run, and prove that the port is its own without connecting."""
        if self.child is not None and self.child.is_alive:
            return
        port = self.place.port
        ports.must_be_free(port, "the delaying hop")
        listen = f"{self.place.address}:{port}"
        self.child = process.start(
            self.role,
            [sys.executable, "-m", "benchbook.sites.relay", listen, self.server, str(self.latency_ms)],
            token=self.lab.token,
            folder=self.lab.folder,
            out=self.log,
            pidfile=self.lab.pidfile(self.role),
            where=self.place.where,
            keep=self.keep,
        )
        deadline = time.monotonic() + START_S
        while self.child.is_alive and time.monotonic() < deadline:
            if self.child.pid in ports.holders(port):
                return
            time.sleep(0.02)
        self.stop()
        raise SiteError(f"the delaying hop did not start; see {self.log}:\n  {tail(self.log)}")

    def stop(self) -> bool:
        """End the relay and the connections through it."""
        if self.child is None:
            return True
        clean = process.stop(self.child, grace_s=5.0)
        self.child = None
        self.lab.pidfile(self.role).unlink(missing_ok=True)
        return clean

    def identity(self) -> dict[str, Any]:
        """Return what tells this very relay from any other."""
        if self.child is None or not self.child.is_alive:
            raise SiteError(f"the delaying hop does not run; see {self.log}, then call site.up(arm) again")
        return {"relay_pid": self.child.pid, "relay_started": self.child.started}

    def facts(self) -> dict[str, Any]:
        """Return what the hop is set to."""
        return {"latency_ms": self.latency_ms, "made_by": "a delaying relay of our own"}


def ping_ms(address: str, port: int, lab: labs.Lab) -> float:
    """Return the median time of an empty command there and back, in milliseconds; costs one connection."""
    user, password = labs.read_secret(lab.secret)
    connection = pymysql.connect(
        host=address,
        port=port,
        user=user,
        password=password,
        database=labs.SCHEMA,
        ssl_disabled=True,
        connect_timeout=20,
        read_timeout=30,
    )
    with connection:
        taken = []
        for _ in range(PINGS):
            begun = time.perf_counter()
            connection.ping(reconnect=False)
            taken.append(1000 * (time.perf_counter() - begun))
    return round(statistics.median(taken), 4)
