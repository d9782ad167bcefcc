"""Sections of a study file about hosts, a TiDB cluster made there by tiup, and a server that others run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from benchbook.core.study import descriptors, registry
from benchbook.core.study.study_base import Model, Scalar, require_distinct

Item = Annotated[str, Field(pattern=r"^[a-z][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*$")]
Word = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]*([. ][a-z0-9_-]+)*$")]


class TiupPart(Model):
    """One part of a TiDB cluster on hosts: the number of hosts of its role, and its settings."""

    hosts: int = Field(3, ge=1, le=99, examples=[3])
    """Hosts that it is put on: the first of the inventory with its role (`pd`, `tikv`; of TiDB `server`)."""
    config: dict[Item, Scalar] = Field({})
    """Settings in the part's own names with dots, such as `rocksdb.defaultcf.block-cache-size`."""


class Tiup(Model):
    """A TiDB cluster that `tiup` makes on hosts, from the host with the role `control`. Its version is the
    engine's, written out, such as 8.0.0."""

    user: str = Field("tidb", pattern=r"^[a-z_][a-z0-9_-]{0,31}$", examples=["tidb"])
    """User that the cluster runs as; `tiup` makes it where it is missing."""
    login: str = Field("root", pattern=r"^[a-z_][a-z0-9_-]{0,31}$", examples=["root"])
    """User that `tiup` logs in as on the hosts; it must be root there, or become it."""
    identity_file: str | None = Field(
        None, pattern=r"^(~|/)[A-Za-z0-9_./-]*$", examples=["~/.ssh/id_ed25519"]
    )
    """Private key on the control host for these logins; null: the one that `tiup` takes by itself."""
    pd: TiupPart = TiupPart()
    """The placement driver."""
    tikv: TiupPart = TiupPart()
    """The storage."""
    tidb: TiupPart = TiupPart()
    """The servers that clients connect to, themselves or through a proxy, which relays to all of them. An
    item here is read back like those of `engine.settings`."""
    wait_s: int = Field(900, ge=10, le=7200, examples=[900])
    """Longest time that one command of `tiup` may take, in seconds."""


class HostProxy(Model):
    """The proxy of one arm, on this machine and on hosts."""

    version: str | None = Field(None, pattern=r"^[0-9]+(\.[0-9A-Za-z]+)*$", examples=["1.0.0"])
    """Version that must be found, from the left; null accepts any and records it."""
    settings: dict[Word, int | str | bool] = Field({}, examples=[{"proxy.conn-buffer-size": 131072}])
    """Settings in the proxy's own words: items of TiProxy's file, HAProxy's `maxconn`, `nbthread`,
    `cpu-map`, `tune.bufsize`, `retries`, `balance` and timeouts, PgBouncer's pools, such as
    `default_pool_size`, names of ProxySQL's `mysql_variables`."""

    @field_validator("settings")
    @classmethod
    def _refuse_unsafe_characters(cls, values: dict[str, Any]) -> dict[str, Any]:
        for name, value in values.items():
            if isinstance(value, str) and not all(char.isalnum() or char in "._:/-, " for char in value):
                raise ValueError(f"{name}: {value!r} holds characters that a settings file cannot carry")
        return values


class PartSettings(Model):
    """Settings of a TiDB cluster's parts that one arm has on top of the site's, each part's own names with
    dots; such an arm gets a cluster of its own."""

    pd: dict[Item, Scalar] = Field({}, examples=[{"schedule.leader-schedule-limit": 4}])
    """Settings of PD."""
    tikv: dict[Item, Scalar] = Field({}, examples=[{"storage.block-cache.capacity": "30GB"}])
    """Settings of TiKV; null is not a value: a setting of the site's can be replaced, not taken away."""
    tidb: dict[Item, Scalar] = Field({}, examples=[{"log.level": "error"}])
    """Settings of TiDB."""

    @model_validator(mode="after")
    def _some(self) -> PartSettings:
        if not (self.pd or self.tikv or self.tidb):
            raise ValueError("no settings; write some under pd, tikv or tidb, or remove the key")
        return self


