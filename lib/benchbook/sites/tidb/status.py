"""TiDB's and PD's answers over HTTP: identity, settings, counters, stores, leaders.

These ports have no login, so the lab binds TiDB's where the server itself is bound, those of PD and stores to
loopback. Looking there opens no session on a server and adds nothing to what it counts of statements.
"""

import contextlib
import json
import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from benchbook.core.util.errors import SiteError
from benchbook.core.util.numeric_equality import flatten_mapping
from benchbook.sites.machine.contract import Machine, Request
from benchbook.sites.settings import Value, format_value, is_same_value

SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$", re.MULTILINE)
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
KINDS = ("Select", "Insert", "Update", "Delete", "Begin", "Commit", "Rollback")
COMMANDS = {"Com_stmt_prepare": "StmtPrepare", "Com_stmt_execute": "StmtExecute"}
# What MariaDB counts and TiDB does not, in words for the run.
ABSENT = {"Rows_sent": "TiDB doesn't count the rows it sends"}
# What only newer ones count: the metric came in July 2020, and stands at 0 from the start where it is known.
ENDED = "tidb_server_disconnection_total"
UNCOUNTED = {"Connections": f"this version of TiDB doesn't count connections ({ENDED})"}
# Both, as a connection tells of them.
NOT_COUNTED = {"absent": ABSENT, "uncounted": UNCOUNTED}

Samples = list[tuple[str, dict[str, str], float]]


@dataclass(frozen=True)
class Status:
    """The status port of one server; every look is a request of its own. Raises OSError if none answers."""

    address: str
    port: int
    by: Machine

    @property
    def answers(self) -> bool:
        """True if the server answers; one that is stopped or shutting down does not."""
        try:
            return bool(self.who())
        except (OSError, ValueError):
            return False

    def who(self) -> dict[str, Any]:
        """`connections`, `version` and `git_hash`."""
        return json.loads(self._get("/status"))

    def connected(self) -> int:
        return int(self.who()["connections"])

    def config(self) -> dict[str, Any]:
        """Settings that it was started with, by dotted name; before 4.0 they had another path."""
        try:
            message = self._get("/config")
        except OSError:
            message = self._get("/settings")
        return flatten_mapping(json.loads(message))

    def books(self) -> tuple[dict[str, int], float]:
        """Its counters under MariaDB's names, and its uptime in seconds."""
        samples = parse_samples(self._get("/metrics"))
        return map_counters(samples), time.time() - sum_samples(samples, "process_start_time_seconds")

    def _get(self, path: str) -> str:
        return self.by.request(self.address, self.port, Request(path))


def map_counters(samples: Samples) -> dict[str, int]:
    """Counters that sysbench's own counts can be checked against, under MariaDB's names.

    A connection is counted when it ends, by whichever way; what did not get through the login is one too.
    An old server that does not know of its connections' ends counts none of them, but counts again what it
    does again by itself; later ones count what they were told alone.
    """
    count = partial(sum_samples, samples)
    refused = count("tidb_server_handshake_error_total")
    results = {f"Com_{kind.lower()}": count("tidb_executor_statement_total", type=kind) for kind in KINDS}
    results |= {name: count("tidb_server_query_total", type=kind) for name, kind in COMMANDS.items()}
    if any(name == ENDED for name, _, _ in samples):
        results["Connections"] = count(ENDED) + refused
    else:
        # Of optimistic transactions that met others; their writes are counted again.
        results["Retries"] = count("tidb_session_retry_num_sum")
    results |= {
        "Aborted_connects": refused,
        "Questions": count("tidb_server_query_total"),
        "kv_requests": count("tidb_tikvclient_request_seconds_count"),
        "Affected_rows": count("tidb_server_affected_rows"),
    }
    return {name: round(value) for name, value in results.items()}


def parse_samples(text: str) -> Samples:
    """Samples of Prometheus' text format as (name, labels, value)."""
    samples = SAMPLE.findall(text)
    return [(name, dict(LABEL.findall(labels)), float(value)) for name, labels, value in samples]


def sum_samples(samples: Samples, name: str, **labels: str) -> float:
    """Sum of a metric over all samples with these labels; one that never happened is 0."""
    return sum(value for sample, its, value in samples if sample == name and labels.items() <= its.items())


# TiKV's status port has this counter for each thread, since 3.0.
THREAD_CPU = re.compile(r'^tikv_thread_cpu_seconds_total\{[^}]*\bname="([^"]+)"[^}]*\}\s+(\S+)', re.MULTILINE)


def pool_seconds(text: str) -> dict[str, float]:
    """Processor time in s of each thread pool of one TiKV; empty if it does not tell."""
    seconds: dict[str, float] = defaultdict(float)
    for name, value in THREAD_CPU.findall(text):
        seconds[re.sub(r"[-_:]*\d*$", "", name) or name] += float(value)
    return seconds


def read_thread_pools(stores: Iterable[tuple[Machine, str, int]]) -> list[dict[str, float]] | None:
    """Processor time in s of each thread pool of each TiKV; None if one does not tell."""
    try:
        return [pool_seconds(by.request(address, port, Request("/metrics"))) for by, address, port in stores]
    except (OSError, ValueError):
        return None


