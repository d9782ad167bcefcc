"""All keys of study files and params.yaml as a page, and the schemas of files, made from the models."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from benchbook.core import files
from benchbook.core.audit import Audit
from benchbook.core.explain import of_names, resolved
from benchbook.core.findings import Findings
from benchbook.core.params import Params
from benchbook.core.source import Source
from benchbook.core.study import Study

INTRODUCTION = """# Parameters

Every key that a study file or `params.yaml` may hold. A name that ends in `_s`, `_ms`, `_pct` or `_mib` is in
seconds, milliseconds, percent or MiB. NAME stands for a name of your own: lower-case letters, digits, `_` and
`-`, a letter first, 40 at most. *Settings* are numbers, texts, true or false by name. In parentheses stands
what a key is when it is left out; without them it is null, empty or a section with its own defaults. A key
that isn't here is refused, and null where it isn't named as a value.

This page is made from the code by `benchbook reference`.
"""


def page() -> str:
    """Return the page in Markdown: a table for each section with key, value (and default) and meaning."""
    pages = [*_page("studies/NAME.yaml", Study), *_page("params.yaml", Params)]
    return "\n".join([INTRODUCTION, *pages])


def _page(file: str, model: type[BaseModel]) -> Iterator[str]:
    whole = model.model_json_schema()
    yield f"## `{file}`\n\n{model.__doc__}\n"
    yield _table(whole, whole)
    places: dict[str, tuple[list[str], dict[str, Any], bool]] = {}
    for place, shown, is_described in _sections(whole, whole, ""):
        places.setdefault(shown["title"], ([], shown, is_described))[0].append(place)
    for names, shown, is_described in places.values():
        heading = ", ".join(f"`{place}`" for place in names)
        # What the key's own row says is not said again under the heading.
        yield f"### {heading}\n" + ("" if is_described else f"\n{_said(whole, shown)}\n")
        yield _table(whole, shown)


def _sections(whole: dict[str, Any], outer: dict[str, Any], path: str) -> Iterator[tuple[str, Any, bool]]:
    """Yield the place of every section inside another one in the order of the keys, the section, and
    whether its key has a row that describes it."""
    for key, node in outer["properties"].items():
        section, _ = resolved(whole, node)
        inside, _ = resolved(whole, of_names(section))
        is_named = "properties" in inside
        if is_named or "properties" in section:
            place, shown = f"{path}{key}{'.NAME' if is_named else ''}", inside if is_named else section
            yield place, shown, not is_named and "description" in node
            yield from _sections(whole, shown, f"{place}.")


def _table(whole: dict[str, Any], section: dict[str, Any]) -> str:
    rows = ["| key | value | meaning |", "|---|---|---|"]
    for key, node in section["properties"].items():
        default = " (required)" if key in section.get("required", ()) else _default(node["default"])
        meaning = _said(whole, node).replace("|", "\\|")
        rows.append(f"| `{key}` | {_value(whole, node)}{default} | {meaning} |")
    return "\n".join(rows) + "\n"


def _said(whole: dict[str, Any], node: dict[str, Any]) -> str:
    """Return the description of a key; pydantic leaves it out where the section says the same of itself."""
    return " ".join((node.get("description") or resolved(whole, node)[0]["description"]).split())


def _value(whole: dict[str, Any], node: dict[str, Any]) -> str:
    """Say in words which values a key takes, with their limits."""
    shape, may_be_null = resolved(whole, node)
    kind = str(shape.get("type"))
    if shape.get("additionalProperties") is True:
        words = "keys of this file"
    elif "oneOf" in shape:
        words = " or ".join(_value(whole, branch) for branch in shape["oneOf"])
    elif "enum" in shape:
        words = ", ".join(f"`{choice}`" for choice in shape["enum"])
    elif kind == "array":
        words = f"list: {_value(whole, shape['items'])}"
    elif kind == "object" and "properties" in shape:
        words = "section"
    elif kind == "object":
        inside = of_names(shape)
        named = "" if "anyOf" in inside else _value(whole, inside)
        words = {"": "settings", "section": "sections by name"}.get(named, f"by name: {named}")
    else:
        plain = {"integer": "integer", "number": "number", "string": "text", "boolean": "true, false"}[kind]
        words = " ".join([plain, *_limits(shape)])
    return words + (", null" if may_be_null else "")


def _limits(shape: dict[str, Any]) -> list[str]:
    if "minimum" in shape and "maximum" in shape:
        return [f"{shape['minimum']:g} to {shape['maximum']:.10g}"]
    signs = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    limits = [f"{sign} {shape[name]:g}" for name, sign in signs.items() if name in shape]
    return [", ".join(limits)] * bool(limits)


def _default(value: Any) -> str:
    """Return a default as YAML has it; nothing for null, what is empty, and a section."""
    if isinstance(value, dict) or value is None or value == []:
        return ""
    return f" (`{str(value).lower() if isinstance(value, bool) else value}`)"


DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schemas() -> dict[str, dict[str, Any]]:
    """Return every schema by the name of its file; each key carries its meaning and unit."""
    return {
        f"{kind.__name__.lower()}.schema.json": {"$schema": DIALECT, **kind.model_json_schema()}
        for kind in (Study, Source, Audit, Findings)
    }


def write_schemas(folder: Path, check: bool = False) -> int:
    """Write the schemas, or with `check` only say whether the files are current; return an exit code."""
    return max(
        keep(folder / name, json.dumps(schema, indent=1, sort_keys=True) + "\n", "schema", check)
        for name, schema in schemas().items()
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
