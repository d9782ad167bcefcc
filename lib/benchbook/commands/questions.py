"""The page of `studies/`, which leads from a question to its studies: made from them and their plans."""

from __future__ import annotations

from collections.abc import Iterator

from benchbook.core import load, paths, sizes
from benchbook.plan import schedule

INTRODUCTION = """# The studies, a folder for each question

`make repro STUDY=NAME` measures a study, and `make plan STUDY=NAME` shows its schedule beforehand. A study
is known by its name alone, whatever folder its file lies in; one of your own may lie beside `quick.yaml`.
A second name in a row is the same study at the sizes of its source. "Measuring" is what `make plan`
computes: discards and runs of all blocks and the starts of their servers, without repeats; pilots and
loading are extra.
[docs/comparisons.md](../docs/comparisons.md) leads from a published claim to its studies.

This page is made from the studies by `benchbook reference`.
"""
PLACES = {
    "local": "[one machine](../docs/one-machine-lab.md)",
    "ssh": "[hosts](../docs/ssh.md)",
    "kubernetes": "[a cluster](../docs/kubernetes.md)",
    "existing": "[an endpoint](../docs/existing.md)",
}


def build() -> str:
    """Return the page in Markdown: the studies in no folder, then a table for each folder."""
    folder = paths.root() / "studies"
    places: dict[str, list[str]] = {}
    for name in sizes.wholes():
        inside = paths.study(name).file.parent.relative_to(folder).as_posix()
        places.setdefault(inside, []).append(name)
    parts = [INTRODUCTION]
    for place in sorted(places):
        heading = [] if place == "." else [f"## [{place}]({place})\n"]
        parts.append("\n".join([*heading, *_rows(places[place]), ""]))
    return "\n".join(parts)


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
