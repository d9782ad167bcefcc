"""The administrative session that looks at the server between runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection


@contextmanager
def session(site: Any) -> Iterator[Connection]:
    """Open one administrative connection in the measured schema and close it at the end.

    Every statement is its own transaction: an open one would show old rows, hold back the server's clean-up,
    and add to the counters that the ledger compares.
    """
    with site.admin().connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        quoted = connection.dialect.identifier_preparer.quote_identifier(site.database)
        connection.exec_driver_sql(f"USE {quoted}")
        yield connection
