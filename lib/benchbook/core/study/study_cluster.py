"""A TiDB cluster on this machine: the number of each part in a study, and their settings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import Field, model_validator

from benchbook.core.study import descriptors, registry
from benchbook.core.study.study_base import Model, Scalar, find_lacking
from benchbook.core.study.study_hosts import Item

# Where `engine.version` of a study must begin for the parts of a cluster to be had.
VERSIONS = ("5.0",)
PD, STORES, TIDB, REPLICAS = 1, 3, 1, 3

# unistore makes both caches or none, and ends at its start where the second has no size.
BLOCKS, INDEXES = "engine.block-cache-size", "engine.index-cache-size"

# Seconds of a run that an event needs before it, so that there is a level to fall from, and after it.
BEFORE_EVENT_S, AFTER_EVENT_S = 20, 20

# Settings of parts that are not a study's to make: addresses, folders, encryption, what a log is written to,
# and what the cluster's own keys say.
RESERVED = {
    "pd": re.compile(
        r"(advertise-|initial-|join$|name$|lease$|client-urls$|peer-urls$|data-dir$|force-new-cluster$|security"
        r"|log\.file|metric\.|dashboard\.|replication\.max-replicas$|replication-mode|cluster-version$)"
    ),
    "store": re.compile(r"(server\.(pd-addr|store-addr|status-addr|log-file|raft)$|engine\.db-path$)"),
}


class Event(Model):
    """Event in a cluster in the middle of each run of an arm. Such an arm is described second by
    second; the mean of a run with an event in it says little."""

    what: Literal["kill_store"] = "kill_store"
    """`kill_store`: the process of the store that leads most regions is killed (SIGKILL), and started again
    with its data."""
    at_s: int = Field(ge=1, le=86_400, examples=[60])
    """Seconds from the start of sysbench, the discard included, to the event."""
    back_after_s: int = Field(ge=1, le=86_400, examples=[60])
    """Seconds from the event until the store is started again."""


class ArmEvent(Model):
    """Event at an arm's server in the middle of each run. The arm is described second by second;
    the mean of a run with an event in it says little. sysbench then opens a lost session again: each is an
    ignored error."""

    what: Literal["kill", "restart", "set"] = "restart"
    """`restart`: the server is ended as its maker means it and started again; `kill`: its process is killed
    (SIGKILL); `set`: `settings` are made while it runs, and taken back. With `servers: 2` behind a proxy that
    fails over, the other server takes over meanwhile."""
    at_s: int = Field(ge=1, le=86_400, examples=[30])
    """Seconds from the start of sysbench, the discard included, to the event."""
    back_after_s: int = Field(1, ge=1, le=86_400, examples=[10])
    """Seconds from the event until the server is started again, or the settings are taken back."""
    settings: dict[Item, Scalar] = Field({}, examples=[{"innodb_flush_log_at_trx_commit": 1}])
    """Global variables for `what: set`."""


class Cluster(Model):
    """A TiDB cluster on this machine: PD, stores that replicate by Raft, and TiDB, each a program of its own.
    The store is unistore, which speaks TiKV's protocol and is not TiKV."""

    pd: int = Field(PD, ge=1, le=1)
    """Placement drivers; one is what can be made here."""
    stores: int = Field(STORES, ge=1, le=7, examples=[3])
    """Stores."""
    tidb: int = Field(TIDB, ge=1, le=8, examples=[3])
    """Servers that clients connect to; `access: direct` leads to the first, `haproxy` relays to all."""
    replicas: int = Field(REPLICAS, ge=1, le=7, examples=[3])
    """Stores that each row is on (`max-replicas` of PD); no more than `stores`."""
    zones_ms: float | None = Field(None, ge=0, le=100, examples=[0.5])
    """Milliseconds added each way between zones: one for each store, PD in the first, TiDB shared out. 0
    leaves the hops in place, as a baseline needs them; null makes no zones."""
    pd_settings: dict[Item, Scalar] = Field({}, examples=[{"schedule.leader-schedule-limit": 4}])
    """Settings of PD by its own names; each is read back and compared."""
    store_settings: dict[Item, Scalar] = Field({}, examples=[{"raftstore.raft-base-tick-interval": "1s"}])
    """Settings of the stores by unistore's names; each is read back and compared."""
    event: Event | None = None
    """What is done to the cluster in the middle of each run; null: nothing."""

    @model_validator(mode="after")
    def _require_enough_stores(self) -> Cluster:
        if self.replicas > self.stores:
            why = f"there are {self.stores} stores, and a store holds one replica of a region"
            remedy = f"write {self.stores} or fewer, or raise stores"
            raise ValueError(f"replicas: {self.replicas}: {why}; {remedy}")
        if self.store_settings.get(BLOCKS) and not self.store_settings.get(INDEXES):
            remedy = f"write {INDEXES} as well"
            raise ValueError(f"store_settings: {BLOCKS}: unistore then caches indexes, too; {remedy}")
        return self

    @property
    def ports(self) -> int:
        """Number of ports it takes: two for each part."""
        return 2 * (self.tidb + self.pd + self.stores)


