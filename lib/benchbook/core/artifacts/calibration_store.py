"""Where campaigns of a calibration are kept, and the table of the recorded ones.

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


def study(folder: Path) -> Study:
    """Return the study of a campaign; ValueError or KeyError where it is none."""
    told = files.read_json(folder / STUDY)
    for arm in told["arms"].values():
        for key in GONE:
            if key in arm and arm[key] is None:
                del arm[key]
    return Study.model_validate_json(json.dumps(told))


def own() -> Path:
    """Return the folder of the campaigns that were made in this clone."""
    return paths.root() / "data" / "calibration"


def recorded() -> Path:
    """Return the folder of the recorded campaigns: archives and their table."""
    return paths.record() / "calibration"


def archives() -> list[Path]:
    """Return the archives of the recorded campaigns, sorted by name."""
    return sorted(recorded().glob("*.tar.xz"))


def table_file() -> Path:
    """Return the table of the recorded campaigns, one row each, made from the archives' raw logs."""
    return recorded() / "campaigns.csv"


def complete(folder: Path) -> list[Path]:
    """Return the folders of the campaigns below one that are whole, sorted by name."""
    return sorted(file.parent for file in folder.glob(f"*/{CAMPAIGN}"))


def table() -> pd.DataFrame | None:
    """Return the table of the recorded campaigns; None where none is recorded."""
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
