"""What is seen of the pods and their machines during one run, each second, from inside them.

A shell loop in the pods of server and proxy writes down what `/proc` says (`pod/sample.sh`), the client's
watcher does so for the client (`agent`). What a pod does not show is left empty, and never 0.
"""

from __future__ import annotations

import csv
import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchbook.core.errors import SiteError
from benchbook.sites.contract import Watch
from benchbook.sites.kube.api import Cluster
from benchbook.sites.kube.client import PodClient
from benchbook.sites.machine.monitor import COLUMNS

# As text, since the pods of an operator have no folder of ours.
SCRIPT = ("sh", "-c", Path(__file__).with_name("pod").joinpath("sample.sh").read_text("utf-8"), "sample.sh")
# Linux counts a process's time in hundredths of a second on all architectures Kubernetes runs on (proc(5)).
HZ = 100
TOLD = ("longest_pause_ms", "steal_pct", "runqueue_wait_s", "cpu_s", "oom_kills", "clock_step_s", "cores")
# Parts that are a server, or one with others: what all of them use is the server's too.
OF_SERVER = ("server", "tidb", "tikv", "pd")
# What several parts of one kind use together; the rest is the machine's.
ADDED = ("cpu_cores", "rss_mib")
PRESSURES = ("psi_cpu_pct", "psi_io_pct", "psi_memory_pct")


class PodWatch(Watch):
    """Watch jobs, the arm's `parts` (part, pod, pid) and their machines.

    What several clients or servers use is added up second by second; the machine is that of the first server.
    """

    def __init__(
        self,
        cluster: Cluster,
        namespace: str,
        clients: Sequence[PodClient],
        parts: Sequence[tuple[str, str, int]],
        path: Path,
    ) -> None:
        self.cluster, self.namespace, self.clients = cluster, namespace, clients
        self.parts, self.path = parts, path
        self._began: dict[str, float] = {}

    def start(self) -> None:
        """Begin to watch servers and proxy; the clients are watched since they were started."""
        for _, pod, pid in self.parts:
            self.cluster.must(self.namespace, pod, [*SCRIPT, "begin", self._name, str(pid)])
            self._began[pod] = time.monotonic()

    def stop(self) -> None:
        seen = [client.popen.record for client in self.clients]
        told = {key: [one.get(key) for one in seen] for key in TOLD}
        self.longest_pause_ms = _of(max, told["longest_pause_ms"])
        self.steal_pct = _of(max, told["steal_pct"])
        self.runqueue_waits_s = told["runqueue_wait_s"]
        self.client_cpu_s, self.oom_kills = _of(sum, told["cpu_s"]), _of(max, told["oom_kills"])
        self.clock_step_s = _of(lambda steps: max(steps, key=abs), told["clock_step_s"])
        self.cores = _of(min, told["cores"])
        first = self.clients[0]
        zero = first.popen.began if first.begun_s is None else first.begun_s
        sources = [client_rows(one) for one in seen]
        sources += self.of_parts(zero)
        with self.path.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, COLUMNS, restval="", lineterminator="\n")
            writer.writeheader()
            carried = [bytes_by_second(one) for one in seen]
            writer.writerows(with_bytes(together(sources), carried))

    def of_parts(self, zero: float) -> list[list[dict[str, Any]]]:
        """End watching servers and proxy; return the rows of each, by seconds since `zero` of our clock."""
        machine_of = next((pod for part, pod, _ in self.parts if part in OF_SERVER), None)
        sources = []
        for part, pod, _ in self.parts:
            if pod in self._began:
                found = self._rows(part, pod, self._began[pod] - zero, pod == machine_of)
                sources += [found, as_server(found)]
        return sources

    @property
    def _name(self) -> str:
        return self.clients[0].popen.name

    def _rows(self, part: str, pod: str, began: float, has_machine: bool) -> list[dict[str, Any]]:
        try:
            said = self.cluster.must(self.namespace, pod, [*SCRIPT, "end", self._name])
        except SiteError:
            # The pod is gone, or is another one: the identity of the run says so.
            return []
        samples = [sample for line in said.splitlines() if (sample := parse(line)) is not None]
        if part in OF_SERVER and len(samples) > 1:
            self._machine(samples[0], samples[-1])
        found = rows(part, samples, began)
        return [row for row in found if has_machine or row["part"] != "machine"]

    def _machine(self, first: dict[str, Any], last: dict[str, Any]) -> None:
        """Hold a server's machine to the same: the worse of all counts, and it may be the same machine."""
        whole = last["whole"] - first["whole"]
        if whole > 0:
            stolen = 100 * (last["steal"] - first["steal"]) / whole
            self.steal_pct = stolen if self.steal_pct is None else max(self.steal_pct, stolen)
        if first["kills"] is not None and last["kills"] is not None:
            self.oom_kills = max(self.oom_kills or 0, last["kills"] - first["kills"])


