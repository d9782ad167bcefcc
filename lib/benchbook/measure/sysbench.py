"""Study words → sysbench's command line: a pure function, every option explicit, never a secret."""

from __future__ import annotations

import re
from pathlib import Path

from benchbook.core import sysbench_options
from benchbook.core.model import Endpoint, PlannedRun
from benchbook.plan import order

BINARY = "sysbench"
LOAD = Path(__file__).with_name("lua") / "load.lua"


def is_table(name: str) -> bool:
    """Say whether a table is one of sysbench's own, by its name."""
    return re.fullmatch(r"sbtest\d+", name) is not None


def connection(endpoint: Endpoint) -> dict[str, str]:
    """Return the options that say where the server is; the account stands in the secret file."""
    if endpoint.driver == "pgsql":
        return {
            "db-driver": "pgsql",
            # libpq takes a folder for where the socket of a port is.
            "pgsql-host": endpoint.host if endpoint.socket is None else str(endpoint.socket.parent),
            "pgsql-port": str(endpoint.port),
            "pgsql-db": endpoint.database,
        }
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
    """Return the argv of one measured run, discard and window in one process; options from `file`, if any."""
    account = f"--config-file={endpoint.secret}"
    given, of_script = general(endpoint, planned), sysbench_options.of_script(planned)
    # Files are read where they stand, so the account that comes last is the one that holds.
    options = [f"--{name}={value}" for name, value in given.items()] if file is None else []
    files = [account] if file is None else [f"--config-file={file}", account]
    return [
        BINARY,
        *files,
        *options,
        planned.script,
        *(f"--{name}={value}" for name, value in of_script.items()),
        "run",
    ]


def general(endpoint: Endpoint, planned: PlannedRun) -> dict[str, str]:
    """Return sysbench's own options for a run by name, without the account; those of scripts are others."""
    return {**connection(endpoint), **sysbench_options.general(planned)}


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
