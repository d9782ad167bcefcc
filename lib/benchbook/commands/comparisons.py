"""The page that leads from a question to its study, made from the sources, the studies and their plans."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchbook.core import load, paths, schema, sizes, source
from benchbook.core.source import Source
from benchbook.core.study import Study
from benchbook.plan import schedule

INTRODUCTION = """# Which study answers which question

Every comparison of the published documents, and the studies that make it again. `make repro STUDY=NAME`
does one. A study that *judges* a claim gives a verdict on it; one that *illustrates* it shows direction and
size where the machines are not the document's. "Measuring" is what `make plan STUDY=NAME` computes:
discards and runs of all blocks, without repeats. Pilots, loading and starting servers are extra. "What to
expect" repeats the claim of the document; the page of the source on the site (`make report`) says whether
its own tables bear that out.

This page is made from the code by `benchbook reference`.
"""
PLACES = {
    "local": "[one machine](one-machine-lab.md)",
    "ssh": "[hosts](ssh.md)",
    "kubernetes": "[a cluster](kubernetes.md)",
    "existing": "[an endpoint](existing.md)",
}
NONE = "no claim of the document; see its tables"


def build() -> str:
    """Return the page in Markdown: a table for each source, and one for the studies without a source."""
    studies = {name: load.study(name) for name in paths.studies() if sizes.origin(name) is None}
    sources = {name: source.load(name) for name in source.names()}
    belongs = {name: _source(name, study, list(sources)) for name, study in studies.items()}
    parts = [INTRODUCTION]
    for name, document in sources.items():
        own = {study: studies[study] for study, place in belongs.items() if place == name}
        parts.append(_section(name, document, own))
    free = {study: studies[study] for study, place in belongs.items() if place is None}
    if free:
        parts.append("## Questions of no document\n\n" + "\n".join(_rows(free, {})) + "\n")
    return "\n".join(parts)


def write(path: Path, check: bool = False) -> int:
    """Write the page, or with `check` only say whether the file is current; return an exit code."""
    return schema.keep(path, build(), "reference", check)


def _source(name: str, study: Study, sources: list[str]) -> str | None:
    """Return the source whose claims a study answers or shows, or that its name begins with."""
    named = [claim.split("/")[0] for claim in _claims(study)]
    prefixed = [one for one in sources if name.startswith(one)]
    return next(iter([*named, *sorted(prefixed, key=len, reverse=True)]), None)


def _claims(study: Study) -> dict[str, str]:
    """Return the claims of a study and its sizes, each with what the study does with it."""
    shown = {claim: "illustrates" for arm in study.arms.values() for claim in arm.illustrates}
    return {**shown, **dict.fromkeys(study.claims, "judges")}


def _section(name: str, document: Source, studies: dict[str, Study]) -> str:
    texts = {f"{name}/{claim}": one.claim for claim, one in document.claims.items()}
    author, date = document.publisher or "an author who is not named", document.date or "without a date"
    lines = [
        f"## {document.title}",
        "",
        f"`data/published/{name}`: {document.subject}",
        f"Published by {author}, {date}. {document.found}",
        "",
        *_rows(studies, texts),
    ]
    asked = {claim for study in studies.values() for claim in _claims(study)}
    left = [claim.split("/")[1] for claim in texts if claim not in asked]
    if left:
        lines += ["", f"Judged from the document's own tables alone, with no study here: {', '.join(left)}."]
    return "\n".join(lines) + "\n"


def _rows(studies: dict[str, Study], texts: dict[str, str]) -> Iterator[str]:
    yield "| question | study | on | measuring | what to expect |"
    yield "|---|---|---|---|---|"
    for name, study in sorted(studies.items(), key=lambda item: list(PLACES).index(item[1].site.kind)):
        expected = "<br>".join(
            f"{how} `{claim.split('/')[1]}`: {texts.get(claim, '')}" for claim, how in _claims(study).items()
        )
        times = [schedule.duration(name, study)]
        names = [f"`{name}`"]
        for size in sizes.names(name):
            names.append(f"`{size}`")
            times.append(schedule.duration(size, load.study(size)))
        yield (
            f"| {study.title} | {'<br>'.join(names)} | {PLACES[study.site.kind]} | {'<br>'.join(times)} "
            f"| {expected or (NONE if texts else study.question)} |"
        )