def client_rows(seen: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a client's rows of the monitor from its job's record, from when its program began."""
    late = _late(seen)
    return [
        {
            "second": round(second - late, 3),
            "part": "client",
            "cpu_cores": round(cpu, 4),
            "rss_mib": round(rss, 2),
        }
        for second, cpu, rss, _ in seen.get("rows", [])
        if second > late
    ]


def as_server(found: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what a part of a cluster used as rows of the server, which is all of its parts together."""
    return [row | {"part": "server"} for row in found if row["part"] in OF_SERVER[1:]]


def bytes_by_second(seen: Mapping[str, Any]) -> dict[tuple[str, int], tuple[float, float]]:
    """Return MiB/s received and sent by (part, whole second), as one client's connections carried them."""
    late = _late(seen)
    return {
        (part, round(second - late)): (into, out_of)
        for second, _, _, carried in seen.get("rows", [])
        for part, (into, out_of) in carried.items()
    }


def together(sources: Sequence[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return the rows of all sources by second and part, added up; a second that one lacks is left out."""
    by_part: dict[str, list[list[dict[str, Any]]]] = {}
    for source in sources:
        for part in dict.fromkeys(row["part"] for row in source):
            by_part.setdefault(part, []).append([row for row in source if row["part"] == part])
    found: list[dict[str, Any]] = []
    for each in by_part.values():
        first, *others = each
        known = [{round(row["second"]): row for row in other} for other in others]
        for row in first:
            there = [other.get(round(row["second"])) for other in known]
            beside = [one for one in there if one is not None]
            if len(beside) == len(there):
                sums = {key: round(row[key] + sum(one[key] for one in beside), 4) for key in ADDED if beside}
                found.append(row | sums)
    return sorted(found, key=lambda row: (row["second"], row["part"]))


def with_bytes(
    found: list[dict[str, Any]], carried: Sequence[Mapping[tuple[str, int], tuple[float, float]]]
) -> list[dict[str, Any]]:
    """Return rows with what all clients' connections carried to and from their parts in the same second."""
    for row in found:
        there = [one.get((row["part"], round(row["second"]))) for one in carried]
        each = [one for one in there if one is not None]
        if each and len(each) == len(there):
            row["received_mib_s"] = round(sum(one[0] for one in each), 4)
            row["sent_mib_s"] = round(sum(one[1] for one in each), 4)
    return found


def _late(seen: Mapping[str, Any]) -> float:
    """Return how many seconds after a job was started its program began."""
    return 0.0 if seen.get("begun_s") is None else seen["begun_s"] - seen["began_s"]


def _of(what: Callable[[list[Any]], Any], values: Sequence[Any]) -> Any:
    """Return the sum, or the like, of what all say; None if one can't."""
    return None if None in values or not values else what(list(values))


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
    """Return a part's rows of the monitor, a server's with its machine's; `began` is the first second."""
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
        if part in OF_SERVER and whole > 0:
            busy = (whole - (now["idle"] - before["idle"])) / HZ / span
            steal = 100 * (now["steal"] - before["steal"]) / whole
            row = {"second": second, "part": "machine", "cpu_cores": round(busy, 4)}
            if now["used_mib"] is not None:
                row["rss_mib"] = round(now["used_mib"], 2)
            pressures = dict(zip(PRESSURES, now["pressures"], strict=True))
            found.append(row | {"steal_pct": round(steal, 3)} | pressures)
    return found
