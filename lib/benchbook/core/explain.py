"""Turn a parsed file into a model, and what pydantic found wrong into lines that people can act on."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from benchbook.core.errors import InputErrors, did_you_mean
from benchbook.core.yamlfile import Document

T = TypeVar("T", bound=BaseModel)
Path = tuple[str | int, ...]
SECRETS = ("password", "mysql_password", "mysql-password", "secret", "token")


def validate(document: Document, model: type[T]) -> T:
    """Return the model of a document; raise `InputErrors` with every line FILE:LINE: key: value: wrong;
    remedy."""
    lines = dict(document.ambiguous)
    try:
        loaded = model.model_validate(_tuples(document.data))
    except ValidationError as error:
        schema = model.model_json_schema()
        for item in error.errors(include_url=False):
            path = _place(document, item)
            # A scalar that YAML 1.1 reads differently is already explained, with the better remedy.
            lines.setdefault(path or tuple(item["loc"]), _explain(document, schema, path, item))
    if lines:
        raise InputErrors(lines.values())
    return loaded


def _tuples(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _tuples(item) for key, item in value.items()}
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value


def _place(document: Document, error: dict[str, Any]) -> Path:
    path = tuple(part for part in error["loc"] if part != "[key]")
    # A union names its branch as the last part of the path; people know only the key.
    if error["type"] not in ("extra_forbidden", "missing"):
        while path and path not in document.lines:
            path = path[:-1]
    return path


def _explain(document: Document, schema: dict[str, Any], path: Path, error: dict[str, Any]) -> str:
    key, value, kind = ".".join(map(str, path)), error.get("input"), error["type"]
    context = error.get("ctx", {})
    where = document.where(path)
    example = _example(schema, path)
    write = f"write {example}" if example is not None else "see docs/parameters.md"
    if kind == "missing":
        return f"{where}: {key}: missing; add it" + (f", such as {example}" if example is not None else "")
    if kind == "extra_forbidden":
        if path[-1] in SECRETS:
            return (
                f"{where}: {key}: unknown key; a secret never stands in a file of the repository, remove it"
            )
        return f"{where}: {key}: unknown key; {did_you_mean(str(path[-1]), _keys(schema, path[:-1]))}"
    if kind == "value_error" and not path:
        inner, _, rest = str(context.get("error")).partition(": ")
        place = tuple(int(part) if part.isdigit() else part for part in inner.split("."))
        return f"{document.where(place)}: {inner}: {rest}"
    if value is None:
        return f"{where}: {key}: null: missing value; {write}"
    shown = "a mapping" if isinstance(value, dict) else repr(value)[:80]
    return f"{where}: {key}: {shown}: {_wrong(kind, context, write, value) or error['msg']}"


def _wrong(kind: str, context: dict[str, Any], write: str, value: Any) -> str | None:
    return {
        "int_type": f"not an integer; {write}",
        "int_from_float": f"not an integer; {write}",
        "float_type": f"not a number; {write}",
        "finite_number": f"not finite; {write}",
        "bool_type": "not a truth value; write true or false",
        "string_type": "not text; write it in quotes",
        "dict_type": "expected a mapping; write `key: value` lines below it",
        "model_type": "expected a mapping; write `key: value` lines below it",
        "model_attributes_type": "expected a mapping; write `key: value` lines below it",
        "tuple_type": f"not a list; write [{value}]",
        "too_short": f"too few: at least {context.get('min_length')}; add what is missing",
        "string_too_short": f"too short: at least {context.get('min_length')} characters; write more",
        "string_too_long": f"too long: at most {context.get('max_length')} characters; write less",
        "greater_than_equal": f"must be >= {context.get('ge')}; {write}",
        "less_than_equal": f"must be <= {context.get('le')}; {write}",
        "greater_than": f"must be > {context.get('gt')}; {write}",
        "less_than": f"must be < {context.get('lt')}; {write}",
        "literal_error": f"unknown; write {context.get('expected')}",
        "string_pattern_mismatch": f"must match {context.get('pattern')}; {write}",
        "value_error": str(context.get("error")),
    }.get(kind)


def _node(schema: dict[str, Any], path: Path) -> dict[str, Any]:
    """Follow a key path through a JSON schema; an unknown part gives an empty schema."""
    node = schema
    for part in path:
        node = _resolve(schema, node)
        node = (
            node.get("properties", {}).get(part)
            or node.get("additionalProperties")
            or node.get("items")
            or next(iter(node.get("patternProperties", {}).values()), {})
        )
        if not isinstance(node, dict):
            return {}
    return _resolve(schema, node)


def _resolve(schema: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in node:
        return {
            **schema["$defs"][node["$ref"].rsplit("/", 1)[1]],
            **{k: v for k, v in node.items() if k == "examples"},
        }
    for branch in node.get("anyOf", ()):
        resolved = _resolve(schema, branch)
        if resolved.get("type") != "null":
            return {**resolved, **{k: v for k, v in node.items() if k == "examples"}}
    return node


def _example(schema: dict[str, Any], path: Path) -> Any:
    examples = _node(schema, path).get("examples")
    return examples[0] if examples else None


def _keys(schema: dict[str, Any], path: Path) -> list[str]:
    return sorted(_node(schema, path).get("properties", {}))
