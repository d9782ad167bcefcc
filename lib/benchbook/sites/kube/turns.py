"""The clock of turns in the pod that the clients of all arms are in; servers are never stopped there.

It goes on whatever becomes of the connection to it. However it ends, all clients go on thereafter.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
from collections.abc import Mapping
from typing import Any

from benchbook.core.errors import SiteError
from benchbook.sites import lab as labs
from benchbook.sites.arms import clock, turns
from benchbook.sites.contract import Start, Taker
from benchbook.sites.hosts import through_agent
from benchbook.sites.hosts.client import RemoteClient

END_S = 10.0


class Clock:
    """The clock of one group, from its start to its end. `asked` is as for the clock of one machine."""

    def __init__(self, lab: labs.Lab, takers: Mapping[str, Taker], asked: Mapping[str, Any]) -> None:
        self.clients: list[RemoteClient] = [one for taker in takers.values() for one in taker.clients]
        host = self.clients[0].host
        if others := {one.host.name for one in self.clients} - {host.name}:
            raise SiteError(f"clients that take turns are in {host.name} and in {', '.join(sorted(others))}")
        offset = through_agent.clock(host)
        for one in self.clients:
            one.clock = offset
        self.ahead_s = offset.ahead_s
        arms = [
            {
                "name": name,
                "clients": (pids := [one.pid for one in taker.clients]),
                "logs": [f"{host.folder}/{one.job}/out" for one in taker.clients],
                "parts": {"client": pids},
            }
            for name, taker in takers.items()
        ]
        request, self.result = turns.ask(lab, **asked, held=True, arms=arms, stops={})
        # It is started in a folder of its own, and what is there as `out` is brought back.
        argv = ["python3", "-I", "-S", str(clock.__file__), str(request), "out"]
        self.job = RemoteClient(host, Start(argv, self.result, lab.run / "clock.log"))

    @property
    def exit_code(self) -> int | None:
        return self.job.poll()

    def end(self) -> dict[str, Any]:
        """End the clock if it goes on; return what it wrote, by our monotonic clock, with its exit code."""
        if self.exit_code is None:
            for signum in (signal.SIGTERM, signal.SIGKILL):
                with contextlib.suppress(subprocess.TimeoutExpired, SiteError):
                    self.job.send_signal(signum)
                    self.job.wait(END_S)
                    break
        for one in self.clients:
            with contextlib.suppress(SiteError):
                one.send_signal(signal.SIGCONT)
        return {**here(labs.noted(self.result), self.ahead_s), "exit_code": self.exit_code}


def here(found: Mapping[str, Any], ahead_s: float) -> dict[str, Any]:
    """Return the result of a clock that is `ahead_s` seconds ahead of ours with its moments by ours."""
    shifted = dict(found)
    ahead_us = round(ahead_s * 1e6)
    if "turns" in found:
        shifted["turns"] = [(arm, begin - ahead_us, end - ahead_us) for arm, begin, end in found["turns"]]
    for key in ("started", "window"):
        if key in found:
            shifted[key] = [moment - ahead_s for moment in found[key]]
    if "discarded" in found:
        shifted["discarded"] = found["discarded"] - ahead_s
    return shifted
