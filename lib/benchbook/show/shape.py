"""The shapes of pages: templates that a designer can read, filled with rows; every text is escaped."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from benchbook.show import numbers
from benchbook.show.badge import badge
from benchbook.show.markup import Html, plain, slug

TEMPLATES = Path(__file__).parent / "templates"


def shaped(template: str, **given: object) -> Html:
    """Return a template of `templates`, such as `first.html.j2`, filled with what is given.

    Texts are escaped and lose their control characters; `Html` passes as it is. A name that the template
    uses and that is not given is an error.
    """
    return Html(_shapes().get_template(template).render(given).strip())


@cache
def _shapes() -> Environment:
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_plain,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals.update(badge=badge, slug=slug, count=numbers.count)
    return made


def _plain(value: object) -> object:
    """Return what a template writes for a value: markup as it is, all else as text for people."""
    return value if hasattr(value, "__html__") else plain(value)
