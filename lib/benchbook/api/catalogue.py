"""Content of `import benchbook as bb`: studies and sources by name, each with its progress."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import pandas as pd

from benchbook.api.columns import document_table, frame_html
from benchbook.api.lookup import NamedCollection, NotThere
from benchbook.api.source import Source
from benchbook.api.study import Study
from benchbook.compare.text import cpu_models
from benchbook.compare.text.results_table import DECIDED, build_results
from benchbook.core.artifacts import effects as dataset
from benchbook.core.artifacts import record as index
from benchbook.core.util import paths, source_files
from benchbook.core.util.errors import BenchbookError
from benchbook.show.markup import Html, make_element

_recorded = partial(Study, is_recorded=True)


class Studies(NamedCollection[Study]):
    """All studies; measured ones are shown first, and the rest folded away."""

    def _split(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        is_measured = (self.table.runs > 0) | (self.table.findings > 0)
        return self.table[is_measured], self.table[~is_measured]

    def __repr__(self) -> str:
        measured, others = self._split() if self.names else (self.table, self.table)
        if measured.empty:
            return super().__repr__()
        wrong = [step for step in others.next if step.startswith("mend")]
        rest = [f"not measured yet: {', '.join(others.study)}"] if len(others) else []
        return "\n".join([repr(measured), *rest, *wrong])

    def _repr_html_(self) -> str:
        if not self.names:
            return super()._repr_html_()
        measured, others = self._split()
        none = make_element("p", "Nothing was measured here yet.").text
        first = none if measured.empty else frame_html(measured)
        summary = make_element("summary", f"{len(others)} not measured yet")
        rest = make_element("details", summary, Html(frame_html(others)))
        return first + (rest.text if len(others) else "")


def studies() -> NamedCollection[Study]:
    """Every study that has a file, sorted by name."""
    names = paths.list_studies()

    def table() -> pd.DataFrame:
        return document_table("studies", pd.DataFrame([_row_of_study(Study(name)) for name in names]))

    return Studies("study", names, Study, table, "write one: docs/tutorial.md shows how")


def record() -> NamedCollection[Study]:
    """Every recorded study, sorted by name."""
    recorded = index.read_index()
    names = sorted(recorded.studies)

    def row(name: str) -> dict[str, Any]:
        newest, entry = recorded.newest(name), recorded.newest(name).entry
        rows = build_results(newest.pooled_results.findings).rows
        return {
            "study": name,
            "effects": len(rows),
            "decided": sum(row.label in DECIDED for row in rows),
            "sessions": len(recorded.studies[name].sessions),
            "measured": entry.measured[:10],
            "machine": entry.machine.description,
            "runs": entry.runs,
            "doubts": len(entry.doubts),
            "next": _recorded(name).next_step,
        }

    def table() -> pd.DataFrame:
        return document_table("record", pd.DataFrame(map(row, names)))

    return NamedCollection("recorded study", names, _recorded, table, "make record STUDY=name adds one")


def study(name: str, session: str | None = None) -> Study:
    """A study as it was measured here, or as it was recorded if it has no findings here.

    A session is named by its id or the start of one, as in `bb.study(name).sessions`; its archive is unpacked
    where `make pages` left nothing of it.
    """
    read = index.read_index()
    is_recorded = name in read.studies
    if session is not None:
        return (_recorded(name) if is_recorded else studies()[name]).sessions(session)
    if not is_recorded or paths.study_paths(name).findings.is_file():
        return studies()[name]
    newest = read.newest(name)
    return _recorded(name, session=None if newest.where.findings.is_file() else newest.id)


def effects(study: str | None = None) -> pd.DataFrame:
    """A row for each contrast, session and thread level; `threads` is missing over all of them.

    Effects and both ends are fractions (-0.12 is 12 % less), shown in per cent. `session` is `here` for what
    was measured in this clone. Of recorded studies all sessions are there, read from the Parquet dataset in
    `data/effects`, with the machine of each and whether it is pooled. NotThere where there is nothing yet.
    """
    chosen = [studies()[study]] if study is not None else list(studies())
    rows = [row for item in chosen for row in _measured_here(item)]
    frames = [pd.DataFrame(rows)] if rows else []
    if index.read_index().studies:
        recorded = pd.read_parquet(dataset.refresh_files()).astype({"study": object})
        recorded["processor"] = recorded["processor"].map(
            lambda model: cpu_models.name_processor(cpu_models.parse_processor(model))
        )
        frames.append(recorded if study is None else recorded[recorded.study == study])
    result = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()
    if result.empty:
        which = f"{chosen[0].name}: no effects" if len(chosen) == 1 else "no effects"
        raise NotThere(f"{which} yet; `make repro` measures a study")
    return document_table("effects", result.astype({"threads": "Int64"}))


def _measured_here(study: Study) -> Iterator[dict[str, Any]]:
    of_study = {"study": study.name, "session": "here", "is_pooled": False}
    for effect in study.everything if study.is_analyzed and not study.is_recorded else ():
        yield from dataset.list_effects(effect.data, of_study)


def source(name: str) -> Source:
    """One published document by its folder in `data/published/`."""
    return sources()[name]


def sources() -> NamedCollection[Source]:
    """Every published document that is carried, sorted by name."""
    names = source_files.source_names()

    def table() -> pd.DataFrame:
        documents = {name: Source(name).document for name in names}
        rows = [
            (name, of.title, of.publisher or "not stated", len(of.tables), len(of.claims))
            for name, of in documents.items()
        ]
        columns = ["source", "title", "publisher", "tables", "claims"]
        return document_table("sources", pd.DataFrame(rows, columns=columns))

    return NamedCollection("source", names, Source, table, "docs/adding-a-source.md shows how")


def _row_of_study(item: Study) -> dict[str, object]:
    row = dict[str, object](study=item.name, question="", runs=0, planned=None, findings=0, next="")
    try:
        row["question"] = item.question
        row["runs"], row["planned"] = item.progress
        row["findings"] = len(item.findings) if item.is_analyzed else 0
        row["next"] = item.next_step
    except BenchbookError as error:
        row["next"] = f"mend {paths.study_paths(item.name).shown}: {str(error).splitlines()[0]}"
    return row
