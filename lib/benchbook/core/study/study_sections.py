"""The sections of a study file as frozen types: every key with its unit."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag, field_validator, model_validator

from benchbook.core.study import custom_scripts, descriptors, registry, sysbench_workloads
from benchbook.core.study.study_base import Model, Name, Threads, known_names, require_distinct
from benchbook.core.study.study_cluster import Cluster
from benchbook.core.study.study_hosts import Existing, Tiup
from benchbook.core.study.study_kubernetes import Kubernetes
from benchbook.core.util.errors import did_you_mean

MAX_INT32 = 2_147_483_647
# Errors that sysbench must never ignore: with them it loops for ever or crashes while reconnecting.
FATAL_ERRORS = {2006, 2011, 2013, 2055}


def _check_script(value: str) -> str:
    if value not in sysbench_workloads.SCRIPTS and not custom_scripts.is_own(value):
        nearest = did_you_mean(value, sysbench_workloads.SCRIPTS)
        raise ValueError(f"unknown workload script; {nearest}, or the path of your own .lua file")
    return value


def _check_settings(values: dict[str, Any]) -> dict[str, Any]:
    """A server's settings, or a refusal of names and values that no settings file can carry."""
    for key, value in values.items():
        if not re.fullmatch(r"[a-z][a-z0-9_.-]{0,63}", key):
            raise ValueError(f"{key!r} is not the name of a server variable; use lower case, digits and _")
        if isinstance(value, str) and not re.fullmatch(r"[\w.,:/@%+= -]{0,200}", value):
            what = "characters that a settings file cannot carry"
            raise ValueError(f"{key}: {value!r} holds {what}; use plain text")
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"{key}: {value} is not finite; write a number")
    return values


SiteKind = Annotated[str, *known_names("site", registry.SITES.keys)]
EngineName = Annotated[str, *known_names("engine (of no package here)", descriptors.load_engines)]
_SCRIPTS = [*sorted(sysbench_workloads.SCRIPTS), "../sysbench-tpcc/tpcc.lua"]
Script = Annotated[str, AfterValidator(_check_script), Field(examples=_SCRIPTS)]
Settings = Annotated[dict[str, int | float | str | bool], AfterValidator(_check_settings)]


class SiteSection(Model):
    """Place of the arms."""

    kind: SiteKind = "local"
    """Kind of site: `local` is this machine, `kubernetes` a cluster, `ssh` the hosts of an inventory,
    `existing` an endpoint that others run."""
    port: int = Field(23060, ge=1024, le=65000, examples=[23060])
    """First TCP port (1024 to 65000); the server takes it, proxies the next ones."""
    cpus: Literal["split", "shared"] = "split"
    """`split` keeps the server on one half of the cores and client and proxy on the other; `shared` pins
    nothing."""
    priority: Literal["raised", "ordinary"] = "raised"
    """On this machine: `raised` lets what is measured, of kind `existing` its clients, go before other
    programs (nice −10, where rights allow); `ordinary` leaves them their share."""
    existing: Existing | None = None
    """The endpoint, for `kind: existing`; null for other kinds."""
    sysbench: str | None = Field(None, pattern=r"^[0-9]+(\.[0-9A-Za-z]+)*$", examples=["1.0.17"])
    """Version of sysbench that each arm's client must have, from the left: "1.0" accepts 1.0.20. Null accepts
    any and records it."""
    inventory: Name | None = None
    """Name of the inventory of hosts, for `kind: ssh` (docs/ssh.md); null for other kinds."""
    tiup: Tiup | None = None
    """A TiDB cluster on the hosts, for `kind: ssh` and `engine.name: tidb`; null: one TiDB with its embedded
    storage on the server's host."""
    tls: Literal["off", "required"] = "off"
    """Encryption between client and server, for `kind: ssh`: with certificates of our own, read back."""
    kubernetes: Kubernetes | None = None
    """How arms are made in a cluster, for `kind: kubernetes`; null takes all its defaults."""

    @model_validator(mode="after")
    def _refuse_keys_of_other_sites(self) -> SiteSection:
        if self.kubernetes is not None and self.kind != "kubernetes":
            raise ValueError(f"kubernetes: no key of kind {self.kind}; write kind: kubernetes, or remove it")
        if self.kind == "ssh" and self.inventory is None:
            raise ValueError("inventory: missing for kind ssh; name the file in inventories/, without .yaml")
        if self.kind != "ssh" and self.inventory is not None:
            raise ValueError(f"inventory: no key of kind {self.kind}; write kind: ssh, or remove it")
        if self.kind == "ssh" and "cpus" in self.model_fields_set:
            raise ValueError("cpus: no key of kind ssh, where parts have hosts of their own; remove it")
        if self.precedence is None and "priority" in self.model_fields_set:
            raise ValueError(f"priority: no key of kind {self.kind}, whose machines are others'; remove it")
        return self

    @property
    def precedence(self) -> Literal["raised", "ordinary"] | None:
        """Meaning of `priority` for programs on this machine; None if nothing is measured by them."""
        return self.priority if self.kind in ("local", "existing") else None


