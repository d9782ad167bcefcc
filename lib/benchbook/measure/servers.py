"""The servers of a study between groups of runs: put back, proven, each opened once, and warmed."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from sqlalchemy import Connection

from benchbook.core.study.study import StudySpec
from benchbook.core.util.errors import BenchbookError
from benchbook.measure import dataset, preflight, server_drift, statement_counters
from benchbook.measure.data_plan import DataPlan
from benchbook.measure.run_executor import tables_to_count
from benchbook.sites.contract import Site

# A session with each server of every arm.
Sessions = dict[str, tuple[Connection, ...]]
# The rows on each server of arms that begin cold, by arm.
Cold = dict[str, list[statement_counters.Record]]


@dataclass(frozen=True)
class Ready:
    """Servers for runs: a session with each server of every arm, and the rows of the cold ones."""

    connections: Sessions
    rows: dict[Connection, statement_counters.Record]


def restart_servers(
    site: Site, study: StudySpec, data: DataPlan, arms: Sequence[str], twin: str | None, block: int
) -> Cold:
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
    results: dict[tuple[str, int], statement_counters.Record] = {}
    cold: Cold = {}
    for arm in arms:
        is_cold = data.of_arm(arm).begins == "cold"
        for number, place in enumerate(_identify_servers(site, study, arm)):
            if place not in results:
                with statement_counters.open_session(site, arm, number) as connection:
                    results[place] = _verify_server(connection, study, data, block, is_cold)
        if is_cold:
            cold[arm] = [results[place] for place in _identify_servers(site, study, arm)]
    return cold


def _verify_server(
    connection: Connection, study: StudySpec, data: DataPlan, block: int, is_cold: bool
) -> statement_counters.Record:
    """Hold a server and its data against the study; return its rows if they are needed."""
    preflight.refuse_problems(preflight.check_server(study, connection))
    if wrong := dataset.find_problems(dataset.count_rows(connection, data), data):
        raise BenchbookError(f"block {block}: {'; '.join(wrong)}; run `dvc repro -f prepare@STUDY`")
    tables = tables_to_count(data.tables, data.table_size)
    return statement_counters.rows_of(connection, tables) if is_cold else {}


def _identify_servers(site: Site, study: StudySpec, arm: str) -> list[tuple[str, int]]:
    """Marks that tell each server of an arm from all others."""
    return [(site.server_of(arm), number) for number in range(study.arms[study.deployed(arm)].servers)]


@contextmanager
def open_servers(
    site: Site, study: StudySpec, data: DataPlan, arms: Sequence[str], cold: Cold
) -> Iterator[Ready]:
    """Open the servers of arms, and warm those to be warm; `cold` is from `restart_servers`."""
    with open_sessions(site, study, arms) as connections:
        for arm, of_arm in connections.items():
            server_drift.arm_at_start(of_arm[0], arm, site.identity(arm))
        dataset.prewarm_all(data, connections)
        rows = {key: row for arm in cold for key, row in zip(connections[arm], cold[arm], strict=True)}
        yield Ready(connections, rows)


@contextmanager
def open_sessions(site: Site, study: StudySpec, arms: Iterable[str]) -> Iterator[Sessions]:
    """Open one session for each distinct server of some arms; return the sessions of every arm, one a server.
    A second one would be a stranger to the first. What each server is then is kept for its runs (`state`)."""
    with ExitStack() as stack:
        opened: dict[tuple[str, int], Connection] = {}
        results: Sessions = {}
        for arm in arms:
            keys = _identify_servers(site, study, arm)
            for key in keys:
                if key not in opened:
                    opened[key] = stack.enter_context(statement_counters.open_session(site, arm, key[1]))
                    statement_counters.begin_session(opened[key])
            results[arm] = tuple(opened[key] for key in keys)
        yield results


def put_back(site: Site, data: DataPlan, analyzed: bool = False) -> None:
    """Put the prepared copy back on every server, loaded again if none is left, or `analyzed`."""
    copies = dataset.arm_of_each_copy(site)
    # A cluster may lose a pod, and the copy with it.
    # Elsewhere a copy that one of several arms lacks is brought back by the site, or refused.
    looked_at = copies if data.scripts or len(copies) == 1 else []
    if not all(site.has_snapshot(data.label, arm) for arm in looked_at):
        dataset.load_data(site, data)
        for arm in copies if analyzed else []:
            with statement_counters.open_session(site, arm) as connection:
                dataset.analyze_all(connection, data)
            site.snapshot(data.label, arm)
    site.restore(data.label)
