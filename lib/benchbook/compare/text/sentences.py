"""Sentences on checks, doubts, causes and verdicts, from `templates`; per cents are of the baseline."""

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchbook.compare.text import labels
from benchbook.core.artifacts.findings import Contrast, LevelContrast
from benchbook.core.util import number_format
from benchbook.core.util.number_format import format_level, format_percent_range
from benchbook.core.util.plural import count

if TYPE_CHECKING:
    from jinja2 import Environment

WORDING = Path(__file__).parent / "templates"
Part = Contrast | LevelContrast
SHOWN = ("higher", "lower")


def render_paragraphs(template: str, **values: object) -> list[str]:
    """Paragraphs of a template's text, each on one line; a blank line or a bullet (•) ends one."""
    text = _wording_templates().get_template(template).render(values)
    return [part for item in re.split(r"\n[ \n]*\n|•", text) if (part := _on_one_line(item).strip(" "))]


def load_templates(folder: Path, **how: Any) -> "Environment":
    """Jinja environment of a folder's templates; an undefined name in them is an error."""
    # Loading it takes a while, and most commands say nothing.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    where = FileSystemLoader(folder)
    templates = Environment(
        loader=where, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, **how
    )
    # What stands before each item of a loop: a, b and c.
    templates.globals["between"] = lambda loop: "" if loop.first else " and " if loop.last else ", "
    return templates


@cache
def _wording_templates() -> "Environment":
    templates = load_templates(WORDING, finalize=_on_one_line)
    templates.globals.update(
        cores_used=cores_used,
        count=count,
        format=format,
        interval=format_interval,
        ends=format_percent_range,
        listing=number_format.join_words,
        percent=number_format.format_percent,
        plain=number_format.format_amount,
        nbsp=number_format.NBSP,
        words=labels,
    )
    return templates


def _on_one_line(value: object) -> str:
    return re.sub(r"[ \n]+", " ", str(value))


NOTHING = 0.005
"""What is less than this would be written as 0.00."""


def cores_used(value: float) -> str:
    """Number of cores used, in words; a number that rounds to nothing is not called nothing."""
    text = f"{value:.2f}"
    return "less than 0.01 cores" if text == "0.00" else f"{text} cores"


def format_interval(part: Part) -> str:
    """Interval with its level: 98 % interval −28.4 to −18.8 %."""
    return f"{format_level(part.level)} interval {format_percent_range(part.low, part.high)}"
