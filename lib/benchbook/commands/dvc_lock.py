"""Repair of `dvc.lock`, which DVC writes in place: a kill in that moment leaves its beginning."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from benchbook.core.util import files

# Its name may be cut, too.
_STAGE = re.compile(r"^  (\S[^:\n]*)(?::.*)?$", re.MULTILINE)
_DIGESTS = {"md5", "etag", "checksum"}


def repair_lock_file(root: Path) -> str | None:
    """Keep the whole stages of a `dvc.lock` that was cut; a sentence on the loss, None if it is whole.

    A stage that is gone runs again, and keeps what it made: `persist` of dvc.yaml. A file with marks of a
    merge is left for its reader.
    """
    file = root / "dvc.lock"
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None
    stages = [*_STAGE.finditer(text)]
    begin = stages[-1].start() if stages else 0
    if re.search(r"^(<{7}|>{7})", text, re.MULTILINE) or _is_whole(text[begin:], bool(stages)):
        return None
    if len(stages) < 2:
        file.unlink()
        return "dvc.lock was cut when DVC was killed, and is gone: every stage looks again at what is there"
    files.write_text(file, text[:begin])
    return f"dvc.lock was cut when DVC was killed: {stages[-1][1]} looks again at what is there"


def _is_whole(text: str, is_stage: bool) -> bool:
    """True if a stage, or a file without any, was written to its end as far as it can be told."""
    try:
        content: Any = YAML(typ="safe").load(text)
    except YAMLError:
        return False
    if not is_stage:
        return isinstance(content, dict) and "schema" in content and isinstance(content.get("stages"), dict)
    (stage,) = content.values() if isinstance(content, dict) else (None,)
    if not text.endswith("\n") or not isinstance(stage, dict) or not isinstance(stage.get("cmd"), str):
        return False
    # Every stage has outputs; a list that is named and empty was cut.
    listed = [item for key in {"outs", *stage} & {"deps", "outs"} for item in stage.get(key) or (None,)]
    return all(isinstance(item, dict) and "path" in item and _DIGESTS & item.keys() for item in listed)
