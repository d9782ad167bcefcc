"""Labels and verdicts as small badges: the word says it, a colour only repeats it."""

from __future__ import annotations

from typing import get_args

from benchbook.core import audit, findings, pooled
from benchbook.show.markup import Html, element, slug

# What an effect is: neither direction is good or bad in itself.
LABELS = (*get_args(findings.Label), *pooled.LABELS)
# What became of a claim: one that was measured, one read from tables without repetitions, one not asked yet.
VERDICTS = (*get_args(findings.Verdict), *get_args(audit.Reading), "not judged")
# What a check found, by its `passed`.
RESULTS = {True: "passed", False: "failed", None: "nothing to check"}
# Failed checks stand first in a table, those that had nothing to look at last.
ORDER = {False: 0, True: 1, None: 2}


def badge(word: str) -> Html:
    """Write a label, verdict or result as a badge, with the word as the class that the page's style colours.

    An unknown word is shown all the same, without a class of its own: nothing unknown can look
    like a verdict.
    """
    return element("span", word, class_=f"badge {slug(word)}" if is_ours(word) else "badge")


def result(passed: bool | None) -> Html:
    """Write what a check found; None stands for a check that had nothing to look at."""
    return badge(RESULTS[passed])


def is_ours(word: str) -> bool:
    """Say whether a word is one that findings and audits may say."""
    return word in (*LABELS, *VERDICTS, *RESULTS.values())
