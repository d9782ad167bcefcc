"""What every site asks of a server over SQL, against a real server where it matters."""

import pymysql
import pytest

from benchbook.core.util.errors import SiteError
from benchbook.sites import sql


@pytest.mark.parametrize(
    ("version", "asked", "is_it"),
    [
        ("10.11.6", "10.11", True),
        ("10.11.6", "10.11.6", True),
        ("10.11.6", None, True),
        ("10.11.6", "10.1", False),
        ("10.11", "10.11.6", False),
        ("6.6.0", "6", True),
    ],
)
def test_versions_are_compared_part_by_part_from_the_left(version, asked, is_it) -> None:
    assert sql.is_version(version, asked) is is_it


def test_a_server_that_is_gone_is_named_in_the_error() -> None:
    def gone() -> pymysql.Connection:
        raise pymysql.err.OperationalError(2003, "refused")

    with pytest.raises(SiteError, match=r"server on db1 .*refused"):
        sql.read_identity(sql.make_engine(gone), "the server on db1")
