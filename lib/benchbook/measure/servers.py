"""The servers of a study between groups of runs: put back, proven, each opened once, and warmed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from sqlalchemy import Connection

from benchbook.core.study.study import Study
from benchbook.core.util.errors import BenchbookError
from benchbook.measure import dataset, preflight, server_drift, statement_counters
from benchbook.measure.data_plan import DataPlan
from benchbook.measure.run_executor import counted
from benchbook.sites.contract import Site


@dataclass(frozen=True)
class Ready:
    """What runs are handed: a session with each server of every arm, and the rows of those that are cold."""

    connections: dict[str, tuple[Connection, ...]]
    rows: dict[Connection, statement_counters.Record]


def begin(
    site: Site, study: Study, data: DataPlan, arms: Sequence[str], twin: str | None, block: int
) -> dict[str, list[statement_counters.Record]]:
    """Start the servers of arms again with the prepared data, and hold them against the study.

    Returns the rows on each server of arms that begin cold: to prove data reads it into memory, so that such
    an arm is started again afterwards. BenchbookError where data are missing.
    """
    site.down()
    if twin:
        site.add_twin(twin, study.baseline)
    site.change_places(block)
    put_back(site, data, study.warm_up.analyze)
    for arm in arms:
        site.up(arm)
    found: dict[tuple[str, int], statement_counters.Record] = {}
    cold: dict[str, list[statement_counters.Record]] = {}
    for arm in arms:
        is_cold = data.of_arm(arm).begins == "cold"
        for number, place in enumerate(_places(site, study, arm)):
            if place not in found:
                with statement_counters.session(site, arm, number) as connection:
                    found[place] = _proven(connection, study, data, block, is_cold)
        if is_cold:
            cold[arm] = [found[place] for place in _places(site, study, arm)]
    return cold


def _proven(
    connection: Connection, study: Study, data: DataPlan, block: int, is_cold: bool
) -> statement_counters.Record:
    """Hold a server and its data against the study; return its rows if they are needed."""
    preflight.refuse(preflight.server(study, connection))
    if wrong := dataset.problems(dataset.counted(connection, data), data):
        raise BenchbookError(f"block {block}: {'; '.join(wrong)}; run `dvc repro -f prepare@STUDY`")
    tables = counted(data.tables, data.table_size)
    return statement_counters.rows_of(connection, tables) if is_cold else {}


def _places(site: Site, study: Study, arm: str) -> list[tuple[str, int]]:
    """Return what tells each server of an arm from all others."""
    return [(site.server_of(arm), number) for number in range(study.arms[study.deployed(arm)].servers)]


@contextmanager
def ready(
    site: Site,
    study: Study,
    data: DataPlan,
    arms: Sequence[str],
    cold: Mapping[str, Sequence[statement_counters.Record]],
) -> Iterator[Ready]:
    """Open the servers of arms, and warm those that are to be warm; `cold` is what `begin` returned."""
    with sessions(site, study, arms) as connections:
        for arm, of_arm in connections.items():
            server_drift.arm_at_start(of_arm[0], arm, site.identity(arm))
        dataset.prewarm_all(data, connections)
        rows = {one: row for arm in cold for one, row in zip(connections[arm], cold[arm], strict=True)}
        yield Ready(connections, rows)


@contextmanager
def sessions(site: Site, study: Study, arms: Iterable[str]) -> Iterator[dict[str, tuple[Connection, ...]]]:
    """Open one session for each distinct server of some arms; return the sessions of every arm, one a server.

    A second session of its own on a server would be a stranger to the first. What each server is then is
    kept, and the runs are held to it (`state`).
    """
    with ExitStack() as stack:
        opened: dict[tuple[str, int], Connection] = {}
        found: dict[str, tuple[Connection, ...]] = {}
        for arm in arms:
            keys = _places(site, study, arm)
            for key in keys:
                if key not in opened:
                    opened[key] = stack.enter_context(statement_counters.session(site, arm, key[1]))
                    statement_counters.begin(opened[key])
            found[arm] = tuple(opened[key] for key in keys)
        yield found


def put_back(site: Site, data: DataPlan, analyzed: bool = False) -> None:
    """Put the prepared copy back on every server, loaded again where none is left, `analyzed` if it was."""
    copies = dataset.arm_of_each_copy(site)
    # A cluster may lose a pod, and the copy with it.
    # Elsewhere a copy that one of several arms lacks is brought back by the site, or refused.
    looked_at = copies if data.scripts or len(copies) == 1 else []
    if not all(site.has_snapshot(data.label, arm) for arm in looked_at):
        dataset.load(site, data)
        for arm in copies if analyzed else []:
            with statement_counters.session(site, arm) as connection:
                dataset.analyze_all(connection, data)
            site.snapshot(data.label, arm)
    site.restore(data.label)
