"""The accounts of a server in a pod that speaks MySQL's protocol: made before it listens. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from benchbook.sites import lab as labs
from benchbook.sites.engines.postgresql_dialect import ADMIN

# The file of the Secret that holds the statements.
FILE = "init.sql"


def statements(password: str, admin_password: str, closed: Sequence[str] = ()) -> str:
    """Return the statements with which a server makes its schema and its two accounts before it listens.

    The administrator is let in from the pod itself alone, where a forwarded port comes out. `closed` are
    accounts that a new server has and that are removed.
    """
    made = []
    for name, host, word, right in (
        (labs.USER, "%", password, f"ALL PRIVILEGES ON {labs.SCHEMA}.*"),
        (ADMIN, "127.0.0.1", admin_password, "ALL PRIVILEGES ON *.*"),
    ):
        further = " WITH GRANT OPTION" if name == ADMIN else ""
        account = f"'{name}'@'{host}'"
        made += [
            f"CREATE USER IF NOT EXISTS {account} IDENTIFIED BY '{word}';",
            f"ALTER USER {account} IDENTIFIED BY '{word}';",
            f"GRANT {right} TO {account}{further};",
        ]
    made += [f"DROP USER IF EXISTS {account};" for account in closed]
    return "\n".join([f"CREATE DATABASE IF NOT EXISTS {labs.SCHEMA};", *made]) + "\n"
