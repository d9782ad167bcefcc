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
    """A load client and the number it has where it runs.

    `begun_s` is when its program began, on this machine's monotonic clock, where `begin_at` was asked for; a
    site elsewhere turns its own clock's time into this one's. None as long as that is not known.
    """

    pid: int
    popen: Handle
    begun_s: float | None


class Watch(Protocol):
    """Watches machines and parts during one run; `stop` comes after all clients have been waited for.

    After `stop`: pauses in ms, steal in percent of the client's machine, seconds the client's threads waited
    for a core, its CPU seconds, processes killed for want of memory, seconds the wall clock was set by, and
    the cores of the client's machine. What can't be seen is None, and the checks that need it say so.
    """

    longest_pause_ms: float
    steal_pct: float
    runqueue_wait_s: float
    runqueue_waits_s: Sequence[float]
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

    Where no arm is named, the baseline's server is meant. An arm may ask for several clients and servers
    (`clients`, `servers`): client i then uses server i modulo their number. Server 0 is the one that arms
    without several share, and two arms whose `server_of` is the same share the others too. `up`, `down`,
    `facts`, `identity`, `log_mark`, `log_errors`, `snapshot`, `restore` and `during` are about all servers of
    an arm. Only for such arms are `endpoints`, `admins`, and `client` and `watch` with their last arguments
    called; a kind of site that has them stands in `core.registry.SEVERAL` (with several clients alone in
    `SEVERAL_CLIENTS`), and the others' studies are refused.

    A site whose servers can't be given a copy of the data has `data_groups()` too: the arms that share data,
    as lists of names; each group is then loaded by itself.
    """

    database: str
    ready_s: float
    """Seconds from the first call of `client` until all clients of an arm are ready to begin at a moment."""

    def missing(self, arm: str) -> str | None:
        """Return why an arm can't be made here, or None; nothing is started to find out."""

    def up(self, arm: str) -> Endpoint:
        """Bring an arm up, or find it up, proven to be ours; return what (the first) sysbench connects to."""

    def endpoints(self, arm: str) -> Sequence[Endpoint]:
        """Bring an arm up as `up` does; return what each of its clients connects to, in their order."""

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

    def admins(self, arm: str) -> Sequence[sqlalchemy.Engine]:
        """Return the administrative account on each server of an arm, in their order."""

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
        number: int = 0,
        begin_at: float | None = None,
    ) -> Client:
        """Start a load client where an arm's client runs; its output is in these files of ours at its end.

        `number` is its place among the arm's clients, `begin_at` a moment of this machine's monotonic clock:
        it is made ready now and its program begins then (at once, if the moment has passed); None: now.

        Paths in `argv` are of this machine: a site elsewhere carries the account, and scripts that are named,
        over to where the client runs, and puts its own paths in their place.
        """

    def watch(self, arm: str, client: Client, path: Path, others: Sequence[Client] = ()) -> Watch:
        """Return what watches clients, an arm's parts and the machines, and writes its table to a path.

        `others` are the clients after the first. In the table all clients are one part, and so are all
        servers.
        """

    def during(self, arm: str) -> contextlib.AbstractContextManager[dict[str, Any]]:
        """Keep beside a run what belongs to its arm; the record says afterwards how all held.

        `reconnects` in it are sessions of ours that were lost and opened anew: a number, or a list of each
        server's.
        """

    def log_mark(self, arm: str | None = None) -> Any:
        """Return a place in the logs of an arm's servers, for `log_errors`."""

    def log_errors(self, mark: Any, arm: str | None = None) -> list[str]:
        """Return the lines of a server's log since a place that tell of an error or a crash."""

    def snapshot(self, label: str = "", arm: str | None = None) -> None:
        """Keep a copy of a server's data under a label; servers that share the copy get the same data."""

    def has_snapshot(self, label: str | None = None, arm: str | None = None) -> bool:
        """Say whether there is prepared data for an arm's server, under this label (None: under any)."""

    def restore(self, label: str | None = None) -> None:
        """Put the prepared data back on every server and start it: cold, the same bytes every time."""

    def hold(self) -> None:
        """Keep what is up until Ctrl-C; SiteError as soon as a part of it ends by itself."""
