"""The JSON schemas of study files, sources and what stages leave, made from the models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchbook.core import files
from benchbook.core.study import Study

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def build() -> dict[str, Any]:
    """Return the schema of `studies/*.yaml`; each key carries its meaning and unit."""
    return {"$schema": DIALECT, **Study.model_json_schema()}


def build_all() -> dict[str, dict[str, Any]]:
    """Return every schema by the name of its file."""
    # Sources need pandas, which nothing else here does.
    from benchbook.core import source
    from benchbook.core.audit import Audit
    from benchbook.core.document import Document
    from benchbook.core.findings import Findings

    left: dict[str, type[Document]] = {"audit": Audit, "findings": Findings}
    made = {
        f"{name}.schema.json": {"$schema": DIALECT, **kind.model_json_schema()} for name, kind in left.items()
    }
    return {"study.schema.json": build(), "source.schema.json": source.schema(), **made}


def write(folder: Path, check: bool = False) -> int:
    """Write the schemas, or with `check` only say whether the files are current; return an exit code."""
    return max(
        keep(folder / name, json.dumps(schema, indent=1, sort_keys=True) + "\n", "schema", check)
        for name, schema in build_all().items()
    )


def keep(path: Path, text: str, command: str, check: bool) -> int:
    """Write a file that `command` makes, or with `check` say if it is current; return an exit code."""
    if check:
        current = path.is_file() and path.read_text(encoding="utf-8") == text
        print(f"{path.name} is {'current' if current else f'not current; run `benchbook {command}`'}")
        return 0 if current else 1
    files.write_text(path, text)
    print(f"wrote {path.name}")
    return 0
