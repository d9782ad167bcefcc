"""The recorded outputs of sysbench, and evidence around an output as a healthy run would leave it."""

import copy
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from benchbook.core.artifacts import applied_config
from benchbook.core.study import sysbench_options, sysbench_workloads
from benchbook.core.study.model import PlannedRun
from benchbook.read.evidence import Evidence
from benchbook.read.sysbench_log import parse_log

DATA = Path(__file__).parents[1] / "data" / "sysbench"


@dataclass(frozen=True)
class Case:
    """One recorded run of sysbench and what must be said of it.

    `status` is the parser's; `verdict` the judge's, given `plan` and clean surroundings but for `evidence`;
    `because` names the checks that fail.
    """

    name: str
    command: str
    exit_code: int
    status: str
    verdict: str = ""
    because: tuple[str, ...] = ()
    note: str = ""
    plan: dict[str, Any] = field(default_factory=dict)
    evidence: dict[str, Any] = field(default_factory=dict)

    @property
    def out(self) -> str:
        return (DATA / f"{self.name}.out").read_bytes().decode("utf-8", errors="replace")

    @property
    def err(self) -> str:
        path = DATA / f"{self.name}.err"
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def run(self) -> Evidence:
        """Return the recorded run as evidence to be judged."""
        return healthy(self.out, self.plan, self.err, {"exit_code": self.exit_code, **self.evidence})


@cache
def cases() -> tuple[Case, ...]:
    """Return all recorded runs."""
    rows = YAML(typ="safe").load((DATA / "cases.yaml").read_text(encoding="utf-8"))
    return tuple(Case(**{**row, "because": tuple(row.get("because", ()))}) for row in rows)


def case(name: str) -> Case:
    """Return one recorded run by name."""
    return next(found for found in cases() if found.name == name)


PLAN = {
    "format": 1,
    "study": "corpus",
    "run_id": "b01-read-t0004-direct-0123456789",
    "block": 1,
    "position": 0,
    "group": "b01-read-t0004",
    "arm": "direct",
    "arm_setting": {},
    "workload": "read",
    "script": "oltp_read_write",
    "options": {},
    "threads": 4,
    "discard_s": 0,
    "run_s": 6,
    "percentile": 95,
    "rate": 0,
    "seed": None,
    "tables": 4,
    "table_size": 10000,
    "interval_s": 1,
    "histogram": False,
    "conditions": {},
}
# sysbench's own defaults, which a study passes on: `Workload` of `core.study_sections`.
OPTIONS: dict[str, Any] = {
    "ps_mode": "auto", "skip_trx": False, "rand_type": "uniform", "ignore_errors": [1213, 1020, 1205],
    "range_size": 100, "point_selects": 10, "simple_ranges": 1, "sum_ranges": 1, "order_ranges": 1,
    "distinct_ranges": 1, "index_updates": 1, "non_index_updates": 1, "delete_inserts": 1,
    "random_points": 10, "number_of_ranges": 10, "delta": 5,
}  # fmt: skip
PLACE = {
    "db-driver": "mysql", "mysql-host": "127.0.0.1", "mysql-port": "33060", "mysql-db": "sbtest",
}  # fmt: skip
CONFIG = "[mariadbd]\nmax_connections=1024"
ARGV = "/usr/sbin/mariadbd\n--defaults-file=SERVER/my.cnf"
WHO = {
    "pid": 10, "started": 5.0, "version": "10.11.6", "datadir": "/d/", "port": 33060,
    "config_hash": applied_config.digest_text(CONFIG),
    "started_with": {"mariadbd.argv": applied_config.digest_text(ARGV)},
}  # fmt: skip


