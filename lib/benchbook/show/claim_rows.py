"""Rows of claims that a study answers beside its findings: one for each number that a claim asks for."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from benchbook.compare.claims.metrics import metric_column
from benchbook.compare.text import labels
from benchbook.core.artifacts.findings import Answer, AnswerPart, FindingData, Findings
from benchbook.core.util import number_format
from benchbook.core.util.errors import require_value

_OUTCOMES = {"confirmed": "inside", "contradicted": "outside", "inconclusive": "open"}
_COMPARED = {
    "same_effect": "the share that one arm keeps over the other's",
    "trend": "the ratio of the two arms at the second level over the first",
}


@dataclass(frozen=True)
class ClaimRow:
    """One number for a claim, beside what was claimed; `part` is None where nothing was measured."""

    answer: Answer
    part: AnswerPart | None
    where: str
    is_first: bool = True

    @property
    def metric(self) -> str:
        """Metric, with what the number compares where it is a ratio of two ratios."""
        column = metric_column(self.answer.metric or "")
        name = labels.name_metric(column) if self.answer.metric else ""
        is_nested = self.answer.kind == "same_effect" or " against " in self.where
        compared = _COMPARED.get(self.answer.kind) if is_nested else None
        unit = " (ms)" if column.endswith("_ms") and self.part and self.part.scale == "value" else ""
        return f"{name}{unit}{f', {compared}' if compared else ''}"

    @property
    def value(self) -> str:
        """Its number."""
        return self._write(self.part.value) if self.part else ""

    @property
    def interval(self) -> str:
        """Its interval; empty without one."""
        return self._join(self.part.low, self.part.high) if self.part and self.part.estimate.ends else ""

    @property
    def band(self) -> str:
        """Both ends of what was claimed, or the one that there is."""
        low, high = self.part.band if self.part else (None, None)
        if low is None:
            return "" if high is None else f"below {self._write(high)}"
        return f"above {self._write(low)}" if high is None else self._join(low, high)

    @property
    def outcome(self) -> str:
        """Place of the number against its band; of an illustration only the other direction."""
        if self.part is None or not self.part.decides:
            return ""
        if self.answer.judged:
            return _OUTCOMES[self.part.outcome]
        is_effect = self.answer.kind == "effect" and self.part.scale == "share"
        return "the other way" if is_effect and is_opposite(self.part, self.part.band) else ""

    @property
    def line(self) -> str:
        """Row on a line: place, metric, number, interval, outcome."""
        interval = ""
        if self.interval:
            level = number_format.format_level(self.answer.level)
            blocks = number_format.format_count(self.answer.n, "block")
            interval = f" ({level} interval {self.interval}, {blocks})"
        outcome = f", {self.outcome}" if self.outcome else ""
        return f"{self.where}, {self.metric}: {self.value}{interval}{outcome}" if self.value else self.reason

    @property
    def numbers(self) -> str:
        """Number, interval and outcome in columns; empty without a number."""
        cells = (f"{self.value:>8}", self.interval, self.outcome)
        return "  ".join(filter(None, cells)) if self.value else ""

    @property
    def verdict(self) -> str:
        """Verdict on the claim, or that none is passed."""
        return (self.answer.verdict or "not judged") if self.answer.judged else "illustrated"

    @property
    def reason(self) -> str:
        """Reason for a missing number or verdict."""
        return self.answer.reason or (self.part.reason if self.part else None) or ""

    @property
    def _is_share(self) -> bool:
        return self.part is not None and self.part.scale == "share"

    def _write(self, value: float | None) -> str:
        return number_format.format_percent(value) if self._is_share else format(value or 0.0, ",.4g")

    def _join(self, low: float | None, high: float | None) -> str:
        texts = f"{self._write(low)} to {self._write(high)}"
        return number_format.format_percent_range(low, high) if self._is_share else texts


def list_claim_rows(findings: Findings, answers: Sequence[Answer] | None = None) -> list[ClaimRow]:
    """Rows of a study's claims, or of some of them, those without a number too."""
    chosen = findings.claims or [] if answers is None else answers
    return [
        ClaimRow(answer, part, labels.label_part(part.where, findings.names) if part else "", number == 0)
        for answer in chosen
        for number, part in enumerate([part for part in answer.parts if part.value is not None] or [None])
    ]


def render_claims(findings: Findings, width: int = 110) -> list[str]:
    """Lines of claims that no contrast of two arms answers; of long ones the place has a line of its own."""
    rows = [row for row in list_claim_rows(findings) if row.answer.kind in ("trend", "proportional")]
    place_width = max((len(row.where) for row in rows), default=0)
    is_stacked = place_width + max((len(row.numbers) for row in rows), default=0) + 4 > width
    lines: list[str] = []
    for row in rows:
        if row.is_first:
            head = f"{row.answer.claim} ({row.answer.published}), {row.metric}: {row.verdict}"
            lines += textwrap.wrap(head, width, subsequent_indent="  ")
        if is_stacked or not row.numbers:
            place = row.where if row.numbers else row.reason
            lines += textwrap.wrap(place, width, initial_indent="  ", subsequent_indent="  ")
            lines += [f"  {row.numbers}"] if row.numbers else []
        else:
            lines.append(f"  {row.where:<{place_width}}  {row.numbers}")
    return lines


def is_opposite(result: AnswerPart | FindingData, band: Sequence[float | None] | None) -> bool:
    """True if an effect lies wholly on the other side of zero than all that a claim allows."""
    if (isinstance(result, FindingData) and not result.headline) or not number_format.is_known(result.low):
        return False
    low, high = band or (None, None)
    rises, falls = low is not None and low >= 0, high is not None and high <= 0
    return (rises and require_value(result.high) < 0) or (falls and require_value(result.low) > 0)
