"""Turns on this machine: the processes that stand still together, and the clock of turns."""

import contextlib
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import psutil

from benchbook.core.util.errors import require_value
from benchbook.sites import workspace as labs
from benchbook.sites.contract import Taker
from benchbook.sites.processes import process, taskstats
from benchbook.sites.processes.spawn import ProcessPlacement
from benchbook.sites.topology import clock

READY_S = 35.0


def list_stops(parts: Mapping[str, Mapping[str, Sequence[int]]]) -> dict[int, list[str]]:
    """Processes that stand still while some arms run, each with the arms that it serves."""
    serves: dict[int, list[str]] = {}
    for arm, of_arm in parts.items():
        for pid in dict.fromkeys(pid for pids in of_arm.values() for pid in pids):
            serves.setdefault(pid, []).append(arm)
    return {pid: arms for pid, arms in serves.items() if len(arms) < len(parts)}


def stopped_with(parts: Mapping[str, Mapping[str, Sequence[int]]], arm: str) -> list[str]:
    """Kinds of parts that stand still when it is not an arm's turn."""
    mine = list_stops(parts)
    return ["client", *(part for part, pids in parts[arm].items() if any(pid in mine for pid in pids))]


def write_request(lab: labs.Lab, **requests: Any) -> tuple[Path, Path]:
    """Write a clock's request; its file, and the file of its result."""
    request, result = lab.run / "turns.json", lab.run / "turns.result.json"
    result.unlink(missing_ok=True)
    request.write_text(json.dumps({**requests, "ready_s": READY_S}), encoding="utf-8")
    return request, result


def describe_arm(name: str, taker: Taker, logs: Sequence[Any], **parts: Sequence[int]) -> dict[str, Any]:
    """One that takes turns, as a clock's request has it; `logs` of its clients are where the clock runs."""
    clients = [client.pid for client in taker.clients]
    mine = {"client": clients, **parts}
    return {"name": name, "clients": clients, "logs": [*map(str, logs)], "parts": mine}


class ClockProcess:
    """The clock of one group, from its start to its end.

    `parts` holds the pids of each one's parts by role, `asked` what the program is asked beside the arms:
    rounds, turn_s, turns, discard_s, whole_s, families. `beside` holds those of each one's
    neighbour, which stand still with it and are no part of it.
    """

    def __init__(
        self,
        lab: labs.Lab,
        takers: Mapping[str, Taker],
        parts: Mapping[str, Mapping[str, Sequence[int]]],
        requests: Mapping[str, Any],
        where: ProcessPlacement,
        beside: Mapping[str, Mapping[str, Sequence[int]]] = MappingProxyType({}),
    ) -> None:
        every = {name: {**of_arm, **beside.get(name, {})} for name, of_arm in parts.items()}
        self.stops, self.stopped = list_stops(every), {name: stopped_with(every, name) for name in every}
        arms = [describe_arm(name, taker, taker.logs, **parts[name]) for name, taker in takers.items()]
        more = {"stops": self.stops, "usage": taskstats.__file__}
        request, self.result = write_request(lab, **requests, arms=arms, **more)
        argv = [sys.executable, "-I", "-S", clock.__file__, str(request), str(self.result)]
        self.child = lab.start("clock", argv, where=where)

    @property
    def exit_code(self) -> int | None:
        return require_value(self.child.popen).poll()

    def end(self) -> dict[str, Any]:
        """End the clock if it goes on, let every part go on, and return its result and exit code."""
        if self.exit_code is None:
            process.stop_child(self.child, grace_s=2.0)
        for pid in self.stops:
            with contextlib.suppress(ProcessLookupError, psutil.Error):
                for child in (*psutil.Process(pid).children(), psutil.Process(pid)):
                    os.kill(child.pid, signal.SIGCONT)
        return {**labs.read_record(self.result), "exit_code": self.exit_code, "stopped": self.stopped}
