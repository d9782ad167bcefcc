"""Watch a run on several hosts: each watches itself, and what they saw is put together afterwards."""

from __future__ import annotations

import csv
import hashlib
import io
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchbook.core.errors import SiteError
from benchbook.sites.monitor import COLUMNS
from benchbook.sites.ssh.client import RemoteClient
from benchbook.sites.ssh.host import Host


class RemoteWatch:
    """Watches the hosts of an arm. `roles` maps a role to its host, `pids` a part to its processes there.

    Rows of `machine` are of the client's host, `machine_server` and `machine_proxy` of the others. Pauses,
    steal and clock steps are those of the worst host, killed processes those of all.
    """

    def __init__(
        self, roles: Mapping[str, Host], pids: Mapping[str, int], client: RemoteClient, path: Path
    ) -> None:
        self.roles, self.pids, self.client, self.path = roles, {**pids, "client": client.pid}, client, path
        self.longest_pause_ms = self.steal_pct = self.runqueue_wait_s = 0.0
        self.client_cpu_s = self.clock_step_s = 0.0
        self.oom_kills = self.cores = 0
        self.by_host: dict[str, dict[str, Any]] = {}
        self._name = f"run/watch-{uuid.uuid4().hex[:8]}"
        self._hosts = {host.name: host for host in (roles["client"], *roles.values())}

    def start(self) -> None:
        """Begin to watch on every host."""
        for host in self._hosts.values():
            mine = [role for role, its in self.roles.items() if its is host]
            is_client = host is self.roles["client"]
            host.call("own", name="run")
            host.call(
                "watch",
                name=self._name,
                parts={role: [self.pids[role]] for role in mine if role in self.pids},
                machine="machine" if is_client else f"machine_{mine[0]}",
                client=self.client.pid if is_client else None,
            )

    def stop(self) -> None:
        """End watching and write `monitor.csv`; where a host is gone by now, no figure is given for all."""
        rows: list[list[str]] = []
        for host in self._hosts.values():
            try:
                rows += self._collect(host)
            except SiteError as error:
                print(f"{error}; this run has no record of what went on there")
        with self.path.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(COLUMNS)
            writer.writerows(sorted(rows, key=lambda row: float(row[0])))
        self.client_cpu_s = self.client.cpu_s
        if len(self.by_host) < len(self._hosts):
            self.longest_pause_ms = self.steal_pct = self.clock_step_s = self.oom_kills = None  # type: ignore
            return
        seen, mine = list(self.by_host.values()), self.by_host[self.roles["client"].name]
        self.longest_pause_ms = max(one["longest_pause_ms"] for one in seen)
        self.steal_pct = max(one["steal_pct"] for one in seen)
        self.clock_step_s = max((one["clock_step_s"] for one in seen), key=abs)
        self.oom_kills = sum(one["oom_kills"] for one in seen)
        self.runqueue_wait_s, self.cores = mine["runqueue_wait_s"], mine["cores"]

    def _collect(self, host: Host) -> list[list[str]]:
        found = host.call("watched", name=self._name)
        text = found["rows"] or ""
        if found["seen"] is None or hashlib.sha256(text.encode()).hexdigest() != found["sha256"]:
            raise SiteError(f"{host.name}: what was watched there can't be read; look at its disk")
        self.by_host[host.name] = found["seen"]
        for suffix in ("csv", "json"):
            host.call("remove", name=f"{self._name}.{suffix}")
        # What connections carried is not counted there yet, so those columns stay empty.
        return [row + [""] * (len(COLUMNS) - len(row)) for row in csv.reader(io.StringIO(text))]
