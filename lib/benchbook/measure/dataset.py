"""Load the tables and prove that they are there: sysbench's prepare exits 0 whatever happens."""

from typing import Any

import pandas as pd
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from benchbook.core.study.model import compute_fingerprint
from benchbook.core.study.study_sections import Dataset
from benchbook.core.util.errors import BenchbookError, CopyLost
from benchbook.measure import custom_data, statement_counters, sysbench
from benchbook.measure.data_plan import DataPlan
from benchbook.measure.server_drift import foreign_items
from benchbook.measure.statement_counters import open_session
from benchbook.sites.contract import Site
from benchbook.sites.engines import dialect

CHECKSUM_UP_TO = 5_000_000
Description = dict[str, Any]
Recorded = Description | None


def ensure_data(
    site: Site, data: DataPlan, recorded: Recorded = None, recorded_scripts: Recorded = None
) -> Description:
    """Make sure the prepared data is there and as it should be; return its description.

    `recorded` is prepare's description, `recorded_scripts` that of warm-up of own scripts and their tables.
    Data that are gone are loaded again from the seed; what differs is put back from the prepared copy.
    BenchbookError if it is still not as recorded. The result has the keys tables, table_size, seed, rows,
    indexes, checksums, fingerprint, `loads`, and `events`: what was found and done.
    """
    events: list[str] = []
    for _ in arm_of_each_copy(site):
        try:
            return _ensure_data(site, data, recorded, recorded_scripts, events)
        except CopyLost as error:
            events.append(str(error))
    return _ensure_data(site, data, recorded, recorded_scripts, events)


def _ensure_data(
    site: Site, data: DataPlan, recorded: Recorded, recorded_scripts: Recorded, events: list[str]
) -> Description:
    arms = arm_of_each_copy(site)
    kept = [arm for arm in arms if site.has_snapshot(data.label, arm)]
    if kept != arms and recorded is not None:
        events.append("the prepared copy is gone; the tables are loaded again from the study's seed")
    for arm in kept:
        site.up(arm)
        problems = _inspect_copy(site, data, arm)[1]
        events += [f"{problem}; the prepared copy is put back" for problem in problems]
    loaded = {arm: _load_copy(site, data, arm) for arm in arms if arm not in kept}
    if kept:
        site.restore(data.label)
    states = {arm: state for arm, (state, _) in loaded.items()}
    for arm in kept:
        states[arm], wrong = _inspect_copy(site, data, arm, recorded, recorded_scripts)
        if wrong:
            events += [f"the prepared copy: {problem}; the tables are loaded again" for problem in wrong]
            loaded[arm] = _load_copy(site, data, arm)
            states[arm] = loaded[arm][0]
    _must_be_recorded(states, recorded)
    if recorded_scripts is not None:
        ensure_custom_tables(site, data, recorded_scripts)
    return _same_in_all(states) | {"loads": _describe_loads(site, data, loaded), "events": events}


def _inspect_copy(
    site: Site, data: DataPlan, arm: str, recorded: Recorded = None, recorded_scripts: Recorded = None
) -> tuple[Description, list[str]]:
    """Description of the tables behind an arm, and what is wrong with them against study and records."""
    with open_session(site, arm) as connection:
        state = describe_data(connection, data)
        wrong = find_problems(state, data) or _diff_states(state, recorded)
        # A server of others keeps no copy, and what pilots wrote is still there.
        if not wrong and recorded_scripts is not None:
            script_tables = custom_data.describe_tables(connection)
            wrong = custom_data.diff_tables(script_tables, recorded_scripts.get("tables", {}))
    return state, wrong


def _must_be_recorded(states: dict[str, Description], recorded: Recorded) -> None:
    """Raise BenchbookError unless all copies are as prepare recorded them."""
    wrong = [text for state in states.values() for text in _diff_states(state, recorded)]
    if wrong:
        remedy = "Run `dvc repro -f prepare@STUDY` to start again"
        raise BenchbookError(f"the data could not be brought back as it was: {'; '.join(wrong)}. {remedy}")


def load_data(site: Site, data: DataPlan) -> dict[str, Any]:
    """Create the schema, load every table, check all of it, keep a copy; return its description. Arms that
    differ in engine or order of loading are loaded each from the same seed, and must hold the same rows;
    `loads` then says for every arm how long it took, and what text its columns hold."""
    loaded = {arm: _load_copy(site, data, arm) for arm in arm_of_each_copy(site)}
    state = _same_in_all({arm: state for arm, (state, _) in loaded.items()})
    site.look()
    return state | {"loads": _describe_loads(site, data, loaded)}