class Build(Model):
    """A server that is built from a commit of its source; builds are kept by commit and command."""

    repo: str = Field(min_length=1, examples=["../server"])
    """Folder of a git clone, from the repository's root."""
    ref: str = Field(pattern=r"^[0-9A-Za-z][0-9A-Za-z._/~^-]*$", examples=["v1.4"])
    """Commit, branch or tag."""
    command: str = Field(min_length=1, examples=["make -j2"])
    """What builds it, in a worktree of the commit."""
    binary: str = Field(pattern=r"^[^/]", examples=["build/sbin/mariadbd"])
    """Path of what was built, below the worktree."""


class Engine(Model):
    """The database server."""

    name: EngineName = "mariadb"
    """The engine (docs/one-machine-lab.md): `mariadb` and `postgresql` of the OS package, `tidb` built from
    its Go module, `mysql` an installed MySQL or Percona Server."""
    version: str | None = Field(None, pattern=r"^[0-9]+(\.[0-9A-Za-z]+)*$", examples=["10.11"])
    """Version that must be found, from the left: "10.11" accepts 10.11.6. Null accepts any and records it; of
    TiDB it builds the newest."""
    binary: str | None = None
    """Path of another server binary of the same engine; null takes the one of the OS package."""
    build: Build | None = None
    """A commit to build the server from, on this machine; null: nothing is built."""
    settings: Settings = Field({})
    """Server variables, in the server's own names and units; each is read back from the server and
    compared. For `tidb` a name with a dot or a dash is an item of its settings file (`log.level`)."""
    cluster: Cluster | None = None
    """A TiDB cluster on this machine, for `tidb` 5.0: PD, stores and TiDB as programs of their own; null: one
    TiDB with its embedded storage."""


class TwinArm(Model):
    """Cell in that the baseline is measured against itself: the A/A pair."""

    workloads: Annotated[tuple[str, ...], AfterValidator(require_distinct)] | None = None
    """Workloads of the A/A pair; null takes all. Leave it out in turns where arms have a TiDB each
    (docs/turns.md)."""
    threads: Annotated[tuple[Threads, ...], AfterValidator(require_distinct)] | None = None
    """Thread levels of the A/A pair; null takes all. Leave it out in turns where arms have a TiDB each."""


class Dataset(Model):
    """Data to load before measuring."""

    tables: int = Field(2, ge=1, le=1000, examples=[4])
    """Number of sysbench tables."""
    table_size: int = Field(20_000, ge=1, le=MAX_INT32, examples=[10000])
    """Rows a table."""
    seed: int = Field(1, ge=1, le=MAX_INT32, examples=[1])
    """Seed of the rows: the same seed loads the same rows, wherever and however often."""


class Rate(Model):
    """A rate that follows from the arms' capacity."""

    share: float = Field(gt=0, le=0.95, examples=[0.7])
    """Share of what the slower arm does in a closed loop at the same threads, which the pilots find out."""


# Distinguished by form, so that a mistake in one is not also reported as not being the other.
RateOrShare = Annotated[
    Annotated[int, Field(ge=0, le=10_000_000), Tag("number")] | Annotated[Rate, Tag("share")],
    Discriminator(lambda value: "share" if isinstance(value, dict | Rate) else "number"),
]


