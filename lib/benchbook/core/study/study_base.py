"""Foundations of all sections of a study file: base, names, and checks of words and lists."""

import ast
import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, GetJsonSchemaHandler, model_validator

from benchbook.core.util.errors import did_you_mean

NAME = r"^[a-z][a-z0-9_-]{0,39}$"
Name = Annotated[str, Field(pattern=NAME)]
Threads = Annotated[int, Field(ge=1, le=65535, examples=[8])]
Scalar = int | float | str | bool


class Described(BaseModel):
    """A model with each key's text as description in its schema: frozen, strict, no unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """The schema with the description of each key by `key_descriptions`."""
        pydantic_json_schema = handler(schema)
        properties = handler.resolve_ref_schema(pydantic_json_schema).get("properties", {})
        for name, text in key_descriptions(cls).items():
            key = properties[name]
            # Where a key is a section that says the same of itself, once is enough.
            if "$ref" not in key or handler.resolve_ref_schema(key).get("description") != text:
                key.setdefault("description", text)
        return pydantic_json_schema


class Model(Described):
    """A section of a study file."""

    @model_validator(mode="before")
    @classmethod
    def _convert_lists_to_tuples(cls, values: Any) -> Any:
        """Take the lists of a file for the tuples of frozen types."""
        return convert_lists(values) if isinstance(values, dict) else values


def convert_lists(value: Any) -> Any:
    """Parsed data with tuples in place of lists."""
    if isinstance(value, dict):
        return {key: convert_lists(item) for key, item in value.items()}
    return tuple(map(convert_lists, value)) if isinstance(value, list) else value


@cache
def key_descriptions(model: type[BaseModel]) -> dict[str, str]:
    """Description of each key of a section, from the text behind it."""
    results: dict[str, str] = {}
    # Pydantic (`use_attribute_docstrings`) reads them at each import, a quarter of the time of a start.
    for kind in reversed(model.__mro__):
        if not issubclass(kind, Described) or kind.__module__ == __name__:
            continue
        body = _class_bodies(inspect.getsourcefile(kind) or "")[kind.__name__]
        for pair in pairwise(body):
            match pair:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    results[name] = inspect.cleandoc(text)
    return {name: text for name, text in results.items() if name in model.model_fields}


@cache
def _class_bodies(file: str) -> dict[str, list[ast.stmt]]:
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    return {node.name: node.body for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}


def known_names(kind: str, names: Callable[[], Iterable[str]], otherwise: str = "") -> tuple[Any, Any]:
    """A check as `check_names` makes it, and a field that lists the names for editors."""
    listed = Field(json_schema_extra=lambda result: result.update(enum=[*sorted(names())]))
    return check_names(kind, names, otherwise), listed


def check_names(kind: str, names: Callable[[], Iterable[str]], otherwise: str = "") -> AfterValidator:
    """A check that refuses names that are not there and proposes the nearest that is, or a way."""

    def check(value: str) -> str:
        if value not in (there := [*names()]):
            remedy = " ".join(filter(None, (did_you_mean(value, there), otherwise)))
            raise ValueError(f"unknown {kind}; {remedy}")
        return value

    return AfterValidator(check)


def find_lacking(values: Mapping[str, Any]) -> str:
    """The first name without a value, if another has one; else an empty text."""
    without = [name for name, value in values.items() if value is None]
    return without[0] if 0 < len(without) < len(values) else ""


def require_distinct(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The values, or a refusal if one stands twice."""
    if repeated := sorted({value for value in values if values.count(value) > 1}, key=str):
        raise ValueError(f"repeated value {repeated[0]}; write each value once")
    return values
