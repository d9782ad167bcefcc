"""pooled.json: result of all sessions of a study together, and each session beside it.

Effects and their ends are fractions (0.061 is +6.1 %); what ends in `_pct` is per cent.
"""

from pathlib import Path
from typing import Literal, get_args

from pydantic import Field

from benchbook.core.artifacts.artifact import Document
from benchbook.core.artifacts.findings import ContrastNames
from benchbook.core.artifacts.record import NotRecorded
from benchbook.core.study.study_base import Model
from benchbook.core.util import paths
from benchbook.core.util.estimate import Estimate

FILE, REMEDY = "pooled.json", "make pages"
Label = Literal[
    "holds elsewhere", "same direction", "depends on the machine", "on average", "one session", "not shown",
    "not computed",
]  # fmt: skip
LABELS: tuple[Label, ...] = get_args(Label)
Sign = Literal[-1, 0, 1]
MADE = {
    "neighbour": "a neighbour",
    "zones_ms": "a delay",
    "server cores": "a CPU quota",
    "proxy cores": "a CPU quota",
}
"""What a study sets itself between two arms, by the key under which `Pooled.arms` has it."""


class Processor(Model):
    """Identity of a machine's processor; the name alone may be that of several models."""

    name: str
    family: int | None = None
    model: int | None = None
    stepping: int | None = None


class StudySession(Model):
    """One uninterrupted measuring phase of a study on one machine, with likely causes of effects."""

    id: str = Field(min_length=1)
    measured: str = Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d")
    """UTC time of the first run's start."""
    design: str
    """Digest of everything that changes what is measured: only sessions with the same one are pooled."""
    processor: Processor
    cores: float | None = None
    kernel: str | None = None
    virtualization: str | None = None
    """What the machine runs in, by systemd's name; `none` for a machine of its own, null where not known."""
    steal_pct: float | None = None
    engine: str | None = None
    proxies: dict[str, str] = Field(default_factory=dict)
    """Version of each proxy."""
    probes: dict[str, float] = Field(default_factory=dict)
    """What else was measured of the machine, by name with its unit."""
    superseded: str | None = None
    """Why another session stands in its place."""


class ExcludedSession(Model):
    """A session that is not pooled, with the reason in words."""

    session: StudySession
    reason: str
    effects: dict[str, float] = Field(default_factory=dict)
    """What it came to by itself, by contrast, over all threads where one number stands for them."""


class ObservedEffect(Model):
    """An effect in one session, with the interval of its blocks; `reason` if it is not pooled."""

    session: str
    effect: float | None
    low: float | None = None
    high: float | None = None
    level: float | None = None
    n: int = 0
    standard_error: float | None = None
    """Of the mean log ratio of its blocks."""
    label: str | None = None
    reason: str | None = None

    @property
    def estimate(self) -> Estimate:
        """Effect with the interval of its blocks."""
        return Estimate(self.effect, self.low, self.high, self.level, self.n)


class Occasion(Model):
    """Sessions on the same processor model within a few hours, averaged; `sign` is that of a decided one."""

    sessions: tuple[str, ...]
    effect: float
    standard_error: float
    sign: Sign
    processor: str
    """Key of its processor model: those with the same key are averaged before they are pooled."""


class EqualArms(Model):
    """The baseline against itself in one session, over its threads: ends of its interval, as fractions."""

    session: str
    order: str
    """`turns` or `runs`, as the session measured."""
    low: float
    high: float