class Workload(Model):
    """A sysbench script with its options; options left out take sysbench's own default, all but `rand_type`,
    and all are passed explicitly."""

    script: Script | None = None
    """Name of a script that sysbench ships, or path of a Lua file from the repository's root
    (docs/writing-a-study.md); null takes the workload's name."""
    options: dict[str, int | float | str | bool] = Field({})
    """Options of a script of your own, by name; true and false become on and off."""
    rand_type: Literal["uniform", "gaussian", "special", "pareto"] = "uniform"
    """Distribution of the rows that are touched. sysbench 1.0 without `--rand-type` takes `special`: three
    requests in four for a hundredth of the rows."""
    rand_pareto_h: float | None = Field(None, gt=0, lt=1, examples=[0.2])
    """Shape of the Pareto distribution, between 0 and 1; only with `rand_type: pareto`."""
    ps_mode: Literal["auto", "disable"] = "auto"
    """Prepared statements on the server (`auto`) or none (`disable`)."""
    rate: RateOrShare = Field(0, examples=[500])
    """Transactions a second offered; 0 runs as fast as it goes (closed loop), `{share: 0.7}` is 70 % of the
    slower arm's saturation. With a rate, latency is compared."""
    order: Literal["runs"] | None = None
    """`runs`: whole runs on every machine, not only where transactions are too long for turns."""
    skip_trx: bool = False
    """Leave out BEGIN and COMMIT."""
    range_size: int = Field(100, ge=1, le=1_000_000, examples=[100])
    """Rows of one range query."""
    point_selects: int = Field(10, ge=0, le=10_000, examples=[10])
    """Point selects of one transaction."""
    simple_ranges: int = Field(1, ge=0, le=10_000, examples=[1])
    """Simple range queries of one transaction."""
    sum_ranges: int = Field(1, ge=0, le=10_000, examples=[1])
    """SUM range queries of one transaction."""
    order_ranges: int = Field(1, ge=0, le=10_000, examples=[1])
    """Ordered range queries of one transaction."""
    distinct_ranges: int = Field(1, ge=0, le=10_000, examples=[1])
    """DISTINCT range queries of one transaction."""
    index_updates: int = Field(1, ge=0, le=10_000, examples=[1])
    """Updates of the indexed column in one transaction."""
    non_index_updates: int = Field(1, ge=0, le=10_000, examples=[1])
    """Updates of a column without index in one transaction."""
    delete_inserts: int = Field(1, ge=0, le=10_000, examples=[1])
    """Pairs of DELETE and INSERT in one transaction."""
    random_points: int = Field(10, ge=1, le=10_000, examples=[10])
    """Rows of one IN list (`select_random_points`)."""
    number_of_ranges: int = Field(10, ge=1, le=10_000, examples=[10])
    """Ranges of one query (`select_random_ranges`)."""
    delta: int = Field(5, ge=1, le=10_000, examples=[5])
    """Rows of each of these ranges."""
    ignore_errors: Annotated[tuple[int, ...], AfterValidator(require_distinct)] = (1213, 1020, 1205)
    """MySQL error numbers after which a transaction is tried again: deadlock and lock wait by default.
    PostgreSQL's driver has no such option."""

    @field_validator("ignore_errors")
    @classmethod
    def _refuse_fatal_errors(cls, values: tuple[int, ...]) -> tuple[int, ...]:
        if fatal := sorted(FATAL_ERRORS & set(values)):
            remedy = "leave out 2006, 2011, 2013 and 2055"
            raise ValueError(f"{fatal[0]} makes sysbench crash or run for ever; {remedy}")
        return values

    @model_validator(mode="after")
    def _require_pareto(self) -> Workload:
        if self.rand_pareto_h is not None and self.rand_type != "pareto":
            raise ValueError("rand_pareto_h needs rand_type: pareto; remove one of them")
        return self


# A whole number stays one, so that it is written as it was before halves were allowed.
Seconds = Annotated[
    float,
    Field(allow_inf_nan=False),
    AfterValidator(lambda value: int(value) if value == int(value) else value),
]


class Plan(Model):
    """Amount of measuring, and its order."""

    seed: int | None = Field(None, ge=1, le=MAX_INT32, examples=[20261120])
    """Seed of the order of runs and of sysbench's random numbers, to make a session again; null: each session
    draws its own and keeps it in `data/STUDY/session.json`."""
    blocks: int = Field(ge=1, le=1000, examples=[5])
    """Passes over all cells; verdicts are looked for at 5, 10, 20 and, past 5, at the last."""
    order: Literal["turns", "runs"] | None = None
    """`turns` of some 20 ms between arms that are connected at once, or whole `runs`. Null takes turns where
    they give the same answer, and says why not elsewhere (docs/turns.md)."""
    turn_ms: int | None = Field(None, ge=5, le=2000, examples=[20])
    """Milliseconds of a turn; null takes 20, or more where the pilots show that a transaction needs it."""
    ladder: Annotated[tuple[Name, ...], Field(min_length=3), AfterValidator(require_distinct)] | None = None
    """Arms in their order, such as versions or sizes: each is also compared with its neighbour, and all
    pairs with each other; null: arms have no order."""
    stop: Literal["all", "decided"] = "all"
    """`all` measures every block; `decided` stops at a look (5, 10, 20 blocks) at which each claim has its
    verdict, each row of the results its label or ± 3 %, and equal arms are known to be within 5 %."""
    discard_s: Seconds = Field(ge=0, le=86_400, examples=[15])
    """Seconds at the start of each run that are not counted; in turns of each arm's own seconds, of which
    there may be half of one."""
    run_s: Seconds = Field(ge=1, le=86_400, examples=[45])
    """Seconds measured in each run, after the discard; in turns the sum of the arm's own turns, and a part of
    a second may be asked for."""
    max_repeats: int = Field(2, ge=0, le=20, examples=[2])
    """How often a group of runs is repeated in its block after one of them was invalid."""
    budget_minutes: int = Field(1440, ge=1, le=100_000, examples=[1440])
    """Longest time the schedule may take, in minutes."""


class WarmUp(Model):
    """Steps before measuring, never counted."""

    prewarm: bool = True
    """Read all tables and indexes into memory."""
    analyze: bool = True
    """Run ANALYZE TABLE after loading."""
    pilot_s: int = Field(20, ge=0, le=86_400, examples=[300])
    """Seconds of a pilot run, one for each arm and workload at the lowest and highest thread level; 0 runs
    none."""
