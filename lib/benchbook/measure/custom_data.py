"""Tables of custom scripts: prepared, described, compared with the record, dropped; changed scripts."""

import subprocess
import tempfile
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, text

from benchbook.core.study import custom_scripts, sysbench_options
from benchbook.core.study.custom_scripts import CustomScript
from benchbook.core.study.model import Endpoint
from benchbook.core.util import numeric_equality
from benchbook.core.util.errors import BenchbookError
from benchbook.measure import sysbench
from benchbook.measure.data_plan import DataPlan
from benchbook.plan import order
from benchbook.sites.contract import Site, Start
from benchbook.sites.engines import dialect

PREPARE = Path(__file__).with_name("lua") / "own.lua"
PREPARE_S = 3600.0
CHECKSUM_UP_TO = 5_000_000


def prepare_scripts(site: Any, data: DataPlan, arm: str, endpoint: Endpoint) -> list[str]:
    """Run each script's `prepare` on an arm's server; return the failures, in sysbench's words."""
    scripts: list[str] = []
    for script in data.prepared:
        script.texts()
        env = {"BENCHBOOK_SCRIPT": script.path.name, "BENCHBOOK_SEED": str(data.seed)}
        options = [
            f"--{name.replace('_', '-')}={sysbench_options.format_value(value)}"
            for name, value in script.options.items()
        ]
        argv = sysbench.once_argv(endpoint, order.table_seed(data.seed, 0), PREPARE, *options)
        with tempfile.TemporaryDirectory() as scratch:
            out, err = Path(scratch) / "out", Path(scratch) / "err"
            try:
                with sysbench.start_client(site, Start(argv, out, err, script.folder, env, arm)) as child:
                    code = child.popen.wait(timeout=PREPARE_S)
            except subprocess.TimeoutExpired:
                scripts.append(
                    f"workloads.{script.workload}: its prepare did not end within {PREPARE_S:.0f} s"
                )
                continue
            lines = sysbench.read_faults(out, err, code)
        scripts += [f"workloads.{script.workload}: its prepare failed: {line}" for line in lines]
    return scripts


def describe_tables(connection: Connection) -> dict[str, dict[str, int | None]]:
    """`rows` and `checksum` (None: too large) of every table that is not sysbench's, by name."""
    rows = {
        name: int(connection.execute(text(f"SELECT COUNT(*) FROM `{name}`")).scalar_one())
        for name in list_tables(connection)
    }
    is_small = sum(rows.values()) <= CHECKSUM_UP_TO
    sums = {name: _table_checksum(connection, name) if is_small else None for name in rows}
    return {name: {"rows": count, "checksum": sums[name]} for name, count in rows.items()}


def list_tables(connection: Connection) -> list[str]:
    """Names of the tables that are neither sysbench's own nor the mark of a schema that others host."""
    names = dialect.get_dialect(connection).tables(connection)
    return [name for name in names if name != dialect.MARK and not sysbench.is_table(name)]


def prewarm_tables(connection: Connection) -> None:
    """Read every row of every table that is not one of sysbench's, and the entries of its indexes."""
    for name in list_tables(connection):
        for index in dialect.get_dialect(connection).indexes(connection, f"`{name}`"):
            query = f"SELECT COUNT(*) FROM `{name}` FORCE INDEX (`{index}`)"
            connection.execute(text(query)).scalar_one()


def drop_tables(connection: Connection) -> None:
    """Drop every table that is not one of sysbench's."""
    connection.execute(text("SET FOREIGN_KEY_CHECKS = 0"))
    for name in list_tables(connection):
        connection.execute(text(f"DROP TABLE `{name}`"))
    connection.execute(text("SET FOREIGN_KEY_CHECKS = 1"))


def record_scripts(data: DataPlan, states: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """`scripts`, texts and digests of own scripts, and `tables`, those of their prepare by `states`, what
    `describe` says for one arm of each copy of the data; BenchbookError if these differ."""
    first, *others = states
    for arm in others:
        wrong = diff_tables(states[arm], states[first])
        if wrong:
            raise BenchbookError(
                f"the script's prepare made other rows for arm {arm} than for {first}: "
                f"{'; '.join(wrong[:3])}; "
                "let it draw from sysbench.rand or math.random, which are seeded, and from nothing else"
            )
    scripts = {name: {"text": item.texts(), "sha256": item.digests()} for name, item in data.scripts.items()}
    return {"scripts": scripts, "tables": states[first]}


def diff_tables(now: dict[str, Any], recorded: dict[str, Any]) -> list[str]:
    """Each table that is not as it was recorded, in words."""
    other = numeric_equality.diff_mappings(now, recorded)
    return [f"{name} has {has}, recorded are {was}" for name, (has, was) in other.items()]


def find_changed_scripts(data: DataPlan, recorded: dict[str, Any]) -> list[str]:
    """Files of own scripts that are not those that warm-up saw."""
    wrong = []
    for name, script in data.scripts.items():
        now, then = script.digests(), recorded.get("scripts", {}).get(name, {}).get("sha256", {})
        remedy, changed = "run `dvc repro -f warm-up@STUDY`", numeric_equality.diff_mappings(now, then)
        wrong += [f"workloads.{name}.script: {file} is not what warm-up saw; {remedy}" for file in changed]
    return wrong


def of_run(site: Site, workload: str) -> CustomScript | None:
    """Own script of a workload of a site's study, None for one of sysbench's."""
    return custom_scripts.load_scripts(site.study).get(workload)


def _table_checksum(connection: Connection, name: str) -> int | None:
    row: Any = connection.execute(text(f"CHECKSUM TABLE `{name}`")).first()
    return None if row is None or row[1] is None else int(row[1])
