"""sysbench's options for a planned run by name, from the plan alone.

Both measuring and judging read them here: a run is judged by whether its command line was the plan's.
Where the server is and who connects is not in the plan; those options are named in `CONNECTION`.
"""

from typing import Any

from benchbook.core.study import custom_scripts
from benchbook.core.study.interleaving import clock_seconds
from benchbook.core.study.model import PlannedRun

ACCOUNT = "config-file"
# What a driver's options of the connection end in; PostgreSQL's takes a socket's folder as the host.
OF_DRIVER = {
    "mysql": ("mysql-host", "mysql-port", "mysql-socket", "mysql-db", "mysql-ssl"),
    "pgsql": ("pgsql-host", "pgsql-port", "pgsql-db"),
}
CONNECTION = frozenset({"db-driver"}).union(*OF_DRIVER.values())
OLTP = (
    "range_size", "point_selects", "simple_ranges", "sum_ranges", "order_ranges", "distinct_ranges",
    "index_updates", "non_index_updates", "delete_inserts", "skip_trx",
)  # fmt: skip
# What each script reads beyond tables and table size; sysbench refuses an option that a script does not know.
EXTRA = {"select_random_points": ("random_points",), "select_random_ranges": ("number_of_ranges", "delta")}


def driver_name(planned: PlannedRun) -> str:
    """Name of sysbench's driver for a run; plans name it if it is not MySQL's."""
    return str(planned.options.get("driver", "mysql"))


def general_options(planned: PlannedRun) -> dict[str, str]:
    """sysbench's own options for a run by name, in the order of its command line.

    The last totals are of the measured window alone: the checkpoint before it resets counters and timers.
    """
    options, (discard_s, run_s) = planned.options, clock_seconds(planned)
    # PostgreSQL's driver has no such option: it always tries deadlocks and duplicates again.
    ignored: dict[str, str] = {}
    if driver_name(planned) == "mysql":
        ignored["mysql-ignore-errors"] = ",".join(map(str, options["ignore_errors"])) or "none"
    return {
        **ignored,
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


def of_script(planned: PlannedRun) -> dict[str, str]:
    """Options of a run's script by name, spelled as sysbench spells them."""
    if custom_scripts.is_own(planned.script):
        options: dict[str, Any] = planned.options["options"]
    else:
        options = {"tables": planned.tables, "table_size": planned.table_size}
        options |= {name: planned.options[name] for name in (*OLTP, *EXTRA.get(planned.script, ()))}
    return {name.replace("_", "-"): format_value(option) for name, option in options.items()}


def format_value(arguments: Any) -> str:
    """A value as sysbench takes it; a switch is on or off."""
    return {True: "on", False: "off"}[arguments] if isinstance(arguments, bool) else str(arguments)
