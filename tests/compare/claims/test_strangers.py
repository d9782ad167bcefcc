"""Sources as newcomers write them: a wide table, a long one, and tables that share a column."""

from pathlib import Path

import pytest

from benchbook.compare.claims.audit import audit_source
from benchbook.core.published.audit import Audit
from benchbook.core.util.errors import InputErrors
from benchbook.read import published

HEAD = """
title: "What a stranger measured"
language: en
found: "https://example.org/post"
subject: "Two arms."
versions: {}
hardware: {server: null}
arms: {mysql: {}, mariadb: {}}
workloads: {oltp_point_select: {}, oltp_read_write: {statements: 20}, oltp_write_only: {statements: 6}}
"""
WIDE = """
columns:
  clients: {role: key, metric: threads}
  mysql_p95: {role: metric, unit: ms, metric: latency_p95_ms, at: {arm: mysql}}
  mysql_p99: {role: metric, unit: ms, metric: latency_p99_ms, at: {arm: mysql}}
  mariadb_p95: {role: metric, unit: ms, metric: latency_p95_ms, at: {arm: mariadb}}
  mariadb_p99: {role: metric, unit: ms, metric: latency_p99_ms, at: {arm: mariadb}}
tables:
  wide:
    title: Side by side
    file: wide.csv
    columns: [clients, mysql_p95, mysql_p99, mariadb_p95, mariadb_p99]
    at: {workload: oltp_read_write}
"""
WIDE_CSV = """clients,mysql_p95,mysql_p99,mariadb_p95,mariadb_p99
8,4.10,6.32,4.57,5.99
16,4.82,7.56,4.65,4.33
32,7.17,11.24,8.43,12.98
"""
LONG = """
columns:
  workload: {role: key}
  threads: {role: key}
  arm: {role: key}
  qps: {role: metric, unit: 1/s}
  change: {role: growth, unit: "%", of: qps, over: {arm: mysql}}
tables:
  long: {title: All, file: long.csv, columns: [workload, threads, arm, qps, change]}
claims:
  writes:
    kind: effect
    claim: "MariaDB writes 23 % faster."
    metric: qps
    cells: {workload: oltp_write_only}
    baseline: {arm: mysql}
    treatment: {arm: mariadb}
    band: {point: "23 %"}
  overall:
    kind: effect
    claim: "MariaDB is 5 % faster."
    metric: qps
    baseline: {arm: mysql}
    treatment: {arm: mariadb}
    band: {point: "5 %"}
  rises:
    kind: trend
    claim: "QPS rises with threads."
    metric: qps
    along: threads
    direction: rises
"""
LONG_CSV = """workload,threads,arm,qps,change
oltp_point_select,16,mysql,120000,
oltp_point_select,16,mariadb,110000,-8.33
oltp_point_select,64,mysql,300000,
oltp_point_select,64,mariadb,282150,-6
oltp_read_write,16,mysql,30000,
oltp_read_write,16,mariadb,29000,-3.3
oltp_read_write,64,mysql,52000,
oltp_read_write,64,mariadb,50000,-4
oltp_write_only,16,mysql,20000,
oltp_write_only,16,mariadb,26000,23
oltp_write_only,64,mysql,40000,
oltp_write_only,64,mariadb,52000,23
"""
DISKS = """
columns:
  warehouses: {role: key}
  arm: {role: key}
  tpmc: {role: metric, unit: 1/min}
  p95: {role: metric, unit: ms, metric: latency_p95_ms}
tables:
  fast: {title: On flash, file: fast.csv, columns: [warehouses, arm, tpmc, p95], at: {disk: flash}}
  slow: {title: On disks, file: slow.csv, columns: [warehouses, arm, tpmc, p95], at: {disk: disks}}
"""
FAST_CSV = """warehouses,arm,tpmc,p95
100,mysql,12000,45.8
100,mariadb,12100,46.6
500,mysql,11000,50.1
500,mariadb,11100,49.2
"""
SLOW_CSV = FAST_CSV.replace("45.8", "41.1").replace("46.6", "43.4").replace("50.1", "53.9")


