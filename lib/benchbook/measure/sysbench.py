"""Study words → sysbench's command line: a pure function, every option explicit, never a secret."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchbook.core.model import Endpoint, PlannedRun
from benchbook.core.turns import clock_seconds
from benchbook.plan import order

BINARY = "sysbench"
LOAD = Path(__file__).with_name("lua") / "load.lua"
OLTP = (
    "range_size",
    "point_selects",
    "simple_ranges",
    "sum_ranges",
    "order_ranges",
    "distinct_ranges",
    "index_updates",
    "non_index_updates",
    "delete_inserts",
    "skip_trx",
)
# What each script reads beyond tables and table size; sysbench refuses an option that a script does not know.
EXTRA = {"select_random_points": ("random_points",), "select_random_ranges": ("number_of_ranges", "delta")}


def connection(endpoint: Endpoint) -> dict[str, str]:
    """Return the options that say where the server is; the account stands in the secret file."""
    place = (
        {"mysql-socket": str(endpoint.socket)}
        if endpoint.socket
        else {"mysql-host": endpoint.host, "mysql-port": str(endpoint.port)}
    )
    return {
        "db-driver": "mysql",
        **place,
        "mysql-db": endpoint.database,
        "mysql-ssl": "off" if endpoint.tls == "off" else "on",
    }


def run(endpoint: Endpoint, planned: PlannedRun, file: Path | None = None) -> list[str]:
    """Return the argv of one measured run: discard and window in one process.

    The checkpoint at the end of the discard resets counters, timers and histogram, so the last report
    covers the measured window alone. With `file` the options are taken from there (`options`).
    """
    account = f"--config-file={endpoint.secret}"
    given = general(endpoint, planned)
    # Files are read where they stand, so the account that comes last is the one that holds.
    options = [f"--{name}={value}" for name, value in given.items()] if file is None else []
    files = [account] if file is None else [f"--config-file={file}", account]
    return [
        BINARY,
        *files,
        *options,
        planned.script,
        f"--tables={planned.tables}",
        f"--table-size={planned.table_size}",
        *script_options(planned.script, planned.options),
        "run",
    ]


def general(endpoint: Endpoint, planned: PlannedRun) -> dict[str, str]:
    """Return sysbench's own options for a run by name, without the account; those of scripts are others."""
    options = planned.options
    discard_s, run_s = clock_seconds(planned.to_dict())
    return {
        **connection(endpoint),
        "mysql-ignore-errors": ",".join(map(str, options["ignore_errors"])) or "none",
        "threads": str(planned.threads),
        "time": str(discard_s + run_s),
        "events": "0",
        "rate": str(planned.rate),
        "report-interval": "1",
        **({"report-checkpoints": str(discard_s)} if discard_s else {}),
        "percentile": str(planned.percentile),
        "histogram": "on",
        "rand-type": options["rand_type"],
        **({"rand-pareto-h": str(options["rand_pareto_h"])} if options.get("rand_pareto_h") else {}),
        "rand-seed": str(planned.seed),
        "db-ps-mode": options["ps_mode"],
        "forced-shutdown": "off",
        "verbosity": "3",
    }


def load(
    endpoint: Endpoint,
    table: int,
    table_size: int,
    seed: int,
    is_index_first: bool = False,
    has_own_ids: bool = False,
) -> list[str]:
    """Return the argv that creates and loads one table; the seed fixes every row, however it is loaded.

    With `has_own_ids` the rows bring their ids, which a server may otherwise give with gaps.
    """
    return [
        BINARY,
        f"--config-file={endpoint.secret}",
        *(f"--{name}={value}" for name, value in connection(endpoint).items()),
        "--threads=1",
        "--events=1",
        "--time=0",
        f"--rand-seed={order.table_seed(seed, table)}",
        "--rand-type=uniform",
        str(LOAD),
        f"--table-number={table}",
        f"--table-size={table_size}",
        *(["--index-first=on"] if is_index_first else []),
        *(["--auto-inc=off"] if has_own_ids else []),
        "run",
    ]


def script_options(script: str, options: dict[str, Any]) -> list[str]:
    """Return a script's own options, spelled as sysbench spells them."""
    names = (*OLTP, *EXTRA.get(script, ()))
    return [f"--{name.replace('_', '-')}={_value(options[name])}" for name in names]


def _value(value: Any) -> str:
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)
