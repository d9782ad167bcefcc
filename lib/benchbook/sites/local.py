"""This machine as a site: a real server and a real proxy on loopback, ended with their owner."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import sqlalchemy

from benchbook.core import registry
from benchbook.core.errors import SiteError
from benchbook.core.model import Endpoint
from benchbook.core.study import Study
from benchbook.sites import lab as labs
from benchbook.sites import load, lock, machine, process, procfs, snapshot


class LocalSite:
    """The arms of one study on this machine. Use it as a context manager, in the main thread.

    `cpus` maps `server`, `proxy` and `client` to the cores they may use, or to None for all. `database` is
    the one schema that the benchmark's account may use.
    """

    database = labs.SCHEMA

    def __init__(self, study: Study, lab: Path) -> None:
        self.study = study
        self._folder = lab
        self.cpus = split_cpus(study.site.cpus, sorted(os.sched_getaffinity(0)))

    def __enter__(self) -> LocalSite:
        self.lab = labs.open_lab(self._folder)
        self._lock = lock.acquire(self.lab.folder)
        self._keep = (self._lock.fd,)
        self._ended_by: int | None = None
        self._proxies: dict[str, Any] = {}
        self._engine: Any = None
        me = procfs.stat(os.getpid())
        process.write_pidfile(
            self.lab.pidfile("owner"),
            process.Child(
                "owner",
                os.getpid(),
                int(me["started"]) if me else 0,
                procfs.executable(os.getpid()) or "",
                self.lab.token,
            ),
        )
        self._handlers = self._catch_signals()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.down()
        finally:
            self.lab.pidfile("owner").unlink(missing_ok=True)
            self._lock.release()
            for signum, handler in self._handlers.items():
                signal.signal(signum, handler)
            if self._ended_by is not None:
                os.kill(os.getpid(), self._ended_by)

    def up(self, arm: str) -> Endpoint:
        """Bring an arm up, or find it up, proven to be ours; return what sysbench connects to."""
        access = self._arm(arm).access
        self._server().ensure()
        proxy = self._proxy(access)
        if proxy is not None:
            proxy.ensure()
        port = self.study.site.port if proxy is None else proxy.port
        return Endpoint(host="127.0.0.1", port=port, database=labs.SCHEMA, secret=self.lab.secret)

    def facts(self, arm: str) -> dict[str, Any]:
        """Return what server, proxy and machine say they are; SettingsDiffer if a setting was not taken.

        All is the same at the next start but `moment`, which holds what changes from hour to hour.
        """
        proxy = self._proxy(self._arm(arm).access)
        return {
            "arm": arm,
            "access": self._arm(arm).access,
            "site": {"kind": "local", "port": self.study.site.port, "cpus": self.cpus},
            "engine": self._server().facts(),
            "proxy": None if proxy is None else proxy.facts(),
            "machine": machine.facts(),
            "moment": machine.moment(self.lab.folder),
        }

    def identity(self, arm: str) -> dict[str, Any]:
        """Return what tells this server and proxy from any other; one connection over the socket."""
        proxy = self._proxy(self._arm(arm).access)
        return {**self._server().identity(), **({} if proxy is None else proxy.identity())}

    def monitored(self, arm: str) -> dict[str, list[int]]:
        """Return the processes whose CPU and memory belong to an arm, by part."""
        parts = {"server": self._server(), "proxy": self._proxy(self._arm(arm).access)}
        return {
            part: [own.child.pid] for part, own in parts.items() if own is not None and own.child is not None
        }

    def admin(self) -> sqlalchemy.Engine:
        """Return the administrative account over the server's socket; each connection is new."""
        return self._server().admin()

    def client(
        self,
        argv: Sequence[str],
        out: Path,
        err: Path,
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> process.Child:
        """Start a load client on the client's cores, supervised like the server, output into files."""
        return process.start(
            "client",
            argv,
            token=self.lab.token,
            folder=self.lab.folder,
            out=out,
            err=err,
            append=False,
            cpus=self.cpus["client"],
            keep=self._keep,
            cwd=cwd,
            env=env,
        )

    def log_mark(self) -> int:
        """Return a place in the server's log, for `log_errors`."""
        return self._server().log_mark()

    def log_errors(self, mark: int) -> list[str]:
        """Return the lines of the server's log since a place that tell of an error or a crash."""
        return self._server().log_errors(mark)

    def snapshot(self, label: str = "") -> None:
        """Shut the server down cleanly, keep a copy of its data under a label, and start it again."""
        server = self._stop_cleanly("copied")
        snapshot.save(self.lab, server.data, server.made_with, label, server.user, self._keep)
        server.ensure()

    def has_snapshot(self, label: str | None = None) -> bool:
        """Say whether there is prepared data of this engine, under this label (None: under any)."""
        return snapshot.has(self.lab, self._server().made_with, label)

    def restore(self, label: str | None = None) -> None:
        """Put the prepared data back and start the server on it: a cold server, the same bytes every time."""
        if not self.has_snapshot(label):
            raise SiteError(
                "the lab holds no prepared data of this engine and data set; run the prepare stage again"
            )
        server = self._server()
        server.stop()
        snapshot.heal(server.data)
        snapshot.put_back(self.lab, server.data, self._keep)
        server.ensure()

    def hold(self) -> None:
        """Keep what is up until Ctrl-C; SiteError as soon as a part of it ends by itself."""
        with contextlib.suppress(KeyboardInterrupt):
            while True:
                parts = [*([] if self._engine is None else [self._engine]), *self._proxies.values()]
                for part in parts:
                    if part.child is not None and not part.child.is_alive:
                        raise SiteError(f"the {part.role} ended by itself; see {part.log}")
                time.sleep(0.5)

    def down(self, arm: str | None = None) -> None:
        """Stop everything this site started; for one arm only what no direct arm needs: its proxy."""
        names = list(self._proxies) if arm is None else [self._arm(arm).access]
        for name in names:
            proxy = self._proxies.pop(name, None)
            if proxy is not None:
                proxy.stop()
        if arm is None and self._engine is not None:
            self._engine.stop()

    def _arm(self, name: str) -> Any:
        try:
            return self.study.arms[name]
        except KeyError:
            raise SiteError(f"{name}: no such arm; the study has {', '.join(self.study.arms)}") from None

    def _server(self) -> Any:
        if self._engine is None:
            kind = load(registry.ENGINES[self.study.engine.name])
            self._engine = kind(
                self.lab, self.study.engine, self.study.site.port, self.cpus["server"], self._keep
            )
            snapshot.heal(self._engine.data)
        return self._engine

    def _proxy(self, access: str) -> Any:
        if registry.ACCESS[access] is None:
            return None
        if access not in self._proxies:
            port = self.study.site.port + list(registry.ACCESS).index(access)
            self._proxies[access] = load(registry.ACCESS[access])(
                self.lab, port, self.study.site.port, self.cpus["proxy"], self._keep
            )
        return self._proxies[access]

    def _stop_cleanly(self, purpose: str) -> Any:
        server = self._server()
        server.ensure()
        if not server.stop():
            raise SiteError(
                f"the server did not shut down by itself, so its data cannot be {purpose}; "
                f"see {server.log} and run the prepare stage again"
            )
        return server

    def _catch_signals(self) -> dict[int, Any]:
        if threading.current_thread() is not threading.main_thread():
            return {}

        def leave(signum: int, frame: FrameType | None) -> None:
            self._ended_by = signum
            raise SystemExit(128 + signum)

        wanted = [
            signum for signum in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(signum) is signal.SIG_DFL
        ]
        return {signum: signal.signal(signum, leave) for signum in wanted}


def split_cpus(how: str, cores: list[int]) -> dict[str, list[int] | None]:
    """Return the cores of server, proxy and client: halves for `split`; None: all of them."""
    if how != "split" or len(cores) < 2:
        return {"server": None, "proxy": None, "client": None}
    half = len(cores) // 2
    return {"server": cores[:half], "proxy": cores[half:], "client": cores[half:]}
