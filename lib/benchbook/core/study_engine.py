"""Engines and data of arms: what an arm may change of the study's."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from benchbook.core import registry
from benchbook.core.study_cluster import ArmCluster
from benchbook.core.study_sections import Model, check_settings, enumeration, known

EngineName = Annotated[str, known("engine", registry.ENGINES), enumeration(registry.ENGINES)]


class ArmEngine(Model):
    """What this arm changes of the study's engine; it gets a server and data of its own."""

    name: EngineName | None = None
    """Another engine; nothing of the study's version, binary and settings then holds for this arm."""
    version: str | None = Field(None, pattern=r"^[0-9]+(\.[0-9A-Za-z]+)*$", examples=["6.6"])
    """Another version, from the left; null: as the study says."""
    binary: str | None = None
    """Path of another server binary; null: as the study says."""
    settings: dict[str, int | float | str | bool] = Field({})
    """Settings of this arm, on top of the study's."""
    cluster: ArmCluster | None = None
    """What this arm changes of the study's cluster; null: nothing."""

    @field_validator("settings")
    @classmethod
    def _settings(cls, values: dict[str, Any]) -> dict[str, Any]:
        return check_settings(values)


class ArmData(Model):
    """How this arm's data are loaded and warmed, where that is what the study varies."""

    index: Literal["after", "before"] = "after"
    """Secondary index made `after` the rows are loaded, as sysbench does, or `before`."""
    analyze: bool | None = None
    """Run ANALYZE TABLE after loading; null: as `warm_up.analyze` says."""
    prewarm: bool | None = None
    """Read all tables and indexes into memory before each block; null: as `warm_up.prewarm` says."""
