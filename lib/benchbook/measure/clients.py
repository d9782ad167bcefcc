"""The clients of one run, started at one moment and ended together, and the turns of a group of runs."""

import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from benchbook.core.artifacts import run_folder
from benchbook.core.study import client_sharding, interleaving
from benchbook.core.study.model import Endpoint, PlannedRun
from benchbook.measure import custom_data, sysbench
from benchbook.plan import order
from benchbook.sites.contract import Site, Start, Taker

# How often one of several is looked at; `subprocess` itself looks every 0.05 s.
LOOK_S = 0.1
TERM_S, KILL_S = 5.0, 30.0


@dataclass
class RunningClient:
    """One client of a run, ended by `itself`, a `signal`, the `deadline`, or `another client`."""

    number: int
    argv: list[str]
    process: Any
    server: int = 0
    options: dict[str, Any] | None = None
    exit_code: int = -signal.SIGKILL
    ended_by: str = "deadline"
    ended_s: float | None = None

    def record(self, threads: int, waited_s: float | None) -> dict[str, Any]:
        """Record of one of several clients."""
        return {
            "number": self.number,
            "server": self.server,
            "argv": self.argv,
            "threads": threads,
            "exit_code": self.exit_code,
            "ended_by": self.ended_by,
            "begun_monotonic_s": self.process.begun_s,
            "ended_monotonic_s": self.ended_s,
            "runqueue_wait_s": waited_s,
            **self.with_options(),
        }

    def with_options(self) -> dict[str, Any]:
        """Options that sysbench took from a file, if there was one."""
        return {} if self.options is None else {"options": self.options}


def start_clients(
    site: Site, arm: str, planned: PlannedRun, endpoints: Sequence[Endpoint], part: Path
) -> tuple[list[RunningClient], float | None]:
    """Start the clients of a run, one an endpoint; return them and the start moment of several."""
    script = custom_data.of_run(site, planned.workload)
    cwd = part if script is None else script.folder
    count, servers = len(endpoints), client_sharding.count_servers(planned.arm_setting)
    whole = {"threads": planned.threads, "rate": planned.rate, "seed": planned.seed}
    shares = [replace(planned, **client_sharding.split_plan(whole, number, count)) for number in range(count)]
    files: Sequence[Path | None] = [None] * count
    taken: Sequence[dict[str, Any] | None] = [None] * count
    if client_sharding.has_file(planned.arm_setting):
        named = [part / run_folder.client_file(number, run_folder.OPTIONS) for number in range(count)]
        each = zip(endpoints, shares, named, strict=True)
        files, taken = named, [sysbench.write_options(site, arm, *row) for row in each]
    # Arms in turns begin together, each with all of its clients, when the last one stands by.
    is_held = planned.order == interleaving.TURNS
    begin_at = time.monotonic() + site.ready_s if count > 1 and not is_held else None
    running: list[RunningClient] = []
    try:
        for number, endpoint in enumerate(endpoints):
            argv = sysbench.run_argv(endpoint, shares[number], files[number])
            env = {"BENCHBOOK_SCRIPT": planned.script} if "event" in planned.arm_setting else None
            names = (run_folder.OUT, run_folder.ERR)
            out, err = (part / run_folder.client_file(number, name) for name in names)
            process = site.client(Start(argv, out, err, cwd, env, arm, number, begin_at, is_held))
            server = client_sharding.server_of(number, servers)
            running.append(RunningClient(number, argv, process, server, taken[number]))
    except BaseException:
        kill_clients(running)
        raise
    if begin_at is not None:
        time.sleep(max(0.0, begin_at - time.monotonic()))
    return running, begin_at


def wait_for_clients(
    running: Sequence[RunningClient], deadline_s: float, advance: Callable[[], float | None]
) -> None:
    """Wait for all clients and note the end of each; one that fails ends the others, as does time. `advance`
    carries out what is due of the run's event; it returns the seconds until its next step."""
    deadline = time.monotonic() + deadline_s
    going = list(running)
    ended_by = "deadline"
    while going and (left := deadline - time.monotonic()) > 0:
        if (next_s := advance()) is not None:
            left = min(left, next_s)
        slice_s = left if len(running) == 1 else min(left, LOOK_S / len(going))
        going = [client for client in going if not _is_over(client, slice_s)]
        if any(client.ended_s is not None and client.exit_code for client in running):
            # A run whose load is not whole is no measurement: the rest of it is not waited for.
            ended_by = "another client"
            break
    _end_clients(going, ended_by)


