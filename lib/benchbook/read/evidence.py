"""What a run folder proves, and how a check asks for it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from benchbook.core import runfolder
from benchbook.core.runfolder import RunFolder
from benchbook.read import scripts
from benchbook.read.log import Summary, SysbenchLog
from benchbook.read.sysbench_log import parse


class Missing(Exception):
    """A check needs something that the folder does not have: neither passed nor failed."""


class Excused(Exception):
    """A check can't be made here, and the folder says why: no fault of the run, shown as a warning."""


@dataclass(frozen=True)
class Evidence:
    """A run folder taken apart: plan, what was seen, sysbench's output, and what its manifest refuses."""

    plan: dict[str, Any]
    seen: dict[str, Any]
    out: str
    err: str | None
    broken: tuple[str, ...] = ()

    @classmethod
    def of(cls, folder: RunFolder) -> Evidence:
        """Read a folder; what can't be read is left empty, and the manifest says so."""
        return cls(
            plan=_mapping(folder.plan),
            seen=_mapping(folder.evidence),
            out=_or(lambda: folder.text(runfolder.OUT), ""),
            err=_or(lambda: folder.text(runfolder.ERR), None),
            broken=tuple(folder.verify()),
        )

    @cached_property
    def log(self) -> SysbenchLog:
        """sysbench's output, parsed once."""
        return parse(self.out)

    @cached_property
    def transaction(self) -> scripts.Transaction:
        """What one transaction of this run consists of; raises Missing for a script without a rule."""
        needed = {name: self.asked(name) for name in ("script", "tables", "table_size")}
        found = scripts.transaction({**self.plan, **needed})
        if found is None:
            raise Missing(f"no rule for the script {self.plan['script']}")
        return found

    @property
    def final(self) -> Summary:
        """The totals of the measured window; raises Missing without them."""
        if self.log.final is None or self.log.final.events is None:
            raise Missing("sysbench printed no last totals")
        return self.log.final

    def total(self, name: str) -> int:
        """Return a count over all blocks of totals, discarded and measured alike."""
        values = [getattr(block, name) for block in self.log.summaries]
        if not values or None in values or self.log.final is None:
            raise Missing(f"sysbench printed no total of {name}")
        return sum(values)

    def asked(self, name: str) -> Any:
        """Return a setting of the plan, or raise Missing."""
        return _get(self.plan, "plan", name)

    def get(self, *path: str) -> Any:
        """Return what was seen under a path of keys, or raise Missing; null counts as missing."""
        return _get(self.seen, "evidence", *path)

    def grown(self, counter: str) -> int:
        """Return by how much a counter of the server grew over the run.

        Raises Excused where the site has no ledger or the engine no such counter, Missing where the
        counter is not in it.
        """
        ledger = self.get("ledger")
        if not ledger.get("available"):
            raise Excused(f"ledger not available: {ledger.get('reason') or 'no reason given'}")
        if reason := self.absent(counter):
            raise Excused(f"no {counter}: {reason}")
        return self.get("ledger", "after", counter) - self.get("ledger", "before", counter)

    def absent(self, counter: str) -> str | None:
        """Return why the engine has no such counter, as the run says; None if it has or says nothing."""
        return ((self.seen.get("ledger") or {}).get("absent") or {}).get(counter)

    def has_counter(self, counter: str) -> bool:
        """Tell whether the ledger knows a counter on both sides."""
        ledger = self.seen.get("ledger") or {}
        return all(counter in (ledger.get(side) or {}) for side in ("before", "after"))


def _mapping(read: Any) -> dict[str, Any]:
    found = _or(read, {})
    return found if isinstance(found, dict) else {}


def _or(read: Any, otherwise: Any) -> Any:
    try:
        return read()
    except (OSError, ValueError, RecursionError):
        return otherwise


def _get(tree: Any, root: str, *path: str) -> Any:
    for key in path:
        if not isinstance(tree, dict) or tree.get(key) is None:
            raise Missing(f"{root} has no {'.'.join(path)}")
        tree = tree[key]
    return tree
