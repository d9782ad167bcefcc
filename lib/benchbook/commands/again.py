"""Make the record again after a change of the code that alters findings: new findings, the same raw files.

What was measured stays as it came; what follows from it is made by the present code, packed beside it, and
written to the index. What changed is said, finding by finding, so that a review can ask whether it should.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from benchbook.commands import answer, archive, made_again, verify
from benchbook.commands import record as recording
from benchbook.core import files, paths, record
from benchbook.core.errors import BenchbookError

_MOST = 12


def run() -> str:
    """Make every recorded study again that comes out otherwise now; return what changed, study by study."""
    index, told = record.read(), []
    for name, entry in index.studies.items():
        changed, fresh = _one(name, entry)
        if fresh is None:
            told.append(f"{name}: as recorded")
            continue
        index = record.Index(studies={**index.studies, name: fresh})
        record.write(index)
        more = f"\n  and {len(changed) - _MOST} more" if len(changed) > _MOST else ""
        told.append("\n  ".join([f"{name}: recorded again with the present code:", *changed[:_MOST]]) + more)
    return "\n".join(told) or "nothing is recorded yet"


def _one(name: str, entry: record.Entry) -> tuple[list[str], record.Entry | None]:
    """Return what differs of one study, and its new entry; its archive is replaced where findings differ.

    No entry: as recorded.
    """
    packed = paths.recorded(name).archive
    if not packed.is_file() or files.sha256(packed) != entry.sha256:
        raise BenchbookError(
            f"data/record/{name}.tar.xz: not the archive of {record.INDEX}; take it from git again"
        )
    with tempfile.TemporaryDirectory(prefix=".again-", dir=packed.parent) as folder:
        root = Path(folder)
        contents = archive.unpack(packed, root)
        where = paths.StudyPaths(name, root)
        claimed = {part: (where.data / part).read_bytes() for part in verify.MADE}
        settings = (root / "params.yaml").read_bytes()
        verify.settle(root, name)
        for done in verify.STAGES:
            made_again.execute(done, name, paths.root(), root)
        made = made_again.made(where.data)
        changed = list(verify.differing(claimed, where.data))
        if not changed:
            fresh = None if made == entry.made else entry.model_copy(update={"made": made})
            return ["tidy: other values than recorded; its findings are the same"], fresh
        (root / "params.yaml").write_bytes(settings)
        target = _packed(name, packed.parent / f".{folder[-8:]}.tar.xz", contents.manifest["commit"], root)
        fresh = _entry(entry, files.read_json(where.findings), made, target)
        target.replace(packed)
    return changed, fresh


def _packed(name: str, target: Path, commit: str | None, root: Path) -> Path:
    """Pack what stands below a root that is not the clone's."""
    ours = paths.root()
    os.environ["BENCHBOOK_ROOT"] = str(root)
    try:
        return archive.pack(name, target, commit)
    finally:
        os.environ["BENCHBOOK_ROOT"] = str(ours)


def _entry(entry: record.Entry, found: dict[str, Any], made: dict[str, str], packed: Path) -> record.Entry:
    """Return the entry with what follows from the raw files; who measured when and where stays."""
    doubts = tuple(recording.against(found, entry.registered))
    return entry.model_copy(
        update={
            "answer": answer.headline(found),
            "blocks": found["blocks"]["complete"],
            "doubts": doubts,
            "bytes": packed.stat().st_size,
            "sha256": files.sha256(packed),
            "made": made,
        }
    )
