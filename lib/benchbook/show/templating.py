"""The shapes of pages: templates that a designer can read, filled with rows; every text is escaped."""

from functools import cache
from pathlib import Path
from typing import Any, get_args

from jinja2 import Environment

from benchbook.compare.text import labels
from benchbook.compare.text.sentences import load_templates
from benchbook.core.artifacts import findings, meta_analysis
from benchbook.core.published import audit
from benchbook.core.util import number_format
from benchbook.show.markup import Html, escape_html, escape_markdown, make_element, make_slug, strip_control

TEMPLATES = Path(__file__).parent / "templates"


def render_template(template: str, **inputs: object) -> Html:
    """A template filled with texts, which are escaped and lose control characters; `Html` passes as it is."""
    return Html(_templates("html").get_template(template).render(inputs).strip())


def render_markdown(template: str, **inputs: object) -> str:
    """A template of `templates`, such as `rerun.md.j2`, with texts that can't become markup."""
    return _templates("markdown").get_template(template).render(inputs) + "\n"


def render_text(template: str, **inputs: object) -> str:
    """A template of `templates`, such as `study.yaml.j2`, filled with texts as they are."""
    return _templates("text").get_template(template).render(inputs)


def render_macros(template: str, **inputs: object) -> dict[str, Any]:
    """Variables and macros of a template by name; a value's text stays on one line, `|` in it as `PIPE`."""
    return vars(_templates("lines").get_template(template).make_module(inputs))


PIPE = "&#124;"
# Differences of other templates from those of HTML.
_KINDS: dict[str, dict[str, Any]] = {
    "lines": {"finalize": lambda value: Html(escape_html(value).replace("\n", " ").replace("|", PIPE))},
    "markdown": {"autoescape": False, "finalize": escape_markdown},
    "text": {"autoescape": False, "finalize": None, "keep_trailing_newline": True},
}


@cache
def _templates(kind: str) -> Environment:
    if kind in _KINDS:
        return _templates("html").overlay(**_KINDS[kind])
    # Markup stays as it is, all else becomes text for people.
    templates = load_templates(
        TEMPLATES,
        autoescape=True,
        finalize=lambda value: value if hasattr(value, "__html__") else strip_control(value),
    )
    templates.globals.update(
        format_effect=format_effect,
        badge=render_badge,
        result=lambda passed: render_badge(RESULTS[passed]),
        slug=make_slug,
        count=number_format.format_count,
        numbers=number_format,
        significant=number_format.format_significant,
        words=labels,
    )
    return templates


def format_effect(contrast: findings.Contrast) -> str:
    """Effect of a finding, or that it has one for each thread level and none for all."""
    return number_format.format_percent(contrast.effect) if contrast.headline else "by threads"


# What an effect is: neither direction is good or bad in itself.
LABELS = (*get_args(findings.Label), *meta_analysis.LABELS)
# What became of a claim: one that was measured, one read from tables without repetitions, one not asked yet.
VERDICTS = (*get_args(findings.Verdict), *get_args(audit.Reading), "not judged")
# What a check found, by its `passed`.
RESULTS = {True: "passed", False: "failed", None: "nothing to check"}
# Failed checks stand first in a table, those that had nothing to look at last.
ORDER = {False: 0, True: 1, None: 2}


def render_badge(word: str) -> Html:
    """Write a word as a badge; one that no finding or audit says has no class, and looks like no verdict."""
    is_ours = word in (*LABELS, *VERDICTS, *RESULTS.values())
    return make_element("span", word, class_=f"badge {make_slug(word)}" if is_ours else "badge")
