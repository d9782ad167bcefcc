"""Sources as newcomers write them: a wide table, a long one, and tables that share a column."""

import shutil
from pathlib import Path

import pytest

from benchbook.compare.claims.audit import audit_source
from benchbook.core.published.audit import Audit
from benchbook.read import published

DATA = Path(__file__).parents[2] / "data" / "sources"


@pytest.fixture
def audit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A source, with another text in some of its tables, audited."""
    monkeypatch.setenv("BENCHBOOK_ROOT", str(tmp_path))

    def write(name: str, **tables: str) -> Audit:
        folder = Path(
            shutil.copytree(DATA / name, tmp_path / "data" / "published" / name, dirs_exist_ok=True)
        )
        for table, text in tables.items():
            (folder / f"{table}.csv").write_text(text, encoding="utf-8")
        return audit_source(published.load_source(name))

    return write


def _failed(audited: Audit) -> list[tuple[str, str, str]]:
    return [(check.check, check.where, check.detail) for check in audited.checks if check.passed is False]


def test_percentiles_rise_within_an_arm_and_arms_of_one_row_are_held_apart(audit):
    """MySQL's p99 is above MariaDB's p95 in each row, and MariaDB's below its own at 16 threads alone."""
    assert _failed(audit("wide")) == [
        (
            "order of latencies",
            "wide, arm mariadb, workload oltp_read_write, threads 16",
            "latency_p95_ms 4.65, latency_p99_ms 4.33.",
        )
    ]


def test_a_long_table_is_read_series_by_series_and_its_means_on_both_bases(audit):
    audited = audit("long")
    claims = {claim.id.partition("/")[2]: claim for claim in audited.claims}
    assert claims["rises"].recomputed == "rises at 6 of 6 steps"
    assert claims["writes"].verdict == "does not hold"
    assert "divided by the new value" in claims["writes"].reason
    assert claims["overall"].verdict == "holds" and claims["overall"].n_other_sign == 4
    # -6 is -5.95 in whole percent.
    assert [where for name, where, _ in _failed(audited) if name == "base of percentages"] == [
        f"long, arm mariadb, workload oltp_write_only, threads {threads}" for threads in (16, 64)
    ]
    assert [check.check for check in audited.checks if check.where == "nowhere"] == ["nothing to check"]


def test_tables_of_two_disks_that_share_columns_are_named(audit):
    flash = (DATA / "disks" / "fast.csv").read_text()
    ((name, where, detail),) = _failed(audit("disks"))
    assert (name, where) == ("equal tables", "fast and slow")
    assert detail.startswith("Equal in tpmc (4 numbers). They should differ in disk (flash, disks)")
    ((_, _, detail),) = _failed(audit("disks", slow=flash))
    assert detail.startswith("Equal in tpmc (4 numbers), latency_p95_ms (4 numbers). They should differ")
