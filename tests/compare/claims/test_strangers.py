"""Sources as newcomers write them: a wide table, a long one, and tables that share a column."""

import shutil
from pathlib import Path

import pytest

from benchbook.compare.claims.audit import audit_source
from benchbook.core.published.audit import Audit
from benchbook.read import published
from tests.goldens import assert_golden

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


def describe(audited: Audit) -> list[str]:
    """Lines of the checks that failed or had nothing to check, and of the claims."""
    checks = [check for check in audited.checks if not check.passed]
    return [
        *(f"  {check.check}: {check.where}: {check.detail}" for check in checks),
        *(
            f"  {claim.id}: {claim.verdict}, {claim.n_other_sign or 0} of the other sign: "
            + f"{claim.recomputed}. {claim.reason}".rstrip()
            for claim in audited.claims
        ),
    ]


def test_tables_of_newcomers_are_read_and_doubted(audit):
    """MySQL's p99 is above MariaDB's p95 in each row, and MariaDB's below its own at 16 threads alone; a long
    table is read series by series, where -6 is -5.95 in whole percent, and its means on both bases."""
    flash = (DATA / "disks" / "fast.csv").read_text()
    audits = {name: audit(name) for name in ("wide", "long", "disks")}
    audits["disks, whose tables are one"] = audit("disks", slow=flash)
    lines = [line for name, audited in audits.items() for line in ("", name, *describe(audited))]
    assert_golden("newcomers.txt", "\n".join(lines).lstrip() + "\n")
