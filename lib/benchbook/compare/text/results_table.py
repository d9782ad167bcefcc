"""Results as rows, the same for every page and terminal; effects are fractions of the baseline."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from scipy.special import stdtrit

from benchbook.compare.text import cpu_models, labels
from benchbook.core.artifacts import findings as parts
from benchbook.core.artifacts.bottlenecks import Causes, CellCosts
from benchbook.core.artifacts.findings import ByThreads, FindingData, Findings, LevelContrast
from benchbook.core.artifacts.meta_analysis import MetaAnalysis, PooledContrast, PooledEffect
from benchbook.core.util import number_format
from benchbook.core.util.estimate import Estimate
from benchbook.core.util.number_format import format_count, format_percent, glance_percent, glance_range
from benchbook.core.util.plural import as_sentence

MARKS = {
    "higher": "▲", "slower": "▼", "lower": "▼", "no practical difference": "≈", "not slower": "≈",
    "not shown": "~", "no useful interval": "?", "not decided yet": "?", "undecided": "?",
    "not computed": "?",
}  # fmt: skip
MEANINGS = {
    "▲": "higher",
    "▼": "lower",
    "≈": "no practical difference",
    "~": "no difference shown (not the same as equal)",
    "?": "not decided",
}
DECIDED = ("higher", "lower", "no practical difference")
# Answers of a gate, which say more than their mark.
_ANSWERS = ("slower", "not slower", "undecided")
_WIDE = "The interval is too wide to be of use."
_NOISY = "Equal arms (A/A) came out too far apart to tell."
_HEAVY = "Heavy-tailed: an interval by ranks leads to another outcome."
HOLM = "The interval excludes zero, but not after Holm's correction for all contrasts."
Range = Literal["expected", "depends on the machine", "seen"]
# Equal arms that come out no further apart than this are as good as equal.
EQUAL = 0.05


@dataclass(frozen=True)
class Elsewhere:
    """One effect over recorded sessions: mean, prediction interval or observed range, their `label`."""

    mean: Estimate
    kind: Range
    low: float
    high: float
    label: str
    sessions: int
    processors: int
    where: str = "elsewhere"


@dataclass(frozen=True)
class ResultRow:
    """One effect on a workload by one metric; `threads` is None over all levels, where it depends on none."""

    finding: str
    treatment: str
    baseline: str
    workload: str
    metric: str
    threads: int | None
    baseline_value: float | None
    change: Estimate
    label: str
    notes: tuple[str, ...] = ()
    elsewhere: Elsewhere | None = None
    bottleneck: str = ""
    is_aa: bool = False
    more_blocks: parts.BlocksNeeded | None = None

    @property
    def name(self) -> str:
        """Name of the effect: `HAProxy on point selects, 8 threads`."""
        return labels.name_effect(self.treatment, self.workload, self.metric, self.threads)

    @property
    def mark(self) -> str:
        """Label as one character: ▲ ▼ ≈ ~ ?."""
        return MARKS.get(self.label, "?") if self.label else ""

    @property
    def meaning(self) -> str:
        """Meaning of the mark in a legend."""
        return self.label if self.label in _ANSWERS else MEANINGS.get(self.mark, "")

    @property
    def record(self) -> dict[str, Any]:
        """Row as plain values, for a data frame or JSON; effects are fractions."""
        elsewhere = self.elsewhere
        keys = ("finding", "treatment", "baseline", "workload", "metric", "threads", "baseline_value")
        return {
            **{key: getattr(self, key) for key in keys},
            **{key: labels.strip_article(getattr(self, key)) for key in ("treatment", "baseline")},
            "change": self.change.value, "low": self.change.low, "high": self.change.high,
            "level": self.change.level, "n": self.change.n, "label": self.label, "notes": list(self.notes),
            "mean_elsewhere": elsewhere and elsewhere.mean.value,
            "range_kind": elsewhere and elsewhere.kind,
            "range_low": elsewhere and elsewhere.low,
            "range_high": elsewhere and elsewhere.high,
            "label_elsewhere": elsewhere and elsewhere.label,
            "sessions": elsewhere.sessions if elsewhere else 0,
            "bottleneck": self.bottleneck, "is_aa": self.is_aa,
        }  # fmt: skip


@dataclass(frozen=True)
class ResultsTable:
    """Rows of one study, A/A last, with its name and its progress."""

    study: str
    title: str
    rows: tuple[ResultRow, ...]
    aa: tuple[ResultRow, ...] = ()
    sessions: int = 0
    processors: int = 0


def build_results(findings: Findings, recorded: MetaAnalysis | None = None) -> ResultsTable:
    """Table of a study's findings, beside the effects from recorded sessions of the same design."""
    pooled = {contrast.id: contrast for contrast in recorded.contrasts} if recorded else {}
    processors = [session.processor for session in recorded.sessions] if recorded else []
    places = {(each.metric, each.workload): place for place, each in enumerate(findings.findings)}
    pairs = sorted(findings.aa_pairs, key=lambda pair: places.get((pair.metric, pair.workload), 0))
    rows = [
        row
        for finding in findings.findings
        for row in rows_of_finding(finding, findings.causes, pooled.get(finding.id), recorded)
    ]
    aa = tuple(row for pair in pairs for row in rows_of_finding(pair, findings.causes, is_aa=True))
    models = cpu_models.count_models(processors)
    return ResultsTable(findings.study, findings.title, tuple(rows), aa, len(processors), models)


