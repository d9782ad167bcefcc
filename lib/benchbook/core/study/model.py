"""The words of the house as frozen types shared by all floors."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

FORMAT = 1
# Settings of a planned run that only turns have.
OF_TURNS = ("order", "turn_ms", "partners", "edge_s")


@dataclass(frozen=True)
class Endpoint:
    """Server address for sysbench; `secret` is a 0600 file with the account, not the account, and
    `driver` is sysbench's."""

    host: str
    port: int
    database: str
    secret: Path
    socket: Path | None = None
    tls: str = "off"
    driver: str = "mysql"

    @property
    def place(self) -> str:
        """Address in a word: a socket, or host and port."""
        return f"{self.host}:{self.port}" if self.socket is None else str(self.socket)


@dataclass(frozen=True)
class PlannedRun:
    """One run as scheduled: everything that affects it, and its place in the order.

    `run_id` ends in a hash of all settings but `position`, so a changed setting never reuses an old
    run, and a study that grows keeps all it has. In turns (`order`) each run names all arms of its group,
    itself among them (`partners`), and where clients take long to start, the seconds for that (`edge_s`, else
    0). Of an own script `own` has the SHA-256 of its files and the statements
    that the pilots showed.
    """

    study: str
    block: int
    position: int
    group: str
    arm: str
    arm_setting: dict[str, Any]
    workload: str
    script: str
    options: dict[str, Any]
    threads: int
    discard_s: int | float
    run_s: int | float
    percentile: int
    rate: int
    seed: int
    tables: int
    table_size: int
    conditions: dict[str, Any] = field(default_factory=dict)
    order: str = "runs"
    turn_ms: int = 0
    partners: tuple[str, ...] = ()
    edge_s: float = 0.0
    own: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def run_id(self) -> str:
        """Name of the run: block, workload, threads, arm, then 10 hex digits of its settings."""
        return run_id_of({"format": FORMAT, **self._settings()})

    @classmethod
    def of(cls, plan: Mapping[str, Any]) -> PlannedRun:
        """The run of a `plan.json`; TypeError if it lacks a setting."""
        values = {item.name: plan[item.name] for item in fields(cls) if item.name in plan}
        return cls(**values | {"partners": tuple(values.get("partners", ()))})

    def to_dict(self) -> dict[str, Any]:
        """Content of `plan.json`."""
        return {"format": FORMAT, "run_id": self.run_id, **copy.deepcopy(self._settings())}

    def _settings(self) -> dict[str, Any]:
        """All fields, without those of turns and own scripts if there are none: ids stay."""
        settings = {item.name: getattr(self, item.name) for item in fields(self)}
        settings["partners"] = list(self.partners)
        left_out = {*(() if self.partners else OF_TURNS), *(() if self.own else ("own",))}
        left_out |= set() if self.edge_s else {"edge_s"}
        return {key: value for key, value in settings.items() if key not in left_out}


def run_id_of(plan: Mapping[str, Any]) -> str:
    """Name that a run with the content of this `plan.json` has."""
    digest = compute_fingerprint({name: plan[name] for name in plan if name not in ("run_id", "position")})
    return f"b{plan['block']:02d}-{plan['workload']}-t{plan['threads']:04d}-{plan['arm']}-{digest}"


def compute_fingerprint(value: Any, digits: int = 10) -> str:
    """Hex digits that change with any part of a JSON-able value."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:digits]