@pytest.fixture
def audit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A source of these files, audited."""
    monkeypatch.setenv("BENCHBOOK_ROOT", str(tmp_path))

    def write(text: str, **tables: str) -> Audit:
        folder = tmp_path / "data" / "published" / "stranger"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "source.yaml").write_text(HEAD.lstrip() + text.lstrip(), encoding="utf-8")
        for name, table in tables.items():
            (folder / f"{name}.csv").write_text(table, encoding="utf-8")
        return audit_source(published.load_source("stranger"))

    return write


def _failed(audited: Audit) -> list[tuple[str, str, str]]:
    return [(check.check, check.where, check.detail) for check in audited.checks if check.passed is False]


def test_percentiles_rise_within_an_arm_and_arms_of_one_row_are_held_apart(audit):
    """MySQL's p99 is above MariaDB's p95 in each row, and MariaDB's below its own at 16 threads alone."""
    assert _failed(audit(WIDE, wide=WIDE_CSV)) == [
        (
            "order of latencies",
            "wide, arm mariadb, workload oltp_read_write, threads 16",
            "latency_p95_ms 4.65, latency_p99_ms 4.33.",
        )
    ]


def test_a_long_table_is_read_series_by_series_and_its_means_on_both_bases(audit):
    audited = audit(LONG, long=LONG_CSV)
    claims = {claim.id.partition("/")[2]: claim for claim in audited.claims}
    assert claims["rises"].recomputed == "rises at 6 of 6 steps"
    assert (
        claims["writes"].verdict == "does not hold" and "divided by the new value" in claims["writes"].reason
    )
    assert claims["overall"].verdict == "holds" and claims["overall"].n_other_sign == 4
    # -6 is -5.95 in whole percent.
    assert [where for name, where, _ in _failed(audited) if name == "base of percentages"] == [
        f"long, arm mariadb, workload oltp_write_only, threads {threads}" for threads in (16, 64)
    ]
    assert [check.check for check in audited.checks if check.where == "nowhere"] == ["nothing to check"]


@pytest.mark.parametrize(
    ("slow", "columns"),
    [(SLOW_CSV, "tpmc (4 numbers)."), (FAST_CSV, "tpmc (4 numbers), latency_p95_ms (4 numbers).")],
)
def test_tables_of_two_disks_that_share_columns_are_named(audit, slow: str, columns: str):
    ((name, where, detail),) = _failed(audit(DISKS, fast=FAST_CSV, slow=slow))
    assert (name, where) == ("equal tables", "fast and slow")
    assert detail.startswith(f"Equal in {columns} They should differ in disk (flash, disks)")


@pytest.mark.parametrize(
    ("source", "table", "old", "new", "refusal"),
    [
        (
            WIDE,
            WIDE_CSV,
            ", at: {arm: mariadb}",
            ", at: {arm: mysql}",
            "of the same cells as mysql_p95; .* at: ",
        ),
        (
            WIDE,
            WIDE_CSV,
            "    at: {",
            "    arm: mysql\n    at: {",
            "all of its cells; write at: {arm: mysql}",
        ),
        (WIDE, WIDE_CSV, "at: {w", "at: {threads: 8, w", "threads: clients holds it, too; keep the column"),
        (
            LONG,
            LONG_CSV,
            "  arm: {role: key}",
            "  arm: {role: key, metric: version}",
            'or at: {arm: "mysql"} for',
        ),
        (
            LONG,
            LONG_CSV,
            "threads: {role: key}",
            "threads: {role: text}",
            "add the column that tells them apart",
        ),
        (LONG, LONG_CSV.replace("-8.33", "\N{MINUS SIGN}8.33"), "", "", "typographic minus; write -8.33"),
        (LONG, LONG_CSV.replace(",mysql,", ",5.7,"), "", "", "5.7: no such arm; .* or add it under arms"),
    ],
)
def test_a_refusal_names_the_key_to_write(audit, source: str, table: str, old: str, new: str, refusal: str):
    name = "wide" if source is WIDE else "long"
    with pytest.raises(InputErrors, match=refusal.replace("{", r"\{")) as caught:
        audit(source.replace(old, new) if old else source, **{name: table})
    if "mariadb" in refusal or "such arm" in refusal:
        assert len(caught.value.errors) == 1
