"""Watch a run on several hosts: each watches itself, and the results are merged afterwards."""

import csv
import hashlib
import io
import itertools
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from benchbook.core.util.errors import SiteError
from benchbook.sites.agent.watch import WatchResult
from benchbook.sites.contract import Watch
from benchbook.sites.hosts.host import Host
from benchbook.sites.hosts.load_client import RemoteClient
from benchbook.sites.machine.local_machine import COLUMNS

# Added up where a part is on several hosts; all else of a row is of each host alone.
ADDED = ("cpu_cores", "rss_mib", *COLUMNS[COLUMNS.index("received_mib_s") :])
Pids = Mapping[str, Mapping[str, Sequence[int]]]
Hops = Mapping[str, Sequence[dict[str, Any]]]


class RemoteWatch(Watch):
    """Watch the hosts of an arm by role: `pids`, `hops` (connections) and `families` are by host."""

    def __init__(
        self,
        roles: Mapping[str, Host],
        pids: Pids,
        clients: Sequence[RemoteClient],
        path: Path,
        hops: Hops = MappingProxyType({}),
        families: Mapping[str, Sequence[int]] = MappingProxyType({}),
    ) -> None:
        self.roles, self.clients, self.path, self.hops, self.families = roles, clients, path, hops, families
        mine: dict[str, list[int]] = {}
        for client in clients:
            mine.setdefault(client.host.name, []).append(client.pid)
        self.pids: Pids = {**pids, "client": mine}
        self.runqueue_waits_s, self.cores = [0.0 for _ in clients], 0
        self.by_host: dict[str, WatchResult] = {}
        self._name = f"run/watch-{uuid.uuid4().hex[:8]}"
        self._hosts = {host.name: host for host in (roles["client"], *roles.values())}

    def start(self) -> None:
        for name, host in self._hosts.items():
            host.call("private_folder", name="run")
            parts = {part: list(by_host[name]) for part, by_host in self.pids.items() if by_host.get(name)}
            named = {"clients": self.pids["client"], "hops": self.hops, "families": self.families}
            its: dict[str, Any] = {key: list(by_host.get(name, ())) for key, by_host in named.items()}
            its |= {"machine": self._label(host), "has_pauses": host.is_whole, "counts_s": self.counts_s}
            host.call("watch", name=self._name, parts=parts, **its)

    def stop(self) -> None:
        """End watching and write `monitor.csv`; if a host is gone by now, no figure is for all hosts."""
        seen_rows: list[list[list[str]]] = []
        for host in self._hosts.values():
            try:
                seen_rows.append(self._fetch_rows(host))
            except SiteError as error:
                print(f"{error}; this run has no record of what went on there")
        with self.path.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(COLUMNS)
            writer.writerows(merge_rows(seen_rows))
        self.client_cpu_s = sum(client.cpu_s for client in self.clients)
        if len(self.by_host) == len(self._hosts):
            self._merge_results()

    def _fetch_rows(self, host: Host) -> list[list[str]]:
        """Rows that a host watched, which are removed there; its result goes into `by_host`."""
        result = host.call("watched", name=self._name)
        text = result["rows"] or ""
        if result["seen"] is None or hashlib.sha256(text.encode()).hexdigest() != result["sha256"]:
            raise SiteError(f"{host.name}: what was watched there can't be read; look at its disk")
        self.by_host[host.name] = WatchResult(**result["seen"])
        for suffix in ("csv", "json"):
            host.call("remove", name=f"{self._name}.{suffix}")
        return list(csv.reader(io.StringIO(text)))

    def _merge_results(self) -> None:
        results = self.by_host.values()
        whole = [self.by_host[name] for name, host in self._hosts.items() if host.is_whole]
        self.longest_pause_ms = max(result.longest_pause_ms for result in whole)
        self.steal_pct = max(result.steal_pct for result in results)
        self.clock_step_s = max((result.clock_step_s for result in results), key=abs)
        self.counted = sum_events([result.counted for result in results])
        self.oom_kills = sum(result.oom_kills for result in results)
        self.strangers = {self._label(host): self.by_host[key].strangers for key, host in self._hosts.items()}
        self.cores = self.by_host[self.roles["client"].name].cores
        waits_s = {name: result.runqueue_waits_s for name, result in self.by_host.items()}
        self.runqueue_waits_s = [waits_s[client.host.name][str(client.pid)] for client in self.clients]

    def _label(self, host: Host) -> str:
        first = next(role for role, its in self.roles.items() if its is host)
        return "machine" if host is self.roles["client"] else f"machine_{first}"


def sum_events(by_host: Sequence[Mapping[str, Mapping[str, float]]]) -> dict[str, dict[str, float]]:
    """Events of each part over all hosts, those that every host of the part counts."""
    events: dict[str, dict[str, float]] = {}
    for part in dict.fromkeys(itertools.chain.from_iterable(by_host)):
        counters = [messages[part] for messages in by_host if part in messages]
        names = [name for name in counters[0] if all(name in values for values in counters)]
        events[part] = {name: sum(values[name] for values in counters) for name in names}
    return events


def merge_rows(by_host: Sequence[Sequence[list[str]]]) -> list[list[str]]:
    """Rows of all hosts in order; of a part on several the first rows are added up, and so on."""
    parts: dict[str, list[list[list[str]]]] = {}
    for rows in by_host:
        for part in dict.fromkeys(row[1] for row in rows):
            parts.setdefault(part, []).append([row for row in rows if row[1] == part])
    # Hosts begin to watch within a fraction of a second, and each has a row a second.
    result = [_add_rows(group) for of_hosts in parts.values() for group in zip(*of_hosts, strict=False)]
    return sorted(result, key=lambda row: float(row[0]))


def _add_rows(rows: Sequence[list[str]]) -> list[str]:
    """First of a part's rows, with what several hosts have of it added up."""
    row = list(rows[0])
    for place in map(COLUMNS.index, ADDED) if len(rows) > 1 else ():
        values = [item[place] for item in rows]
        row[place] = f"{sum(map(float, values)):.4f}" if all(values) else ""
    return row
