"""Interface of a site to the floor above, for any kind: this machine, hosts, or a cluster."""

import abc
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Protocol, Self

import sqlalchemy

from benchbook.core.study.engines import data_groups
from benchbook.core.study.model import Endpoint
from benchbook.core.study.study import StudySpec
from benchbook.core.util.errors import SiteError


@dataclass(frozen=True)
class Start:
    """Start of a load client: a command line, and the files that have its output at its end.

    `number` is its place among the clients of an `arm` (None: the baseline). `begin_at` is a moment of this
    machine's monotonic clock at which its program begins; None: now. With `held` it begins when the clock of
    turns lets it go on.
    """

    argv: Sequence[str]
    out: Path
    err: Path
    cwd: Path | None = None
    env: Mapping[str, str] | None = None
    arm: str | None = None
    number: int = 0
    begin_at: float | None = None
    held: bool = False


class Client(Protocol):
    """A load client, with the number of its process on its own machine.

    `popen` is that process as `subprocess.Popen` shows it: `poll`, `wait`, `send_signal`, `kill` and
    `returncode`, negative for a signal. When `wait` returns, all output is in its files. `begun_s` is when
    its program began, in seconds of this machine's monotonic clock, None as long as that is not known;
    `ran_s` is when it began and ended, where another clock than ours is the one that tells.
    """

    @property
    def pid(self) -> int: ...

    @property
    def popen(self) -> Any: ...

    @property
    def begun_s(self) -> float | None: ...

    @property
    def ran_s(self) -> tuple[float, float] | None: ...


class Watch(abc.ABC):
    """Watches machines and parts during one run; `stop` comes after all clients have been waited for.

    After `stop`: pauses in ms, steal in percent of the client's machine, seconds that each client's threads
    waited for a core, their CPU seconds, processes killed for want of memory, seconds the wall clock was set
    by, the cores of the client's machine, and interference by machine (`agent.interference_probe`). What
    can't be seen is None, and the checks that need it say so. `counted` has by part the processor's events of
    the first `counts_s`, which is set before `start`.
    """

    counts_s: float = 0.0
    counted: Mapping[str, Mapping[str, float]] = MappingProxyType({})
    longest_pause_ms: float | None = None
    steal_pct: float | None = None
    runqueue_waits_s: Sequence[float | None] = ()
    client_cpu_s: float | None = None
    oom_kills: int | None = None
    clock_step_s: float | None = None
    cores: int | None = None
    strangers: Mapping[str, Any] | None = None

    @property
    def runqueue_wait_s(self) -> float | None:
        """Seconds that the threads of all clients have waited for a core."""
        waits_s = [wait_s for wait_s in self.runqueue_waits_s if wait_s is not None]
        return sum(waits_s) if waits_s and len(waits_s) == len(self.runqueue_waits_s) else None

    @abc.abstractmethod
    def start(self) -> None:
        """Begin to watch."""

    @abc.abstractmethod
    def stop(self) -> None:
        """End watching and write `monitor.csv`, with the columns of `sites.machine.local_machine.COLUMNS`."""


@dataclass(frozen=True)
class Taker:
    """One that takes turns in a group: the arm behind its name, its clients, and the logs of these."""

    arm: str
    clients: Sequence[Any]
    logs: Sequence[Path]


class Clock(Protocol):
    """The clock of a group with arms in turns (`sites.topology.turns`)."""

    @property
    def exit_code(self) -> int | None:
        """Exit code of its end, or None while it goes."""

    def end(self) -> dict[str, Any]:
        """End it, let all clients and parts go on, and return its record."""


