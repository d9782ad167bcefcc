"""Remove a lab's traces in this machine's kernel: namespaces, links, rules, groups, settings."""

import os
from pathlib import Path
from typing import Any

from benchbook.core.util.errors import SiteError
from benchbook.sites.local import runtime

RECORDS = ()


def down(folder: Path, token: str | None, report: Any, purge: bool = False) -> None:
    """Remove all of a lab in the kernel once all its processes have ended, and look again."""
    if token is None or report.left or os.geteuid() != 0:
        return
    try:
        report.removed += runtime.remove_leftovers(token, folder / "run")
    except (SiteError, OSError) as error:
        report.left.append(str(error))
    report.left += runtime.list_leftovers(token, folder / "run")
