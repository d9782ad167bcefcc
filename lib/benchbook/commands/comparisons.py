"""The page that leads from a published claim to its studies, made from the sources and the studies."""

from __future__ import annotations

from benchbook.core import load, sizes, source
from benchbook.core.source import Source
from benchbook.core.study import Study

INTRODUCTION = """# Which study puts which claim to a test

Every claim of the published documents, and the studies that make its comparison again. A study that *judges*
a claim gives a verdict on it once it is measured; one that *illustrates* it shows what something that stands
in for the document's machines and programs does, and gives none. A claim is repeated here as it was
published; the page of its source on the site (`make report`) says whether the source's own tables bear it
out. [studies/README.md](../studies/README.md) leads from a question to its studies, with where they run and
how long they take.

This page is made from the code by `benchbook reference`.
"""
NONE = "no study here: the document's own tables alone"


def build() -> str:
    """Return the page in Markdown: a table for each source, with a line for each claim."""
    answers = _answers()
    documents = {name: source.load(name) for name in source.names()}
    return "\n".join(
        [INTRODUCTION, *(_section(name, document, answers) for name, document in documents.items())]
    )


def _answers() -> dict[str, dict[str, list[str]]]:
    """Return for each claim the studies that judge or illustrate it, at another size where that differs."""
    found: dict[str, dict[str, list[str]]] = {}
    for name in sizes.wholes():
        told = _claims(load.study(name))
        asked = [(name, claim, how) for claim, how in told.items()]
        for size in sizes.names(name):
            own = _claims(load.study(size)).items()
            asked += [(size, claim, how) for claim, how in own if told.get(claim) != how]
        for study, claim, how in asked:
            found.setdefault(claim, {}).setdefault(how, []).append(study)
    return found


def _claims(study: Study) -> dict[str, str]:
    """Return the claims of a study, each with what the study does with it."""
    shown = {claim: "illustrates" for arm in study.arms.values() for claim in arm.illustrates}
    return {**shown, **dict.fromkeys(study.claims, "judges")}


def _section(name: str, document: Source, answers: dict[str, dict[str, list[str]]]) -> str:
    author, date = document.publisher or "an author who is not named", document.date or "without a date"
    lines = [
        f"## {document.title}",
        "",
        f"`data/published/{name}`: {document.subject}",
        f"Published by {author}, {date}. {document.found}",
        "",
        "| claim | what was published | judged by | illustrated by |",
        "|---|---|---|---|",
    ]
    for claim, one in document.claims.items():
        known = answers.get(f"{name}/{claim}", {})
        judged, illustrated = (
            "<br>".join(f"`{study}`" for study in known.get(how, ())) for how in ("judges", "illustrates")
        )
        lines.append(f"| `{claim}` | {one.claim} | {judged if known else NONE} | {illustrated} |")
    return "\n".join(lines) + "\n"
