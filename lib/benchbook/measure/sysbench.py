"""Study words → sysbench's command line or its file of options: every option explicit, never a secret.

sysbench passes over what it does not understand in a file, or warns and goes on with its defaults. So it is
asked beforehand, by its own script that prints what it took from this very file. Its own prepare exits 0
whatever happens, so what went wrong with its loaders is said here.
"""

import contextlib
import os
import re
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from benchbook.core.study import sysbench_options
from benchbook.core.study.model import Endpoint, PlannedRun
from benchbook.measure.data_plan import DataPlan
from benchbook.plan import order
from benchbook.sites.contract import Client, Site, Start

BINARY = "sysbench"
LOAD = Path(__file__).with_name("lua") / "load.lua"
RECONNECTING = LOAD.with_name("reconnecting.lua")


def is_table(name: str) -> bool:
    """True if a table is one of sysbench's own, by its name."""
    return re.fullmatch(r"sbtest\d+", name) is not None


def connection_options(endpoint: Endpoint) -> dict[str, str]:
    """Options for the server's address; the account stands in the secret file."""
    if endpoint.driver == "pgsql":
        return {
            "db-driver": "pgsql",
            # libpq takes a folder for where the socket of a port is.
            "pgsql-host": endpoint.host if endpoint.socket is None else str(endpoint.socket.parent),
            "pgsql-port": str(endpoint.port),
            "pgsql-db": endpoint.database,
        }
    place = {"mysql-socket": str(endpoint.socket)}
    if endpoint.socket is None:
        place = {"mysql-host": endpoint.host, "mysql-port": str(endpoint.port)}
    tls = "off" if endpoint.tls == "off" else "on"
    return {"db-driver": "mysql", **place, "mysql-db": endpoint.database, "mysql-ssl": tls}


def run_argv(endpoint: Endpoint, planned: PlannedRun, file: Path | None = None) -> list[str]:
    """Argv of one measured run, discard and window in one process; options from `file`, if any."""
    account = f"--config-file={endpoint.secret}"
    inputs, of_script = general_options(endpoint, planned), sysbench_options.of_script(planned)
    # Files are read where they stand, so the account that comes last is the one that holds.
    options = [f"--{name}={value}" for name, value in inputs.items()] if file is None else []
    files = [account] if file is None else [f"--config-file={file}", account]
    script = str(RECONNECTING) if "event" in planned.arm_setting else planned.script
    inputs_of_script = [f"--{name}={value}" for name, value in of_script.items()]
    return [BINARY, *files, *options, script, *inputs_of_script, "run"]


def general_options(endpoint: Endpoint, planned: PlannedRun) -> dict[str, str]:
    """sysbench's own options for a run by name, without the account; those of scripts are others."""
    return {**connection_options(endpoint), **sysbench_options.general_options(planned)}


def once_argv(endpoint: Endpoint, seed: int, script: Path, *options: str) -> list[str]:
    """Argv that runs a script for one event, with its random numbers from a seed."""
    return [
        BINARY,
        f"--config-file={endpoint.secret}",
        *(f"--{name}={value}" for name, value in connection_options(endpoint).items()),
        *("--threads=1", "--events=1", "--time=0", f"--rand-seed={seed}", "--rand-type=uniform"),
        str(script),
        *options,
        "run",
    ]


SHOW = Path(__file__).with_name("lua") / "options.lua"
ANSWER_S = 30.0
# Switches that a run may have off.
OFF = frozenset({("mysql-ssl", "off"), ("histogram", "off")})


def write_options(
    site: Site, arm: str, endpoint: Endpoint, planned: PlannedRun, file: Path
) -> dict[str, dict[str, str]]:
    """Write a run's options but its account to a file; return those `asked` and those `taken` by name."""
    options = general_options(endpoint, planned)
    file.write_text(in_file(options), encoding="utf-8")
    with tempfile.TemporaryDirectory() as scratch:
        out, err = Path(scratch) / "out", Path(scratch) / "err"
        with start_client(site, Start(show_argv(file), out, err, Path(scratch), arm=arm)) as child:
            child.popen.wait(timeout=ANSWER_S)
        taken = parse_shown(out.read_text(encoding="utf-8", errors="replace"))
    return {"asked": options, "taken": {name: taken[name] for name in options if name in taken}}


