"""What all sections of a study file are built from: their base, names, and checks of words and lists."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterable
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
    """A model whose schema says of each key what the text behind it does: frozen, strict, no unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Return the schema with what `described` says of each key."""
        made = handler(schema)
        properties = handler.resolve_ref_schema(made).get("properties", {})
        for name, text in described(cls).items():
            key = properties[name]
            # Where a key is a section that says the same of itself, once is enough.
            if "$ref" not in key or handler.resolve_ref_schema(key).get("description") != text:
                key.setdefault("description", text)
        return made


class Model(Described):
    """A section of a study file."""

    @model_validator(mode="before")
    @classmethod
    def _tuples(cls, values: Any) -> Any:
        """Take the lists of a file for the tuples of frozen types."""
        return {key: tuples(value) for key, value in values.items()} if isinstance(values, dict) else values


def tuples(value: Any) -> Any:
    """Return parsed data with tuples in place of lists."""
    if isinstance(value, dict):
        return {key: tuples(item) for key, item in value.items()}
    return tuple(map(tuples, value)) if isinstance(value, list) else value


@cache
def described(model: type[BaseModel]) -> dict[str, str]:
    """Return what the text behind each key of a section says of it."""
    found: dict[str, str] = {}
    # Pydantic (`use_attribute_docstrings`) reads them at each import, a quarter of the time of a start.
    for kind in reversed(model.__mro__):
        if not issubclass(kind, Described) or kind.__module__ == __name__:
            continue
        body = _classes(inspect.getsourcefile(kind) or "")[kind.__name__]
        for field, text in pairwise(body):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                said = text.value if isinstance(text, ast.Expr) else None
                if isinstance(said, ast.Constant) and isinstance(said.value, str):
                    found[field.target.id] = inspect.cleandoc(said.value)
    return {name: text for name, text in found.items() if name in model.model_fields}


@cache
def _classes(file: str) -> dict[str, list[ast.stmt]]:
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    return {one.name: one.body for one in ast.walk(tree) if isinstance(one, ast.ClassDef)}


def known(kind: str, names: Callable[[], Iterable[str]], otherwise: str = "") -> AfterValidator:
    """Return a check that refuses names which are not there and proposes the nearest that is, or a way."""

    def check(value: str) -> str:
        if value not in (there := [*names()]):
            remedy = " ".join(filter(None, (did_you_mean(value, there), otherwise)))
            raise ValueError(f"unknown {kind}; {remedy}")
        return value

    return AfterValidator(check)


def enumeration(names: Callable[[], Iterable[str]]) -> Any:
    """Return a field that tells editors which names there are."""
    return Field(json_schema_extra=lambda made: made.update(enum=[*sorted(names())]))


def distinct(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the values, or refuse them where one stands twice."""
    repeated = sorted({value for value in values if values.count(value) > 1}, key=str)
    if repeated:
        raise ValueError(f"repeated value {repeated[0]}; write each value once")
    return values
