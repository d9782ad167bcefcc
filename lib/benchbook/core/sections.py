"""A view of a file's model that gives only the sections a stage has declared."""

from __future__ import annotations

import types
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel

from benchbook.core.errors import BenchbookError


class Sections:
    """Show some sections of a model; reading another one is an error that names what to declare."""

    def __init__(self, model: BaseModel, names: Iterable[str]) -> None:
        self._model, self._names = model, frozenset(names)
        unknown = self._names - set(type(model).model_fields)
        if unknown:
            raise BenchbookError(
                f"{sorted(unknown)[0]}: not a section of {type(model).__name__}; correct the stage's notebook"
            )

    def __getattr__(self, name: str) -> Any:
        kind = type(self._model)
        if name in kind.model_fields:
            if name not in self._names:
                raise BenchbookError(
                    f"this stage reads `{name}` but does not declare it; "
                    "add it to load.study(…) and to dvc.yaml"
                )
            return getattr(self._model, name)
        found = kind.__dict__.get(name)
        if isinstance(found, property):
            return found.fget(self)  # type: ignore[misc]
        if isinstance(found, types.FunctionType):
            return types.MethodType(found, self)
        raise AttributeError(f"{kind.__name__} has no {name}")

    def model_dump(self, **options: Any) -> dict[str, Any]:
        return self._model.model_dump(include=set(self._names), **options)

    def __repr__(self) -> str:
        return f"{type(self._model).__name__}({', '.join(sorted(self._names))})"
