"""Engine and data of each arm of a study, and arms that share them."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from benchbook.core.study import descriptors, registry
from benchbook.core.study.study_arm import Arm, ArmEngine
from benchbook.core.study.study_cluster import Cluster
from benchbook.core.study.study_sections import Build, Engine
from benchbook.core.util.grouping import group_by


def engine_of(study: Any, arm: str) -> Engine:
    """Engine behind an arm: the study's with the arm's changes."""
    base: Engine = study.engine
    changed = study.arms[arm].engine
    if changed is None:
        return base
    if changed.name not in (None, base.name):
        return Engine(**changed.model_dump(exclude_none=True))
    is_another = bool(changed.version or changed.binary)
    build = None if is_another else base.build
    if changed.build is not None:
        build = Build(**dict(build or {}) | changed.build.model_dump(exclude_none=True))
    cluster = base.cluster
    if cluster is not None and changed.cluster is not None:
        cluster = Cluster(**changed.cluster.on(cluster))
    return Engine(
        name=base.name,
        version=changed.version if is_another else base.version,
        binary=changed.binary or (None if changed.version or changed.build else base.binary),
        build=build,
        settings={**base.settings, **changed.settings},
        cluster=cluster,
    )


def program_of(engine: Engine) -> str:
    """Place of an engine's code, as MODULE:CLASS: of its cluster if it has one."""
    of = descriptors.find_engine(engine.name)
    if engine.cluster is None:
        return of.code
    assert of.cluster is not None, "the study was refused"
    return of.cluster


# Keys of an arm that give it a server of its own.
OF_SERVERS = ("engine", "data", "event", "numa", "parts")


def data_variant(arm: Arm, server_too: bool = True) -> str:
    """Text that sets an arm's data apart, empty if nothing does; with `server_too` its server."""
    changed = arm.model_dump(mode="json", include={*OF_SERVERS}, exclude_defaults=True)
    if not server_too:
        changed.pop("event", None)
        changed.get("data", {}).pop("prewarm", None)
    changed["host"] = arm.hosts.get("server")
    kept = {key: value for key, value in changed.items() if value}
    return json.dumps(kept, sort_keys=True) if kept else ""


def data_groups(arms: Mapping[str, Arm]) -> list[list[str]]:
    """Arms by the data they share, those of the baseline first."""
    return list(group_by(arms, lambda name: data_variant(arms[name], server_too=False)).values())


def is_prewarmed(study: Any, arm: str) -> bool:
    """True if an arm's data are read into memory before each block."""
    data = study.arms[arm].data
    return study.warm_up.prewarm if data is None or data.prewarm is None else data.prewarm


def cache_start(study: Any, arm: str) -> str | None:
    """`cold` if an arm's runs begin so by its own word, `warm` if prewarmed; None: warm by the discard."""
    data = study.arms[arm].data
    if data is not None and data.prewarm is False:
        return "cold"
    return "warm" if is_prewarmed(study, arm) else None


def is_analyzed(study: Any, arm: str) -> bool:
    """True if ANALYZE TABLE is run on an arm's data."""
    data = study.arms[arm].data
    return study.warm_up.analyze if data is None or data.analyze is None else data.analyze


def find_refusals(study: Any) -> Iterator[str]:
    """Keys that don't go with an engine or a kind of site, each as `path.to.key: fault; remedy`."""
    engine, kind = study.engine, study.site.kind
    requests: dict[str, Engine | ArmEngine] = {"engine": engine}
    requests |= {f"arms.{arm}.engine": of.engine for arm, of in study.arms.items() if of.engine is not None}
    for place, item in requests.items():
        if item.build is not None:
            yield from _of_build(f"{place}.build", item, engine.build, kind)
        yield from _of_item(place, item, item.name or engine.name, kind)
    for name, arm in study.arms.items():
        yield from _of_way(name, arm, (arm.engine and arm.engine.name) or engine.name)


def _of_item(place: str, item: Engine | ArmEngine, name: str, kind: str) -> Iterator[str]:
    """Settings that an engine of this name can't take, and sites that it can't be on."""
    of, dashed = descriptors.find_engine(name), [key for key in item.settings if "-" in key]
    if dashed and not of.has_items:
        yield f"{place}.settings.{dashed[0]}: no name of a variable; write _ for -"
    yield from descriptors.find_reserved(place, name, item.settings)
    if item.name is not None and kind not in of.sites:
        yield registry.format_refusal(f"{place}.name: {name}", kind, of.sites)


def _of_build(place: str, item: Engine | ArmEngine, base: Build | None, kind: str) -> Iterator[str]:
    """Faults of a commit that is built: another place, another program, a missing key."""
    if kind != "local":
        yield registry.format_refusal(place, kind, ["local"], "servers are built on this machine")
    if (item.binary, item.version, item.cluster) != (None, None, None):
        yield f"{place}: names a server by its commit; remove binary, version and cluster beside it"
    inputs = [build.model_dump(exclude_none=True) for build in (base, item.build) if build is not None]
    if missing := [key for key in Build.model_fields if not any(key in build for build in inputs)]:
        yield f"{place}.{missing[0]}: missing; write it there, or under engine.build for all arms"


def _of_way(name: str, arm: Arm, engine: str) -> Iterator[str]:
    """Faults on an arm's way to its engine: another protocol, or a network beside a socket."""
    engine_descriptor = descriptors.find_engine(engine)
    proxy = descriptors.find_intermediary(arm.access)
    is_socket, unsupported = arm.access == registry.SOCKET, f"not supported with engine.name: {engine}"
    way = f"arms.{name}.access: {arm.access}: {unsupported}"
    if proxy is not None and proxy.driver not in (None, engine_descriptor.driver):
        yield f"{way}, whose protocol it does not speak; write another access"
    if is_socket and not engine_descriptor.has_socket:
        yield f"{way}; write another access"
    for key in [key for key in ("load", "zones") if getattr(arm, key) is not None]:
        if engine_descriptor.driver != descriptors.MYSQL:
            yield f"arms.{name}.{key}: {unsupported}: its connections speak MySQL's protocol; remove it"
        if is_socket:
            yield f"arms.{name}.{key}: goes over a network, which access: socket does not use; remove it"