def arm_of_each_copy(site: Site) -> list[str]:
    """One arm for each copy of the data: the first that can be made of those that share it."""
    groups = ([arm for arm in group if arm in site.able] for group in site.data_groups())
    return [group[0] for group in groups if group]


def _load_copy(site: Site, data: DataPlan, arm: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Load one copy of the data through an arm; return its description, and the time and text."""
    endpoint = site.up(arm)
    with open_session(site, arm) as connection:
        for name in filter(sysbench.is_table, dialect.get_dialect(connection).tables(connection)):
            connection.execute(text(f"DROP TABLE {name}"))
        if data.scripts:
            custom_data.drop_tables(connection)
    messages, seconds = sysbench.load_tables(site, data, arm, endpoint)
    messages += custom_data.prepare_scripts(site, data, arm, endpoint)
    with open_session(site, arm) as connection:
        state = describe_data(connection, data)
        is_ours = not connection.info.get("is_theirs")
        words = dialect.get_dialect(connection)
        unasked = foreign_items(words.definitions(connection)[0], is_ours)
        load = {"seconds": round(seconds, 2), "text": words.texts(connection, "sbtest1")}
    wrong = [*find_problems(state, data), *(f"{name} is not ours ({what})" for name, what in unasked.items())]
    if wrong or messages:
        why = "; ".join([*wrong, *messages[:3]])
        raise BenchbookError(f"prepare failed: {why}. Look at the server's log, then run the stage again")
    site.snapshot(data.label, arm)
    return state, load


def count_rows(connection: Connection, data: DataPlan) -> dict[str, Any]:
    """Rows and secondary indexes of the tables now; counting reads the indexes into memory."""
    rows = statement_counters.count_rows(connection, data.tables)
    words, there = dialect.get_dialect(connection), [name for name, count in rows.items() if count >= 0]
    # Each family of engines has names of its own for the same index.
    list_indexes = words.keys if data.checksum == "text" else words.indexes
    return {"rows": rows, "indexes": {name: list_indexes(connection, name) for name in there}}


def describe_data(connection: Connection, data: DataPlan) -> dict[str, Any]:
    """Rows, secondary indexes and checksums of the tables as they are; all is read into memory."""
    rows = count_rows(connection, data)
    words, kind = dialect.get_dialect(connection), data.checksum
    small = data.tables * data.table_size <= CHECKSUM_UP_TO
    each = {name: words.checksum(connection, name, kind) for name in rows["indexes"]} if small else None
    of_study = {"tables": data.tables, "table_size": data.table_size, "seed": data.seed}
    state: dict[str, Any] = {**of_study, **rows, "checksums": each}
    return state | {"fingerprint": compute_fingerprint(state)}


def find_problems(state: dict[str, Any], data: DataPlan) -> list[str]:
    """Lacks of the tables against the study, in words."""
    size = data.table_size
    problems = []
    for number, (name, rows) in enumerate(state["rows"].items(), start=1):
        if rows < 0:
            problems.append(f"{name} is missing")
        elif rows != size:
            problems.append(f"{name} has {rows} rows, the study says {size}")
        elif not has_index(state, number):
            problems.append(f"{name} has no index k_{number}")
    return problems


def proof_table(state: dict[str, Any], dataset: Dataset) -> pd.DataFrame:
    """Table, property, asked, found and proof, one row a property of a table."""
    rows: list[tuple[str, str, object, object, str]] = []
    proven = {True: "the server has what was asked", False: "DIFFERS"}
    for number in range(1, dataset.tables + 1):
        name = f"sbtest{number}"
        counted, indexes = state["rows"].get(name), state["indexes"].get(name, [])
        # By itself it proves nothing: the stages after this one compare it before they measure.
        checksum = (state["checksums"] or {}).get(name)
        rows += [
            (name, "rows", f"{dataset.table_size:,}", f"{counted or 0:,}",
             proven[counted == dataset.table_size]),
            (name, "index", f"k_{number}", ", ".join(indexes), proven[has_index(state, number)]),
            (name, "checksum", f"what seed {state['seed']} gives", checksum or "not taken: too large",
             "compared before every measurement" if checksum else "none"),
        ]  # fmt: skip
    return pd.DataFrame(rows, columns=["table", "property", "asked", "found", "proof"])


def has_index(state: dict[str, Any], number: int) -> bool:
    """True if a table has its secondary index: by name, or by its column if engines differ."""
    return bool({f"k_{number}", "k"} & {*state["indexes"].get(f"sbtest{number}", [])})


def describe_custom_tables(site: Any, data: DataPlan) -> dict[str, dict[str, Any]]:
    """Content of own scripts' tables in each copy of the data, by its first arm."""
    custom_tables = {}
    for arm in arm_of_each_copy(site) if data.scripts else []:
        site.up(arm)
        with open_session(site, arm) as connection:
            custom_tables[arm] = custom_data.describe_tables(connection)
    return custom_tables


def ensure_custom_tables(site: Any, data: DataPlan, recorded: Recorded) -> None:
    """Hold own scripts and their tables against warm-up's record; BenchbookError names changes."""
    if not data.scripts:
        return
    wrong = custom_data.find_changed_scripts(data, recorded or {})
    for arm, state in describe_custom_tables(site, data).items() if not wrong else ():
        changes = custom_data.diff_tables(state, (recorded or {}).get("tables", {}))
        wrong += [f"{arm}: {change}" for change in changes]
    if wrong:
        remedy = "Run `dvc repro -f warm-up@STUDY` to start again"
        raise BenchbookError(f"own workloads are not as warm-up recorded: {'; '.join(wrong[:5])}. {remedy}")


def analyze_all(connection: Connection, data: DataPlan) -> list[dict[str, str]]:
    """Run ANALYZE TABLE on every table of a study, own scripts' too; return the server's answers."""
    names = [f"sbtest{number}" for number in range(1, data.tables + 1)]
    names += [f"`{name}`" for name in custom_data.list_tables(connection)] if data.scripts else []
    return [row for name in names for row in dialect.get_dialect(connection).analyze(connection, name)]


def prewarm_tables(connection: Connection, tables: int) -> None:
    """Read every row by primary key and every entry of the secondary index, so that both are in memory."""
    for number in range(1, tables + 1):
        try:
            dialect.get_dialect(connection).prewarm(connection, f"sbtest{number}", f"k_{number}")
        except DBAPIError as error:
            if error.connection_invalidated:
                raise
            raise BenchbookError(
                f"sbtest{number} can't be read by its keys: {error.orig}; run `dvc repro -f prepare@STUDY`"
            ) from None


def prewarm_all(data: DataPlan, connections: dict[str, tuple[Connection, ...]]) -> None:
    """Prewarm the servers of those arms that ask for it; `connections` holds each arm's, one a server."""
    arms = {connection: arm for arm, sessions in connections.items() for connection in sessions}
    for connection, arm in arms.items():
        if data.of_arm(arm).is_prewarmed:
            prewarm_tables(connection, data.tables)
            if data.scripts:
                custom_data.prewarm_tables(connection)


def _same_in_all(states: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Content common to all copies; BenchbookError if they don't hold the same."""
    first, *others = states
    whose = f"{first} has"
    wrong = [f"{arm}: {text}" for arm in others for text in _diff_states(states[arm], states[first], whose)]
    if wrong:
        raise BenchbookError(f"the arms hold different data: {'; '.join(wrong)}; look at the servers' logs")
    return states[first]


def _describe_loads(
    site: Site, data: DataPlan, loaded: dict[str, tuple[dict[str, Any], dict[str, Any]]]
) -> dict[str, dict[str, Any]]:
    """Order, time and text of the load of each arm that was loaded now or shares such a copy."""
    loads: dict[str, dict[str, Any]] = {}
    # Where all arms share one copy, a time would make the same data look different each time.
    groups = site.data_groups()
    for group in groups if len(groups) > 1 else []:
        for arm in group:
            source = next((item for item in group if item in loaded), None)
            if source is not None:
                loads[arm] = {"index": f"{data.of_arm(arm).index} the rows", **loaded[source][1]}
    return loads


def _diff_states(state: dict[str, Any], recorded: Recorded, whose: str = "prepare recorded") -> list[str]:
    if recorded is None or recorded["fingerprint"] == state["fingerprint"]:
        return []
    names = ("tables", "table_size", "seed", "rows", "indexes", "checksums")
    differing = [key for key in names if state[key] != recorded[key]]
    return [f"{key} is {state[key]}, {whose} {recorded[key]}" for key in differing]
