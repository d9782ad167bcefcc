"""The turns of one group: asked of the site's clock, waited for, and kept with each run."""

from __future__ import annotations

import csv
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchbook.core import runfolder
from benchbook.core import turns as words
from benchbook.core.model import PlannedRun
from benchbook.measure import clients
from benchbook.plan import order
from benchbook.sites.contract import Taker

LOOK_S = 0.05
CLOCK = ("exit_code", "gone", "gone_out_of_turn", "priority", "started", "window", "discarded")
COLUMNS = ("turn", "arm", "begin_us", "end_us")


def take(making: Mapping[str, Any], begun_s: float) -> dict[str, Any]:
    """Let the arms of a group take turns, and return what the clock wrote; `making` holds each arm's run.

    `begun_s` is the monotonic time before the first client was started. A client that ends before the clock
    ends the group: the turns of the others would not be those that were planned.
    """
    first = next(iter(making.values())).run
    planned: PlannedRun = first.planned
    deployed = {name: one.run.arm for name, one in making.items()}
    discard_s, run_s = words.clock_seconds(planned)
    rounds = order.rounds(planned.partners, planned.block, planned.workload, planned.threads)
    of_a_round = len(rounds[0]) // len(planned.partners)
    asked = {
        "rounds": rounds,
        "turn_s": planned.turn_ms / 1000,
        "turns": order.turns_each(planned.run_s, planned.turn_ms, of_a_round),
        "discard_s": discard_s,
        "whole_s": discard_s + run_s,
        "begun_s": begun_s,
    }
    takers = {name: _taker(one) for name, one in making.items()}
    clock = first.site.clock(takers, asked)
    children = [child.popen for taker in takers.values() for child in taker.clients]
    try:
        while clock.exit_code is None and all(child.poll() is None for child in children):
            time.sleep(LOOK_S)
        # Clients end within moments of the clock, which lets them go on; before it only by a fault.
        deadline = time.monotonic() + 2.0
        while clock.exit_code is None and time.monotonic() < deadline:
            time.sleep(LOOK_S)
    finally:
        found = clock.end()
    if found["exit_code"] != 0:
        for one in making.values():
            clients.kill(one.running)
    stopped = {name: first.site.stopped_with(deployed, name) for name in deployed}
    return {**found, "asked": asked, "stopped": stopped}


def evidence(turned: Mapping[str, Any], planned: PlannedRun, seen: Mapping[str, Any]) -> dict[str, Any]:
    """Return `turns` of a run's evidence, and its client's processor time, which only the clock can tell."""
    arm = planned.arm
    mine = [end - begin for name, begin, end in turned.get("turns", ()) if name == arm]
    cpu_s, counted = (turned.get(key, {}).get(arm, {}) for key in ("cpu_s", "counted"))
    return {
        **({"counted": counted} if counted else {}),
        "client": {**seen["client"], "cpu_s": cpu_s.get("client", 0.0)},
        "turns": {
            "clock": {key: turned.get(key) for key in CLOCK},
            "asked": turned["asked"]["turns"],
            "count": len(mine),
            "active_s": sum(mine) / 1e6,
            "stopped": turned["stopped"][arm],
            "cpu_s": cpu_s,
            "costs": turned.get("costs", {}).get(arm, {}),
            "reading_s": turned.get("reading_s"),
            "outside_s": turned.get("outside_s", {}).get(arm),
            "longest_outside_s": turned.get("longest_outside_s", {}).get(arm),
            "halted": turned.get("halted", {}).get(arm),
            "idle": turned.get("idle_turns", {}).get(arm),
            "longest_stop_s": turned.get("longest_stop_s", {}).get(arm),
        },
    }


def write(turned: Mapping[str, Any], part: Path) -> None:
    """Write the group's turns into a run's folder, each with its arm, in microseconds, monotonic clock."""
    with (part / runfolder.TURNS).open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows((number, *turn) for number, turn in enumerate(turned.get("turns", ()), start=1))


def _taker(one: Any) -> Taker:
    clients = [client.client for client in one.running]
    logs = [one.part / runfolder.of_client(number, runfolder.OUT) for number in range(len(clients))]
    return Taker(one.run.arm, clients, logs)