Node = Annotated[int, Field(ge=0, le=1023, examples=[0])]


class Numa(Model):
    """Instances of a cluster's parts bound to NUMA nodes: on each host one for each node."""

    tidb: Annotated[tuple[Node, ...], AfterValidator(require_distinct)] = ()
    """Nodes with a TiDB each, which then uses as many cores as its node has; none: one TiDB on all nodes."""
    tikv: Annotated[tuple[Node, ...], AfterValidator(require_distinct)] = ()
    """Nodes with a TiKV each; none: one TiKV on all nodes."""


ON_HOSTS = f"remove it, or {registry.format_remedy(('ssh',))}"


def find_refusals(study: Any) -> Iterator[str]:
    """Keys that hosts or an endpoint can't serve, as `path.to.key: fault; ...`."""
    site, engine = study.site, study.engine
    yield from _of_site(site, engine)
    for name, arm in study.arms.items():
        yield from (f"arms.{name}.{text}" for text in (*_of_parts(arm, site), *_of_arm(arm, site)))
        if site.tiup is not None:
            yield from _of_tiup(name, arm, site.tiup, engine)
    yield from _of_endpoint(study)


def _of_site(site: Any, engine: Any) -> Iterator[str]:
    """Encryption and `tiup` where the site or the engine has none."""
    kind, tls, tiup = site.kind, site.tls, site.tiup
    if kind != "ssh":
        if tiup is not None:
            yield registry.format_refusal("site.tiup", kind, ("ssh",), remedy=ON_HOSTS)
        if tls != "off":
            yield registry.format_refusal(f"site.tls: {tls}", kind, ("ssh",), remedy=ON_HOSTS)
    elif tls != "off" and not descriptors.find_engine(engine.name).encrypts:
        able = " and ".join(text for text, of in descriptors.load_engines().items() if of.encrypts)
        yield f"site.tls: {tls}: made for {able} only, and engine.name is {engine.name}; remove it"
    elif tiup is not None and "tiup" not in descriptors.find_engine(engine.name).clusters_by:
        yield f"site.tiup: makes TiDB, and engine.name is {engine.name}; write tidb, or remove it"


def _of_parts(arm: Any, site: Any) -> Iterator[str]:
    """Settings and nodes of the parts of a cluster that the site could make and does not."""
    has_parts = site.tiup is not None or getattr(site.kubernetes, "tidb", None) is not None
    if arm.parts is not None and not has_parts and "parts" in registry.MAKES[site.kind]:
        yield "parts: settings of a TiDB cluster; write site.tiup or site.kubernetes.tidb, or remove it"
    if arm.numa is not None and site.tiup is None and site.kind == "ssh":
        yield "numa: binds parts of a cluster; write site.tiup, or cpu.server.cores"


def _of_arm(arm: Any, site: Any) -> Iterator[str]:
    """Keys of an arm that its site does not serve: encryption, proxy, hosts."""
    proxy = descriptors.load_proxies().get(arm.access)
    if site.tls != "off" and proxy is not None and not proxy.relays_tls:
        yield f"access: {arm.access}: has no certificate of ours; write direct"
    if arm.proxy is not None and "proxy" in registry.MAKES[site.kind]:
        yield from _of_proxy(arm, proxy, site.kind)
    for part in arm.hosts:
        if (number := part.removeprefix("client")).isdigit() and int(number) > arm.clients:
            yield f"hosts.{part}: the arm has {arm.clients} clients; write clients: {number}"


def _of_proxy(arm: Any, proxy: Any, kind: str) -> Iterator[str]:
    """Settings of a proxy that the arm does not have, or that it does not know."""
    if proxy is None:
        able = " or ".join(text for text, of in descriptors.load_proxies().items() if kind in of.sites)
        yield f"proxy: access is {arm.access}; write {able}, or remove it"
    elif why := proxy.refused(arm.proxy.settings, arm.load.connections if arm.load else 0):
        yield f"proxy.settings.{why}"


