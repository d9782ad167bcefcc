"""Interference by others with the processes and packets of a run, as the kernel reports it.

They trace a process, let it stand still, limit its control groups, drop its packets or put rules in their
way. What the kernel doesn't tell this account is None. Events of performance are open files of who counts
them; of whom they count, the kernel says nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchbook.sites.processes import cgroup_limits, firewall, procfs

MOST_TASKS = 4
"""Threads whose tracer is looked for each second, beside the first: one a process, in turn."""
EVENTS = "anon_inode:[perf_event]"


class InterferenceProbe:
    """Looks at some processes by part: when it is made, at each `look`, and at the `end` of a run."""

    def __init__(self, parts: Mapping[str, Sequence[int]]) -> None:
        self._parts = {part: list(pids) for part, pids in parts.items()}
        self._traced: dict[str, str] = {}
        self._stopped: dict[str, int] = {}
        self._looks = 0
        self._counting = _find_perf_programs()
        self._networks = [(pid, names, _read_network(pid)) for pid, names in self._places()]
        self._all = [pid for pids in self._parts.values() for pid in pids]
        for pid in self._all:
            _stood_still(pid)  # What was before this run is none of it.
        self._groups: dict[int, bytes] = {}
        self._limits: dict[str, set[str]] = {"": set(), **{part: set() for part in self._parts}}
        self._see_limits()
        self._held = cgroup_limits.held_back(self._all)
        self.look()

    def look(self) -> None:
        """Check for traced processes, stopped ones, and ones moved to another control group."""
        for part, pids in self._parts.items():
            for pid in pids:
                by = procfs.find_tracer(pid, self._looks * MOST_TASKS)
                if by is not None:
                    self._traced[part] = by
                if procfs.is_stopped(pid):
                    self._stopped[part] = self._stopped.get(part, 0) + 1
        self._see_limits()
        self._looks += 1

    def end(self) -> dict[str, Any]:
        """Interference during the run, as a record.

        `traced` by part, `stopped` looks by part of `looks`, `continued` parts that stood still since the
        beginning, `counting` programs with events of performance, and `networks`: the `parts` in it, `rules`
        that are not ours, packets that rules `dropped`, segments `sent` and of these `again`; `is_shared`
        with other programs of the machine is the one that we are in. `limits` are those that others set on
        control groups, by part, those of this process under `""`; `held_back` has by group what they cost.
        """
        self._groups.clear()
        self.look()
        return {
            "traced": self._traced,
            "looks": self._looks,
            "stopped": self._stopped,
            "continued": sorted(part for part, pids in self._parts.items() if any(map(_stood_still, pids))),
            "counting": sorted(self._counting | _find_perf_programs()),
            "networks": [_diff_network(*network) for network in self._networks],
            "limits": {part: sorted(limits) for part, limits in self._limits.items()},
            "held_back": cgroup_limits.diff_throttling(self._held, cgroup_limits.held_back(self._all)),
        }

    def _see_limits(self) -> None:
        """Add the limits of processes with changed groups since the last check."""
        for part, pids in {"": [os.getpid()], **self._parts}.items():
            for pid in pids:
                groups = procfs.read_file(f"{pid}/cgroup")
                if groups and groups != self._groups.get(pid):
                    self._groups[pid] = groups
                    self._limits[part].update(cgroup_limits.describe_limits(pid))

    def _places(self) -> Iterator[tuple[int, list[str]]]:
        """Yield a process of each network namespace, our own first, and the parts that are there."""
        results: dict[int, tuple[int, set[str]]] = {}
        # We are there to the end; clients go before their servers.
        parts = {"": [os.getpid()], **self._parts, "client": self._parts.get("client", [])}
        for part, pid in ((part, pid) for part, pids in parts.items() for pid in pids):
            try:
                inode = os.stat(f"/proc/{pid}/ns/net").st_ino
            except OSError:
                continue
            results.setdefault(inode, (pid, set()))[1].add(part)
        for pid, names in results.values():
            yield pid, sorted(names)


def _stood_still(pid: int) -> bool:
    """True if our child was stopped, or let go on, since the last call (wait(2))."""
    try:
        return os.waitid(os.P_PID, pid, os.WSTOPPED | os.WCONTINUED | os.WNOHANG) is not None
    except OSError:
        return False


def _find_perf_programs() -> set[str]:
    """Programs that have perf events open, except for us and those that we have started."""
    counting = (pid for pid in procfs.list_pids() if EVENTS in procfs.iter_links(pid))
    ours = {os.getpid(), *procfs.find_descendants(os.getpid())}
    return {procfs.read_program(pid) for pid in counting if pid not in ours}


def _read_network(pid: int) -> dict[str, int | None]:
    """Counters of a process's network namespace, and the number of its rules."""
    rules = firewall.read_rules(pid)
    results = {name: getattr(rules, name, None) for name in ("rules", "dropped")}
    try:
        counts = _read_counts(pid, "snmp", "Tcp:") | _read_counts(pid, "netstat", "TcpExt:")
    except (OSError, ValueError):
        return {**results, "sent": None, "again": None}
    # What its receiver says to have twice was late and not lost, as for each connection.
    again = counts["RetransSegs"] - counts.get("TCPDSACKRecvSegs", 0)
    return {**results, "sent": counts["OutSegs"], "again": again}


def _read_counts(pid: int, table: str, begin: str) -> dict[str, int]:
    with open(f"/proc/{pid}/net/{table}", encoding="ascii") as file:
        names, values = (line.split() for line in file if line.startswith(begin))
    return dict(zip(names[1:], map(int, values[1:])))  # noqa: B905 (Python 3.9 knows no `strict`)


def _diff_network(pid: int, parts: Sequence[str], was: Mapping[str, int | None]) -> dict[str, Any]:
    now = _read_network(pid)
    grown = {
        name: None if was[name] is None or now[name] is None else now[name] - was[name]  # type: ignore[operator]
        for name in ("dropped", "sent", "again")
    }
    named = [part for part in parts if part]
    return {"parts": named, "is_shared": len(named) < len(parts), "rules": now["rules"], **grown}
