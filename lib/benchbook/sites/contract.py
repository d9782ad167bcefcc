"""What a site gives to the floor above, whatever it is made of: this machine, hosts, or a cluster.

`measure` knows these and nothing else. A site is named in `core.registry`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import sqlalchemy

from benchbook.core.model import Endpoint


class Handle(Protocol):
    """A started load client as `subprocess.Popen` shows it; TimeoutExpired while it still runs."""

    pid: int

    def poll(self) -> int | None:
        """Return the exit code (negative: the signal that ended it), or None while it runs."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end, `timeout` seconds at most; when it returns, all output is in its files."""

    def send_signal(self, signum: int) -> None:
        """Send a signal to it."""

    def kill(self) -> None:
        """End it at once."""


class Client(Protocol):
    """A load client and the number it has where it runs."""

    pid: int
    popen: Handle


class Watch(Protocol):
    """Watches machines and parts during one run; `stop` comes after the client has been waited for.

    After `stop`: pauses in ms, steal in percent of the client's machine, seconds the client's threads waited
    for a core, its CPU seconds, processes killed for want of memory, seconds the wall clock was set by, and
    the cores of the client's machine. What can't be seen is None, and the checks that need it say so.
    """

    longest_pause_ms: float
    steal_pct: float
    runqueue_wait_s: float
    client_cpu_s: float
    oom_kills: int
    clock_step_s: float
    cores: int

    def start(self) -> None:
        """Begin to watch."""

    def stop(self) -> None:
        """End watching and write `monitor.csv`, with the columns of `sites.monitor.COLUMNS`."""


class Site(Protocol):
    """The arms of one study somewhere; a context manager that stops all it started when it is left.

    Where no arm is named, the baseline's server is meant.
    """

    database: str

    def missing(self, arm: str) -> str | None:
        """Return why an arm can't be made here, or None; nothing is started to find out."""

    def up(self, arm: str) -> Endpoint:
        """Bring an arm up, or find it up, proven to be ours; return what sysbench connects to."""

    def down(self, arm: str | None = None) -> None:
        """Stop all; for one arm only what no direct arm needs: its hops."""

    def facts(self, arm: str) -> dict[str, Any]:
        """Return what server, proxy and machines say they are; what changes by the hour is under `moment`."""

    def identity(self, arm: str) -> dict[str, Any]:
        """Return what tells this arm's parts from any other; compared before and after each run."""

    def server_of(self, arm: str) -> str:
        """Return the name of the server behind an arm: arms with the same name share one."""

    def admin(self, arm: str | None = None) -> sqlalchemy.Engine:
        """Return the administrative account on a server; each connection is new."""

    def allowance(self, arm: str) -> float:
        """Return how many cores' time the client may use."""

    def client(
        self,
        argv: Sequence[str],
        out: Path,
        err: Path,
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        arm: str | None = None,
    ) -> Client:
        """Start a load client where an arm's client runs; its output is in these files of ours at its end.

        Paths in `argv` are of this machine: a site elsewhere carries the account, and scripts that are named,
        over to where the client runs, and puts its own paths in their place.
        """

    def watch(self, arm: str, client: Client, path: Path) -> Watch:
        """Return what watches a client, an arm's parts and the machines, and writes its table to a path."""

    def during(self, arm: str) -> contextlib.AbstractContextManager[dict[str, Any]]:
        """Keep beside a run what belongs to its arm; the record says afterwards how all held."""

    def log_mark(self, arm: str | None = None) -> int:
        """Return a place in a server's log, for `log_errors`."""

    def log_errors(self, mark: int, arm: str | None = None) -> list[str]:
        """Return the lines of a server's log since a place that tell of an error or a crash."""

    def snapshot(self, label: str = "", arm: str | None = None) -> None:
        """Keep a copy of a server's data under a label; servers that share the copy get the same data."""

    def has_snapshot(self, label: str | None = None, arm: str | None = None) -> bool:
        """Say whether there is prepared data for an arm's server, under this label (None: under any)."""

    def restore(self, label: str | None = None) -> None:
        """Put the prepared data back on every server and start it: cold, the same bytes every time."""

    def hold(self) -> None:
        """Keep what is up until Ctrl-C; SiteError as soon as a part of it ends by itself."""