class Site(abc.ABC):
    """The arms of one study somewhere; a context manager that stops all it started when it is left.

    Where no arm is named, the baseline's server is meant. An arm may ask for several clients and servers
    (`clients`, `servers`): client i then uses server i modulo their number. Server 0 is the one that arms
    without several share, and two arms whose `server_of` is the same share the others too. `up`, `facts`,
    `identity`, `log_mark`, `log_errors`, `snapshot`, `restore` and `during` are about all servers of
    an arm. What a kind of site makes of this stands in `core.study.registry`, and studies that ask others
    for it are refused.
    """

    study: StudySpec
    database: str
    """The one schema that the benchmark's account may use."""
    ready_s: float
    """Seconds from the first call of `client` until all clients of an arm are ready to begin at a moment."""
    needs_account: bool = False
    """Whether what is foreseen of an arm is an account that `plan` can do without."""

    @abc.abstractmethod
    def __enter__(self) -> Self: ...

    @abc.abstractmethod
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def __init__(self, study: StudySpec, lab: Path) -> None:
        """Nothing is asked or started before the site is entered; `lab` is its folder on this machine."""
        self.study = study

    @classmethod
    def needs(cls, name: str, study: StudySpec) -> str:
        """Needs of a study at such a site and objects it makes, as `plan` shows them; empty: none."""
        return ""

    @classmethod
    def manifests(cls, name: str, study: StudySpec) -> str:
        """Objects that a study would apply, as text for another program; empty if there are none."""
        return ""

    @classmethod
    def foreseeable_obstacles(cls, study: StudySpec, arm: str) -> list[str]:
        """Reasons against an arm, as far as they are clear before anything is asked of the site."""
        return []

    @abc.abstractmethod
    def obstacles(self, arm: str) -> list[str]:
        """Reasons against an arm here, each with a remedy; nothing is started for the answer."""

    def missing(self, arm: str) -> str | None:
        """Reasons against an arm here in one sentence, or None."""
        return "; ".join(dict.fromkeys(self.obstacles(arm))) or None

    @property
    def able(self) -> list[str]:
        """The arms that can be made here, in the study's order."""
        return [arm for arm in self.study.arms if self.missing(arm) is None]

    def up(self, arm: str) -> Endpoint:
        """Bring an arm up as `endpoints` does; returns its first client's endpoint."""
        return self.endpoints(arm)[0]

    @abc.abstractmethod
    def endpoints(self, arm: str) -> Sequence[Endpoint]:
        """Bring an arm up unless it is, proven to be ours; returns the endpoint of each client of it."""

    @abc.abstractmethod
    def down(self) -> None:
        """Stop all that was started."""

    def remove(self) -> list[str]:
        """Drop the data loaded into servers that others run; returns them in words, server by server."""
        return []  # What a site made itself goes with its lab.

    @abc.abstractmethod
    def facts(self, arm: str) -> dict[str, Any]:
        """Facts that server, proxy and machines tell; SettingsDiffer if a setting was not taken."""

    def machines(self) -> dict[str, Any]:
        """Figures of the machines: `probes` of the first server's, or of the client's if that is"""
        return {}

    def applied(self, arm: str) -> list[tuple[str, str]]:
        """Settings files, command lines, manifests of an arm that is up: (name, text), no password."""
        return []  # A site that makes nothing applies nothing.

    @abc.abstractmethod
    def identity(self, arm: str) -> dict[str, Any]:
        """Marks that tell this arm's parts from any other; compared before and after each run."""

    @abc.abstractmethod
    def server_of(self, arm: str) -> str:
        """Name of the server behind an arm: arms with the same name share one."""

    @abc.abstractmethod
    def admin(self, arm: str | None = None, server: int = 0) -> sqlalchemy.Engine:
        """Administrative account on one of an arm's servers; each connection is new."""

    @abc.abstractmethod
    def allowance(self, arm: str) -> float:
        """Processor time that the clients may use, in cores."""

    @abc.abstractmethod
    def client(self, start: Start) -> Client:
        """Start a load client on the machine of an arm's client."""

    @abc.abstractmethod
    def watch(self, arm: str, clients: Sequence[Any], path: Path) -> Watch:
        """Watch of clients, an arm's parts and the machines; it writes its table to a path."""

    @abc.abstractmethod
    def during(self, arm: str) -> contextlib.AbstractContextManager[dict[str, Any]]:
        """Keep an arm's other tasks up beside a run; the record has their outcome afterwards."""

    def advance_event(self, begun_s: float) -> float | None:
        """Carry out what is due of the event of a run whose clients began at a monotonic moment; seconds
        until its next step, None after the last. It is called by who waits for the clients."""
        return None  # Where servers are others', nothing is done to them.

    @abc.abstractmethod
    def log_mark(self, arm: str | None = None) -> Any:
        """Place in the logs of an arm's servers, for `log_errors`."""

    @abc.abstractmethod
    def log_errors(self, mark: Any, arm: str | None = None) -> list[str]:
        """Lines of an arm's server logs since a place that tell of an error or a crash."""

    @abc.abstractmethod
    def snapshot(self, label: str = "", arm: str | None = None) -> None:
        """Keep a copy of a server's data under a label; servers that share the copy get the same data."""

    @abc.abstractmethod
    def has_snapshot(self, label: str | None = None, arm: str | None = None) -> bool:
        """True if there is prepared data for an arm's server, under this label (None: under any)."""

    @abc.abstractmethod
    def restore(self, label: str | None = None) -> None:
        """Put the prepared data back on every server and start it: cold, the same bytes every time."""

    def chill(self, arm: str) -> None:
        """Start an arm's servers again, with nothing of their data in their memory or in the kernel's."""
        kind = self.study.site.kind
        raise SiteError(f"arms.{arm}.data.prewarm: false: no cold start is made with `site.kind: {kind}`")

    def look(self) -> None:
        """Raise SiteError with each part that is up and has ended by itself, and when that was."""
        return  # Parts that others run are theirs to look after.

    @abc.abstractmethod
    def hold(self) -> None:
        """Keep all parts up until Ctrl-C; SiteError as soon as one of them ends by itself."""

    def data_groups(self) -> list[list[str]]:
        """Arms that share data, as lists of names; each group is loaded by itself."""
        return data_groups(self.study.arms)

    def change_places(self, block: int) -> None:
        """Let arms with servers of their own change folders and ports for a block, if nothing runs."""
        return  # A site whose parts have one place each has nothing to change.

    # What turns need. Studies whose site has none are refused turns (`core.study.interleaving`).

    def add_twin(self, name: str, arm: str) -> None:
        """Give an arm a second instance of all its parts under another name, if nothing runs."""
        kind = self.study.site.kind
        raise SiteError(f"a second instance of {arm} is not supported with `site.kind: {kind}`")

    def clock(self, takers: Mapping[str, Taker], requests: Mapping[str, Any]) -> Clock:
        """Start the clock of a group with arms in turns; `asked` are the other requests to it."""
        raise SiteError(f"turns are not supported with `site.kind: {self.study.site.kind}`")
