"""What a TiDB server tells over its status port: who it is, its settings, and the books of what it did.

The port has no login, so the lab binds it where the server itself is bound. Looking there opens no session on
the server and adds nothing to what it counts of statements.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from benchbook.sites.machine.contract import Asks, Request

SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$", re.MULTILINE)
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
STATEMENTS = {
    "Com_select": "Select",
    "Com_insert": "Insert",
    "Com_update": "Update",
    "Com_delete": "Delete",
    "Com_begin": "Begin",
    "Com_commit": "Commit",
    "Com_rollback": "Rollback",
}
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
    by: Asks

    @property
    def answers(self) -> bool:
        """Say whether the server answers; one that is stopped or shutting down does not."""
        try:
            return bool(self.who())
        except (OSError, ValueError):
            return False

    def who(self) -> dict[str, Any]:
        """Return `connections`, `version` and `git_hash`."""
        return json.loads(self._get("/status"))

    def connected(self) -> int:
        return int(self.who()["connections"])

    def config(self) -> dict[str, Any]:
        """Return the settings that it was started with, by dotted name; before 4.0 they had another path."""
        try:
            told = self._get("/config")
        except OSError:
            told = self._get("/settings")
        return flat(json.loads(told))

    def books(self) -> tuple[dict[str, int], float]:
        """Return its counters under MariaDB's names, and its uptime in seconds."""
        samples = parse(self._get("/metrics"))
        return counters(samples), time.time() - total(samples, "process_start_time_seconds")

    def _get(self, path: str) -> str:
        return self.by.request(self.address, self.port, Request(path))


def counters(samples: Samples) -> dict[str, int]:
    """Return the counters that sysbench's own counts can be held against, under MariaDB's names.

    A connection is counted when it ends, by whichever way; what did not get through the login is one too.
    An old server that does not know of its connections' ends counts none of them, but counts again what it
    does again by itself; later ones count what they were told alone.
    """
    refused = total(samples, "tidb_server_handshake_error_total")
    found = {
        name: total(samples, "tidb_executor_statement_total", type=kind) for name, kind in STATEMENTS.items()
    }
    found |= {name: total(samples, "tidb_server_query_total", type=kind) for name, kind in COMMANDS.items()}
    if any(name == ENDED for name, _, _ in samples):
        found["Connections"] = total(samples, ENDED) + refused
    else:
        # Of optimistic transactions that met others; their writes are counted again.
        found["Retries"] = total(samples, "tidb_session_retry_num_sum")
    found |= {
        "Aborted_connects": refused,
        "Questions": total(samples, "tidb_server_query_total"),
        "kv_requests": total(samples, "tidb_tikvclient_request_seconds_count"),
        "Affected_rows": total(samples, "tidb_server_affected_rows"),
    }
    return {name: round(value) for name, value in found.items()}


def parse(text: str) -> Samples:
    """Return the samples of Prometheus' text format as (name, labels, value)."""
    return [
        (name, dict(LABEL.findall(labels or "")), float(value))
        for name, labels, value in SAMPLE.findall(text)
    ]


def total(samples: Samples, name: str, **labels: str) -> float:
    """Return the sum of a metric over all samples with these labels; one that never happened is 0."""
    return sum(value for found, its, value in samples if found == name and labels.items() <= its.items())


def flat(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested settings by dotted name."""
    rows: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            rows |= flat(value, f"{prefix}{key}.")
        else:
            rows[f"{prefix}{key}"] = value
    return rows


# TiKV's status port has this path, and this counter for each thread, since 3.0.
METRICS = "/metrics"
THREAD_CPU = re.compile(r'^tikv_thread_cpu_seconds_total\{[^}]*\bname="([^"]+)"[^}]*\}\s+(\S+)', re.MULTILINE)


def pool_seconds(text: str) -> dict[str, float]:
    """Return the processor time in s of each thread pool of one TiKV; empty where it is not told."""
    found: dict[str, float] = {}
    for name, value in THREAD_CPU.findall(text):
        pool = re.sub(r"[-_:]*\d*$", "", name) or name
        found[pool] = found.get(pool, 0.0) + float(value)
    return found


def pools_spent(
    before: Iterable[Mapping[str, float]], after: Iterable[Mapping[str, float]]
) -> dict[str, float] | None:
    """Return the seconds that each pool of all TiKV used, busiest first; None if one started again."""
    total: dict[str, float] = {}
    for first, last in zip(before, after, strict=True):
        for pool, value in last.items():
            used = value - first.get(pool, 0.0)
            if used < -0.5:
                return None
            total[pool] = total.get(pool, 0.0) + max(0.0, used)
    shown = {pool: round(value, 2) for pool, value in total.items() if value >= 0.01}
    return dict(sorted(shown.items(), key=lambda one: -one[1]))
