"""Whether a finding could be about a default of ours: the engine's settings against those of its maker.

`sites/defaults.yaml` says what every MariaDB of ours starts from, and why. Here a server with those meets
one with the values that MariaDB itself would have taken, all of them at once, with --full also one by one.
Each visit starts the server anew on the same data; visits alternate, and a block is one visit of each. The
interval is the one of every other finding. Quick data fit into any buffer pool, the full ones only into ours.
"""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchbook import sites
from benchbook.compare.stats.equivalence import label_interval
from benchbook.compare.stats.intervals import Interval, t_interval
from benchbook.core.study.study import StudySpec
from benchbook.measure import dataset, statement_counters, sysbench
from benchbook.measure.data_plan import plan_data
from benchbook.plan import order, schedule
from benchbook.read.sysbench_log import parse_log
from benchbook.sites import settings
from benchmarks import bench_site
from benchmarks.table import Row, main

# What MariaDB 10.11 takes when nothing is said.
MAKERS: dict[str, Any] = {
    "innodb_buffer_pool_size": "128M",
    "innodb_log_file_size": "96M",
    "innodb_buffer_pool_dump_at_shutdown": True,
    "innodb_buffer_pool_load_at_startup": True,
    "max_connections": 151,
    "max_prepared_stmt_count": 16_382,
    "skip_name_resolve": False,
}
WORKLOADS = ("oltp_point_select", "oltp_read_write")
BLOCKS = {False: 3, True: 10}
DATA = {False: {"tables": 2, "table_size": 20_000}, True: {"tables": 4, "table_size": 300_000}}
SEED = 7


def rows(is_full: bool) -> list[Row]:
    """Measure each variant against our defaults; the ratio is the variant's throughput over ours."""
    variants = {"ours": {}, "the maker's": MAKERS}
    if is_full:
        sized = ("innodb_buffer_pool_size", "innodb_log_file_size")
        variants |= {f"{name} {MAKERS[name]}": {name: MAKERS[name]} for name in sized}
        variants["innodb_flush_log_at_trx_commit 2"] = {"innodb_flush_log_at_trx_commit": 2}
        variants["performance_schema on"] = {"performance_schema": True}
    log_qps: dict[tuple[str, str], list[float]] = {}
    with bench_site.place() as base:
        for variant, workload, qps in _visits(variants, base, is_full):
            log_qps.setdefault((variant, workload), []).append(float(np.log(qps)))
    assert set(settings.complete_settings({}, "mariadb")) >= set(MAKERS)
    return [
        _row(variant, workload, np.array(found) - np.array(log_qps["ours", workload]))
        for (variant, workload), found in sorted(log_qps.items())
        if variant != "ours"
    ]


def _row(variant: str, workload: str, ratios: np.ndarray) -> Row:
    interval = t_interval(ratios, 0.95)
    return Row(f"settings: {variant}, {workload}", _told(interval), "our defaults", label_interval(interval))


def _told(interval: Interval) -> str:
    if interval.low is None or interval.high is None or interval.effect is None:
        return interval.reason or "unknown"
    return f"{interval.effect:+.1%} [{interval.low:+.1%}, {interval.high:+.1%}], n = {interval.n}"


def _study(asked: dict[str, Any], is_full: bool) -> StudySpec:
    return bench_site.study(
        engine={"settings": asked},
        arms={"direct": {}, "haproxy": {"access": "haproxy"}},
        dataset=DATA[is_full],
        workloads={name: {} for name in WORKLOADS},
        threads=[8],
        plan={"seed": SEED, "blocks": 1, "discard_s": 1, "run_s": 10 if is_full else 3, "order": "runs"},
    )


def _visits(
    variants: dict[str, dict[str, Any]], base: Path, is_full: bool
) -> Iterator[tuple[str, str, float]]:
    for block in range(BLOCKS[is_full]):
        for variant in order.shuffle_items(list(variants), SEED, block):
            of = _study(variants[variant], is_full)
            data = plan_data(of)
            with sites.open_site(of, base / "lab") as site:
                if not site.has_snapshot(data.label):
                    dataset.load_data(site, data)
                else:
                    site.restore(data.label)
                with statement_counters.open_session(site) as connection:
                    dataset.prewarm_tables(connection, of.dataset.tables)
                for run in schedule.plan_runs("settings", of, {}):
                    if run.arm == "direct":
                        argv = sysbench.run_argv(site.up("direct"), run)
                        said = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
                        log = parse_log(said)
                        assert log.final is not None and log.final.queries and log.measured_s
                        yield variant, run.workload, log.final.queries / log.measured_s


if __name__ == "__main__":
    main(rows, __doc__)
