"""Keep the prepared data and put it back, so that every block starts from the same bytes.

The server must be shut down cleanly before either. A copy is complete or absent: it is made under another
name and renamed. Where the disk can share blocks (XFS, Btrfs) a copy costs next to nothing.
"""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchbook.core.errors import SiteError
from benchbook.sites import lab as labs
from benchbook.sites import process

COPY_S = 3600.0


def save(
    lab: labs.Lab,
    data: Path,
    made_with: dict[str, Any],
    label: str,
    user: str | None,
    keep: tuple[int, ...],
    prepared: str = "snapshot",
) -> None:
    """Copy the data folder of a stopped server to the folder `prepared`, in place of an earlier copy."""
    labs.remove(lab, prepared)
    folder = lab.own(prepared, user)
    _copy(lab, data, folder / "data", keep)
    record = {
        "label": label,
        "made_with": made_with,
        "saved_utc": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    labs.write_private(folder / "snapshot.json", json.dumps(record), user)


def has(lab: labs.Lab, made_with: dict[str, Any], label: str | None, prepared: str = "snapshot") -> bool:
    """Say whether there is a whole copy, made by this engine and under this label (None: under any)."""
    try:
        record = json.loads((lab.folder / prepared / "snapshot.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return record.get("made_with") == made_with and label in (None, record.get("label"))


def put_back(lab: labs.Lab, data: Path, keep: tuple[int, ...], prepared: str = "snapshot") -> None:
    """Replace the data folder of a stopped server by the copy; `heal` mends a crash in between."""
    fresh, old = data.with_name("fresh"), data.with_name("old")
    for stale in (fresh, old):
        shutil.rmtree(stale, ignore_errors=True)
    _copy(lab, lab.folder / prepared / "data", fresh, keep)
    data.rename(old)
    fresh.rename(data)
    shutil.rmtree(old)


def heal(data: Path) -> None:
    """Bring a data folder back that a crash caught between two names, and remove half-made copies."""
    fresh, old = data.with_name("fresh"), data.with_name("old")
    if not data.exists() and old.exists():
        old.rename(data)
    for stale in (fresh, old):
        shutil.rmtree(stale, ignore_errors=True)


def _copy(lab: labs.Lab, source: Path, target: Path, keep: tuple[int, ...]) -> None:
    used = sum(path.stat().st_blocks * 512 for path in source.rglob("*"))
    if labs.free_bytes(target.parent) < used + (256 << 20):
        raise SiteError(
            f"{target.parent}: {used >> 20} MiB are needed for a copy of the data; free some space, "
            "or set BENCHBOOK_LAB_DIR to another disk"
        )
    log = lab.run / "copy.log"
    # Written out before the server starts, so that the disk is not busy with it while we measure.
    for argv in (["cp", "-a", "--reflink=auto", str(source), str(target)], ["sync", "-f", str(target)]):
        child = process.start(
            "copy", argv, token=lab.token, folder=lab.folder, out=log, keep=keep, append=False
        )
        if process.wait(child, COPY_S) != 0:
            raise SiteError(
                f"the data could not be copied: {log.read_text(encoding='utf-8').strip()}; "
                "look at the free space and try again"
            )
