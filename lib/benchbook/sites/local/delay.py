"""The delaying hop as a part of a lab: started, proven to be ours, measured, ended."""

from __future__ import annotations

import statistics
import sys
import time
from typing import Any

import pymysql

from benchbook.sites import lab as labs
from benchbook.sites.machine import steps
from benchbook.sites.machine.contract import Machine
from benchbook.sites.machine.supervised import Supervised

PINGS = 21


class Delay(Supervised):
    """A relay that holds every byte back for `latency_ms` each way. Nothing is started until `ensure`.

    `server` is what it relays to, as ADDRESS:PORT.
    """

    what = "the delaying hop"

    def __init__(self, machine: Machine, place: labs.Place, server: str, latency_ms: float = 0.0) -> None:
        super().__init__(machine, place)
        self.server, self.latency_ms = server, latency_ms

    def ensure(self) -> None:
        """Start the relay if it does not run, and prove that the port is its own without connecting."""
        steps.walk(self.starting(), self.machine.look_s)

    def starting(self) -> steps.Steps:
        """Start as `ensure` does, and yield until the port is its own."""
        if self.is_up:
            return
        self._must_have_ports(self.place.port)
        listen = f"{self.place.address}:{self.place.port}"
        yield from self._beginning(
            [sys.executable, "-m", "benchbook.sites.local.relay", listen, self.server, str(self.latency_ms)],
            self.holds_port,
        )

    def identity(self) -> dict[str, Any]:
        """Return what tells this very relay from any other."""
        child = self.running()
        return {"relay_pid": child.pid, "relay_started": child.started}

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
