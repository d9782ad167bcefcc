"""Base of kinds of site: a lab that is held while in use, and requests to an arm's servers."""

import abc
import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Self

import sqlalchemy

from benchbook.core.study import client_sharding, descriptors
from benchbook.core.study.engines import engine_of
from benchbook.core.study.model import Endpoint
from benchbook.core.study.study import StudySpec
from benchbook.core.study.study_cluster import ArmEvent, Event
from benchbook.core.util.errors import SiteError
from benchbook.sites import workspace as labs
from benchbook.sites.contract import Site
from benchbook.sites.machine import data_snapshots, lock
from benchbook.sites.machine import facts as machine
from benchbook.sites.processes import process, signal_handling
from benchbook.sites.topology.parts import HOPS, Chain, Where
from benchbook.sites.topology.runtime import ArmRuntime

LOOK_S = 1.0
LOCK = "lab.lock"


class HeldSite(Site):
    """A site that holds a lock while it is open: this machine's if its cores take part, else the lab's."""

    ready_s = 1.0

    def __init__(self, study: StudySpec, lab: Path) -> None:
        super().__init__(study, lab)
        self._folder = lab

    def __enter__(self) -> Self:
        self.lab = labs.open_lab(self._folder)
        with contextlib.ExitStack() as stack:
            stack.enter_context(signal_handling.catch_signals())
            held = lock.acquire_lock(self.lab.folder, None if self._is_here() else self.lab.run / LOCK)
            stack.callback(held.release)
            self.lab = replace(self.lab, keep=(held.fd,))
            self._open()
            if self.study.site.precedence == "raised":
                stack.enter_context(process.before_others())
            self._held = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._held:
            self._close(error)

    @classmethod
    def needs(cls, name: str, study: StudySpec) -> str:
        """Present load of this machine, as text."""
        return f"  machine     {machine.describe_load()}"

    def _is_here(self) -> bool:
        """True if parts or clients run on this machine."""
        return True

    def hold(self) -> None:
        with contextlib.suppress(KeyboardInterrupt):
            while True:
                self.look()
                time.sleep(LOOK_S)

    @abc.abstractmethod
    def _open(self) -> None:
        """Prepare the site's resources beside its lab."""

    @abc.abstractmethod
    def _close(self, error: BaseException | None) -> None:
        """End all that was started; `error` is the reason for leaving the site, if there is one."""


class EventInProgress:
    """An event in a run: its `record` has the time of each step, or the error; its steps yield waits in s."""

    def __init__(self, planned: Event | ArmEvent, begin_steps: Callable[[Any, Any], Iterator[float]]) -> None:
        self.record: dict[str, Any] = {"asked": planned.model_dump(), "error": "the run ended before it"}
        self._steps = begin_steps(planned, self.record)
        self._wait_s: float | None = planned.at_s
        self._since_s: float | None = None

    def advance(self, begun_s: float) -> float | None:
        """Carry out what is due of the event; seconds until the next step, None after the last."""
        if self._wait_s is None:
            return None
        since_s = begun_s if self._since_s is None else self._since_s
        if (left_s := since_s + self._wait_s - time.monotonic()) > 0:
            return left_s
        try:
            self._wait_s = next(self._steps, None)
            self.record["error"] = "the run ended before all was as it had been"
            if self._wait_s is None:
                del self.record["error"]
        except (SiteError, OSError, ValueError, KeyError, sqlalchemy.exc.SQLAlchemyError) as error:
            self.record["error"], self._wait_s = f"{type(error).__name__}: {error}", None
        self._since_s = time.monotonic()
        return self._wait_s