def healthy(out: str, plan: dict[str, Any], err: str = "", changed: dict[str, Any] | None = None) -> Evidence:
    """Return evidence that agrees with an output in all that the output does not say itself.

    `changed` overrides parts of `evidence.json`; dictionaries are merged.
    """
    plan = {**PLAN, **plan}
    plan["options"] = {**OPTIONS, **plan["options"]}
    log = parse_log(out)
    lasted = log.final.total_time_s if log.final and log.final.total_time_s else 1.0
    sizes = {f"sbtest{number}": plan["table_size"] for number in range(1, plan["tables"] + 1)}
    seen: dict[str, Any] = {
        "attempt": 1,
        "argv": argv(plan, "off"),
        "exit_code": 0,
        "ended_by": "itself",
        "started_utc": "2026-01-05T10:00:00.000+00:00",
        "ended_utc": "2026-01-05T10:00:06.000+00:00",
        "started_monotonic_s": 100.0,
        "ended_monotonic_s": 100.0 + lasted,
        "sysbench_s": lasted,
        "identity_at_start": dict(WHO),
        "identity_before": dict(WHO),
        "identity_after": dict(WHO),
        "uptime_before_s": 50,
        "uptime_after_s": 50 + round(lasted),
        "ledger": {"available": True, "reason": None, "own_connections": 0},
        "state": {
            "settings": {"at_start": "s", "before": "s", "after": "s"},
            "tables": {"at_start": "t", "before": "t", "after": "t"},
            "written_between": {},
            "not_held": {},
            "between": {
                "seconds": 2.0,
                "uptime_s": 2,
                "connections": 3,
                "own": 3,
                "refused": 0,
                "counters": {},
                "not_held": {},
                "is_shared": False,
            },
        },
        "rows_before": sizes,
        "rows_after": dict(sizes),
        "foreign_sessions": 0,
        "client": {
            "runqueue_wait_s": 0.0,
            "threads": plan["threads"],
            "cpu_s": 0.3 * lasted,
            "allowance_cores": 1.0,
        },
        "longest_pause_ms": 3.0,
        "oom_kills": 0,
        "clock_step_s": 0.0,
        "steal_pct": 0.0,
        "server_log_errors": [],
        "tls": {"asked": "off", "cipher": ""},
        "free_bytes_before": 10**10,
        "free_bytes_after": 10**10,
        "limits": {},
    }
    if "argv" not in (changed or {}) and isinstance((changed or {}).get("tls"), dict):
        seen["argv"] = argv(plan, changed["tls"].get("asked", "off"))
    grown = books(log, plan)
    seen["ledger"]["before"] = dict.fromkeys(grown, 1000)
    seen["ledger"]["after"] = {name: 1000 + count for name, count in grown.items()}
    one = sysbench_workloads.find_transaction(PlannedRun.of(plan))
    if one is not None and log.final is not None:
        seen["rows_after"]["sbtest1"] += one.growth * sum(block.writes or 0 for block in log.summaries)
    return Evidence(plan, merged(seen, changed or {}), out, err)


def argv(plan: dict[str, Any], tls: str = "off") -> list[str]:
    """Return the command line of a planned run."""
    planned, ssl = PlannedRun.of(plan), "off" if tls == "off" else "on"
    asked = PLACE | {"mysql-ssl": ssl} | sysbench_options.general_options(planned)
    return [
        "sysbench",
        "--config-file=/run/account.cnf",
        *(f"--{name}={value}" for name, value in asked.items()),
        plan["script"],
        *(f"--{name}={value}" for name, value in sysbench_options.of_script(planned).items()),
        "run",
    ]


def in_a_file(plan: dict[str, Any], taken: dict[str, str]) -> dict[str, Any]:
    """Return what is seen of a client with its options in a file; `taken` is what sysbench took otherwise."""
    asked = PLACE | {"mysql-ssl": "off"} | sysbench_options.general_options(PlannedRun.of(plan))
    words = [word for word in argv(plan) if word.split("=")[0][2:] not in asked]
    return {
        "argv": [words[0], "--config-file=/run/sysbench.cnf", *words[1:]],
        "options": {"asked": asked, "taken": asked | taken},
    }


def books(log: Any, plan: dict[str, Any]) -> dict[str, int]:
    """Return what an honest server counts for a log: the rules of the sources, written out a second time."""
    if log.final is None or log.final.total is None:
        return {}
    reads, total, done, spoilt = (
        sum(getattr(block, name) for block in log.summaries)
        for name in ("reads", "total", "transactions", "ignored_errors")
    )
    script, threads = plan["script"], plan["threads"]
    is_long = script in ("oltp_read_only", "oltp_read_write", "oltp_write_only")
    begins = is_long and not plan["options"]["skip_trx"]
    is_prepared = script != "oltp_insert" and plan["options"]["ps_mode"] == "auto"
    kinds = {"oltp_read_only": 5, "oltp_read_write": 9, "oltp_write_only": 4}.get(script, 1)
    updates = {"oltp_read_write": 2, "oltp_write_only": 2}.get(script, "_update_" in script)
    pairs = 1 if script in ("oltp_read_write", "oltp_write_only") else 0
    of_ranges = 10 + 3 * plan["options"].get("range_size", 100) + 1
    rows = {"oltp_point_select": 1, "oltp_read_only": of_ranges, "oltp_read_write": of_ranges}.get(script, 0)
    return {
        "Com_select": reads,
        "Com_insert": done * (pairs or script == "oltp_insert"),
        "Com_update": done * updates,
        "Com_delete": done * (pairs or script == "oltp_delete"),
        "Com_begin": done + spoilt if begins else 0,
        "Com_commit": done if begins else 0,
        "Com_stmt_prepare": threads * (kinds * plan["tables"] + 2 * begins) if is_prepared else 0,
        "Com_stmt_execute": total + spoilt if is_prepared else 0,
        "Connections": threads,
        "Rows_sent": rows * done,
        "Ssl_accepts": 0,
    }


def merged(tree: dict[str, Any], changed: dict[str, Any]) -> dict[str, Any]:
    """Return a tree with some of its branches replaced; None in `changed` removes a branch."""
    result = copy.deepcopy(tree)
    for key, value in changed.items():
        if isinstance(value, dict) and isinstance(result.get(key), dict):
            result[key] = merged(result[key], value)
        elif value == "ABSENT":
            result.pop(key, None)
        else:
            result[key] = value
    return result
