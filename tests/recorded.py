"""Entries of the record for tests that need an index, and no evidence behind it."""

from typing import Any

from benchbook.core.artifacts import record


def entry(**more: Any) -> record.Entry:
    """Return an entry with made-up values, but for those given."""
    made_up: dict[str, Any] = {
        "measured": "2026-01-01T00:00Z",
        "machine": {"processor": "made up", "cores": 2, "site": "local"},
        "design": "0" * 12, "methods": {}, "seed": 1, "commit": "", "runs": 1, "blocks": 1, "minutes": 1,
        "registered": "made up", "bytes": 1, "sha256": "0" * 64,
        "tables": "0" * 64, "columns": "0", "results": "0" * 64, "logs": "",
    }  # fmt: skip
    return record.Entry(**{**made_up, **more})
