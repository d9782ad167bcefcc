"""What all sections of a study file are built from: their base, names, and checks of words and lists."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from benchbook.core.errors import did_you_mean

NAME = r"^[a-z][a-z0-9_-]{0,39}$"
Name = Annotated[str, Field(pattern=NAME)]


class Model(BaseModel):
    """A section of a study file: frozen, strict, and without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True)


def known(kind: str, names: Any) -> AfterValidator:
    """Return a check that refuses names which are not registered and proposes the nearest that is."""

    def check(value: str) -> str:
        if value not in names:
            raise ValueError(f"unknown {kind}; {did_you_mean(value, names)}")
        return value

    return AfterValidator(check)


def enumeration(names: Any) -> Any:
    """Return a field that tells editors which names there are."""
    return Field(json_schema_extra={"enum": sorted(names)})


def distinct(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the values, or refuse them where one stands twice."""
    repeated = sorted({value for value in values if values.count(value) > 1}, key=str)
    if repeated:
        raise ValueError(f"repeated value {repeated[0]}; write each value once")
    return values
