"""The page of `studies/`: from a question to its studies, from a published claim to what tests it."""

from __future__ import annotations

from collections.abc import Iterator

from benchbook.core import load, paths, sizes, source
from benchbook.core.source import Source
from benchbook.core.study import Study
from benchbook.plan import schedule

INTRODUCTION = """# The studies, a folder for each question

`make repro STUDY=NAME` measures a study, and `make plan STUDY=NAME` shows its schedule beforehand. A study
is known by its name alone, whatever folder its file lies in; one of your own may lie beside `quick.yaml`.
A second name in a row is the same study at the sizes of its source. "Measuring" is what `make plan`
computes: discards and runs of all blocks and the starts of their servers, without repeats; pilots and
loading are extra. [Which study puts which claim to a test](#published-claims) stands below.

This page is made from studies and sources by `benchbook reference`.
"""
CLAIMS = """## Published claims

A study that *judges* a claim gives a verdict on it once it is measured; one that *illustrates* it shows what
something that stands in for the document's machines and programs does, and gives none. Whether a document's
own tables bear a claim out, its page on the site says.
"""
NONE = "the document's own tables alone"
PLACES = {
    "local": "[one machine](../docs/one-machine-lab.md)",
    "ssh": "[hosts](../docs/ssh.md)",
    "kubernetes": "[a cluster](../docs/kubernetes.md)",
    "existing": "[an endpoint](../docs/existing.md)",
}


def build() -> str:
    """Return the page in Markdown: the studies of each folder, then the claims of each source."""
    folder = paths.root() / "studies"
    places: dict[str, list[str]] = {}
    for name in sizes.wholes():
        inside = paths.study(name).file.parent.relative_to(folder).as_posix()
        places.setdefault(inside, []).append(name)
    parts = [INTRODUCTION]
    for place in sorted(places):
        heading = [] if place == "." else [f"## [{place}]({place})\n"]
        parts.append("\n".join([*heading, *_rows(places[place]), ""]))
    answers = _answers()
    documents = {name: source.load(name) for name in source.names()}
    return "\n".join([*parts, CLAIMS, *(_claimed(*one, answers) for one in documents.items())])


def _rows(names: list[str]) -> Iterator[str]:
    yield "| question | study | on | measuring |"
    yield "|---|---|---|---|"
    studies = {name: load.study(name) for name in names}
    for name, study in sorted(studies.items(), key=lambda item: list(PLACES).index(item[1].site.kind)):
        file = paths.study(name).file.relative_to(paths.root() / "studies").as_posix()
        shown, times = [f"[`{name}`]({file})"], [schedule.duration(name, study)]
        for size in sizes.names(name):
            shown.append(f"`{size}`")
            times.append(schedule.duration(size, load.study(size)))
        yield f"| {study.title} | {'<br>'.join(shown)} | {PLACES[study.site.kind]} | {'<br>'.join(times)} |"


def _answers() -> dict[str, dict[str, list[str]]]:
    """Return for each claim the studies that judge or illustrate it, at another size where that differs."""
    found: dict[str, dict[str, list[str]]] = {}
    for name in sizes.wholes():
        whole = _claims(load.study(name))
        asked = [(name, claim, how) for claim, how in whole.items()]
        for size in sizes.names(name):
            own = _claims(load.study(size)).items()
            asked += [(size, claim, how) for claim, how in own if whole.get(claim) != how]
        for study, claim, how in asked:
            found.setdefault(claim, {}).setdefault(how, []).append(study)
    return found


def _claims(study: Study) -> dict[str, str]:
    """Return the claims of a study, each with what the study does with it."""
    shown = {claim: "illustrates" for arm in study.arms.values() for claim in arm.illustrates}
    return {**shown, **dict.fromkeys(study.claims, "judges")}


def _claimed(name: str, document: Source, answers: dict[str, dict[str, list[str]]]) -> str:
    lines = [
        f"### {document.title}",
        "",
        f"`data/published/{name}`: {document.subject}",
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
