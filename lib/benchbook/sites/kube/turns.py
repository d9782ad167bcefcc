"""The clock of turns in the pod that the clients of all arms are in; servers are never stopped there.

It goes on whatever becomes of the connection to it. When it ends, however it ends, its watcher in the pod
(`agent`) lets all clients go on.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from benchbook.core.errors import SiteError
from benchbook.sites import lab as labs
from benchbook.sites.arms import turns
from benchbook.sites.kube.client import JOBS, Job, PodClient, clock
from benchbook.sites.kube.pods import TOOLS

END_S = 10.0


class Clock:
    """The clock of one group, from its start to its end. `asked` is as for the clock of one machine."""

    def __init__(
        self, lab: labs.Lab, clients: Mapping[str, Sequence[PodClient]], asked: Mapping[str, Any]
    ) -> None:
        jobs = [one.popen for of_arm in clients.values() for one in of_arm]
        first = jobs[0]
        if others := {job.pod for job in jobs} - {first.pod}:
            raise SiteError(f"clients that take turns are in {first.pod} and in {', '.join(sorted(others))}")
        self.ahead_s = clock(first.cluster, first.namespace, first.pod)
        for job in jobs:
            job.ahead_s = self.ahead_s
        arms = [
            {
                "name": name,
                "clients": [one.pid for one in of_arm],
                "logs": [f"{JOBS}/{one.popen.name}/out" for one in of_arm],
                "parts": {"client": [one.pid for one in of_arm]},
            }
            for name, of_arm in clients.items()
        ]
        request, self.result = turns.ask(lab, **asked, held=True, arms=arms, stops={})
        # A job brings back what it printed, so the clock puts its result there.
        argv = ["python3", "-I", "-S", f"{TOOLS}/clock.py", str(request), "{JOB}/out"]
        pids = [job.pid for job in jobs]
        self.job = Job(first.cluster, first.namespace, first.pod, argv, continues=pids)
        self.job.into(self.result, lab.run / "clock.log")

    @property
    def exit_code(self) -> int | None:
        return self.job.poll()

    def end(self) -> dict[str, Any]:
        """End the clock if it goes on; return what it wrote, by our monotonic clock, with its exit code."""
        if self.exit_code is None:
            for act in (lambda: self.job.send_signal(signal.SIGTERM), self.job.kill):
                with contextlib.suppress(subprocess.TimeoutExpired, SiteError):
                    act()
                    self.job.wait(END_S)
                    break
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
