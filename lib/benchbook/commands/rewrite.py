"""Write the record again after a change of the code that alters findings: new findings, the same raw files.

What was measured stays as it came; what follows from it is made by the present code, packed beside it, and
written to the index. It names what changed, finding by finding, so that a review can ask whether it should.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchbook.commands import answer
from benchbook.commands import record as recording
from benchbook.core import files, paths, record
from benchbook.core.errors import BenchbookError
from benchbook.evidence import archive, remake, sessions
from benchbook.evidence.unpacked import Unpacked
from benchbook.show import registration

_MOST = 12


def run() -> str:
    """Write every session again that comes out otherwise now; return what changed, session by session."""
    told = []
    for name, study in record.read().studies.items():
        for session, entry in study.sessions.items():
            changed, fresh = _one(paths.recorded(name, session), entry)
            if fresh is None:
                told.append(f"{name} {session}: as recorded")
                continue
            record.write(record.read().with_session(name, study.title, session, fresh))
            more = f"\n  and {len(changed) - _MOST} more" if len(changed) > _MOST else ""
            head = f"{name} {session}: written again by the present code:"
            told.append("\n  ".join([head, *changed[:_MOST]]) + more)
    return "\n".join(told) or "nothing is recorded yet"


def _one(where: paths.RecordedPaths, entry: record.Entry) -> tuple[list[str], record.Entry | None]:
    """Return what differs of a session, and its new entry; its archive is replaced. None: it stays."""
    packed = where.archive
    if not packed.is_file() or files.sha256(packed) != entry.sha256:
        place = f"data/record/{where.name}/{packed.name}"
        raise BenchbookError(f"{place}: not the archive of {record.INDEX}; take it from git again")
    with tempfile.TemporaryDirectory(prefix=".again-", dir=packed.parent) as folder:
        root = Path(folder)
        try:
            remade = remake.remake(packed, root)
        except BenchbookError:
            if entry.is_pooled:
                raise
            return [], None
        made, changed = remake.digests(remade.where.data), list(remade.differences)
        fresh = _entry(entry, remade, made)
        if not changed:
            return ["the entry in the index"], fresh if fresh != entry else None
        target = packed.parent / f".{folder[-8:]}.tar.xz"
        with paths.at(root):
            archive.pack(where.name, target, remade.contents.manifest.commit)
        sized = {"bytes": target.stat().st_size, "sha256": files.sha256(target)}
        target.replace(packed)
    return changed, fresh.model_copy(update=sized)


def _entry(entry: record.Entry, remade: remake.Remade, made: dict[str, str]) -> record.Entry:
    """Return the entry with what follows from the raw files; who measured when and where stays."""
    held, found = Unpacked(remade.where.base, remade.where.name), remade.findings
    told = registration.still(held.name, entry.registered, entry.measured, held.where.file)
    with paths.at(remade.where.base):
        design, methods = sessions.design_of(held), sessions.methods(held)
        machine = sessions.machine_of(held.facts)
    return entry.model_copy(
        update={
            "answer": answer.headline(found),
            "registered": told,
            "blocks": found.blocks.complete,
            "doubts": tuple(recording.against(found, told)),
            "design": design,
            "methods": methods,
            "machine": machine,
            "made": made,
        }
    )