class PooledEffect(Model):
    """An effect over sessions, at one thread level or over all of a study's (`threads` is None)."""

    threads: int | None
    seen: tuple[ObservedEffect, ...]
    occasions: tuple[Occasion, ...]
    processors: int
    """How many models of processor there are for certain: the units of the mean and the prediction."""
    elsewhere: str = "elsewhere"
    """Where the prediction is for, in words: the kind of machine that all sessions had."""
    effect: float | None = None
    low: float | None = None
    high: float | None = None
    prediction_low: float | None = None
    prediction_high: float | None = None
    range_low: float | None = None
    """The smallest effect of a session."""
    range_high: float | None = None
    tau_pct: float | None = None
    """Standard deviation between processors, in percentage points of log; null of fewer than two."""
    within_tau_pct: float | None = None
    """Standard deviation between occasions on one processor model; null where none has two occasions."""
    q: float | None = None
    q_p: float | None = None
    i_squared: float | None = None
    label: Label

    @property
    def estimate(self) -> Estimate:
        """Mean over occasions with its interval; `n` counts occasions."""
        return Estimate(self.effect, self.low, self.high, None, self.k)

    @property
    def k(self) -> int:
        """Number of occasions."""
        return len(self.occasions)

    @property
    def sessions(self) -> tuple[ObservedEffect, ...]:
        """The sessions that are pooled."""
        return tuple(observed_effect for observed_effect in self.seen if observed_effect.reason is None)

    @property
    def standing(self) -> Label:
        """Label for readers: sessions that differ, none of them sure of an effect, show
        nothing yet."""
        is_open = self.occasions and not any(occasion.sign for occasion in self.occasions)
        return "not shown" if is_open and self.label == "depends on the machine" else self.label


class PooledContrast(Model):
    """A treatment against the baseline, over sessions; `one_number`: the `whole` may stand for its levels."""

    id: str
    workload: str
    baseline: str
    treatment: str
    metric: str
    names: ContrastNames
    one_number: bool
    whole: PooledEffect
    levels: tuple[PooledEffect, ...]

    @property
    def shown(self) -> tuple[PooledEffect, ...]:
        """Effects for readers: the effect over all threads, or each level if that says little."""
        return (self.whole,) if self.one_number or not self.levels else self.levels

    @property
    def finest(self) -> tuple[PooledEffect, ...]:
        """The thread levels, or the effect over all if there are none."""
        return self.levels or (self.whole,)

    def at(self, threads: int | None) -> PooledEffect | None:
        """Effect at a thread level, or over all (None); None if there is none."""
        if threads is None:
            return self.whole
        return next((level for level in self.levels if level.threads == threads), None)


class MetaAnalysis(Model, Document):
    """All sessions of a study: those of one design pooled, the others by name with the reason."""

    version: Literal[1] = 1
    study: str
    title: str
    level: float
    """Confidence of the intervals of means, and of prediction intervals."""
    design: str
    sessions: tuple[StudySession, ...]
    left_out: tuple[ExcludedSession, ...] = ()
    not_recorded: tuple[NotRecorded, ...] = ()
    retired: str | None = None
    """Why the study is measured no more; null: it is."""
    arms: dict[str, dict[str, str]] = Field(default_factory=dict)
    """What distinguishes each arm, by the facts of the newest session."""
    contrasts: tuple[PooledContrast, ...]
    aa: PooledContrast | None = None
    """The baseline against itself."""
    equal_arms: tuple[EqualArms, ...] = ()
    """The same in every session of the study, of any design, that is not superseded."""

    def made_by(self, contrast: PooledContrast) -> list[str]:
        """Differences the study itself sets between the arms, and with it the size of the effect."""
        ways = [self.arms.get(arm, {}) for arm in (contrast.baseline, contrast.treatment)]
        return sorted({what for key, what in MADE.items() if ways[0].get(key) != ways[1].get(key)})

    def session(self, name: str) -> StudySession:
        """Pooled session by its id."""
        return next(study_session for study_session in self.sessions if study_session.id == name)


def _record_folder() -> Path:
    """Folder of all recorded studies; the root may be the clone or one recorded session."""
    root = paths.find_root()
    # pooled.json lies beside the sessions of its study, one of which the root may be.
    return root.parent.parent if (root.parent / FILE).is_file() else root / "data" / "recorded"


def read_all() -> list[MetaAnalysis]:
    """Pooled results of the sessions of each recorded study, by name, as far as made again."""
    return [MetaAnalysis.read(file, REMEDY) for file in sorted(_record_folder().glob(f"*/{FILE}"))]


def read_pooled(study: str) -> MetaAnalysis | None:
    """Pooled results of a study's recorded sessions; None if none is made again."""
    file = _record_folder() / study / FILE
    return MetaAnalysis.read(file, REMEDY) if file.is_file() else None
