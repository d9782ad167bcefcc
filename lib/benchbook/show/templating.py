"""The shapes of pages: templates that a designer can read, filled with rows; every text is escaped."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, get_args

from jinja2 import Environment

from benchbook.compare.text import labels
from benchbook.compare.text.sentences import templates
from benchbook.core.artifacts import findings, meta_analysis
from benchbook.core.published import audit
from benchbook.core.util import number_format
from benchbook.show.markup import Html, element, escape, plain, safe, slug

TEMPLATES = Path(__file__).parent / "templates"


def render(template: str, **given: object) -> Html:
    """Return a template of `templates`, such as `first.html.j2`, filled with what is given.

    Texts are escaped and lose their control characters; `Html` passes as it is. A name that the template
    uses and that is not given is an error.
    """
    return Html(_shapes().get_template(template).render(given).strip())


def markdown(template: str, **given: object) -> str:
    """Return a template of `templates`, such as `rerun.md.j2`, filled with texts that can't become markup."""
    return _marked().get_template(template).render(given) + "\n"


def text(template: str, **given: object) -> str:
    """Return a template of `templates`, such as `study.yaml.j2`, filled with texts as they are."""
    return _texts().get_template(template).render(given)


def told(template: str, **given: object) -> dict[str, Any]:
    """Return what a template sets, and its macros, by name; what it writes of a value stays on one line."""
    return vars(_lines().get_template(template).make_module(given))


@cache
def _lines() -> Environment:
    return _shapes().overlay(finalize=lambda value: Html(escape(value).replace("\n", " ")))


@cache
def _marked() -> Environment:
    return _shapes().overlay(autoescape=False, finalize=safe)


@cache
def _texts() -> Environment:
    return _shapes().overlay(autoescape=False, finalize=None, keep_trailing_newline=True)


@cache
def _shapes() -> Environment:
    made = templates(TEMPLATES, autoescape=True, finalize=_plain)
    made.globals.update(
        format_effect=format_effect,
        badge=badge,
        result=result,
        slug=slug,
        count=number_format.format_count,
        numbers=number_format,
        words=labels,
    )
    return made


def format_effect(found: findings.Contrast) -> str:
    """Effect of a finding, or that it has one for each thread level and none for all."""
    return number_format.format_percent(found.effect) if found.headline else "by threads"


def _plain(value: object) -> object:
    """Return what a template writes for a value: markup as it is, all else as text for people."""
    return value if hasattr(value, "__html__") else plain(value)


# What an effect is: neither direction is good or bad in itself.
LABELS = (*get_args(findings.Label), *meta_analysis.LABELS)
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
