"""A Kubernetes cluster as a site: a namespace of the study's own, servers, proxies and clients in pods."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import sqlalchemy

from benchbook.core.errors import SiteError
from benchbook.core.model import Endpoint
from benchbook.core.study import Study
from benchbook.sites import lab as labs
from benchbook.sites import leaving, lock
from benchbook.sites.kube import arms, copies, evidence, layout
from benchbook.sites.kube.client import Job, PodClient
from benchbook.sites.kube.ground import Ground
from benchbook.sites.kube.server import Server
from benchbook.sites.kube.watch import PodWatch


class KubernetesSite:
    """The arms of one study in a cluster. Use it as a context manager.

    When it is left, all pods are gone but those that hold data, which sleep (`keep_data`); `make down`
    removes these too. Where no arm is named, the baseline's server is meant.
    """

    database = labs.SCHEMA

    def __init__(self, study: Study, lab: Path) -> None:
        self.study = study
        self._folder = lab
        self.chains = layout.chains(study)

    def __enter__(self) -> KubernetesSite:
        self.lab = labs.open_lab(self._folder)
        self._lock = lock.acquire(self.lab.folder)
        self._signals = leaving.Signals()
        self.ground = Ground(self.study, self.lab)
        self._arms = arms.Arms(self.ground, self.chains)
        try:
            self.ground.prepare()
            # What a killed owner left: load that goes on, and pods of arms that are no more.
            self.ground.sweep(("client", "neighbour", "proxy"))
        except BaseException:
            self._lock.release()
            raise
        self._signals.catch()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Whoever ends us by a signal waits a few seconds only: then all is asked for, and not waited for.
        is_hurried = isinstance(error, SystemExit) and int(error.code or 0) > 128
        wait_s = 0.0 if is_hurried else 180.0
        try:
            if self.ground.here.keep_data:
                self.ground.sweep(("client", "neighbour", "proxy"), wait_s)
                self.down()
                print(
                    f"kept asleep in the cluster: namespace {self.ground.namespace}; `make down` removes it"
                )
            else:
                self.ground.remove(wait_s)
        except SiteError as trouble:
            if error is None:
                raise
            print(f"not all was taken down: {trouble}; run `make down`")
        finally:
            self._lock.release()
            self._signals.leave()

    def missing(self, arm: str) -> str | None:
        """Return why this cluster can't make an arm, or None; nothing is started to find out."""
        return self._arms.missing(self._chain(arm))

    @property
    def able(self) -> list[str]:
        """The arms that this cluster can make, in the study's order."""
        return [arm for arm in self.study.arms if self.missing(arm) is None]

    def up(self, arm: str) -> Endpoint:
        """Bring an arm up, or find it up, proven to be ours; return what sysbench connects to."""
        host, port = self._arms.ensure(self._chain(arm))
        return Endpoint(host=host, port=port, database=labs.SCHEMA, secret=self.lab.secret)

    def facts(self, arm: str) -> dict[str, Any]:
        """Return what server, proxy, nodes and cluster say they are; writes what was applied beside the
        study's data."""
        return evidence.facts(self._arms, arm, self._chain(arm))

    def identity(self, arm: str) -> dict[str, Any]:
        """Return what tells this arm's pods from any other, and that the Service leads to them."""
        return evidence.identity(self._arms, self._chain(arm))

    @contextlib.contextmanager
    def during(self, arm: str) -> Iterator[dict[str, Any]]:
        """Let an arm's neighbour compute while a block runs; its record says afterwards how all held."""
        chain, server = self._chain(arm), self._server(arm)
        record: dict[str, Any] = {}
        # A connection that was lost and opened anew, even after the run, is one more in the server's books.
        server.record = record
        with self._arms.neighbour(chain, record):
            yield record
        if chain.access == "load_balancer":
            record["has_probes"] = True

    def server_of(self, arm: str) -> str:
        """Return the name of the server behind an arm: arms with the same name share one."""
        return self._chain(arm).server.name

    def admin(self, arm: str | None = None) -> sqlalchemy.Engine:
        """Return the administrative account on a server, through the API; each connection is new."""
        return self._server(arm).admin()

    def allowance(self, arm: str) -> float:
        """Return how many cores' time the client may use."""
        return self._chain(arm).client.room.limit_cpu or self._arms.client_cores(self._chain(arm))

    def client(
        self,
        argv: Sequence[str],
        out: Path,
        err: Path,
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        arm: str | None = None,
    ) -> PodClient:
        """Start a load client in an arm's client pod; its output is in these files of ours at its end."""
        pod = self._arms.pod(self._chain(arm).client)
        job = Job(self.ground.cluster, self.ground.namespace, pod.metadata.name, argv)
        return PodClient(job.into(out, err))

    def watch(self, arm: str, client: PodClient, path: Path) -> PodWatch:
        """Return what watches a client, an arm's pods and their nodes, and writes its table to a path."""
        return PodWatch(
            self.ground.cluster, self.ground.namespace, client, self._arms.watched(self._chain(arm)), path
        )

    def log_mark(self, arm: str | None = None) -> int:
        """Return a place in a server's log, for `log_errors`."""
        return self._server(arm).log_mark()

    def log_errors(self, mark: int, arm: str | None = None) -> list[str]:
        """Return the lines of a server's log since a place that tell of an error or a crash."""
        try:
            return self._server(arm).log_errors(mark)
        except SiteError as error:
            return [f"the server's log can't be read: {error}"]

    def snapshot(self, label: str = "") -> None:
        """Keep a copy of the baseline's data under a label; other servers that are up get the same data."""
        first = self._server(None)
        copies.save(first, [one for one in self._servers() if one is not first], label)

    def has_snapshot(self, label: str | None = None) -> bool:
        """Say whether there is prepared data of this engine, under this label (None: under any)."""
        return copies.find(self._awake(), label) is not None

    def restore(self, label: str | None = None) -> None:
        """Put the prepared data back on every server and start it: cold, the same bytes every time."""
        copies.put_back(self._awake(), label)

    def hold(self) -> None:
        """Keep what is up until Ctrl-C; SiteError as soon as a part of it ends by itself."""
        with contextlib.suppress(KeyboardInterrupt):
            while True:
                self._arms.must_be_alive()
                time.sleep(2.0)

    def down(self, arm: str | None = None) -> None:
        """Put the servers to sleep; proxies and clients hold nothing and stay until the site is left."""
        if arm is None:
            self._arms.sleep()

    def _chain(self, arm: str | None) -> layout.Chain:
        try:
            return self.chains[self.study.baseline if arm is None else arm]
        except KeyError:
            raise SiteError(f"{arm}: no such arm; the study has {', '.join(self.study.arms)}") from None

    def _server(self, arm: str | None) -> Server:
        return self._arms.server(self._chain(arm).server)

    def _servers(self) -> list[Server]:
        """Return every distinct server of the arms that this cluster can make."""
        parts = dict.fromkeys(self.chains[arm].server for arm in self.able)
        return [self._arms.server(part) for part in parts]

    def _awake(self) -> list[Server]:
        """Return every server with its pod there, whether it serves or sleeps."""
        servers = self._servers()
        for server in servers:
            if server.word is None:
                server.pod()
        return servers
