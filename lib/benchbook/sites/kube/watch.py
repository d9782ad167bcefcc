"""What is seen of the pods and their machines during one run, each second, from inside them.

A shell loop in the pods of server and proxy writes down what `/proc` says (`pod/sample.sh`), the client's
watcher does so for the client (`agent`). What a pod does not show is left empty, and never 0.
"""

from __future__ import annotations

import csv
import itertools
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchbook.core.errors import SiteError
from benchbook.sites.kube.api import Cluster
from benchbook.sites.kube.client import PodClient
from benchbook.sites.kube.pods import TOOLS
from benchbook.sites.monitor import COLUMNS

SCRIPT = ("sh", f"{TOOLS}/sample.sh")
# Linux counts a process's time in hundredths of a second on all architectures Kubernetes runs on (proc(5)).
HZ = 100
PRESSURES = ("psi_cpu_pct", "psi_io_pct", "psi_memory_pct")


class PodWatch:
    """Watch a job, the arm's parts and their machines; `stop` comes after the job has been waited for.

    `parts` maps server and proxy to (pod, pid).
    """

    def __init__(
        self,
        cluster: Cluster,
        namespace: str,
        client: PodClient,
        parts: Mapping[str, tuple[str, int]],
        path: Path,
    ) -> None:
        self.cluster, self.namespace, self.client = cluster, namespace, client
        self.parts, self.path = parts, path
        self.longest_pause_ms: float | None = None
        self.steal_pct: float | None = None
        self.runqueue_wait_s: float | None = None
        self.client_cpu_s: float | None = None
        self.oom_kills: int | None = None
        self.clock_step_s: float | None = None
        self.cores: int | None = None
        self._began: dict[str, float] = {}

    def start(self) -> None:
        """Begin to watch server and proxy; the client is watched since it was started."""
        for part, (pod, pid) in self.parts.items():
            self.cluster.must(self.namespace, pod, [*SCRIPT, "begin", self.client.popen.name, str(pid)])
            self._began[part] = time.monotonic() - self.client.popen.began

    def stop(self) -> None:
        """End watching and write what was seen to `monitor.csv`."""
        seen = self.client.popen.record
        self.longest_pause_ms, self.steal_pct = seen.get("longest_pause_ms"), seen.get("steal_pct")
        self.runqueue_wait_s, self.client_cpu_s = seen.get("runqueue_wait_s"), seen.get("cpu_s")
        self.oom_kills, self.clock_step_s = seen.get("oom_kills"), seen.get("clock_step_s")
        self.cores = seen.get("cores")
        rows: list[dict[str, object]] = [
            {"second": second, "part": "client", "cpu_cores": round(cpu, 4), "rss_mib": round(rss, 2)}
            for second, cpu, rss in seen.get("rows", [])
        ]
        for part, (pod, _) in self.parts.items():
            if part in self._began:
                rows += self._rows(part, pod)
        with self.path.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, COLUMNS, restval="", lineterminator="\n")
            writer.writeheader()
            writer.writerows(sorted(rows, key=lambda row: (row["second"], row["part"])))

    def _rows(self, part: str, pod: str) -> list[dict[str, object]]:
        try:
            said = self.cluster.must(self.namespace, pod, [*SCRIPT, "end", self.client.popen.name])
        except SiteError:
            # The pod is gone, or is another one: the identity of the run says so.
            return []
        samples = [sample for line in said.splitlines() if (sample := parse(line)) is not None]
        if part == "server" and len(samples) > 1:
            self._machine(samples[0], samples[-1])
        return rows(part, samples, self._began[part])

    def _machine(self, first: dict[str, Any], last: dict[str, Any]) -> None:
        """Hold the server's machine to the same: the worse of two counts, and it may be the same machine."""
        whole = last["whole"] - first["whole"]
        if whole > 0:
            stolen = 100 * (last["steal"] - first["steal"]) / whole
            self.steal_pct = stolen if self.steal_pct is None else max(self.steal_pct, stolen)
        if first["kills"] is not None and last["kills"] is not None:
            self.oom_kills = max(self.oom_kills or 0, last["kills"] - first["kills"])


def parse(line: str) -> dict[str, Any] | None:
    """Return one line of `sample.sh` as numbers; None if it was cut. What was not there is None."""
    fields = line.split("|")
    if len(fields) != 10 or not fields[0] or len(fields[3].split()) < 9:
        return None
    uptime, stat, rss, cpu, kills, total, free, *pressures = fields
    ticks = [int(word) for word in cpu.split()[1:9]]
    words = stat.split()
    return {
        "uptime": float(uptime),
        "cpu_s": (int(words[11]) + int(words[12])) / HZ if len(words) > 12 else None,
        "rss_mib": int(rss) / 1024 if rss else None,
        "whole": sum(ticks),
        "idle": ticks[3] + ticks[4],
        "steal": ticks[7],
        "kills": int(kills) if kills else None,
        "used_mib": (int(total) - int(free)) / 1024 if total and free else None,
        "pressures": [text.split("avg10=")[1].split()[0] if "avg10=" in text else "" for text in pressures],
    }


def rows(part: str, samples: list[dict[str, Any]], began: float) -> list[dict[str, object]]:
    """Return rows of the monitor: the part's own, and with the server's those of its machine.

    `began` is the second of the run at which the first sample was taken.
    """
    found: list[dict[str, object]] = []
    for before, now in itertools.pairwise(samples):
        span = now["uptime"] - before["uptime"]
        if span < 0.2:
            continue
        second = round(began + now["uptime"] - samples[0]["uptime"], 3)
        if now["cpu_s"] is not None and before["cpu_s"] is not None and now["rss_mib"] is not None:
            used = max(0.0, (now["cpu_s"] - before["cpu_s"]) / span)
            row = {"second": second, "part": part, "cpu_cores": round(used, 4)}
            found.append(row | {"rss_mib": round(now["rss_mib"], 2)})
        whole = now["whole"] - before["whole"]
        if part == "server" and whole > 0:
            busy = (whole - (now["idle"] - before["idle"])) / HZ / span
            steal = 100 * (now["steal"] - before["steal"]) / whole
            row = {"second": second, "part": "machine", "cpu_cores": round(busy, 4)}
            if now["used_mib"] is not None:
                row["rss_mib"] = round(now["used_mib"], 2)
            pressures = dict(zip(PRESSURES, now["pressures"], strict=True))
            found.append(row | {"steal_pct": round(steal, 3)} | pressures)
    return found
