"""Judge a run: valid only if every check passes. No check looks at how fast the run was."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from benchbook.core.params import Limits
from benchbook.core.runfolder import RunFolder
from benchbook.read import (
    checks_clock,
    checks_cluster,
    checks_each,
    checks_log,
    checks_machine,
    checks_options,
    checks_physics,
    checks_server,
    checks_state,
    checks_strangers,
    checks_turns,
)
from benchbook.read.checks_each import of_clients, of_servers
from benchbook.read.evidence import Evidence, Excused, Missing

Status = Literal["valid", "invalid", "indeterminate"]
WARNING_SHARE = 0.1
"""Share of the allowed error ratio from which errors are shown beside the figures."""

CHECKS: tuple[tuple[str, str, Callable[[Evidence, Limits], list[str]]], ...] = (
    ("V1", "exit code", of_clients(checks_log.exit_code)),
    ("V2", "stderr", of_clients(checks_log.stderr)),
    ("V3", "stdout", of_clients(checks_log.stdout)),
    ("V4", "totals", of_clients(checks_log.totals)),
    ("V5", "options", of_clients(checks_options.options)),
    ("V6", "time", of_clients(checks_clock.time)),
    ("V7", "intervals", of_clients(checks_log.intervals)),
    ("V8", "errors", of_clients(checks_log.errors)),
    ("V9", "work", of_clients(checks_log.work)),
    ("V10", "ledger", of_servers(checks_server.ledger)),
    ("V11", "hits", of_servers(checks_server.hits)),
    ("V12", "identity", of_servers(checks_server.identity)),
    ("V13", "data", of_servers(checks_server.data)),
    ("V14", "alone", checks_machine.alone),
    ("V15", "client CPU", checks_each.client),
    ("V16", "machine", checks_machine.machine),
    ("V17", "server log", checks_machine.server_log),
    ("V18", "encryption", checks_machine.encryption),
    ("V19", "disk", checks_machine.disk),
    ("V20", "pauses", checks_machine.pauses),
    ("V21", "arrangement", checks_machine.arrangement),
    ("V22", "beginning", checks_each.beginning),
    ("V23", "turns", checks_turns.turns),
    ("V24", "cluster", checks_cluster.cluster),
    ("V25", "cache", of_servers(checks_server.cache)),
    ("V26", "physics", checks_physics.physics),
)


@dataclass(frozen=True)
class Check:
    """One check: `passed` is None where the evidence is missing.

    `is_excused` marks evidence that the site can't give and says so; it does not count against the run.
    """

    id: str
    name: str
    passed: bool | None
    detail: str = ""
    is_excused: bool = False

    def __str__(self) -> str:
        return f"{self.id} {self.name}: {self.detail}"


@dataclass(frozen=True)
class Judgement:
    """What the checks say of one run; `evidence` is what they saw."""

    evidence: Evidence
    checks: tuple[Check, ...]
    warnings: tuple[str, ...]

    @property
    def status(self) -> Status:
        """`invalid` if any check failed, `indeterminate` (counted as invalid) if evidence is missing."""
        if any(check.passed is False for check in self.checks):
            return "invalid"
        return "indeterminate" if self._unknown else "valid"

    @property
    def reasons(self) -> list[str]:
        """Each check that failed or could not be made, in words."""
        failed = [check for check in self.checks if check.passed is False]
        return [str(check) for check in (*failed, *self._unknown)]

    @property
    def ledger(self) -> str:
        """What the runs table says of the ledger: `agrees`, or why there is none."""
        check = next(check for check in self.checks if check.id == "V10")
        return "agrees" if check.passed else check.detail

    @property
    def qps(self) -> float | None:
        """Queries a second of the measured window, for progress; None where the output has none."""
        log = self.evidence.log
        try:
            seconds = self.evidence.active_s
        except Missing:
            return None
        return log.final.queries / seconds if log.final and log.final.queries and seconds else None

    @property
    def _unknown(self) -> list[Check]:
        return [check for check in self.checks if check.passed is None and not check.is_excused]


def judge(run: RunFolder | Evidence, limits: Limits | Mapping[str, Any] | None = None) -> Judgement:
    """Judge a run folder, or evidence already read, by the limits of `params.yaml` (None: the defaults).

    The `Limits` type refuses limits that are unknown or impossible.
    """
    if not isinstance(limits, Limits):
        limits = Limits(**(limits or {}))
    evidence = run if isinstance(run, Evidence) else Evidence.of(run)
    checks = tuple(_check(evidence, limits, *row) for row in CHECKS)
    warnings = dict.fromkeys(check.detail for check in checks if check.is_excused)
    warnings |= dict.fromkeys(checks_state.not_held(evidence))
    warnings |= dict.fromkeys(checks_cluster.said(evidence))
    warnings |= dict.fromkeys(checks_strangers.words(evidence))
    try:
        ratio = checks_log.error_ratio(evidence)
        if WARNING_SHARE * limits.error_ratio <= ratio <= limits.error_ratio:
            warnings[f"{100 * ratio:.2f} % ignored errors per transaction"] = None
    except Missing:
        pass
    return Judgement(evidence, checks, tuple(warnings))


def _check(
    evidence: Evidence, limits: Limits, id: str, name: str, find: Callable[[Evidence, Limits], list[str]]
) -> Check:
    try:
        faults = find(evidence, limits)
    except Excused as excuse:
        return Check(id, name, None, str(excuse), is_excused=True)
    except Missing as missing:
        return Check(id, name, None, str(missing))
    except (TypeError, ValueError, AttributeError, KeyError, ZeroDivisionError) as error:
        return Check(id, name, None, f"the evidence can't be used: {type(error).__name__}: {error}")
    return Check(id, name, not faults, "; ".join(faults))
