"""Judge a run: valid only if every check passes. No check looks at the run's speed."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from benchbook.core.artifacts.run_folder import RunFolder
from benchbook.core.study import client_sharding
from benchbook.core.study.params import Limits
from benchbook.read import (
    checks_clock,
    checks_cluster,
    checks_cross_source,
    checks_log,
    checks_machine,
    checks_server,
    checks_turns,
)
from benchbook.read.evidence import Evidence, Excused, Missing

Find = Callable[[Evidence, Limits], Iterator[str]]


def check_client(run: Evidence, limits: Limits) -> Iterator[str]:
    """V15: the clients got the cores they asked for, together and each, and had some to spare."""
    yield from checks_machine.check_client(run, limits)
    for number, evidence in enumerate(run.clients if len(run.clients) > 1 else ()):
        waited = evidence.observed.get("runqueue_wait_s")
        if waited is None or evidence.log.final is None or not evidence.log.final.total_time_s:
            continue
        share = waited / (evidence.plan_value("threads") * evidence.log.final.total_time_s)
        if share > limits.client_wait:
            most = f"at most {limits.client_wait:g} s"
            yield f"client {number}: threads waited {share:.2f} s for a core each second, {most}"


def check_beginning(run: Evidence, limits: Limits) -> Iterator[str]:
    """V22: all clients of the plan ran, and began at one moment, so that their windows are one."""
    run.require_record()
    setting = run.plan.get("arm_setting")
    request, servers = client_sharding.count_clients(setting), client_sharding.count_servers(setting)
    clients = run.get("clients") if request > 1 else []
    if (ran := len(run.observed.get("clients") or [run])) != request:
        yield f"{ran} clients ran, {request} asked"
    if request == 1:
        return
    for number, item in enumerate(clients):
        if item.get("server") != (due := client_sharding.server_of(number, servers)):
            yield f"client {number} used server {item.get('server')}, not {due}"
    if (spread := run.get("start_spread_ms")) > limits.start_spread_ms:
        yield f"the clients began {spread:.0f} ms apart, at most {limits.start_spread_ms:g} ms"


Status = Literal["valid", "invalid", "indeterminate"]
WARNING_SHARE = 0.1
"""Share of the allowed error ratio from which errors are shown beside the figures."""

CHECKS: tuple[tuple[str, str, Find], ...] = (
    ("V1", "exit code", checks_log.exit_code),
    ("V2", "stderr", checks_log.check_stderr),
    ("V3", "stdout", checks_log.check_stdout),
    ("V4", "totals", checks_log.check_totals),
    ("V5", "options", checks_log.check_options),
    ("V6", "time", checks_clock.check_time),
    ("V7", "intervals", checks_log.check_intervals),
    ("V8", "errors", checks_log.check_errors),
    ("V9", "work", checks_log.check_work),
    ("V10", "ledger", checks_server.check_ledger),
    ("V11", "hits", checks_server.check_hits),
    ("V12", "identity", checks_server.check_identity),
    ("V13", "data", checks_server.check_data),
    ("V14", "alone", checks_machine.check_alone),
    ("V15", "client CPU", check_client),
    ("V16", "machine", checks_machine.check_machine),
    ("V17", "server log", checks_machine.server_log),
    ("V18", "encryption", checks_machine.check_encryption),
    ("V19", "disk", checks_machine.check_disk),
    ("V20", "pauses", checks_machine.check_pauses),
    ("V21", "arrangement", checks_machine.check_arrangement),
    ("V22", "beginning", check_beginning),
    ("V23", "turns", checks_turns.check_turns),
    ("V24", "cluster", checks_cluster.check_cluster),
    ("V25", "cache", checks_server.check_cache),
    ("V26", "physics", checks_cross_source.check_sources),
)
EACH = dict.fromkeys((f"V{number}" for number in range(1, 10)), "client")
EACH |= dict.fromkeys(("V10", "V11", "V12", "V13", "V25"), "server")
"""Checks that are made for each client or server, and name it."""


@dataclass(frozen=True)
class Check:
    """One check: `passed` is None if the evidence is missing, `is_excused` if the site says why: no fault."""

    id: str
    name: str
    passed: bool | None
    detail: str = ""
    is_excused: bool = False

    def __str__(self) -> str:
        return f"{self.id} {self.name}: {self.detail}"


@dataclass(frozen=True)
class Judgement:
    """Results of the checks of one run; `evidence` holds the observed facts."""

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
        """Ledger entry of the runs table: `agrees`, or the reason for its lack."""
        check = next(check for check in self.checks if check.id == "V10")
        return "agrees" if check.passed else check.detail

    @property
    def qps(self) -> float | None:
        """Queries a second of the measured window, for progress; None if the output has none."""
        log = self.evidence.log
        try:
            seconds = self.evidence.active_s
        except Missing:
            return None
        return log.final.queries / seconds if log.final and log.final.queries and seconds else None

    @property
    def _unknown(self) -> list[Check]:
        return [check for check in self.checks if check.passed is None and not check.is_excused]


def judge_run(run: RunFolder | Evidence, limits: Limits | Mapping[str, Any] | None = None) -> Judgement:
    """Judge a run folder, or evidence already read, by the limits of `params.yaml` (None: the defaults)."""
    limits = Limits.model_validate(limits or {})
    evidence = run if isinstance(run, Evidence) else Evidence.of(run)
    checks = tuple(_run_check(evidence, limits, *row) for row in CHECKS)
    warnings = [check.detail for check in checks if check.is_excused]
    for describe in (
        checks_server.not_held, checks_cluster.describe_moves, checks_machine.describe_near_strangers,
    ):  # fmt: skip
        warnings += describe(evidence)
    with contextlib.suppress(Missing):
        ratio = checks_log.error_ratio(evidence)
        if WARNING_SHARE * limits.error_ratio <= ratio <= limits.error_ratio:
            warnings.append(f"{100 * ratio:.2f} % ignored errors per transaction")
    return Judgement(evidence, checks, tuple(dict.fromkeys(warnings)))


def _run_check(evidence: Evidence, limits: Limits, id: str, name: str, find: Find) -> Check:
    part = EACH.get(id, "")
    faults: list[str] = []
    missing: list[str] = []
    excused: dict[str, None] = {}
    try:
        views = getattr(evidence, f"{part}s") if part else (evidence,)
        for number, view in enumerate(views):
            whose = f"{part} {number}: " if len(views) > 1 else ""
            try:
                # One by one: what was found stays found when the check then meets a gap.
                for fault in find(view, limits):
                    faults.append(f"{whose}{fault}")
            except Excused as excuse:
                excused[str(excuse)] = None
            except Missing as lack:
                missing.append(f"{whose}{lack}")
    except Missing as lack:
        missing.append(str(lack))
    except (TypeError, ValueError, AttributeError, KeyError, ArithmeticError) as error:
        return Check(id, name, None, f"the evidence can't be used: {type(error).__name__}: {error}")
    if faults:
        return Check(id, name, False, "; ".join(faults + missing))
    is_excused = bool(excused) and not missing
    return Check(id, name, None if missing or excused else True, "; ".join(missing or excused), is_excused)
