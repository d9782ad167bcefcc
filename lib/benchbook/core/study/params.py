"""`params.yaml` as frozen types: the scope of `dvc repro`, and the settings of the analysis."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from benchbook.core.study.study_base import Model, require_distinct

Look = Annotated[int, Field(ge=3, le=1000, examples=[5])]


def _with_files(value: Any) -> Any:
    """Give the names of a list their files: a list was written while all studies lay in `studies` itself."""
    if isinstance(value, list | tuple) and all(isinstance(name, str) for name in value):
        return {name: f"studies/{name}.yaml" for name in require_distinct(tuple(value))}
    return value


class Analysis(Model):
    """Settings of the analysis; changing one re-analyses, it never measures again."""

    looks: Annotated[tuple[Look, ...], Field(min_length=1), AfterValidator(require_distinct)] = (5, 10, 20)
    """Block counts at which a verdict is looked for; fewer than 3 blocks have no interval worth the name."""
    level: float = Field(0.98, gt=0.5, lt=1, examples=[0.98])
    """Confidence of the interval at each look; 0.98 at three looks keeps 5 % errors in all."""
    per_thread_level: float = Field(0.95, gt=0.5, lt=1, examples=[0.95])
    """Confidence of the exploratory intervals at each thread level."""
    half_width: float = Field(0.02, gt=0, lt=1, examples=[0.02])
    """Half-width of the interval that `about N more blocks` aims at, as a fraction."""

    def for_blocks(self, planned: int) -> Analysis:
        """Settings for a study of so many blocks: the last of them is its last look, if it is past the first.

        It takes a later look's place, and closer looks err together more often: the level of all holds.
        """
        earlier = tuple(look for look in self.looks if look < planned)
        if planned in self.looks or not 0 < len(earlier) < len(self.looks):
            return self
        return self.model_copy(update={"looks": (*earlier, planned)})


class Limits(Model):
    """When a run is invalid: each limit looks at signals, never at the result."""

    error_ratio: float = Field(0.01, ge=0, le=1, examples=[0.01])
    """Ignored errors per transaction above which a run is invalid; a tenth of it is a warning."""
    overrun_s: float = Field(1.0, ge=0, le=60, examples=[1.0])
    """Seconds by which a run may end late (or 2 % of its length, if that is more)."""
    client_wait: float = Field(0.6, gt=0, le=10, examples=[0.6])
    """Seconds a client thread may wait for a core, per second; the default allows for one machine doing
    everything."""
    client_cpu: float = Field(0.9, gt=0, le=1, examples=[0.9])
    """Share of the client's cores that sysbench may use before it is the bottleneck."""
    steal_pct: float = Field(10.0, ge=0, le=100, examples=[2.0])
    """Share of the machine's time that its host may take, in percent; 2 or less on a machine of your own."""
    steal_in_turns_pct: float = Field(40.0, ge=0, le=100, examples=[10.0])
    """The same in percent for runs in turns: what the host takes within a second meets all arms of a group
    alike, and what is left of it widens the interval."""
    pause_ms: float = Field(250.0, gt=0, le=60_000, examples=[250.0])
    """Longest gap between two ticks of a 25 ms clock, in milliseconds."""
    clock_step_s: float = Field(0.5, gt=0, le=60, examples=[0.5])
    """Difference between the wall clock's and the monotonic clock's length of a run, in seconds."""
    free_mib: int = Field(500, ge=1, le=10_000_000, examples=[500])
    """Free disk space below which nothing is measured, in MiB."""
    start_spread_ms: float = Field(250.0, gt=0, le=10_000, examples=[100.0])
    """Longest time between the beginnings of the clients of one run, in milliseconds, where an arm has
    several."""
    rate_ratio: float = Field(0.02, gt=0, le=1, examples=[0.02])
    """How far the achieved rate may be from the asked one, as a fraction."""


class Params(Model):
    """Scope of `dvc repro`."""

    studies: Annotated[dict[str, str], BeforeValidator(_with_files)]
    """Studies to run: the name of each, with its file from the root on, which DVC follows."""
    sources: Annotated[tuple[str, ...], AfterValidator(require_distinct)]
    """Published sources to audit, by the names of their folders."""
    analysis: Analysis
    """Settings of the analysis."""
    limits: Limits
    """Limits of validity."""