class ArrangedSite(HeldSite, Generic[Where]):
    """A site that makes its servers itself, by the `chains` of its arms."""

    database = labs.SCHEMA
    chains: dict[str, Chain[Where]]
    runtime: ArmRuntime[Where]
    _event: EventInProgress | None = None

    @contextlib.contextmanager
    def during(self, arm: str) -> Iterator[dict[str, Any]]:
        of_server = self._chain(arm).arm.event
        cluster = engine_of(self.study, self.study.deployed(arm)).cluster
        planned = of_server or (cluster.event if cluster is not None else None)
        with self.runtime.run_alongside(arm) as record, contextlib.ExitStack() as stack:
            for server in self._servers_of(arm):
                stack.enter_context(server.beside(record))
            if planned is not None:
                self._event = EventInProgress(planned, self._server(arm).disturb)
                (record if of_server else record["cluster"])["event"] = self._event.record
            try:
                yield record
            finally:
                self._event = None

    def advance_event(self, begun_s: float) -> float | None:
        return self._event.advance(begun_s) if self._event is not None else None

    def down(self) -> None:
        self.runtime.stop()

    def identity(self, arm: str) -> dict[str, Any]:
        return self.runtime.identity(self._chain(arm))

    def facts(self, arm: str) -> dict[str, Any]:
        chain = self._chain(arm)
        # Each reads its own settings back, and is refused where it did not take them.
        engine, *others = (server.facts() for server in self._servers_of(arm))
        names = ("version", "config_hash", "started_with")
        pairs = zip(chain.others, others, strict=True)
        servers = {part.name: {name: values.get(name) for name in names} for part, values in pairs}
        return {
            "arm": arm,
            "access": chain.arm.access,
            "engine": engine,
            **({"servers": servers} if servers else {}),
            "proxy": self._describe_proxy(chain),
            "network": chain.arm.network,
            **chain.arm.model_dump(include={"event"}, exclude_none=True),
        }

    def _describe_proxy(self, chain: Chain[Where]) -> dict[str, Any] | None:
        return self.runtime.get(chain.proxy).facts() if chain.proxy is not None else None

    def server_of(self, arm: str) -> str:
        return self._chain(arm).server.name

    def admin(self, arm: str | None = None, server: int = 0) -> sqlalchemy.Engine:
        engine: sqlalchemy.Engine = self.runtime.get(self._chain(arm).servers[server]).admin()
        return engine

    def applied(self, arm: str) -> list[tuple[str, str]]:
        parts = [self.runtime.get(part) for part in self._chain(arm).parts if part.kind not in HOPS]
        return [pair for part in parts for pair in part.applied()]

    def log_mark(self, arm: str | None = None) -> list[Any]:
        return [server.log_mark() for server in self._servers_of(arm)]

    def log_errors(self, mark: Sequence[Any], arm: str | None = None) -> list[str]:
        marked = zip(self._servers_of(arm), mark, strict=True)
        try:
            return [line for server, place in marked for line in server.log_errors(place)]
        except SiteError as error:
            return [f"[ERROR] the log can't be read: {error}"]

    def snapshot(self, label: str = "", arm: str | None = None) -> None:
        data_snapshots.save_data(self._server(arm), self._servers(), label)

    def has_snapshot(self, label: str | None = None, arm: str | None = None) -> bool:
        return data_snapshots.is_kept(self._server(arm), label)

    def restore(self, label: str | None = None) -> None:
        data_snapshots.put_back(self._servers(), label)

    def chill(self, arm: str) -> None:
        for server in self._servers_of(arm):
            data_snapshots.drop_caches(server)
        self.up(arm)

    def _share_out(self, arm: str, places: Sequence[tuple[str, int, str | None]]) -> list[Endpoint]:
        """Endpoint of each client of an arm, which have its places in turn: address, port, socket or None."""
        driver = descriptors.find_engine(engine_of(self.study, self.study.deployed(arm)).name).driver
        secret, rest = self.lab.secret_of(driver), {"tls": self.study.site.tls, "driver": driver}
        ends = [
            Endpoint(host, port, labs.SCHEMA, secret, Path(socket) if socket else None, **rest)
            for host, port, socket in places
        ]
        clients = range(self._chain(arm).arm.clients)
        return [ends[client_sharding.server_of(number, len(ends))] for number in clients]

    def _chain(self, arm: str | None) -> Chain[Where]:
        try:
            return self.chains[self.study.baseline if arm is None else arm]
        except KeyError:
            raise SiteError(f"{arm}: no such arm; the study has {', '.join(self.study.arms)}") from None

    def _server(self, arm: str | None) -> Any:
        return self.runtime.get(self._chain(arm).server)

    def _servers_of(self, arm: str | None) -> list[Any]:
        return [self.runtime.get(part) for part in self._chain(arm).servers]

    def _servers(self) -> list[Any]:
        """Every distinct server of the arms that can be made here."""
        able = self.able
        # Twins, which the study does not name, have servers of their own.
        chains = (chain for name, chain in self.chains.items() if self.study.deployed(name) in able)
        parts = dict.fromkeys(part for chain in chains for part in chain.servers)
        return [self.runtime.get(part) for part in parts]
