"""findings.json: all that a study found, and every number that prose may use."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from benchbook.core.artifacts.artifact import Absent, Document, DocumentPart, RetiredText, Text
from benchbook.core.artifacts.bottlenecks import Causes
from benchbook.core.util.estimate import Estimate

Verdict = Literal["confirmed", "contradicted", "inconclusive"]
Label = Literal[
    "higher", "lower", "no practical difference", "not shown", "depends on threads", "no useful interval",
    "not decided yet",
]  # fmt: skip
Direction = Literal["right", "no effect", "opposite"]


Band = Annotated[tuple[float | None, float | None], Field(strict=False)]
"""Two ends; null where there is none."""


class CellCheck(DocumentPart):
    """Result of a check of cells; `passed` is null if there was nothing to check."""

    check: str
    passed: bool | None
    where: str
    tables: list[str]
    detail: Text[str]
    row: Absent[int] = None
    """That of the only table, where one row alone is concerned."""


class DisplayNames(DocumentPart):
    """Readable names of arms and workloads, by their own."""

    arms: Text[dict[str, str]]
    workloads: Text[dict[str, str]]


class ContrastNames(DocumentPart):
    """Readable names of a contrast's arms, workload and metric."""

    workload: Text[str]
    baseline: Text[str]
    treatment: Text[str]


class _Effect(DocumentPart):
    """An effect as a fraction, with its interval."""

    effect: float | None
    low: float | None
    high: float | None
    level: float
    n: int
    """Blocks."""

    @property
    def estimate(self) -> Estimate:
        """Effect with its interval."""
        return Estimate(self.effect, self.low, self.high, self.level, self.n)


class LevelContrast(_Effect):
    """A contrast at one number of threads."""

    threads: int
    label: Label
    note: Text[str | None]


class ByThreads(_Effect):
    """The effect at one number of threads, with its q value among all of the study."""

    threads: int
    q: float | None


class Depends(DocumentPart):
    """A test for a dependence of the effect on threads."""

    f: float
    df1: int
    df2: int
    p: float


class SecondOpinion(DocumentPart):
    """An interval that believes nothing about the shape of the noise."""

    method: str
    low: float | None
    high: float | None
    agrees: bool | None


class BlocksNeeded(DocumentPart):
    """Number of further blocks for a result, and their duration."""

    blocks: int
    minutes: float | None
    for_half_width: Absent[float] = None


class Contrast(_Effect):
    """Result between two arms of one workload, by one metric. Effects are fractions."""

    workload: str
    baseline: str
    treatment: str
    names: ContrastNames
    metric: str
    threads: list[int]
    reason: Text[str | None]
    """Why there is no number, or no interval."""
    label: Label
    headline: bool
    """Whether one number stands for all numbers of threads."""
    withheld: Text[str | None]
    levels: list[LevelContrast]
    warnings: Text[list[str]]
    sentence: RetiredText = None


class PercentileSupport(DocumentPart):
    """Basis of a percentile of an arm; null if runs were too short or their seconds tell less."""

    arm: str
    runs: int
    events_beyond: int
    """The fewest of a run."""
    pauses: int | None
    """In how many of them these events lie, over all runs."""
    by_one_pause: int | None
    """Runs in which a single pause made them."""


class SpeedAdjusted(DocumentPart):
    """Effect adjusted for machine speed, slope of log qps on log speed, and the part of the ways
    runs of a cell differ that speed explains."""

    effect: float | None
    low: float | None
    high: float | None
    slope: float
    share: float


class FindingData(Contrast):
    """A contrast of the study itself, judged by a claim if one is put to it."""

    id: str
    blocks_to_useful: BlocksNeeded | None
    by_threads: list[ByThreads]
    depends_on_threads: Depends | None
    second_opinion: SecondOpinion | None
    claim: str | None
    band: Band | None
    verdict: Verdict | None
    direction: Direction | None
    more_blocks: BlocksNeeded | None
    detectable_effect: float | None
    runs: list[str]
    pairs: int
    support: Absent[list[PercentileSupport]] = None
    """Of a percentile beyond the median."""
    speed_adjusted: Absent[SpeedAdjusted] = None
    """Where the clock of turns timed its loop, and that explains something."""

    @property
    def at_levels(self) -> Sequence[LevelContrast | ByThreads]:
        """Decided thread levels; exploratory ones if none was decided."""
        return self.levels or self.by_threads


class AnswerPart(DocumentPart):
    """One number that a claim asks for."""

    where: str
    scale: Literal["share", "value", "power"]
    value: float | None
    low: float | None
    high: float | None
    n: Absent[int] = None
    """Printed repetitions; a study's answer has its blocks."""
    band: Band
    outcome: Verdict
    reason: Text[str | None]
    decides: Annotated[bool, Field(exclude_if=lambda value: value)] = True

    @property
    def estimate(self) -> Estimate:
        """Number with its interval."""
        return Estimate(self.value, self.low, self.high)