def _end_clients(going: Sequence[RunningClient], ended_by: str) -> None:
    """End clients that still run, gently at first, and note what ended them."""
    for client in going:
        popen = client.process.popen
        # A stopped process takes no signal but CONT and KILL.
        for act, wait_s in ((partial(popen.send_signal, signal.SIGTERM), TERM_S), (popen.kill, KILL_S)):
            act()
            if _is_over(client, wait_s):
                break
        client.ended_by, client.ended_s = ended_by, client.ended_s or time.monotonic()


def kill_clients(running: Sequence[RunningClient]) -> None:
    """End at once all clients that still run."""
    for client in running:
        sysbench.kill_client(client.process)


def spread_ms(running: Sequence[RunningClient]) -> float | None:
    """Milliseconds between the first and the last client's beginning; None if one is not known."""
    started = [client.process.begun_s for client in running]
    return None if None in started else 1000 * (max(started) - min(started))


def first_failed(running: Sequence[RunningClient]) -> RunningClient:
    """Client with the run's end: the first that failed by itself, or else the first."""
    by_itself = [client for client in running if client.exit_code and client.ended_by != "another client"]
    return min(by_itself, key=lambda item: item.ended_s or 0.0, default=running[0])


def _is_over(client: RunningClient, timeout_s: float) -> bool:
    try:
        client.exit_code = client.process.popen.wait(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        return False
    client.ended_by, client.ended_s = "itself" if client.exit_code >= 0 else "signal", time.monotonic()
    return True


TURN_LOOK_S = 0.05
CLOCK = ("exit_code", "gone", "gone_out_of_turn", "priority", "started", "window", "discarded")
Record = dict[str, Any]
OF_ARM = ("outside_s", "longest_outside_s", "halted", "longest_stop_s")
COLUMNS = ["arm", "begin_us", "end_us"]


def take_turns(group: Mapping[str, Any]) -> dict[str, Any]:
    """Let the arms of a group, each with its run, take turns; return the clock's record. A client that ends
    before the clock ends the group: the turns of the others would not be those that were planned."""
    first = next(iter(group.values())).context
    planned: PlannedRun = first.planned
    discard_s, run_s = interleaving.clock_seconds(planned)
    rounds, each = order.group_rounds(planned)
    requests = {"rounds": rounds, "turn_s": planned.turn_ms / 1000, "turns": each}
    requests |= {"discard_s": discard_s, "whole_s": discard_s + run_s}
    takers = {}
    for name, run in group.items():
        logs = [run.part / run_folder.client_file(client.number, run_folder.OUT) for client in run.running]
        takers[name] = Taker(run.context.arm, [client.process for client in run.running], logs)
    clock = first.site.clock(takers, requests)
    children = [child.popen for taker in takers.values() for child in taker.clients]
    try:
        while clock.exit_code is None and all(child.poll() is None for child in children):
            time.sleep(TURN_LOOK_S)
        # Clients end within moments of the clock, which lets them go on; before it only by a fault.
        deadline = time.monotonic() + 2.0
        while clock.exit_code is None and time.monotonic() < deadline:
            time.sleep(TURN_LOOK_S)
    finally:
        result = clock.end()
    if result["exit_code"] != 0:
        for run in group.values():
            kill_clients(run.running)
    return {**result, "asked": requests}


def evidence_of_turns(turned: Record, planned: PlannedRun, observations: Record) -> Record:
    """`turns` of a run's evidence, and its client's CPU time, known to the clock alone."""
    arm = planned.arm
    mine = [end - begin for name, begin, end in turned.get("turns", ()) if name == arm]
    cpu_s, counted = (turned.get(key, {}).get(arm, {}) for key in ("cpu_s", "counted"))
    return {
        **({"counted": counted} if counted else {}),
        "client": {**observations["client"], "cpu_s": cpu_s.get("client", 0.0)},
        "turns": {
            "clock": {key: turned.get(key) for key in CLOCK},
            "asked": turned["asked"]["turns"],
            "count": len(mine),
            "active_s": sum(mine) / 1e6,
            "stopped": turned["stopped"][arm],
            "cpu_s": cpu_s,
            "costs": turned.get("costs", {}).get(arm, {}),
            "reading_s": turned.get("reading_s"),
            **({"loop_us": loop_us} if (loop_us := turned.get("loop_us", {}).get(arm)) else {}),
            **{key: turned.get(key, {}).get(arm) for key in OF_ARM},
            "idle": turned.get("idle_turns", {}).get(arm),
        },
    }


def write_turns(turned: Mapping[str, Any], part: Path) -> None:
    """Write the group's turns into a run's folder, each with its arm, in microseconds, monotonic clock."""
    frame = pd.DataFrame(turned.get("turns", ()), columns=COLUMNS)
    frame.index += 1
    frame.to_csv(part / run_folder.TURNS, index_label="turn", lineterminator="\n")