def rows_of_contrast(contrast: PooledContrast, recorded: MetaAnalysis) -> Iterator[ResultRow]:
    """Rows of a contrast that only recorded sessions tell of, one for each effect that stands for itself."""
    for effect in contrast.shown:
        elsewhere, names = describe_elsewhere(effect, recorded), contrast.names
        of = contrast.id, names.treatment, names.baseline, names.workload, contrast.metric
        yield ResultRow(*of, effect.threads, None, Estimate(None), "", elsewhere=elsewhere)


def build_pooled_results(recorded: MetaAnalysis) -> ResultsTable:
    """Table of a study's recorded sessions together, without any session of its own."""
    rows = tuple(row for contrast in recorded.contrasts for row in rows_of_contrast(contrast, recorded))
    processors = cpu_models.count_models([session.processor for session in recorded.sessions])
    return ResultsTable(recorded.study, recorded.title, rows, (), len(recorded.sessions), processors)


def depends_on_threads(finding: FindingData) -> bool:
    """True if an effect was shown to depend on threads, or its levels were decided differently."""
    return not has_mean_row(finding.label, finding.levels, finding.headline, finding.depends_on_threads)


def has_mean_row(
    label: str, levels: Sequence[LevelContrast], has_headline: bool, test: parts.Depends | None
) -> bool:
    """True if one row may stand for all thread levels: none is decided differently, nor shown to differ."""
    decided = {part.label for part in levels if part.label in DECIDED}
    is_mixed = label in DECIDED and any(part.label != label for part in levels)
    return has_headline and not (test and test.p < 0.05) and len(decided) < 2 and not is_mixed


def rows_of_finding(
    finding: FindingData,
    causes: Causes | None = None,
    contrast: PooledContrast | None = None,
    recorded: MetaAnalysis | None = None,
    is_aa: bool = False,
) -> Iterator[ResultRow]:
    """Rows of one finding: one a level, and all levels together unless it depends on threads."""
    levels = [part for part in finding.at_levels if part.effect is not None]
    names, arms = finding.names, (finding.baseline, finding.treatment)
    of = finding.id, names.treatment, names.baseline, names.workload, finding.metric
    costs: dict[tuple[str, str, int | None], CellCosts] = {}
    costs |= {(cell.workload, cell.arm, cell.threads): cell for cell in (causes.cells if causes else ())}
    for threads, part in _parts_of(finding, levels):
        label, notes = _decide_label(finding, part, max(len(levels), 1))
        elsewhere = _find_elsewhere(finding, threads, contrast, recorded)
        cells = [costs.get((finding.workload, arm, threads)) for arm in arms]
        rate = cells[0].qps.value if cells[0] and finding.metric == "qps" else None
        # `server`, or by arm `server → none` if the two differ.
        saturated = [*map(_saturated_parts, cells)]
        bottleneck = " → ".join(dict.fromkeys(saturated)) if all(saturated) else ""
        more = finding.blocks_to_useful
        yield ResultRow(*of, threads, rate, part.estimate, label, notes, elsewhere, bottleneck, is_aa, more)


