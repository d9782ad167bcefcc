"""A study at another size: the study file with its section `sizes` applied, as another file.

DVC follows the keys of a file by name, so a study is measured at a size under the name STUDY-SIZE, from a
file that is written when it is first asked for. The study itself is written by hand once.
"""

import dataclasses
import io
import re
from collections.abc import Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from benchbook.core.util import paths, yaml_file
from benchbook.core.util.errors import InputErrors, did_you_mean

SECTION = "sizes"
WIDTH = 4096
# The sections with an empty line before them in a file that is written.
OPENING = ("site", "engine", "arms", "aa", "dataset", "workloads", "threads", "plan", "warm_up", "claims")


def variant_names(study: str, file: Path | None = None) -> list[str]:
    """Names of a study at its other sizes, each STUDY-SIZE, in the order of its file."""
    file = file or paths.study_paths(study).file
    # To parse a file takes a tenth of a second; in quotes, a backslash could stand for a letter of the word.
    raw = file.read_bytes() if file.is_file() else b""
    if raw and SECTION.encode() not in raw and b"\\" not in raw:
        return []
    result = yaml_file.read_mapping(file, paths.study_paths(study).shown).data.get(SECTION)
    return [f"{study}-{size}" for size in result] if isinstance(result, Mapping) else []


def list_wholes() -> list[str]:
    """Studies that are no other one at a size, by their names, sorted."""
    written = paths.study_files()
    return [name for name in sorted(written) if find_origin(name, written) is None]


def find_origin(name: str, written: Mapping[str, Sequence[Path]] | None = None) -> str | None:
    """Study that has a size of this name, or None; `written` are all study files, if known."""
    written = paths.study_files() if written is None else written
    near = sorted((study for study in written if name.startswith(f"{study}-")), key=len, reverse=True)
    return next((study for study in near if name in variant_names(study, written[study][0])), None)


def require_study(name: str) -> None:
    """Refuse a name that no study file and none of its sizes has: InputErrors with the nearest one."""
    written = paths.study_files()
    if name not in written and find_origin(name, written) is None:
        near = did_you_mean(Path(name).stem, sorted(written))
        raise InputErrors([f"studies: {name}: no such study; {near}"])


def load_variant(name: str, study: str) -> yaml_file.YamlDocument:
    """Parsed study at a size; each key has the line of the study's own file that sets it."""
    there = yaml_file.read_mapping(paths.study_paths(study).file, paths.study_paths(study).shown)
    yaml_document = yaml_file.parse_mapping(render_variant(name, study).encode(), there.name)
    size = (SECTION, name.removeprefix(f"{study}-"))
    lines = {path: there.lines.get((*size, *path), there.lines.get(path, 1)) for path in yaml_document.lines}
    return dataclasses.replace(yaml_document, lines=lines)


def render_variant(name: str, study: str) -> str:
    """Text of the study file that a size stands for, comments included; the size is a JSON Merge Patch."""
    rounds = YAML()
    rounds.width = WIDTH
    rounds.preserve_quotes = True
    whole = rounds.load(paths.study_paths(study).file.read_text(encoding="utf-8"))
    size = name.removeprefix(f"{study}-")
    apply_patch(whole, whole.pop(SECTION)[size])
    written = io.StringIO()
    rounds.dump(whole, written)
    # A key that a size adds comes after the empty line that ended its section: empty lines are written again.
    lines = [line.rstrip() for line in written.getvalue().splitlines() if line.strip()]
    origin = f"{paths.study_paths(study).shown} at its size `{size}`"
    at = 1 if lines[0].startswith("#") else 0
    lines.insert(at, f"# Made from {origin}; change it there and delete this file.")
    whole_text = "\n".join(lines) + "\n"
    return re.sub(rf"^(?=({'|'.join(OPENING)}):)", "\n", whole_text, flags=re.MULTILINE)


def apply_patch(whole: MutableMapping[str, Any], change: Mapping[str, Any]) -> None:
    """Change a mapping in place as RFC 7396 has it: merged key by key, null takes a key out."""
    for key, value in change.items():
        if value is None:
            whole.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(whole.get(key), MutableMapping):
            apply_patch(whole[key], value)
        else:
            whole[key] = value