def in_file(inputs: Mapping[str, str]) -> str:
    """Options as the text of a file for `--config-file`."""
    # sysbench takes any switch in a file for on, so those that are off are left out; and no space before `=`.
    lines = [f"{name}={value}" for name, value in inputs.items() if (name, value) not in OFF]
    return "\n".join(lines) + "\n"


def show_argv(file: Path) -> list[str]:
    """Argv that prints the options sysbench takes from a file; no database is reached."""
    return [BINARY, f"--config-file={file}", str(SHOW), "show"]


def parse_shown(out: str) -> dict[str, str]:
    """Options that the `show_argv` command printed, by their names on the command line."""
    results = re.findall(r"^([a-z_]+)=(.*)$", out, re.MULTILINE)
    return {name.replace("_", "-"): value for name, value in results}


# The slowest that loading may be: a cluster whose parts are far apart takes seconds to agree on a table.
ROWS_A_SECOND, BEGIN_S, A_TABLE_S = 2_000, 60, 15
PROGRESS_S = 10.0


def loader_argvs(data: DataPlan, arm: str, endpoint: Endpoint) -> list[list[str]]:
    """Command line of each table's loader; the seed fixes every row, however an arm's are loaded."""
    options = [f"--table-size={data.table_size}", *data.of_arm(arm).options]
    seeds = ((table, order.table_seed(data.seed, table)) for table in range(1, data.tables + 1))
    return [once_argv(endpoint, seed, LOAD, f"--table-number={table}", *options) for table, seed in seeds]


@contextlib.contextmanager
def start_client(site: Site, start: Start) -> Iterator[Client]:
    """Start a sysbench, and end it with the block if it has not ended by itself."""
    child = site.client(start)
    try:
        yield child
    finally:
        kill_client(child)


def kill_client(child: Client) -> None:
    """End a sysbench at once if it still runs."""
    if child.popen.poll() is None:
        child.popen.kill()
        child.popen.wait()


def read_faults(out: Path, err: Path, code: int) -> list[str]:
    """Fatal errors by a sysbench that has ended, or else its exit code if that is not 0."""
    text = "".join(file.read_text("utf-8", "replace") for file in (out, err))
    fatal = [line for line in text.splitlines() if "FATAL" in line]
    return fatal or ([f"sysbench ended with exit code {code}"] if code else [])


def load_tables(site: Site, data: DataPlan, arm: str, endpoint: Endpoint) -> tuple[list[str], float]:
    """Run the loaders, as many at a time as there are cores; return the failures, and the seconds. A load of
    more than a few seconds prints how many tables are complete."""
    begun = shown = time.monotonic()
    deadline = begun + BEGIN_S + data.tables * (A_TABLE_S + data.table_size / ROWS_A_SECOND)
    failures: list[str] = []
    waiting = list(enumerate(loader_argvs(data, arm, endpoint)))
    with tempfile.TemporaryDirectory() as scratch, contextlib.ExitStack() as stack:
        running: list[tuple[Client, Path, Path]] = []
        while waiting or running:
            while waiting and len(running) < (os.cpu_count() or 1):
                number, argv = waiting.pop(0)
                out, err = (Path(scratch) / f"{number}.{kind}" for kind in ("out", "err"))
                child = stack.enter_context(start_client(site, Start(argv, out, err, Path(scratch), arm=arm)))
                running.append((child, out, err))
            for row in [item for item in running if item[0].popen.poll() is not None]:
                running.remove(row)
                failures += read_faults(*row[1:], row[0].popen.returncode)
            now = time.monotonic()
            if now > shown + PROGRESS_S:
                shown = now
                loaded = data.tables - len(waiting) - len(running)
                print(f"{arm}: {loaded} of {data.tables} tables loaded after {now - begun:.0f} s", flush=True)
            if now > deadline:
                most_s = deadline - begun
                return [*failures, f"loading did not end within {most_s:.0f} s"], most_s
            time.sleep(0.02)
    return failures, time.monotonic() - begun
