"""The trouble a site can have, each told with its remedy."""

from __future__ import annotations

from typing import Any

from benchbook.core.errors import BenchbookError


class SiteError(BenchbookError):
    """Say what a site could not do and what to do about it."""


class LockHeld(SiteError):
    """Say who holds this machine."""


class SettingsDiffer(SiteError):
    """List the settings that the server did not take as asked.

    `differences` maps a setting to (asked, got); got is None where the server has no such variable.
    """

    def __init__(self, differences: dict[str, tuple[Any, Any]]) -> None:
        self.differences = differences
        lines = [
            f"engine.settings.{key}: asked {asked!r}, got {'no such variable' if got is None else repr(got)}"
            for key, (asked, got) in sorted(differences.items())
        ]
        super().__init__(
            "the server did not take its settings as asked; write a value it can take, or remove the key\n  "
            + "\n  ".join(lines)
        )
