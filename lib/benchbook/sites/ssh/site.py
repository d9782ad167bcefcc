"""Hosts of an inventory as a site: real servers, proxies and clients there, each under its host's agent."""

from __future__ import annotations

import contextlib
import getpass
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import sqlalchemy

from benchbook.core import inventory
from benchbook.core.errors import SiteError
from benchbook.core.model import Endpoint
from benchbook.core.study import Study
from benchbook.sites import lab as labs
from benchbook.sites import leaving, lock
from benchbook.sites.ssh import arrange, data
from benchbook.sites.ssh import facts as found
from benchbook.sites.ssh.client import RemoteClient
from benchbook.sites.ssh.connect import Refused
from benchbook.sites.ssh.living import Living
from benchbook.sites.ssh.watch import RemoteWatch


class SshSite:
    """The arms of one study on the hosts of its inventory. Use it as a context manager.

    Nothing is connected to before the first question. Where no arm is named, the baseline's server is meant.
    """

    database = labs.SCHEMA

    def __init__(self, study: Study, lab: Path) -> None:
        self.study, self._folder = study, lab
        assert study.site.inventory is not None
        self.targets = inventory.load(study.site.inventory)
        self.chains = arrange.chains(study, self.targets)

    def __enter__(self) -> SshSite:
        self.lab = labs.open_lab(self._folder)
        self._lock = lock.acquire(self.lab.folder)
        owner = f"{getpass.getuser()}@{socket.gethostname()}, {self.lab.folder}"
        self._living = Living(self.study, self.targets, self.lab, owner)
        self._signals = leaving.Signals()
        self._signals.catch()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._living.end()
        finally:
            self._lock.release()
            self._signals.leave()

    def missing(self, arm: str) -> str | None:
        """Return why these hosts can't make an arm, or None; nothing but agents is started to find out.

        A host that can't be trusted or lets us not in is no reason to leave an arm out: Refused.
        """
        if why := arrange.obstacle(self.study, self.study.arms[arm], self.targets):
            return why
        for role, name in self._chain(arm).hosts.items():
            try:
                look = self._living.look(name)
            except Refused:
                raise
            except SiteError as error:
                return str(error)
            lacking = [tool for tool in arrange.TOOLS[role] if not look["tools"][tool]]
            if lacking:
                return f"{name}: {lacking[0]} is not installed there"
            if self.study.arms[arm].kernel is not None and role == "server" and not look["is_root"]:
                return f"{name}: kernel settings need root there"
        return None

    @property
    def able(self) -> list[str]:
        """The arms that these hosts can make, in the study's order."""
        return [arm for arm in self.study.arms if self.missing(arm) is None]

    def up(self, arm: str) -> Endpoint:
        """Bring an arm up, or find it up; return what sysbench connects to."""
        chain = self._chain(arm)
        self._living.persevere(lambda: self._living.ensure(chain))
        return Endpoint(
            host=chain.entry.address, port=chain.entry.port, database=labs.SCHEMA, secret=self.lab.secret
        )

    def down(self, arm: str | None = None) -> None:
        """Stop all that was started; for one arm only its proxy."""
        self._living.stop(None if arm is None else self._chain(arm).proxy)

    def facts(self, arm: str) -> dict[str, Any]:
        """Return what server, proxy and hosts say they are; what changes by the hour is under `moment`."""
        chain = self._chain(arm)
        roles = {role: self._living.host(name) for role, name in chain.hosts.items()}
        looks = {role: host.call("look") for role, host in roles.items()}
        parts = {part.kind: self._living.part(part).facts() for part in chain.parts}
        kernel = self._living.kernel_of(chain.server)
        return found.facts(self.study, arm, chain, parts, looks, kernel) | {
            "moment": found.moment(looks, roles, chain.entry)
        }

    def identity(self, arm: str) -> dict[str, Any]:
        """Return what tells this arm's parts from any others; one connection over the server's socket."""
        seen: dict[str, Any] = {}
        for part in self._chain(arm).parts:
            seen |= self._living.part(part).identity()
        return seen

    def server_of(self, arm: str) -> str:
        """Return the name of the server behind an arm: arms with the same name share one."""
        return self._chain(arm).server.name

    def admin(self, arm: str | None = None) -> sqlalchemy.Engine:
        """Return the administrative account on a server; each connection is new, and its host holds it."""
        return self._server(arm).admin()

    def allowance(self, arm: str) -> float:
        """Return how many cores' time the client may use."""
        chain = self._chain(arm)
        return float(len(chain.client_cpus or ()) or self._living.look(chain.client)["facts"]["cores"])

    def client(
        self,
        argv: Sequence[str],
        out: Path,
        err: Path,
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        arm: str | None = None,
    ) -> RemoteClient:
        """Start a load client on the client's host, in a folder of its own there."""
        chain = self._chain(arm)
        return RemoteClient(self._living.host(chain.client), argv, out, err, env, chain.client_cpus)

    def watch(self, arm: str, client: RemoteClient, path: Path) -> RemoteWatch:
        """Return what watches a client, an arm's parts and the hosts, and writes its table to a path."""
        chain = self._chain(arm)
        roles = {role: self._living.host(name) for role, name in chain.hosts.items()}
        return RemoteWatch(
            roles, {part.kind: self._living.part(part).pid for part in chain.parts}, client, path
        )

    @contextlib.contextmanager
    def during(self, arm: str) -> Iterator[dict[str, Any]]:
        """Note beside a run whether connections to the hosts were lost, and how far their clocks were off."""
        roles = self._chain(arm).hosts
        before = {name: len(self._living.host(name).outages) for name in roles.values()}
        record: dict[str, Any] = {"hosts": roles}
        yield record
        lost = {name: self._living.host(name).outages[count:] for name, count in before.items()}
        if any(lost.values()):
            record["connection_lost"] = {name: outages for name, outages in lost.items() if outages}

    def log_mark(self, arm: str | None = None) -> int:
        """Return a place in a server's log, for `log_errors`."""
        return self._server(arm).log_mark()

    def log_errors(self, mark: int, arm: str | None = None) -> list[str]:
        """Return the lines of a server's log since a place that tell of an error or a crash."""
        try:
            return self._server(arm).log_errors(mark)
        except SiteError as error:
            return [f"[ERROR] the log can't be read: {error}"]

    def snapshot(self, label: str = "", arm: str | None = None) -> None:
        """Shut an arm's server down cleanly, copy its data under a label, and start it again.

        Other servers of the same host get the same data.
        """
        server = self._server(arm)
        server.ensure()
        if not server.stop():
            raise SiteError(
                f"the server on {server.host.name} did not shut down by itself, so its data cannot be "
                "copied; run the prepare stage again"
            )
        data.save(server, label)
        for other in self._servers():
            if other is not server and other.host is server.host and other.job is not None:
                self._put_back(other)
        server.ensure()

    def has_snapshot(self, label: str | None = None, arm: str | None = None) -> bool:
        """Say whether there is prepared data of this engine, under this label (None: under any)."""
        return data.has(self._server(arm), label)

    def restore(self, label: str | None = None) -> None:
        """Put the prepared data back on every server and start it: cold, the same bytes every time."""
        self._living.persevere(lambda: self._restore(label))

    def _restore(self, label: str | None) -> None:
        servers = self._servers()
        if lacking := [server.host.name for server in servers if not data.has(server, label)]:
            raise SiteError(
                f"{lacking[0]} holds no prepared data of this data set; run the prepare stage again"
            )
        for server in servers:
            self._put_back(server)

    def hold(self) -> None:
        """Keep what is up until Ctrl-C; SiteError as soon as a part of it ends by itself."""
        with contextlib.suppress(KeyboardInterrupt):
            while True:
                for part in self._living.parts.values():
                    if part.job is not None:
                        part.running()
                time.sleep(1.0)

    def _chain(self, arm: str | None) -> arrange.Chain:
        name = self.study.baseline if arm is None else arm
        if name not in self.chains:
            why = arrange.obstacle(self.study, self.study.arms[name], self.targets)
            raise SiteError(f"{name}: {why}; leave the arm out, or make it possible")
        return self.chains[name]

    def _server(self, arm: str | None) -> Any:
        return self._living.part(self._chain(arm).server)

    def _servers(self) -> list[Any]:
        """Return every distinct server of the arms that these hosts can make."""
        return [self._living.part(one) for one in dict.fromkeys(self.chains[arm].server for arm in self.able)]

    def _put_back(self, server: Any) -> None:
        server.stop()
        data.put_back(server)
        server.ensure()
