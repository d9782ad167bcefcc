"""A session draws its order and its random numbers once, and keeps them until it is at its end.

With one seed for all sessions of a study, all machines would share one order of arms and one list of keys.
"""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from typing import Any

from benchbook.core import files, paths
from benchbook.core.study import Study
from benchbook.core.study_sections import MAX_INT32

VERSION = 1


def begin(where: paths.StudyPaths, study: Study) -> int:
    """Return the seed of the session: that of the study file, else the one drawn when the session began.

    What was drawn stands in `session.json` with version, study, begun_utc, seed and blocks; it is drawn from
    the operating system, and again only where the file is gone or the study file asks for another seed.
    """
    known = read(where)
    asked = study.plan.seed
    if known and asked in (None, known["seed"]):
        return int(known["seed"])
    seed = drawn() if asked is None else asked
    begun = datetime.now(UTC).isoformat(timespec="seconds")
    kept = {"version": VERSION, "study": where.name, "begun_utc": begun, "seed": seed}
    files.write_json(where.session, kept | {"blocks": study.plan.blocks})
    return seed


def drawn() -> int:
    """Return a seed from the operating system."""
    return secrets.randbelow(MAX_INT32) + 1


def read(where: paths.StudyPaths) -> dict[str, Any]:
    """Return what is kept of the session in a study's folder; empty where there is none yet."""
    return dict(files.read_json(where.session)) if where.session.is_file() else {}