class ArmCluster(Model):
    """Changes of the study's cluster; keys left out are the study's. The arm gets a cluster of its
    own."""

    stores: int | None = Field(None, ge=1, le=7, examples=[3])
    """Stores; null: as the study says."""
    tidb: int | None = Field(None, ge=1, le=8, examples=[3])
    """Servers that clients connect to; null: as the study says."""
    replicas: int | None = Field(None, ge=1, le=7, examples=[1])
    """Stores that each row is on; null: as the study says."""
    zones_ms: float | None = Field(None, ge=0, le=100, examples=[0.5])
    """Milliseconds added each way between zones; null: as the study says."""
    pd_settings: dict[Item, Scalar] = Field({}, examples=[{"schedule.leader-schedule-limit": 4}])
    """Settings of PD, on top of the study's."""
    store_settings: dict[Item, Scalar] = Field({}, examples=[{"raftstore.raft-base-tick-interval": "1s"}])
    """Settings of the stores, on top of the study's."""
    event: Event | None = None
    """What is done to this arm's cluster in the middle of each run; null: as the study says."""

    def on(self, base: Cluster) -> dict[str, Any]:
        """The study's cluster with these changes, as plain data; nothing is checked."""
        keys = ("stores", "tidb", "replicas", "zones_ms", "event")
        changed = {key: value for key in keys if (value := getattr(self, key)) is not None}
        changed["pd_settings"] = base.pd_settings | self.pd_settings
        changed["store_settings"] = base.store_settings | self.store_settings
        return dict(base) | changed


def _check_zones(engine: Any, arms: Mapping[str, Any]) -> Iterator[str]:
    """Faults if some arms have zones and others have none, so that the hops would be compared."""
    zones_ms = {
        name: changed if changed is not None else engine.cluster.zones_ms
        for name, arm in arms.items()
        for changed in [getattr(getattr(arm.engine, "cluster", None), "zones_ms", None)]
    }
    if name := find_lacking(zones_ms):
        why = "another arm has zones, so the hops themselves would be compared"
        yield f"arms.{name}.engine.cluster.zones_ms: null: {why}; write 0"


def find_refusals(study: Any) -> Iterator[str]:
    """Keys that don't go with a cluster, each as `path.to.key: fault; remedy`."""
    engine = study.engine
    if engine.cluster is not None:
        yield from _of_engine(study.site.kind, engine)
        yield from _check_zones(engine, study.arms)
    for name, arm in study.arms.items():
        yield from _of_arm(name, arm, study)


def _of_arm(name: str, arm: Any, study: Any) -> Iterator[str]:
    place, cluster = f"arms.{name}.engine.cluster", study.engine.cluster
    if arm.engine is not None and arm.engine.cluster is not None:
        if cluster is None:
            yield f"{place}: changes a cluster, and engine.cluster is missing; write it there"
            return
        try:
            cluster = Cluster(**arm.engine.cluster.on(cluster))
        except ValueError as error:
            yield f"{place}.{str(error).partition('Value error, ')[2].partition(' [type')[0]}"
            return
    if arm.event is not None:
        yield from _of_arm_event(name, arm, study)
    if cluster is not None:
        yield from _of_arm_cluster(name, arm, cluster, study)


