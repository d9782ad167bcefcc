"""Parts of a run's `evidence.json` as types: measuring writes them, reading takes them apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self


@dataclass(frozen=True)
class _Seen:
    """A part of what was seen, under its own keys; what it does not name is no concern of its readers."""

    @classmethod
    def of(cls, seen: Mapping[str, Any]) -> Self:
        """Take it from a mapping; TypeError where a key without a default lacks."""
        return cls(**{one.name: seen[one.name] for one in fields(cls) if one.name in seen})


@dataclass(frozen=True)
class Times(_Seen):
    """When a run began and ended, by both clocks, and how far the one on the wall stepped."""

    started_utc: str
    ended_utc: str
    started_monotonic_s: float
    ended_monotonic_s: float
    sysbench_s: float
    clock_step_s: float


@dataclass(frozen=True)
class Cache(_Seen):
    """The pages of a server's pool, by its own count, and what it had read from disk by then."""

    pages: int
    pages_of_pool: int
    page_bytes: int
    pages_read: int
    bytes_read: int


@dataclass(frozen=True)
class Between(_Seen):
    """What a server counted from the end of one run to the start of the next.

    `counters` holds only what moved; `connections` are all, `own` those that this process made.
    """

    seconds: float
    uptime_s: float
    connections: int | None
    own: int | None
    counters: Mapping[str, int]
    is_shared: bool
    refused: int = 0
    not_held: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Network(_Seen):
    """A network namespace of an arm's parts; what the kernel does not tell is None."""

    parts: list[str]
    is_shared: bool
    rules: int | None
    dropped: int | None
    sent: int | None = None
    again: int | None = None


@dataclass(frozen=True)
class Strangers(_Seen):
    """What others did to the processes and packets of a run on one machine."""

    traced: Mapping[str, str]
    stopped: Mapping[str, int]
    continued: list[str]
    counting: list[str]
    networks: list[Mapping[str, Any]]
    connections: Mapping[str, int | None] | None

    @property
    def each(self) -> list[Network]:
        """Its networks."""
        return [Network.of(one) for one in self.networks]