def _of_tiup(name: str, arm: Any, tiup: Tiup, engine: Any) -> Iterator[str]:
    """Versions that tiup does not deploy, and servers that its cluster lacks."""
    version = (arm.engine.version if arm.engine is not None else None) or engine.version
    if version is None or version.count(".") < 2:
        yield f"engine.version: {version}: tiup needs it whole (arm {name}); write one such as 8.0.0"
    instances = tiup.tidb.hosts * (len(arm.numa.tidb) if arm.numa is not None and arm.numa.tidb else 1)
    if arm.servers > instances:
        what = f"the cluster has {instances} TiDB; raise site.tiup.tidb.hosts"
        yield f"arms.{name}.servers: {arm.servers}: {what}"


def _of_endpoint(study: Any) -> Iterator[str]:
    kind, engine = study.site.kind, study.engine
    tls = getattr(study.site.existing, "tls", "off")
    if (kind == "existing") != (study.site.existing is not None):
        yield f"site.existing: goes with kind existing, and kind is {kind}; write both or neither"
    if kind != "existing":
        return
    engines = {f"arms.{name}.engine": arm.engine for name, arm in study.arms.items() if arm.engine}
    for place, item in {"engine": engine, **engines}.items():
        if item.binary is not None:
            yield f"{place}.binary: names a program, and the server is started by others; remove it"
        name = item.name or engine.name
        if tls != "off" and descriptors.find_engine(name).driver != descriptors.MYSQL:
            yield f"site.existing.tls: {tls}: not supported with {place}.name: {name}; write off"


ADDRESS = r"^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$"


def no_socket(value: str | None) -> str | None:
    """Refuse the name that the client library takes for a socket of its own machine, whatever the port."""
    if value == "localhost":
        raise ValueError("leads to a socket, not to a port; write 127.0.0.1 or the host's own address")
    return value


Host = Annotated[str, AfterValidator(no_socket), Field(pattern=ADDRESS, examples=["db.example.org"])]
Port = Annotated[int, Field(ge=1, le=65535, examples=[3306])]


class ArmAddress(Model):
    """Address that one arm connects to, such as a proxy in front of the same server."""

    host: Host
    """Name or address of the arm's endpoint."""
    port: Port
    """Its TCP port."""


class Existing(Model):
    """An endpoint that others run: nothing is started or stopped there."""

    host: Host
    """Name or address of the server, or of what stands in front of it."""
    port: Port = 3306
    """Its TCP port."""
    database: str = Field("sbtest", pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}$", examples=["sbtest"])
    """A schema of our own: empty at first, or loaded by this study. Any other is refused."""
    user: str | None = Field(None, pattern=r"^[A-Za-z0-9_.-]{1,80}$", examples=["bench"])
    """Account, with `password_env`; null with `account_file`."""
    password_env: str | None = Field(None, pattern=r"^[A-Z][A-Z0-9_]{0,63}$", examples=["BENCH_PASSWORD"])
    """Name of the environment variable that holds the password; null with `account_file`."""
    account_file: str | None = Field(None, min_length=1, examples=["~/.benchbook.cnf"])
    """File with the lines `mysql-user="..."` and `mysql-password="..."` (of PostgreSQL `pgsql-user`,
    `pgsql-password`), readable by you alone; null with `user`."""
    tls: Literal["off", "required"] = "off"
    """Encryption of the benchmark's connections, checked on the server; `required` needs `tls_folder`."""
    tls_folder: str | None = Field(None, min_length=1, examples=["~/certificates"])
    """Folder with cacert.pem, client-cert.pem and client-key.pem, sysbench's names; null without TLS."""
    is_shared: bool = False
    """Whether others use the server too: its counters then say nothing of a run, and the report says so."""

    @model_validator(mode="after")
    def _whole(self) -> Existing:
        by_user, by_file = self.user is not None, self.account_file is not None
        if by_user == by_file or by_user != (self.password_env is not None):
            raise ValueError("write either user and password_env, or account_file")
        if (self.tls == "required") != (self.tls_folder is not None):
            raise ValueError("tls: required and tls_folder go together; write both or neither")
        return self