class Answer(DocumentPart):
    """Result of a claim that is no effect between two arms."""

    claim: str
    kind: str
    metric: str | None
    published: Text[str]
    read_as: Text[str | None]
    judged: bool
    n: int
    level: float
    parts: list[AnswerPart]
    verdict: Verdict | None
    reason: Text[str | None]
    sentence: RetiredText = None


class Best(DocumentPart):
    """The best arm of a ladder up to one of them."""

    arm: str
    best: str


class Rungs(DocumentPart):
    """The contrasts of a ladder for one workload and metric; `best` is null while that is open."""

    workload: str
    metric: str
    against_first: list[Contrast]
    against_neighbour: list[Contrast]
    pairs: list[Contrast]
    best: list[Best] | None
    sentence: Text[str]


class Ladder(DocumentPart):
    """Arms that are ordered."""

    arms: list[str]
    skipped: list[str]
    workloads: list[Rungs]


class Turns(DocumentPart):
    """Facts about turns; `stopped` has by arm the processes that stood still with its client."""

    turn_ms: list[int]
    turns: int | None
    active_s: float | None
    stopped: dict[str, list[str]]


class BlockCounts(DocumentPart):
    """Blocks of the plan, and complete ones."""

    planned: int
    complete: int


class InterimLook(DocumentPart):
    """Look that was reached, and the next."""

    n: int
    level: float
    next: int | None
    note: Text[str]


class Attempts(DocumentPart):
    """Attempts of an arm, and voided ones."""

    runs: int
    voided: int


class Voids(DocumentPart):
    """Voided runs by arm, and Fisher's p for more of them in one arm."""

    by_arm: dict[str, Attempts]
    fisher_p: float | None
    note: Text[str]


class Difference(DocumentPart):
    """A fact in that arms differ, by arm."""

    fact: str
    values: dict[str, Any]


class Interference(DocumentPart):
    """Interference on the machine: load, others' cores, pressure, steal; null for unknown values."""

    cores: int | None
    load_1min: float | None
    others_cores: float | None
    psi_cpu_pct: float | None
    steal_pct: float | None
    line: Text[str]


class Partners(DocumentPart):
    """Time between the starts of neighbouring partners of a block."""

    block: int
    median_s: float
    max_s: float
    is_far: bool
    left_out: Text[str | None]


class Verdicts(DocumentPart):
    """Number of verdicts, and the greatest number of false ones among them."""

    number: int
    expected_false_at_most: float


class ValidityThreat(DocumentPart):
    """A caveat against the study, and the arms that it can favour."""

    title: str
    text: Text[str]
    favours: list[str]


class UslParameters(DocumentPart):
    """The Universal Scalability Law's parameters."""

    gamma_qps: float
    alpha: float
    beta: float


class Peak(DocumentPart):
    """A value with its interval."""

    value: float
    low: float | None
    high: float | None
    level: float
    n: int


class Scaling(DocumentPart):
    """Scaling of an arm with threads on one workload; `reason` explains the lack of a fitted law."""

    arm: str
    workload: str
    threads: list[int]
    observed_max_qps: float | None
    observed_max_threads: int | None
    usl: UslParameters | None
    peak_threads: Peak | None
    peak_qps: Peak | None
    reason: Text[str | None]


class Findings(Document):
    """All that a study found."""

    version: Annotated[Literal[1], Field(exclude_if=lambda value: value == 1)] = 1
    study: str
    title: str
    question: str
    baseline: str
    made_by: dict[str, str]
    scope: Text[str]
    names: DisplayNames
    order: str
    turns: Turns | None
    blocks: BlockCounts
    look: InterimLook
    machine_minutes: float
    aa: FindingData | None
    findings: list[FindingData]
    checks: list[CellCheck]
    voids: Voids
    facts_differ: list[Difference]
    quiet: Interference
    partners: list[Partners]
    verdicts: Verdicts
    warnings: list[ValidityThreat]
    scaling: list[Scaling]
    causes: Absent[Causes] = None
    claims: Absent[list[Answer]] = None
    ladder: Absent[Ladder] = None
    described: Text[Absent[list[str]]] = None
    aa_others: Absent[list[FindingData]] = None
    """A/A pairs of further workloads and metrics; `aa` is the pair that is furthest from equal."""
    client_full: Absent[list[int]] = None
    """Numbers of threads at which the client's cores were full, so that runs were set aside."""

    @property
    def aa_pairs(self) -> list[FindingData]:
        """All A/A pairs, the one that is furthest from equal first."""
        return [*([self.aa] if self.aa else []), *(self.aa_others or [])]

    @property
    def everything(self) -> list[FindingData]:
        """All findings, then the A/A pair that is furthest from equal."""
        return [*self.findings, *([self.aa] if self.aa else [])]
