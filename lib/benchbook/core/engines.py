"""Which engine and data each arm of a study has, and which arms share them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from benchbook.core import registry, traits
from benchbook.core.study_arm import Arm, ArmBuild, ArmEngine
from benchbook.core.study_cluster import Cluster
from benchbook.core.study_sections import Build, Engine


def engine_of(study: Any, arm: str) -> Engine:
    """Return the engine behind an arm: the study's with the arm's changes."""
    base: Engine = study.engine
    changed = study.arms[arm].engine
    if changed is None:
        return base
    if changed.name not in (None, base.name):
        return Engine(**changed.model_dump(exclude_none=True))
    is_another = bool(changed.version or changed.binary)
    return Engine(
        name=base.name,
        version=changed.version if is_another else base.version,
        binary=changed.binary or (None if changed.version or changed.build else base.binary),
        build=build_of(None if is_another else base.build, changed.build),
        settings={**base.settings, **changed.settings},
        cluster=cluster_of(base, arm_engine=changed),
    )


def build_of(base: Build | None, changed: ArmBuild | None) -> Build | None:
    """Return the commit behind an arm, or None: the study's with the arm's changes."""
    if changed is None:
        return base
    whole = base.model_dump() if base is not None else {}
    return Build(**whole | changed.model_dump(exclude_none=True))


def program_of(engine: Engine) -> str:
    """Return where the code of an engine is, as MODULE:CLASS: of its cluster if it has one."""
    of = traits.engine(engine.name)
    if engine.cluster is None:
        return of.code
    assert of.cluster is not None, "the study was refused"
    return of.cluster


def cluster_of(base: Engine, arm_engine: Any) -> Cluster | None:
    """Return the cluster behind an arm, or None: the study's with the arm's changes."""
    if base.cluster is None or arm_engine is None or arm_engine.cluster is None:
        return base.cluster
    return Cluster(**arm_engine.cluster.on(base.cluster))


def variant(arm: Arm, server_too: bool = True) -> str:
    """Return what sets an arm's data apart as text, empty if nothing does; with `server_too` its server."""
    changed = arm.model_dump(mode="json", include={"engine", "data", "numa", "parts"}, exclude_defaults=True)
    if not server_too and "data" in changed:
        changed["data"].pop("prewarm", None)
    changed["host"] = arm.hosts.get("server")
    kept = {key: value for key, value in changed.items() if value}
    return json.dumps(kept, sort_keys=True) if kept else ""


def data_groups(arms: Mapping[str, Arm]) -> list[list[str]]:
    """Return the arms by the data they share, those of the baseline first."""
    groups: dict[str, list[str]] = {}
    for name, arm in arms.items():
        groups.setdefault(variant(arm, server_too=False), []).append(name)
    return list(groups.values())


def is_prewarmed(study: Any, arm: str) -> bool:
    """Say whether an arm's data are read into memory before each block."""
    data = study.arms[arm].data
    return study.warm_up.prewarm if data is None or data.prewarm is None else data.prewarm


def begins(study: Any, arm: str) -> str | None:
    """Return whether an arm's runs begin `cold`, since it says so itself, or `warm`; None: neither is so.

    Where nothing is read into memory for any arm, runs are warm after their discard at the latest.
    """
    data = study.arms[arm].data
    if data is not None and data.prewarm is False:
        return "cold"
    return "warm" if is_prewarmed(study, arm) else None


def is_analyzed(study: Any, arm: str) -> bool:
    """Say whether ANALYZE TABLE is run on an arm's data."""
    data = study.arms[arm].data
    return study.warm_up.analyze if data is None or data.analyze is None else data.analyze


def mistakes(engine: Engine, arms: Mapping[str, Arm], kind: str) -> Iterator[str]:
    """Yield what doesn't go with an engine or a kind of site, each as `path.to.key: wrong; what to write`."""
    names = {"engine": (engine.name, engine.settings)}
    for arm, one in arms.items():
        if one.engine is not None:
            names[f"arms.{arm}.engine"] = (one.engine.name or engine.name, one.engine.settings)
    yield from _of_build(engine, arms, kind)
    for place, (name, settings) in names.items():
        dashed = [key for key in settings if "-" in key]
        if dashed and not traits.engine(name).has_items:
            yield f"{place}.settings.{dashed[0]}: no name of a variable; write _ for -"
        yield from traits.reserved(place, name, settings)
    for arm, one in arms.items():
        name = (one.engine.name if one.engine is not None else None) or engine.name
        yield from _of_driver(arm, one, name)
        if one.access == registry.SOCKET:
            yield from _of_socket(arm, one, name)
    yield from _misplaced(kind, engine, arms)


def _of_build(engine: Engine, arms: Mapping[str, Arm], kind: str) -> Iterator[str]:
    """Yield what doesn't go with a commit that is built: another place, another program, a missing key."""
    asked: dict[str, Engine | ArmEngine] = {"engine.build": engine}
    for arm, of in arms.items():
        if of.engine is not None:
            asked[f"arms.{arm}.engine.build"] = of.engine
    for place, one in asked.items():
        if one.build is None:
            continue
        if kind != "local":
            yield registry.refusal(place, kind, ["local"], "servers are built on this machine")
        if one.binary is not None or one.version is not None or one.cluster is not None:
            yield f"{place}: names a server by its commit; remove binary, version and cluster beside it"
        whole = {
            **(engine.build.model_dump() if engine.build else {}),
            **one.build.model_dump(exclude_none=True),
        }
        if missing := [key for key in Build.model_fields if key not in whole]:
            yield f"{place}.{missing[0]}: missing; write it there, or under engine.build for all arms"


def _misplaced(kind: str, engine: Engine, arms: Mapping[str, Arm]) -> Iterator[str]:
    """Yield the engines that are not made on a kind of site, each as `path.to.key: what is wrong; ...`."""
    names = {"engine.name": engine.name}
    names |= {
        f"arms.{arm}.engine.name": one.engine.name
        for arm, one in arms.items()
        if one.engine is not None and one.engine.name is not None
    }
    for place, name in names.items():
        kinds = traits.engine(name).sites
        if kind not in kinds:
            yield registry.refusal(f"{place}: {name}", kind, kinds)


def _of_socket(name: str, arm: Arm, engine: str) -> Iterator[str]:
    """Yield what of an arm can't be with a socket, which is a file of the server's machine."""
    if not traits.engine(engine).has_socket:
        yield f"arms.{name}.access: socket: not supported with engine.name: {engine}; write another access"
    for key in ("zones", "load"):
        if getattr(arm, key) is not None:
            yield f"arms.{name}.{key}: goes over a network, which access: socket does not use; remove it"


def _of_driver(name: str, arm: Arm, engine: str) -> Iterator[str]:
    """Yield what of an arm speaks another protocol than its engine."""
    driver, proxy = traits.engine(engine).driver, traits.between(arm.access)
    if proxy is not None and proxy.driver not in (None, driver):
        yield (
            f"arms.{name}.access: {arm.access}: not supported with engine.name: {engine}, whose protocol it "
            "does not speak; write another access"
        )
    for key in ("load", "zones") if driver != traits.MYSQL else ():
        if getattr(arm, key) is not None:
            yield (
                f"arms.{name}.{key}: not supported with engine.name: {engine}: its connections speak MySQL's "
                "protocol; remove it"
            )