def _find_elsewhere(
    finding: FindingData, threads: int | None, contrast: PooledContrast | None, recorded: MetaAnalysis | None
) -> Elsewhere | None:
    """Effect of a finding at a thread level by recorded sessions; of a single level also that of all."""
    if contrast is None or recorded is None:
        return None
    effect = contrast.at(threads) or (contrast.whole if len(finding.threads) == 1 else None)
    return describe_elsewhere(effect, recorded) if effect else None


def _parts_of(
    finding: FindingData, levels: Sequence[LevelContrast | ByThreads]
) -> list[tuple[int | None, FindingData | LevelContrast | ByThreads]]:
    """Effects that stand for themselves, with their thread level; None is all levels."""
    if len(levels) < 2 and (len(finding.threads) < 2 or not levels):
        return [(finding.threads[0] if len(finding.threads) == 1 else None, finding)]
    whole = [(None, finding)] if len(levels) > 1 and not depends_on_threads(finding) else []
    return [*((part.threads, part) for part in levels), *whole]


def _decide_label(
    finding: FindingData, part: FindingData | LevelContrast | ByThreads, comparisons: int
) -> tuple[str, tuple[str, ...]]:
    """Label of a row and the reasons that belong beside it."""
    estimate = part.estimate
    label = "not shown" if isinstance(part, ByThreads) else part.label
    if estimate.value is None:
        return "not computed", (as_sentence(finding.reason or "there is no number"),)
    if estimate.ends is None:
        return "not decided yet", (as_sentence(finding.reason or "too few blocks for an interval"),)
    if label == "no useful interval":
        return _decide_wide(finding, estimate, comparisons)
    if label == "depends on threads":
        return "not shown", ("It depends on threads.",)
    if label != "not shown" or not estimate.sign:
        return label, ()
    if isinstance(part, LevelContrast):
        return label, (as_sentence(part.note),) if part.note else ()
    return label, (_HEAVY if isinstance(part, FindingData) and _is_heavy(part) else HOLM,)


def _decide_wide(finding: FindingData, estimate: Estimate, comparisons: int) -> tuple[str, tuple[str, ...]]:
    """Label and reason of an interval of no use; a side of zero that all comparisons leave is kept."""
    is_noisy = _is_noisy(finding)
    sign = 0 if is_noisy or _is_heavy(finding) else _sign_among(estimate, comparisons)
    if sign:
        return "higher" if sign > 0 else "lower", ("The direction is sure; the size is not.",)
    return "no useful interval", (_NOISY if is_noisy else _WIDE,)


def _is_noisy(finding: FindingData) -> bool:
    """True if the distance of equal arms is the reason that no effect of a finding is of use."""
    # A level has a note of no other reason. Without levels, the interval itself would be narrow enough.
    if finding.levels:
        return any(level.note for level in finding.levels if level.label == "no useful interval")
    return bool(finding.withheld and finding.estimate.is_useful)


def _is_heavy(finding: FindingData) -> bool:
    return finding.second_opinion is not None and finding.second_opinion.agrees is False


def describe_help(rows: Sequence[ResultRow]) -> str:
    """Remedy for intervals of no use: so many more blocks, or a quieter machine; empty if all are of use."""
    if not (useless := [row for row in rows if row.label == "no useful interval"]):
        return ""
    needed = [row.more_blocks for row in useless if row.more_blocks and row.more_blocks.blocks]
    if not needed:
        return "Intervals too wide to decide need a quieter machine."
    ends = [select(needed, key=lambda more: more.blocks) for select in (min, max)]
    least, most = (more.blocks for more in ends)
    blocks = f"{least:,} to " * (least < most) + format_count(most, "more block")
    lengths = [max(more.minutes, 1) for more in ends if more.minutes is not None]
    times = " to ".join(dict.fromkeys(map(number_format.format_minutes, lengths)))
    minutes = f" ({times})" if times else ""
    return f"Intervals too wide to decide need about {blocks}{minutes}, or a quieter machine."


