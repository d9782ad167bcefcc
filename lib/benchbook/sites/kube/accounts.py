"""The accounts of a TiDB cluster that an operator has made. Pure."""

from __future__ import annotations

from benchbook.sites import lab as labs
from benchbook.sites.engines.postgresql_dialect import ADMIN

# The account of a new TiDB that anybody may use.
OPEN = "'root'@'%'"


def statements(password: str, admin_password: str) -> str:
    """Return the statements that make the schema and its two accounts, and remove the one that is open.

    The administrator is let in from the pod itself alone, where its agent is.
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
    made.append(f"DROP USER IF EXISTS {OPEN};")
    return "\n".join([f"CREATE DATABASE IF NOT EXISTS {labs.SCHEMA};", *made]) + "\n"
