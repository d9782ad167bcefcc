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
from benchbook.core.study.study_arm import Arm, find_conflicts
from benchbook.core.study.study_base import Model, Name, Threads, require_distinct
from benchbook.core.study.study_sections import (
    Dataset,
    Engine,
    Plan,
    Rate,
    SiteSection,
    TwinArm,
    WarmUp,
    Workload,
)
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
    site: SiteSection
    """Where the arms run."""
    engine: Engine
    """The database server and its settings."""
    arms: dict[Name, Arm] = Field(min_length=2)
    """The arms by name; the first is the baseline."""
    aa: TwinArm | None = TwinArm()
    """The A/A pair; null leaves it out, and the report says so."""
    dataset: Dataset = Dataset()
    """The tables that are loaded."""
    workloads: dict[Name, Workload] = Field(min_length=1)
    """The workloads by name."""
    threads: Annotated[tuple[Threads, ...], Field(min_length=1), AfterValidator(require_distinct)]
    """Thread levels: client connections of a run."""
    plan: Plan
    """Blocks, lengths and seed."""
    warm_up: WarmUp = WarmUp()
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
        is_in_turns = any(
            interleaving.choose_order(self, workload) == interleaving.TURNS for workload in self.workloads
        )
        return max(self.threads) * (len(self.arms) + (self.aa is not None) if is_in_turns else 1)

    def has_twin(self, workload: str, threads: int) -> bool:
        """True if the A/A pair is measured at this workload and thread level."""
        twin = self.aa
        return (
            twin is not None
            and (twin.workloads is None or workload in twin.workloads)
            and (twin.threads is None or threads in twin.threads)
        )

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
        conflicts = list(self._conflicts())
        if conflicts:
            raise ValueError("\n".join(conflicts))
        return self

    def _pair(self) -> Iterator[str]:
        """Names in the A/A pair that the study lacks."""
        twin = self.aa
        for name in (twin.workloads or ()) if twin else ():
            if name not in self.workloads:
                yield (
                    f"aa.workloads: {name}: not a workload of this study; "
                    f"{did_you_mean(name, self.workloads)}"
                )
        for level in (twin.threads or ()) if twin else ():
            if level not in self.threads:
                yield (
                    f"aa.threads: {level}: not a thread level of this study; use one of {list(self.threads)}"
                )

    def _connections(self) -> Iterator[str]:
        """Keys that ask for more connections than the server allows."""
        limit = self.engine.settings.get("max_connections")
        loads = {name: arm.load.connections for name, arm in self.arms.items() if arm.load is not None}
        most = self.sessions + max(loads.values(), default=0)
        if isinstance(limit, int) and most + 10 > limit:
            if not loads:
                yield (
                    f"threads: {max(self.threads)}: {most} sessions at once, above max_connections {limit} "
                    "less 10; lower one, raise the other"
                )
                return
            heaviest = max(loads, key=lambda name: loads[name])
            yield (
                f"arms.{heaviest}.load: {loads[heaviest]} connections and "
                f"{count(max(self.threads), 'thread')}: above max_connections {limit} less 10; "
                f"write {most + 10} or more under engine.settings"
            )
        elif limit is None and loads and descriptors.find_engine(self.engine.name).must_limit_connections:
            yield (
                f"engine.settings.max_connections: missing, and {most} connections are asked for; "
                f"write {most + 10} or more"
            )

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
        yield from self._pair()
        for name in self.plan.ladder or ():
            if name not in self.arms:
                yield f"plan.ladder: {name}: not an arm of this study; {did_you_mean(name, self.arms)}"
        runs = len(self.arms) * len(self.workloads) * len(self.threads) * self.plan.blocks
        hours = runs * (self.plan.discard_s + self.plan.run_s) / 3600
        if hours * 60 > self.plan.budget_minutes:
            yield (
                f"plan.budget_minutes: {self.plan.budget_minutes}: "
                f"{runs} runs take {hours:.1f} hours or more; measure less, or raise the budget"
            )
        yield from self._connections()
        yield from interleaving.find_mistakes(self)
        for name, workload in self.workloads.items():
            if isinstance(workload.rate, Rate) and self.warm_up.pilot_s < PILOT_S:
                yield (
                    f"workloads.{name}.rate.share: needs pilots of {PILOT_S} s or more; "
                    "set warm_up.pilot_s, or write the rate as a number"
                )
        if not self.warm_up.prewarm and self.plan.discard_s == 0:
            yield (
                "plan.discard_s: 0: contradicts warm_up.prewarm: false (nothing would be warm); "
                "set one of them"
            )
