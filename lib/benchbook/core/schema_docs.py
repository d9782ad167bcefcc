"""All keys of study files and params.yaml as a page, and the schemas of files, made from the models."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from benchbook.core.artifacts.findings import Findings
from benchbook.core.published.audit import Audit
from benchbook.core.published.source import SourceSpec
from benchbook.core.study.params import Params
from benchbook.core.study.study import StudySpec
from benchbook.core.study.validation_errors import named_entries, resolve_node
from benchbook.core.util import files

INTRODUCTION = """# Parameters

Every key that a study file or `params.yaml` may hold, made from the code by `benchbook reference`. An editor
that knows schemas (`schemas/study.schema.json`) shows limits and all that is known of a key; `make plan`
refuses others. `_s`, `_ms`, `_pct` and `_mib` are seconds, milliseconds, percent and MiB. NAME is a name of
your own: lower-case letters, digits, `_` and `-`, a letter first, 40 at most. In parentheses stands what a
key is when it is left out, or that it is required; without them it is null, empty or a section of its own.
"""


def render_page() -> str:
    """Page in Markdown: for each section a list of its keys with value, default and meaning."""
    pages = [*_render_model("studies/NAME.yaml", StudySpec), *_render_model("params.yaml", Params)]
    return "\n".join([INTRODUCTION, *pages])


def _render_model(file: str, model: type[BaseModel]) -> Iterator[str]:
    whole = model.model_json_schema()
    yield f"## `{file}`\n\n{model.__doc__}\n"
    yield _render_list(whole, whole)
    places: dict[str, tuple[list[str], dict[str, Any], bool]] = {}
    for place, shown, is_described in _walk_sections(whole, whole, ""):
        # An arm that changes a part of the study has that part's keys.
        same = place.removeprefix("arms.NAME.")
        title = next((key for key, (names, *_) in places.items() if same in names), shown["title"])
        places.setdefault(title, ([], shown, is_described))[0].append(place)
    for names, shown, is_described in places.values():
        heading = ", ".join(f"`{place}`" for place in names)
        # What the key's own row says is not said again under the heading.
        yield f"### {heading}\n" + ("" if is_described else f"\n{_describe_key(whole, shown)}\n")
        yield _render_list(whole, shown)


def _walk_sections(
    whole: dict[str, Any], outer: dict[str, Any], path: str
) -> Iterator[tuple[str, Any, bool]]:
    """Place of every section inside another one in the order of the keys, the section, and
    whether its key has a row that describes it."""
    for key, node in outer["properties"].items():
        section = resolve_node(whole, node)
        inside = resolve_node(whole, named_entries(section))
        is_named = "properties" in inside
        if is_named or "properties" in section:
            place, shown = f"{path}{key}{'.NAME' if is_named else ''}", inside if is_named else section
            yield place, shown, not is_named and "description" in node
            yield from _walk_sections(whole, shown, f"{place}.")


def _render_list(whole: dict[str, Any], section: dict[str, Any]) -> str:
    rows = []
    for key, node in section["properties"].items():
        default = " (required)" if key in section.get("required", ()) else _format_default(node["default"])
        # Null is what a key is when it is left out. The first clause tells keys apart.
        on_null = r"[;:,.] [Nn]ull(?:[^.;]|[.;](?! |$))*(?=[.;](?: |$))"
        meaning = re.sub(on_null, "", _describe_key(whole, node))
        ends = [match.start() for match in re.finditer(r"[.;](?= |$)", meaning)]
        whole_ends = (end for end in ends if meaning[:end].count("(") == meaning[:end].count(")"))
        end = next(whole_ends, len(meaning) - 1)
        value = _describe_values(whole, node)
        is_explained = "`" in value and all(choice in meaning[:end] for choice in value[1:].split(", "))
        rows.append(f"- `{key}`{'' if is_explained else value}{default}: {meaning[:end]}.")
    return "\n".join(rows) + "\n"


def _describe_key(whole: dict[str, Any], node: dict[str, Any]) -> str:
    """Description of a key; pydantic leaves it out if the section says the same of itself."""
    return " ".join((node.get("description") or resolve_node(whole, node)["description"]).split())


def _describe_values(whole: dict[str, Any], node: dict[str, Any]) -> str:
    """Values that a key takes, in words, unless its meaning says them: choices and named entries."""
    shape = resolve_node(whole, node)
    if "oneOf" in shape:
        return " or".join(_describe_values(whole, branch) or " a number" for branch in shape["oneOf"])
    if "enum" in shape:
        return " " + ", ".join(f"`{choice}`" for choice in shape["enum"])
    if shape.get("type") == "array":
        return " list"
    if shape.get("type") == "object" and "properties" not in shape:
        return " by name"
    return ""


def _format_default(value: Any) -> str:
    """Default as YAML has it; empty for null, for empty values, and for a section."""
    if isinstance(value, dict) or value is None or value == []:
        return ""
    return f" (`{str(value).lower() if isinstance(value, bool) else value}`)"


DIALECT = "https://json-schema.org/draft/2020-12/schema"


def build_schemas() -> dict[str, dict[str, Any]]:
    """Every schema by the name of its file; each key carries its meaning and unit."""
    kinds: dict[str, type[BaseModel]] = {"study": StudySpec, "source": SourceSpec}
    kinds |= {"audit": Audit, "findings": Findings}
    schemas = {f"{name}.schema.json": kind.model_json_schema() for name, kind in kinds.items()}
    return {name: {"$schema": DIALECT, **schema} for name, schema in schemas.items()}


def write_schemas(folder: Path, check: bool = False) -> int:
    """Write the schemas, or with `check` only report stale files; return an exit code."""
    return max(
        write_generated(folder / name, json.dumps(schema, indent=1, sort_keys=True) + "\n", "schema", check)
        for name, schema in build_schemas().items()
    )


def write_generated(path: Path, text: str, command: str, check: bool) -> int:
    """Write a file that `command` makes, or with `check` say if it is current; return an exit code."""
    if check:
        current = path.is_file() and path.read_text(encoding="utf-8") == text
        print(f"{path.name} is {'current' if current else f'not current; run `benchbook {command}`'}")
        return 0 if current else 1
    files.write_text(path, text)
    print(f"wrote {path.name}")
    return 0
