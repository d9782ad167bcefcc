"""A finding as an object that shows itself: its sentence, its doubts, its blocks."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from benchbook.api.columns import documented
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

    id = Told[str]("id", "Its name, workload.treatment.metric; also its anchor on the study's page.")
    workload = Told[str]("workload", "The workload.")
    treatment = Told[str]("treatment", "The arm in question.")
    baseline = Told[str]("baseline", "The arm compared against.")
    metric = Told[str]("metric", "What is compared: a column of `runs`.")

    @property
    def threads(self) -> tuple[int, ...]:
        """The thread levels it covers."""
        return tuple(self.data.threads)

    effect = Told[float | None](
        "effect", "Treatment over baseline, less one: geometric mean over threads, then over blocks."
    )

    @property
    def interval(self) -> tuple[float | None, float | None]:
        """Both ends of the interval, at the confidence `level`."""
        return self.data.low, self.data.high

    level = Told[float]("level", "Confidence of the interval.")
    n = Told[int]("n", "Complete blocks that it rests on.")
    label = Told[str](
        "label",
        "What is shown: higher, lower, no practical difference, not shown, depends on threads, no useful "
        "interval, or not decided yet.",
    )
    claim = Told[str | None]("claim", "The claim it answers, `source/claim`.")
    verdict = Told[str | None]("verdict", "Confirmed, contradicted or inconclusive; None without a claim.")

    sentence = Told[str]("sentence", "All of it in one sentence.")

    @property
    def warnings(self) -> list[str]:
        """What speaks against it."""
        return list(self.data.warnings)

    @property
    def levels(self) -> pd.DataFrame:
        """The effect at each thread level, each decided with Holm's correction."""
        return documented("levels", pd.DataFrame([one.plain for one in self.data.levels]))

    @property
    def by_threads(self) -> pd.DataFrame:
        """The effect at each thread level, exploratory."""
        return documented("by_threads", pd.DataFrame([one.plain for one in self.data.by_threads]))

    @property
    def runs(self) -> list[str]:
        """Ids of the runs that it rests on."""
        return list(self.data.runs)

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
