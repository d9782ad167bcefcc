"""A finding as an object that shows itself: its sentence, its doubts, its blocks."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter

import pandas as pd

from benchbook.api.columns import of_parts
from benchbook.api.names import Told
from benchbook.core import findings as core
from benchbook.show import forest
from benchbook.show.shape import shaped


@dataclass(frozen=True, repr=False)
class Finding:
    """One effect of a treatment against the baseline. Effects are fractions: -0.12 is 12 % less.

    `data` is all that findings.json holds of it. What could not be computed is None.
    """

    study: str
    data: core.Finding

    id = Told[str]("data.id", "Its name, workload.treatment.metric; also its anchor on the study's page.")
    workload = Told[str]("data.workload", "The workload.")
    treatment = Told[str]("data.treatment", "The arm in question.")
    baseline = Told[str]("data.baseline", "The arm compared against.")
    metric = Told[str]("data.metric", "What is compared: a column of `runs`.")
    threads = Told[tuple[int, ...]](lambda one: tuple(one.data.threads), "The thread levels it covers.")
    effect = Told[float | None](
        "data.effect", "Treatment over baseline, less one: geometric mean over threads, then over blocks."
    )
    interval = Told[tuple[float | None, float | None]](
        attrgetter("data.low", "data.high"), "Both ends of the interval, at the confidence `level`."
    )
    level = Told[float]("data.level", "Confidence of the interval.")
    n = Told[int]("data.n", "Complete blocks that it rests on.")
    label = Told[str](
        "data.label",
        "What is shown: higher, lower, no practical difference, not shown, depends on threads, no useful "
        "interval, or not decided yet.",
    )
    claim = Told[str | None]("data.claim", "The claim it answers, `source/claim`.")
    verdict = Told[str | None](
        "data.verdict", "Confirmed, contradicted or inconclusive; None without a claim."
    )
    sentence = Told[str]("data.sentence", "All of it in one sentence.")
    warnings = Told[list[str]](lambda one: list(one.data.warnings), "What speaks against it.")
    levels = Told[pd.DataFrame](
        lambda one: of_parts("levels", one.data.levels),
        "The effect at each thread level, each decided with Holm's correction.",
    )
    by_threads = Told[pd.DataFrame](
        lambda one: of_parts("by_threads", one.data.by_threads),
        "The effect at each thread level, exploratory.",
    )
    runs = Told[list[str]](lambda one: list(one.data.runs), "Ids of the runs that it rests on.")

    def plot(self) -> forest.Forest:
        """Draw it with its interval, over all threads and at each level."""
        return forest.of_findings([self.data], with_levels=True)

    def __repr__(self) -> str:
        lines = [f"{self.id}: {self.label}", f"  {self.sentence}"]
        if self.claim:
            lines.append(f"  claim {self.claim}: {self.verdict or 'not judged'}")
        return "\n".join([*lines, *(f"  ! {text}" for text in self.warnings)])

    def _repr_html_(self) -> str:
        return shaped("objects/finding.html.j2", found=self).text
