"""Evidence of a run folder, and the access of checks to it."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import Any

from benchbook.core.artifacts import run_folder
from benchbook.core.artifacts.run_folder import Cache, RunFolder
from benchbook.core.study import client_sharding, interleaving, sysbench_workloads
from benchbook.core.study.model import PlannedRun
from benchbook.read.log import Missing, Summary, SysbenchLog, merge_logs
from benchbook.read.sysbench_log import parse_log

# What is one client's or one server's own, and must not be taken from the whole where it lacks.
OF_CLIENTS = frozenset({"exit_code", "ended_by", "argv", "options"})
OF_SERVERS = frozenset({
    "ledger", "rows_before", "rows_after", "sample_before", "sample_after", "uptime_before_s",
    "uptime_after_s", "state", "work",
})  # fmt: skip
# What sysbench says of sessions that a planned event ends, and of those that can't be opened meanwhile.
LOST_SESSION = re.compile(
    r"^\(last message repeated [0-9]+ times\)\n|"
    r"^FATAL: (unable to connect to MySQL server on |(error |mysql_\w+\(\) returned error )"
    r"(1053|1927|2002|2003|2006|2013|2055)\b)[^\n]*\n",
    re.MULTILINE,
)
IDENTITIES = ("identity_at_start", "identity_before", "identity_after")


class Excused(Exception):
    """A check can't be made here, and the folder says the reason: no fault of the run, a warning."""


@dataclass(frozen=True)
class Turn:
    """One turn: its arm, and its begin and end in microseconds of the monotonic clock."""

    arm: str
    begin_us: int
    end_us: int


def turns_of(text: str) -> list[Turn]:
    """Turns of a group from `turns.csv`; ValueError if it is no such file."""
    rows = list(csv.reader(io.StringIO(text)))
    if not rows or rows[0] != ["turn", "arm", "begin_us", "end_us"]:
        raise ValueError("turns.csv has other columns")
    turns = [Turn(arm, int(begin), int(end)) for _, arm, begin, end in rows[1:]]
    if [row[0] for row in rows[1:]] != [str(number) for number in range(1, len(rows))]:
        raise ValueError("turns.csv lacks a turn")
    return turns