@contextlib.contextmanager
def record_pools(stores: Sequence[tuple[Machine, str, int]], record: dict[str, Any]) -> Iterator[None]:
    """Record the processor time that each pool of all TiKV used while the block ran, if all tell it."""
    before = read_thread_pools(stores)
    yield
    if before is not None and (after := read_thread_pools(stores)) is not None:
        record["tikv_threads"] = pools_spent(before, after)


def pools_spent(
    before: Iterable[Mapping[str, float]], after: Iterable[Mapping[str, float]]
) -> dict[str, float] | None:
    """Seconds that each pool of all TiKV used, busiest first; None if one started again."""
    total: dict[str, float] = defaultdict(float)
    for first, last in zip(before, after, strict=True):
        for pool, value in last.items():
            used = value - first.get(pool, 0.0)
            if used < -0.5:
                return None
            total[pool] += max(0.0, used)
    shown = {pool: round(value, 2) for pool, value in total.items() if value >= 0.01}
    return dict(sorted(shown.items(), key=lambda item: -item[1]))


# Settings that PD keeps with its data, so that its file counts at the first start alone.
KEPT = ("schedule.", "replication.", "pd-server.")
WORDED = ("true", "false")


@dataclass(frozen=True)
class State:
    """Stores by name with `id` and `state`, the store that leads each region (None: none does), how many
    regions are on how many stores, and how many PD is at work on."""

    stores: dict[str, dict[str, Any]]
    leaders: dict[str, str | None]
    replicas: dict[str, int]
    busy: int


@dataclass(frozen=True)
class PlacementDriver:
    """One PD. `names` are those of the stores by the addresses that they are known under."""

    address: str
    port: int
    names: Mapping[str, str]
    by: Machine

    @property
    def answers(self) -> bool:
        """True if PD answers and is the leader of its own group."""
        try:
            return bool(self._ask("leader").get("name"))
        except (OSError, ValueError):
            return False

    def state(self) -> State:
        """Present stores and regions by PD."""
        stores = {
            item["store"]["id"]: (self._name(item["store"]["address"]), item["store"])
            for item in self._ask("stores").get("stores") or ()
        }
        regions = self._ask("regions").get("regions") or ()
        leaders = {}
        for region in regions:
            leader = (region.get("leader") or {}).get("store_id")
            leaders[str(region["id"])] = stores[leader][0] if leader in stores else None
        copies = Counter(len(part["peers"]) - len(part.get("pending_peers") or ()) for part in regions)
        return State(
            stores={name: {"id": id, "state": item["state_name"]} for id, (name, item) in stores.items()},
            leaders=dict(sorted(leaders.items())),
            replicas={str(count): number for count, number in sorted(copies.items())},
            busy=len(self._ask("operators") or ()),
        )

    def look(self, ended: list[str]) -> dict[str, Any]:
        """Stores and leaders now, or the `reason` why PD does not tell, beside parts that have `ended`."""
        try:
            return {**vars(self.state()), "ended": ended}
        except (SiteError, OSError, ValueError, KeyError) as error:
            return {"ended": ended, "reason": f"PD does not tell: {type(error).__name__}"}

    def stores(self) -> list[str]:
        """Version and state of every store, sorted."""
        stores = [item["store"] for item in self._ask("stores")["stores"]]
        return sorted(f"{item.get('version')} {item.get('state_name')}" for item in stores)

    def config(self) -> dict[str, Any]:
        messages = flatten_mapping(self._ask("config"))
        return {key: value == "true" if str(value) in WORDED else value for key, value in messages.items()}

    def set(self, requests: Mapping[str, Value]) -> None:
        """Set those settings that PD keeps with its data, if they differ."""
        now, messages = self.config(), flatten_mapping(self._ask("config"))
        statements = {
            # Some switches PD takes as words only, and it tells those as words.
            key: str(value).lower() if isinstance(value, bool) and str(messages.get(key)) in WORDED else value
            for key, value in requests.items()
            if key.startswith(KEPT) and not is_same_value(value, format_value(now.get(key, "")))
        }
        try:
            if statements:
                self._ask("config", statements)
        except ConnectionError as error:
            raise SiteError(f"engine.cluster.pd_settings: {statements}: PD says: {error}") from None

    def _name(self, address: str) -> str:
        return self.names.get(address, "unknown")

    def _ask(self, what: str, statements: Mapping[str, Any] | None = None) -> Any:
        path = f"/pd/api/v1/{what}"
        request = Request(path) if statements is None else Request(path, "POST", json.dumps(statements))
        message = self.by.request(self.address, self.port, request)
        return json.loads(message) if statements is None else message


def find_faults(state: State, stores: int, replicas: int) -> list[str]:
    """Faults that keep a cluster from being ready, in words; none means it is."""
    up = [store["state"] for store in state.stores.values()].count("Up")
    lost = [*state.leaders.values()].count(None)
    wrong = sum(state.replicas.values()) - state.replicas.get(str(replicas), 0)
    faults = {
        f"{up} of {stores} stores are up": up != stores,
        "there is no region yet": not state.leaders,
        f"{lost} regions have no leader": lost,
        f"{wrong} regions are not on {replicas} stores": wrong,
        f"PD is at work on {state.busy} regions": state.busy,
    }
    return [fault for fault, is_so in faults.items() if is_so]
