"""Turn a parsed file into a model, and pydantic's errors into lines that people can act on."""

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path as FilePath
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from benchbook.core.study.params import Params
from benchbook.core.util.errors import InputErrors, did_you_mean
from benchbook.core.util.yaml_file import YamlDocument

T = TypeVar("T", bound=BaseModel)
Path = tuple[str | int, ...]
WRONG: dict[str, str] = tomllib.loads(FilePath(__file__).with_name("explain.toml").read_text("utf-8"))
SECRETS = ("password", "mysql_password", "mysql-password", "secret", "token")


PAGE = "docs/parameters.md"
PAGES = {"Source": "docs/adding-a-source.md"}
"""Where the keys of a file are described, by its model; `PAGE` has those of studies."""


def validate_document(document: YamlDocument, model: type[T]) -> T:
    """Model of a document; `InputErrors` with every line FILE:LINE: key: value: wrong; remedy."""
    lines = dict(document.ambiguous)
    try:
        loaded = model.model_validate(document.data)
    except ValidationError as error:
        lines |= _explain_errors(document, _model_schema(model), error)
    if lines:
        page = PAGES.get(model.__name__, PAGE)
        raise InputErrors(line.replace(PAGE, page) for line in lines.values())
    return loaded


@cache
def _model_schema(model: type[BaseModel]) -> dict[str, Any]:
    return model.model_json_schema()


def _explain_errors(
    document: YamlDocument, schema: dict[str, Any], error: ValidationError
) -> dict[Path, str]:
    lines: dict[Path, str] = {}
    for item in error.errors(include_url=False):
        value, kind, path = item["input"], item["type"], _find_key(document, item)
        # A list with a wrong item is also too short for pydantic, which counts only the right ones.
        if kind == "too_short" and len(value) >= item["ctx"]["min_length"]:
            continue
        # A number that YAML 1.1 reads differently is already explained; of a word the choices say more.
        if path in document.ambiguous and not (isinstance(value, str) and value.isalpha()):
            continue
        if kind == "value_error" and not path:
            for text in str(item["ctx"]["error"]).splitlines():
                lines[text,] = locate_error(document, text)
        else:
            lines.setdefault(path or item["loc"], document.at(path, _explain_error(schema, path, item)))
    return lines


def _find_key(document: YamlDocument, error: ErrorDetails) -> Path:
    path = tuple(part for part in error["loc"] if part != "[key]")
    # A union names its branch as the last part of the path; people know only the key.
    while path and path not in document.lines and error["type"] not in ("extra_forbidden", "missing"):
        path = path[:-1]
    return path


def locate_error(document: YamlDocument, text: str) -> str:
    """Place a whole file's fault, `path.to.key: fault`, at that key's line."""
    key, _, message = text.partition(": ")
    path = tuple(int(part) if part.isdigit() else part for part in key.split("."))
    return document.at(path, message)


def _explain_error(schema: dict[str, Any], path: Path, error: Mapping[str, Any]) -> str:
    """Fault of a key, and the remedy."""
    value, kind, node = error["input"], error["type"], _find_node(schema, path)
    write = _find_remedy(node, value)
    if kind == "missing":
        return f"missing; add it, {_smallest_section(node) or write.replace('write', 'such as')}"
    if kind == "extra_forbidden":
        if path[-1] in SECRETS:
            return "unknown key; a secret never stands in a file of the repository, remove it"
        if len(path) == 1 and path[0] in Params.model_fields:
            return "unknown key; it stands in params.yaml, for all studies"
        there = _find_node(schema, path[:-1]).get("properties", {})
        return f"unknown key; {did_you_mean(str(path[-1]), there)}"
    if value is None:
        return f"null: missing value; {write}"
    if kind == "tuple_type":
        is_item = isinstance(value, int) or node.get("items", {}).get("type") != "integer"
        return f"{value!r}: not a list; {f'write [{value}]' if is_item else write}"
    if kind == "string_pattern_mismatch" and error["loc"][-1] == "[key]":
        return "not a name; use lower-case letters, digits, _ and -, a letter first, 40 at most"
    message = repr(list(value) if isinstance(value, tuple) else value)[:80]
    wrong = WRONG.get(kind, "{msg}").format(**error.get("ctx", {}), write=write, msg=error["msg"])
    # The keys of a mapping are in the file; the text says which of them is wrong.
    return wrong if isinstance(value, dict) else f"{message}: {wrong}"


def _find_remedy(node: dict[str, Any], value: Any) -> str:
    """Remedy for a key: the number that is meant, one of the choices, or an example."""
    meant = re.fullmatch(r"([0-9]+)([kKM])", value) if isinstance(value, str) else None
    if meant and node.get("type") == "integer":
        return f"write {int(meant[1]) * (1_000_000 if meant[2] == 'M' else 1000)}"
    examples, choices = node.get("examples"), node.get("enum")
    if choices and not examples:
        return f"write {', '.join(map(str, choices[:-1]))} or {choices[-1]}"
    example = examples[0] if examples else node.get("default")
    return f"see {PAGE}" if example is None else f"write {example}"


def _smallest_section(node: dict[str, Any]) -> str | None:
    """Least content of a section, or None if there is no such thing."""
    if node.get("type") == "array":
        return "[] if there are none" if not node.get("minItems") else None
    is_section = node.get("type") == "object" and "properties" in node
    return "{} takes its defaults" if is_section and not node.get("required") else None


def _find_node(schema: dict[str, Any], path: Path) -> dict[str, Any]:
    """Follow a key path through a JSON schema; an unknown part gives an empty schema."""
    node = schema
    for part in path:
        node = resolve_node(schema, node)
        node = node.get("properties", {}).get(part) or node.get("items") or named_entries(node)
    return resolve_node(schema, node)


def named_entries(section: dict[str, Any]) -> dict[str, Any]:
    """Schema behind names of the user's choice, or an empty node."""
    named = section.get("additionalProperties")
    if isinstance(named, dict):
        return named
    return next(iter(section.get("patternProperties", {}).values()), {})


def resolve_node(schema: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    """The node that a reference stands for, with examples of its own."""
    branches = [branch for branch in node.get("anyOf", ()) if branch.get("type") != "null"]
    if "$ref" in node:
        resolved = schema["$defs"][node["$ref"].rsplit("/", 1)[1]]
    elif len(branches) == 1:
        resolved = resolve_node(schema, branches[0])
    else:
        return node
    return resolved | {key: node[key] for key in node if key == "examples"}
