"""Folders of the campaigns of a calibration, and the table of the recorded ones.

A campaign is a folder: `campaign.json` says what it is and is written last, `study.json` is its study, `raw`
and `void` have its run folders as the pipeline keeps them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from benchbook.core.study.study import Study
from benchbook.core.util import files, paths
from benchbook.core.util.errors import BenchbookError

if TYPE_CHECKING:
    import pandas as pd

CAMPAIGN, STUDY, RAW, VOID = "campaign.json", "study.json", "raw", "void"


# Keys of arms that were written as null when campaigns were recorded, and that no study has any more.
GONE = ("price_per_hour",)


def read_study(folder: Path) -> Study:
    """Study of a campaign; ValueError or KeyError if it is none."""
    reported_json = files.read_json(folder / STUDY)
    for arm in reported_json["arms"].values():
        for key in GONE:
            if key in arm and arm[key] is None:
                del arm[key]
    return Study.model_validate_json(json.dumps(reported_json))


def clone_folder() -> Path:
    """Folder of the campaigns that were made in this clone."""
    return paths.find_root() / "data" / "calibration"


def record_folder() -> Path:
    """Folder of the recorded campaigns: archives and their table."""
    return paths.record_folder() / "calibration"


def list_archives() -> list[Path]:
    """Archives of the recorded campaigns, sorted by name."""
    return sorted(record_folder().glob("*.tar.xz"))


def table_file() -> Path:
    """Return the table of the recorded campaigns, one row each, made from the archives' raw logs."""
    return record_folder() / "campaigns.csv"


def complete_folders(folder: Path) -> list[Path]:
    """Folders of the campaigns below one that are whole, sorted by name."""
    return sorted(file.parent for file in folder.glob(f"*/{CAMPAIGN}"))


def read_table() -> pd.DataFrame | None:
    """Table of the recorded campaigns; None if none is recorded."""
    import pandas as pd

    file = table_file()
    if not file.is_file():
        return None
    try:
        absent = {"low": "", "high": "", "effect": ""}
        texts = {"what": str, "log_ratios": str}
        return pd.read_csv(file, dtype=texts, keep_default_na=False, na_values=absent)
    except ValueError as error:
        raise BenchbookError(f"data/record/calibration/{file.name}: can't be read: {error}") from None
