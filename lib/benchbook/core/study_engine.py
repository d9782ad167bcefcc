"""Engines and data of arms: what an arm may change of the study's."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from benchbook.core.study_cluster import ArmCluster
from benchbook.core.study_sections import EngineName, Model, Settings


class ArmBuild(Model):
    """What this arm changes of the study's build."""

    repo: str | None = None
    """Another clone; null: as the study says."""
    ref: str | None = Field(None, examples=["main"])
    """Another commit, branch or tag; null: as the study says."""
    command: str | None = None
    """What builds it; null: as the study says."""
    binary: str | None = None
    """Path of what was built; null: as the study says."""


class ArmEngine(Model):
    """What this arm changes of the study's engine; it gets a server and data of its own."""

    name: EngineName | None = None
    """Another engine; nothing of the study's version, binary and settings then holds for this arm."""
    version: str | None = Field(None, pattern=r"^[0-9]+(\.[0-9A-Za-z]+)*$", examples=["6.6"])
    """Another version, from the left; null: as the study says."""
    binary: str | None = None
    """Path of another server binary; null: as the study says."""
    build: ArmBuild | None = None
    """What this arm changes of the commit that is built; null: nothing."""
    settings: Settings = Field({})
    """Settings of this arm, on top of the study's."""
    cluster: ArmCluster | None = None
    """What this arm changes of the study's cluster; null: nothing."""


class ArmData(Model):
    """How this arm's data are loaded and warmed, where that is what the study varies."""

    index: Literal["after", "before"] = "after"
    """Secondary index made `after` the rows are loaded, as sysbench does, or `before`."""
    analyze: bool | None = None
    """Run ANALYZE TABLE after loading; null: as `warm_up.analyze` says."""
    prewarm: bool | None = None
    """Read all tables and indexes into memory before each block; null: as `warm_up.prewarm` says."""
