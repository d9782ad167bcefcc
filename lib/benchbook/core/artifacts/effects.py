"""All effects of the record as one Parquet dataset, a folder a study: pandas reads it, DuckDB asks it in SQL.

`data/effects/study=NAME/effects.parquet` has a row for each contrast, session and thread level, and is made
anew when the index of the study or this module is another than the file names.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchbook.core.artifacts import record
from benchbook.core.artifacts.findings import FindingData
from benchbook.core.util import files, paths

if TYPE_CHECKING:
    import pyarrow as pa

FILE = "effects.parquet"
OF_MACHINE = ("cores", "kernel", "site")
OF_CONTRAST = ("workload", "treatment", "baseline", "metric")
NUMBERS = ("effect", "low", "high", "level")


def refresh_files() -> Path:
    """Make the files of studies with a changed index, remove those of others; return the folder."""
    import pyarrow.parquet as pq

    folder = paths.find_root() / "data" / "effects"
    index, made_by = record.read_index(), files.digest_file(Path(__file__))
    for there in folder.glob("study=*"):
        if there.name.removeprefix("study=") not in index.studies:
            (there / FILE).unlink(missing_ok=True)
            there.rmdir()
    for name in index.studies:
        file = folder / f"study={name}" / FILE
        digest = (files.digest_file(paths.record_folder() / name / record.INDEX) + made_by).encode()
        if file.is_file() and (pq.read_schema(file).metadata or {}).get(b"index") == digest:
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_name(f".{FILE}.part")
        table = build_table(index, name)
        pq.write_table(table.replace_schema_metadata({b"index": digest}), part)
        part.replace(file)
    return folder


def build_table(index: record.Index, name: str) -> pa.Table:
    """Effects of all sessions of a study; null `threads`: all levels, null `superseded`: pooled."""
    import pyarrow as pa

    of_session = ("session", "measured", "design", "processor", *OF_MACHINE)
    kinds: dict[str, Any] = {key: pa.string() for key in (*of_session, *OF_CONTRAST, "label", "superseded")}
    kinds |= {"cores": pa.float64(), "threads": pa.int64(), "n": pa.int64(), "is_aa": pa.bool_()}
    kinds |= dict.fromkeys(NUMBERS, pa.float64()) | {"is_pooled": pa.bool_()}
    return pa.Table.from_pylist(list(_build_rows(index, name)), pa.schema(kinds))


def _build_rows(index: record.Index, name: str) -> Iterator[dict[str, Any]]:
    present = index.newest(name).entry.design
    for session in index.sessions(name):
        entry, findings = session.entry, session.pooled_results.findings
        of_session: dict[str, Any] = {"session": session.id, "processor": entry.machine.processor_model}
        of_session |= {key: getattr(entry, key) for key in ("measured", "design")}
        of_session |= {key: getattr(entry.machine, key) for key in OF_MACHINE}
        for finding in findings.everything:
            superseded, arms = entry.superseded, {finding.treatment, finding.baseline}
            is_out = superseded is not None and (not superseded.arms or arms & {*superseded.arms})
            why = superseded.reason if superseded is not None and is_out else None
            is_pooled = entry.design == present and why is None
            marks = {"is_aa": finding is findings.aa, "superseded": why, "is_pooled": is_pooled}
            yield from list_effects(finding, of_session | marks)


def list_effects(finding: FindingData, more: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Effects of a contrast over all thread levels and at each, with more columns of their own."""
    contrast = {key: getattr(finding, key) for key in OF_CONTRAST}
    for part in ({**finding.plain, "threads": None}, *(level.plain for level in finding.levels)):
        yield contrast | {key: part.get(key) for key in (*NUMBERS, "threads", "n", "label")} | more