def _of_arm_cluster(name: str, arm: Any, cluster: Cluster, study: Any) -> Iterator[str]:
    """Keys of an arm that its cluster can't serve."""
    engine, setting = arm.engine, arm.setting
    if engine is not None and any((engine.name, engine.version, engine.binary)):
        remedy = "leave name, version and binary to the study"
        yield f"arms.{name}.engine: another engine beside engine.cluster; {remedy}"
    yield from _find_reserved(f"arms.{name}.engine.cluster", cluster)
    able = [registry.DIRECT, *(text for text, of in descriptors.load_proxies().items() if of.spreads)]
    if arm.access not in able:
        remedy = f"write {' or '.join(able)}"
        yield f"arms.{name}.access: {arm.access}: can't reach all TiDB of engine.cluster; {remedy}"
    for key in ("network", "qos", "kernel", "zones", "servers"):
        if key in setting:
            yield f"arms.{name}.{key}: is made for one server, not for engine.cluster; remove it"
    if cluster.event is not None:
        yield from _of_event(name, cluster, cluster.event, study)


def _of_engine(kind: str, engine: Any) -> Iterator[str]:
    if kind != "local":
        instead = f"{registry.format_remedy(('local',))}, or use site.tiup or site.kubernetes.tidb"
        yield registry.format_refusal("engine.cluster", kind, ("local",), remedy=instead)
    if descriptors.find_engine(engine.name).cluster is None:
        able = next(other for other in descriptors.load_engines().values() if other.cluster is not None)
        why = f"made of {able.product}, and engine.name is {engine.name}"
        yield f"engine.cluster: {why}; write {able.name}, or remove it"
    elif engine.binary is not None:
        yield f"engine.binary: {engine.binary}: the parts of a cluster are built together; remove it"
    elif engine.version not in VERSIONS:
        yield f"engine.version: {engine.version}: a cluster can be made of {', '.join(VERSIONS)}; write that"
    yield from _find_reserved("engine.cluster", engine.cluster)


def _of_event(name: str, cluster: Cluster, event: Event, study: Any) -> Iterator[str]:
    """Faults if an event can't be made in a study, or would say nothing."""
    place = f"arms.{name}: engine.cluster.event"
    if cluster.replicas < 3:
        yield f"{place}: with {cluster.replicas} replicas no majority is left; write replicas: 3"
    yield from _of_time(name, place, event, study)


def _of_arm_event(name: str, arm: Any, study: Any) -> Iterator[str]:
    """Faults if a server's event can't be made in a study, or would say nothing."""
    place, event = f"arms.{name}.event", arm.event
    if study.engine.cluster is not None:
        yield f"{place}: made for one server; write engine.cluster.event"
    if study.site.tiup is not None or (study.site.kubernetes and study.site.kubernetes.tidb):
        yield f"{place}: made for one server, not for a TiDB cluster of {study.site.kind}; remove it"
    if (event.what == "set") != bool(event.settings):
        yield f"{place}.settings: go with what: set; write both or neither"
    engine = descriptors.find_engine((arm.engine and arm.engine.name) or study.engine.name)
    if engine.driver != descriptors.MYSQL:
        yield f"{place}: not supported with engine.name: {engine.name}; write an engine of MySQL's family"
    yield from _of_time(name, place, event, study)


def _of_time(name: str, place: str, event: Event | ArmEvent, study: Any) -> Iterator[str]:
    plan = study.plan
    if len(study.workloads) * len(study.threads) > 1 or study.aa is not None:
        why = "what was ended is another process, and parts are started anew with each block only"
        yield f"{place}: {why}; write one workload, one thread level and aa: null"
    if event.at_s < (least := plan.discard_s + BEFORE_EVENT_S):
        why = f"leaves less than {BEFORE_EVENT_S} s before it"
        yield f"{place}.at_s: {event.at_s}: {why}; write {int(least)} or more"
    needed = event.at_s + event.back_after_s + AFTER_EVENT_S
    if plan.discard_s + plan.run_s < needed:
        why = f"the event of arm {name} ends {AFTER_EVENT_S} s before the run at the latest"
        yield f"plan.run_s: {plan.run_s}: {why}; write {int(needed - plan.discard_s)} or more"


def _find_reserved(place: str, cluster: Cluster) -> Iterator[str]:
    """Each setting of a cluster's parts that is not a study's, with the remedy."""
    why = "it says where the part listens, lives or writes, or what the cluster's own keys say (replicas)"
    for part, form in RESERVED.items():
        for key, value in getattr(cluster, f"{part}_settings").items():
            if form.match(key) or descriptors.is_leading_out(value):
                yield f"{place}.{part}_settings.{key}: not a study's to set: {why}; remove it"
