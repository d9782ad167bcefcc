"""The JSON schema of study files, made from the model so that editors complete and check them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchbook.core import files
from benchbook.core.study import Study


def build() -> dict[str, Any]:
    """Return the schema of `studies/*.yaml`; each key carries its meaning and unit."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **Study.model_json_schema()}


def write(path: Path, check: bool = False) -> int:
    """Write the schema, or with `check` only say whether the file is current; return an exit code."""
    return keep(path, json.dumps(build(), indent=1, sort_keys=True) + "\n", "schema", check)


def keep(path: Path, text: str, command: str, check: bool) -> int:
    """Write a file that is made from the code, or with `check` only say whether it is current.

    `command` is the word of `benchbook` that writes it. Returns an exit code.
    """
    if check:
        current = path.is_file() and path.read_text(encoding="utf-8") == text
        print(f"{path.name} is {'current' if current else f'not current; run `benchbook {command}`'}")
        return 0 if current else 1
    files.write_text(path, text)
    print(f"wrote {path.name}")
    return 0
