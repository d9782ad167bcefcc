"""The study file: one question, its sections put together, and the rules between them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Annotated, Any

from pydantic import AfterValidator, Field, field_validator, model_validator

from benchbook.core.study import (
    client_sharding,
    custom_scripts,
    descriptors,
    engines,
    interleaving,
    registry,
    study_cluster,
    study_hosts,
    study_kubernetes,
    sysbench_workloads,
)
from benchbook.core.study import study_sections as sections
from benchbook.core.study.study_arm import Arm, find_conflicts
from benchbook.core.study.study_base import Model, Name, Threads, require_distinct
from benchbook.core.util.errors import did_you_mean
from benchbook.core.util.plural import count

TWIN = "_again"
# Shorter pilots say little about what an arm can do.
PILOT_S = 5


class StudySpec(Model):
    """One question: arms, workloads, threads, dataset, run plan, claims."""

    title: str = Field(min_length=3, max_length=120)
    """Title of the report."""
    question: str = Field(min_length=3, max_length=1000)
    """The question that the study answers, in a sentence."""
    site: sections.SiteSection
    """Where the arms run."""
    engine: sections.Engine
    """The database server and its settings."""
    arms: dict[Name, Arm] = Field(min_length=2)
    """The arms by name; the first is the baseline."""
    aa: sections.TwinArm | None = sections.TwinArm()
    """The A/A pair; null leaves it out, and the report says so."""
    dataset: sections.Dataset = sections.Dataset()
    """The tables that are loaded."""
    workloads: dict[Name, sections.Workload] = Field(min_length=1)
    """The workloads by name."""
    threads: Annotated[tuple[Threads, ...], Field(min_length=1), AfterValidator(require_distinct)]
    """Thread levels: client connections of a run."""
    plan: sections.Plan
    """Blocks, lengths and seed."""
    warm_up: sections.WarmUp = sections.WarmUp()
    """Warm-up and pilots."""
    claims: Annotated[tuple[str, ...], AfterValidator(require_distinct)] = ()
    """Published claims that this study answers, each `source/claim`."""
    sizes: dict[Name, dict[str, Any]] = Field({}, examples=[{"full": {"threads": [150, 300]}}])
    """The same question at other sizes: for each, the keys that differ, as a JSON Merge Patch (null takes a
    key out). `make repro STUDY=NAME-SIZE` writes that study's own file and measures it."""

    @property
    def baseline(self) -> str:
        """Name of the arm compared against."""
        return next(iter(self.arms))

    @property
    def treatments(self) -> tuple[str, ...]:
        """Names of the arms in question."""
        return tuple(self.arms)[1:]

    @property
    def twin(self) -> str | None:
        """Name of the baseline's twin that is measured against it, or None without an A/A pair."""
        return f"{self.baseline}{TWIN}" if self.aa is not None else None

    def deployed(self, arm: str) -> str:
        """Arm of the study file that stands behind a name; the twin is its baseline."""
        return arm.removesuffix(TWIN)

    @property
    def sessions(self) -> int:
        """Most sessions of sysbench at once on a server; in turns the arms are connected at the same time."""
        orders = {interleaving.choose_order(self, workload) for workload in self.workloads}
        together = len(self.arms) + (self.aa is not None) if interleaving.TURNS in orders else 1
        return max(self.threads) * together

    def has_twin(self, workload: str, threads: int) -> bool:
        """True if the A/A pair is measured at this workload and thread level."""
        if self.aa is None:
            return False
        workloads, levels = self.aa.workloads, self.aa.threads
        return (workloads is None or workload in workloads) and (levels is None or threads in levels)

    def script(self, workload: str) -> str:
        """sysbench script of a workload: a name, or the file's name of an own script."""
        script = self.workloads[workload].script or workload
        return PurePosixPath(script).name if custom_scripts.is_own(script) else script

    @field_validator("threads", mode="before")
    @classmethod
    def _refuse_threads_as_text(cls, value: Any) -> Any:
        if isinstance(value, str):
            raise ValueError(f"text, not a list; write [{', '.join(value.replace(',', ' ').split())}]")
        return value

    @model_validator(mode="after")
    def _refuse_conflicts(self) -> StudySpec:
        if conflicts := list(self._conflicts()):
            raise ValueError("\n".join(conflicts))
        return self

    def _absent(self) -> Iterator[str]:
        """Names in the A/A pair and the ladder that the study lacks."""
        twin = self.aa or sections.TwinArm()
        for place, named, kind, known in (
            ("aa.workloads", twin.workloads, "a workload", self.workloads),
            ("aa.threads", twin.threads, "a thread level", self.threads),
            ("plan.ladder", self.plan.ladder, "an arm", self.arms),
        ):
            for name in [name for name in named or () if name not in known]:
                remedy = (
                    did_you_mean(name, map(str, known))
                    if isinstance(name, str)
                    else f"use one of {list(known)}"
                )
                yield f"{place}: {name}: not {kind} of this study; {remedy}"

    def _connections(self) -> Iterator[str]:
        """Keys that ask for more connections than the server allows."""
        limit = self.engine.settings.get("max_connections")
        loads = {name: arm.load.connections for name, arm in self.arms.items() if arm.load is not None}
        threads, most = max(self.threads), self.sessions + max(loads.values(), default=0)
        above, remedy = f"above max_connections {limit} less 10", f"write {most + 10} or more"
        if isinstance(limit, int) and most + 10 > limit:
            if not loads:
                yield f"threads: {threads}: {most} sessions at once, {above}; lower one, raise the other"
                return
            heaviest = max(loads, key=lambda name: loads[name])
            asks = f"arms.{heaviest}.load: {loads[heaviest]} connections and {count(threads, 'thread')}"
            yield f"{asks}: {above}; {remedy} under engine.settings"
        elif limit is None and loads and descriptors.find_engine(self.engine.name).must_limit_connections:
            why = f"missing, and {most} connections are asked for"
            yield f"engine.settings.max_connections: {why}; {remedy}"

    def _conflicts(self) -> Iterator[str]:
        """Keys that do not go together, each as `path.to.key: fault; remedy`."""
        for name, workload in self.workloads.items():
            if workload.script is None and name not in sysbench_workloads.SCRIPTS:
                hint = did_you_mean(name, sysbench_workloads.SCRIPTS)
                yield f"workloads.{name}: unknown; {hint} Or name its script"
        for arm in self.arms:
            if arm.endswith(TWIN):
                yield f"arms.{arm}: names ending in _again belong to the A/A pair; choose another name"
        yield from find_conflicts(self.arms)
        yield from registry.find_mistakes(self.site.kind, self.arms)
        for room in (engines, study_cluster, study_kubernetes, study_hosts, client_sharding, custom_scripts):
            yield from room.find_refusals(self)
        yield from self._absent()
        runs = len(self.arms) * len(self.workloads) * len(self.threads) * self.plan.blocks
        hours, budget = runs * (self.plan.discard_s + self.plan.run_s) / 3600, self.plan.budget_minutes
        if hours * 60 > budget:
            why = f"{runs} runs take {hours:.1f} hours or more"
            yield f"plan.budget_minutes: {budget}: {why}; measure less, or raise the budget"
        yield from self._connections()
        yield from interleaving.find_mistakes(self)
        for name, workload in self.workloads.items():
            if isinstance(workload.rate, sections.Rate) and self.warm_up.pilot_s < PILOT_S:
                remedy = "set warm_up.pilot_s, or write the rate as a number"
                yield f"workloads.{name}.rate.share: needs pilots of {PILOT_S} s or more; {remedy}"
        if not self.warm_up.prewarm and self.plan.discard_s == 0:
            why = "contradicts warm_up.prewarm: false (nothing would be warm)"
            yield f"plan.discard_s: 0: {why}; set one of them"