@dataclass(frozen=True)
class Evidence:
    """A run folder taken apart: plan, observations, sysbench's output, and faults by its manifest.

    `others` are output and stderr of the clients after the first, `turns` the file of the group's turns,
    `monitor` that of the seconds.
    """

    plan: dict[str, Any]
    observed: dict[str, Any]
    out: str
    err: str | None
    broken: tuple[str, ...] = ()
    others: tuple[tuple[str, str | None], ...] = ()
    turns: str | None = None
    monitor: str | None = None

    @classmethod
    def of(cls, folder: RunFolder) -> Evidence:
        """Read a folder; unreadable parts are left empty, and the manifest says so."""
        parts = (_read_or(function, {}) for function in (folder.plan, folder.evidence))
        plan, observed = (part if isinstance(part, dict) else {} for part in parts)
        clients = range(_planned_number(client_sharding.count_clients, plan))
        (out, err), *others = (_read_outputs(folder, number) for number in clients)
        turns, monitor = (
            _read_or(partial(folder.text, name), None) for name in (run_folder.TURNS, run_folder.MONITOR)
        )
        return cls(plan, observed, out, err, tuple(folder.verify()), tuple(others), turns, monitor)

    def require_record(self) -> None:
        """Raise Missing if nothing was recorded."""
        if not self.observed:
            raise Missing("nothing was recorded")

    @cached_property
    def planned(self) -> PlannedRun:
        """The plan as a run; raises Missing if the plan is not whole."""
        try:
            return PlannedRun.of(self.plan)
        except TypeError as error:
            raise Missing(f"plan.json is not whole: {error}") from None

    @cached_property
    def served(self) -> tuple[Evidence, ...]:
        """All runs that the servers served between the two readings of their books, this one first."""
        runs = [self]
        for item in self.observed.get("beside") or ():
            first, *others = ((client["out"], client["err"]) for client in item["clients"])
            runs.append(Evidence(item["plan"], {}, *first, others=tuple(others)))
        return tuple(runs)

    @property
    def is_in_turns(self) -> bool:
        """True if the arms of its group took turns."""
        return interleaving.is_in_turns(self.plan)

    @cached_property
    def taken(self) -> list[Turn]:
        """The turns of its group in their order; raises Missing without their file."""
        if self.turns is None:
            raise Missing("no file of the turns")
        return turns_of(self.turns)

    @property
    def own_turns(self) -> list[Turn]:
        """The turns of its arm among them."""
        return [turn for turn in self.taken if turn.arm == self.plan_value("arm")]

    @property
    def clock_s(self) -> tuple[int, int]:
        """Seconds of discard and of the rest on sysbench's clock, running while others run, too."""
        self.plan_value("discard_s"), self.plan_value("run_s")
        return interleaving.clock_seconds(self.planned)

    @property
    def active_s(self) -> float:
        """Seconds of the arm's activity: the sum of its turns, or the measured window of a whole run."""
        if self.is_in_turns:
            return float(self.get("turns", "active_s"))
        if not self.log.measured_s:
            raise Missing("sysbench printed no window")
        return self.log.measured_s

    @property
    def turn_cpu_s(self) -> dict[str, float | None]:
        """Processor time of each part in the turns of its arm, in seconds; None if it is not known."""
        turns = self.get("turns")
        used, costs = turns.get("cpu_s") or {}, turns.get("costs") or {}
        # The clock of a part's first process sees nothing of a server that works in backends.
        return {part: cpu_s or (costs.get(part) or {}).get("cpu_s") for part, cpu_s in used.items()}

    @property
    def planned_event(self) -> dict[str, Any] | None:
        """Planned event at the server or cluster in the run; None without one."""
        done = self.observed.get("arrangement") or {}
        result = done.get("event") or (done.get("cluster") or {}).get("event")
        return result if isinstance(result, dict) else None

    @cached_property
    def log(self) -> SysbenchLog:
        """sysbench's output, parsed once; of several clients the logs as one."""
        if not self.others:
            return _parse_once(self.out if self.planned_event is None else LOST_SESSION.sub("", self.out))
        return merge_logs([client.log for client in self.clients])

    @cached_property
    def clients(self) -> tuple[Evidence, ...]:
        """The run as each of its clients saw it, with its share of the plan; itself if there is one."""
        outputs = [(self.out, self.err), *self.others]
        if len(outputs) == 1:
            return (self,)
        recorded = self.observed.get("clients")
        if not isinstance(recorded, list) or not all(isinstance(item, dict) for item in recorded):
            recorded = []
        result = []
        for number, (out, err) in enumerate(outputs):
            share = _read_or(partial(client_sharding.split_plan, self.plan, number, len(outputs)), {})
            books = recorded[number] if number < len(recorded) else {}
            result.append(self._reduce(share, OF_CLIENTS, books, out, err))
        return tuple(result)

    @cached_property
    def servers(self) -> tuple[Evidence, ...]:
        """The run as each of its servers saw it, with the clients on it; itself if there is one."""
        count = _planned_number(client_sharding.count_servers, self.plan)
        if count == 1 or client_sharding.has_standby(self.plan.get("arm_setting")):
            # What either of them served behind one proxy is known of both together alone.
            return (self,)
        recorded, outputs = self.observed.get("servers"), [(self.out, self.err), *self.others]
        if not isinstance(recorded, list) or len(recorded) != count:
            recorded = [{}] * count
        result = []
        for server, books in enumerate(recorded):
            (out, err), *others = outputs[server::count] or [("", None)]
            threads = self.planned.threads * (1 + len(others)) // len(outputs)
            # What tells the servers apart is given once, for all of them.
            same: dict[str, Any] = {} if server == 0 else {name: {} for name in IDENTITIES}
            result.append(self._reduce({"threads": threads}, OF_SERVERS, books | same, out, err, *others))
        return tuple(result)

    def _reduce(
        self, share: dict[str, Any], of_each: frozenset[str], books: dict[str, Any],
        out: str, err: str | None, *others: tuple[str, str | None],
    ) -> Evidence:  # fmt: skip
        """The run as one client or server saw it: its share of the plan, and its books of `of_each`."""
        setting = self.plan["arm_setting"]
        kept = {name: value for name, value in setting.items() if name not in client_sharding.KEYS}
        observed = {name: value for name, value in self.observed.items() if name not in of_each} | books
        plan = self.plan | share | {"arm_setting": kept}
        return replace(self, plan=plan, observed=observed, out=out, err=err, others=others)

    @cached_property
    def transaction(self) -> sysbench_workloads.Transaction:
        """Statements of one transaction of this run; raises Missing for a script without a rule."""
        transaction = sysbench_workloads.find_transaction(self.planned)
        if transaction is None:
            raise Missing(f"no rule for the script {self.planned.script}")
        return transaction

    @property
    def final(self) -> Summary:
        """The totals of the measured window; raises Missing without them."""
        if self.log.final is None or self.log.final.events is None:
            raise Missing("sysbench printed no last totals")
        return self.log.final

    def total(self, name: str) -> int:
        """Count over all blocks of totals, discarded and measured alike."""
        values = [getattr(block, name) for block in self.log.summaries]
        if not values or None in values or self.log.final is None:
            raise Missing(f"sysbench printed no total of {name}")
        return sum(values)

    def plan_value(self, name: str) -> Any:
        """Setting of the plan; raises Missing if it has none."""
        return _lookup_path(self.plan, "plan", name)

    def get(self, *path: str) -> Any:
        """Evidence under a path of keys; raises Missing if absent, and null counts as missing."""
        return _lookup_path(self.observed, "evidence", *path)

    def grown(self, counter: str) -> int:
        """Growth of a counter of the server over the run; raises Excused without ledger or counter."""
        ledger = self.get("ledger")
        if not ledger.get("available"):
            raise Excused(f"ledger not available: {ledger.get('reason') or 'no reason given'}")
        if reason := self.absent(counter):
            raise Excused(f"no {counter}: {reason}")
        return self.get("ledger", "after", counter) - self.get("ledger", "before", counter)

    def absent(self, counter: str) -> str | None:
        """Reason for the engine's lack of a counter; None if it has it or the run says nothing."""
        return ((self.observed.get("ledger") or {}).get("absent") or {}).get(counter)

    def cache(self, when: str) -> Cache | None:
        """Content of the server's pool `before` or `after` the run; None if that is not known."""
        report = (self.observed.get("cache") or {}).get(when)
        return Cache.of(report) if report else None

    def has_counter(self, counter: str) -> bool:
        """True if the ledger has a counter on both sides."""
        ledger = self.observed.get("ledger") or {}
        return all(counter in (ledger.get(side) or {}) for side in ("before", "after"))


# Each run of a group in turns has the outputs of all others beside it, and all of them are judged in a row.
_parse_once = lru_cache(maxsize=32)(parse_log)


def _read_outputs(folder: RunFolder, number: int) -> tuple[str, str | None]:
    out, err = (run_folder.client_file(number, name) for name in (run_folder.OUT, run_folder.ERR))
    return _read_or(lambda: folder.text(out), ""), _read_or(lambda: folder.text(err), None)


def _planned_number(count: Callable[[Any], int], plan: dict[str, Any]) -> int:
    """Number of clients or servers in a plan."""
    return max(1, _read_or(lambda: count(plan.get("arm_setting")), 1))


def _read_or(what: Callable[[], Any], otherwise: Any) -> Any:
    """Content of a part of a folder; the fallback for a damaged part, reported by the manifest."""
    try:
        return what()
    except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return otherwise


def _lookup_path(tree: Any, root: str, *path: str) -> Any:
    for key in path:
        if not isinstance(tree, dict) or tree.get(key) is None:
            raise Missing(f"{root} has no {'.'.join(path)}")
        tree = tree[key]
    return tree
