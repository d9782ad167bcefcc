"""Sentences made of numbers: subject, verb, number with its interval, blocks, and what it means.

They are written from a finding as findings.json holds it, so that a page, a notebook and a summary say the
same words. Every percentage is of the baseline. The words stand in the templates of `templates`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from benchbook.compare.text import labels
from benchbook.core.artifacts.findings import Contrast, Finding, Level
from benchbook.core.util.errors import given
from benchbook.core.util.plural import count

if TYPE_CHECKING:
    from jinja2 import Environment

WORDING = Path(__file__).parent / "templates"
NBSP = "\N{NO-BREAK SPACE}"
Part = Contrast | Level
SHOWN = ("higher", "lower")
LOST = "Once all contrasts of the study are counted (Holm), no difference is decided"


def told(template: str, **values: object) -> list[str]:
    """Return what a template of `templates` says, such as `finding.j2`: one text for each of its paragraphs.

    Lines are joined. A name that the template uses and that is not given is an error.
    """
    text = _wording().get_template(template).render(values)
    return [part for one in re.split(r"\n[ \n]*\n", text) if (part := _on_one_line(one).strip(" "))]


def templates(folder: Path, **how: Any) -> Environment:
    """Return the templates of a folder, in which a name that is not given is an error; `how` is for Jinja."""
    # Loading it takes a while, and most commands say nothing.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    where = FileSystemLoader(folder)
    made = Environment(loader=where, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, **how)
    # What stands before each item of a loop: a, b and c.
    made.globals["between"] = lambda loop: "" if loop.first else " and " if loop.last else ", "
    return made


@cache
def _wording() -> Environment:
    made = templates(WORDING, finalize=_on_one_line)
    ours = (cores_used, count, ends, format, interval, listing, percent, signed)
    made.globals.update({one.__name__: one for one in ours}, nbsp=NBSP, words=labels)
    return made


def _on_one_line(value: object) -> str:
    return re.sub(r"[ \n]+", " ", str(value))


def percent(fraction: float) -> str:
    """Write a fraction as signed percent with one decimal and a real minus.

    >>> percent(-0.312)
    '−31.2\\xa0%'
    """
    return f"{signed(fraction)}{NBSP}%"


def signed(fraction: float, digits: int = 1) -> str:
    """Write a fraction as percent with a real sign, nothing before zero."""
    text = f"{abs(100 * fraction):.{digits}f}"
    sign = "" if float(text) == 0 else "\N{MINUS SIGN}" if fraction < 0 else "+"
    return f"{sign}{text}"


NOTHING = 0.005
"""What is less than this would be written as 0.00."""


def cores_used(value: float) -> str:
    """Write how many cores were used; what rounds to nothing is not called nothing.

    >>> cores_used(0.214), cores_used(0.004)
    ('0.21 cores', 'less than 0.01 cores')
    """
    text = f"{value:.2f}"
    return "less than 0.01 cores" if text == "0.00" else f"{text} cores"


def listing(items: Sequence[object], last: str = "and") -> str:
    """Join items as a sentence does: a, b and c."""
    texts = [str(item) for item in items]
    return f"{', '.join(texts[:-1])} {last} {texts[-1]}" if len(texts) > 1 else "".join(texts)


class Interval(Protocol):
    """Anything with two ends, fractions."""

    @property
    def low(self) -> float | None:
        """The lower end."""

    @property
    def high(self) -> float | None:
        """The upper end."""


def interval(part: Part) -> str:
    """Write an interval with its level: 98 % interval −28.4 to −18.8 %."""
    return f"{100 * part.level:g}{NBSP}% interval {ends(part.low, part.high)}"


def ends(low: float | None, high: float | None) -> str:
    """Write the two ends of an interval: −28.4 to −18.8 %."""
    return f"{signed(given(low))} to {signed(given(high))}{NBSP}%"


def sentence(found: Finding) -> str:
    """Say in one sentence what was found of a contrast, or why nothing was."""
    treatment, baseline = labels.inside(found, "treatment"), labels.inside(found, "baseline")
    levels = [part for part in found.levels if part.effect is not None]
    (text,) = told(
        "finding.j2",
        found=found,
        treatment=treatment,
        baseline=baseline,
        workload=labels.of(found, "workload"),
        levels=levels,
        shown=[part for part in levels if part.label in SHOWN],
        others=[part for part in levels if part.label not in SHOWN],
        lost=LOST,
    )
    return labels.sentence_case(text)