def _sign_among(estimate: Estimate, comparisons: int) -> int:
    """Side of zero of an interval at the level that so many comparisons leave to each (Bonferroni)."""
    if estimate.ends is None or not estimate.level or estimate.n < 2 or estimate.ends[0] <= -1:
        return 0
    low, high = map(math.log1p, estimate.ends)
    alpha, df = 1 - estimate.level, estimate.n - 1
    wider = float(stdtrit(df, 1 - alpha / comparisons / 2) / stdtrit(df, 1 - alpha / 2))
    middle, half = (low + high) / 2, (high - low) / 2 * wider
    return 1 if middle - half > 0 else -1 if middle + half < 0 else 0


def range_of(effect: PooledEffect) -> tuple[Range, float, float] | None:
    """Kind and ends of the range of a further session: the expected one, or that of the sessions."""
    low, high = effect.range_low, effect.range_high
    if effect.effect is None or low is None or high is None:
        return None
    if effect.standing == "depends on the machine":
        return effect.standing, low, high
    if effect.prediction_low is not None and effect.prediction_high is not None:
        return "expected", effect.prediction_low, effect.prediction_high
    return "seen", low, high


def describe_elsewhere(effect: PooledEffect, recorded: MetaAnalysis) -> Elsewhere | None:
    """Effect by recorded sessions; None if none of them has it."""
    if (span := range_of(effect)) is None:
        return None
    observed = sum(each.effect is not None for each in effect.sessions)
    mean = Estimate(effect.effect, effect.low, effect.high, recorded.level, effect.k)
    return Elsewhere(mean, *span, effect.standing, observed, effect.processors, effect.elsewhere)


def _saturated_parts(cell: CellCosts | None) -> str:
    """Parts on saturated cores: `server`, `none` or `not known`; empty if no part's cores are known."""
    if cell is None or not cell.places:
        return ""
    full = [part for place in cell.places if place.is_full for part in place.parts]
    is_open = any(place.is_full is None for place in cell.places)
    return "+".join(full) or ("not known" if is_open else "none")


def describe_aa(row: ResultRow) -> str:
    """Result of equal arms: `ok`, a difference, or its margin if zero is outside, or what is detectable."""
    if row.label in ("higher", "lower"):
        return "differs, and should not"
    ends = row.change.ends
    if ends is None:
        return "no interval"
    room = max(abs(ends[0]), abs(ends[1]))
    if room >= EQUAL:
        return f"detects {format_percent(room, 0, False)} or more"
    return f"excludes zero, within {format_percent(EQUAL, 0, False)}" if row.change.sign else "ok"


def describe_range(elsewhere: Elsewhere | None) -> str:
    """Range expected of further sessions, or the observed one, as a column has it."""
    if elsewhere is None:
        return ""
    if elsewhere.kind != "depends on the machine" and elsewhere.sessions == 1:
        return "one session"
    words = {"expected": "", "seen": "seen: "}
    return f"{words.get(elsewhere.kind, 'by machine: ')}{glance_range(elsewhere.low, elsewhere.high)}"


def describe_effect(effect: PooledEffect) -> str:
    """Effect over sessions on a line: `−15 %, expected −18 to −13 %`."""
    if (span := range_of(effect)) is None:
        return effect.label
    kind, low, high = span
    mean, ends = glance_percent(effect.effect or 0.0), glance_range(low, high)
    if kind == "depends on the machine":
        return f"{ends}, {kind}"
    if effect.label == "one session":
        return f"{mean if effect.occasions[0].sign else 'not shown'}, one session"
    return f"{mean}, {kind} {ends}"


def prefix_level(threads: int | None) -> str:
    """Thread level in front of an effect, `4 threads: `; empty over all levels."""
    return "" if threads is None else f"{format_count(threads, 'thread')}: "


def describe_contrast(contrast: PooledContrast) -> str:
    """Effect of a contrast over several sessions: `4 threads: −15 %, expected −18 to −13 % (6 sessions)`."""
    parts = [prefix_level(effect.threads) + describe_effect(effect) for effect in contrast.shown]
    return f"{'; '.join(parts)} ({format_count(len(contrast.whole.sessions), 'session')})"
