"""MySQL and Percona Server: as MariaDB, but their administrator has a password before the data are whole."""

import re
from typing import Any

import pymysql

from benchbook.sites import workspace as labs
from benchbook.sites.descriptors.mysql import TRAITS
from benchbook.sites.engines.mariadb import INSTALL_S, MariaDB

FIRST = "first.sql"
ABSENT = {
    **dict.fromkeys(("Rows_sent", "Rows_read"), "MySQL does not count rows for the whole server"),
    "Com_stmt_execute": "MySQL does not prepare BEGIN, so not every statement is an execution",
}


class MySQL(MariaDB):
    """One server. Nothing is started until `ensure`."""

    traits = TRAITS
    version_words = re.compile(r"Ver ([0-9]+(?:\.[0-9]+)+)(?!\S*MariaDB)")
    oldest, starts_from = (8, 0, 30), ("mariadb", "mysql")
    uid = "@@server_uuid"

    @classmethod
    def obstacle(cls, engine: Any) -> str | None:
        if engine.binary is not None or cls.standing()[0] is not None:
            return None
        # MariaDB's package gives its own server this name too.
        return f"there is no mysqld but MariaDB's; {cls._name_remedy()}, or name its program in engine.binary"

    @property
    def made_with(self) -> dict[str, Any]:
        return super().made_with | {"locks": self.lab.locks()}

    def create(self) -> None:
        """The administrator has a password before it is complete."""
        password = self.lab.admin_password()
        statement = f"ALTER USER '{labs.ADMIN}'@'localhost' IDENTIFIED BY '{password}';\n"
        self.machine.write(f"{self.role}/{FIRST}", statement, self.user)
        fixed = [f"--{key}={value}" for key, value in super().made_with["settings"].items()]
        argv = [self.binary, "--no-defaults", "--initialize-insecure", f"--datadir={self.folder}/new"]
        argv += [f"--init-file={self.folder}/{FIRST}", f"--tmpdir={self.folder}/tmp", *fixed]
        argv += [f"--{key}={value}" for key, value in super()._places().items()]
        try:
            self.machine.run_to_end(argv, "MySQL's data folder could not be made", INSTALL_S, self.user)
        finally:
            self.machine.remove(f"{self.role}/{FIRST}")

    def facts(self) -> dict[str, Any]:
        return super().facts() | {"tls": "off"}

    def _told(self) -> dict[str, Any]:
        return super()._told() | {"absent": ABSENT}

    def _connect(self, **how: Any) -> pymysql.Connection:
        self._opened += 1
        account: dict[str, Any] = {"user": labs.ADMIN, "password": self.lab.admin_password()}
        return self.machine.connect(self.socket, **account, **how)

    def _close(self, cursor: pymysql.cursors.Cursor) -> None:
        """Nothing: MySQL makes no account without a name."""

    @classmethod
    def _name_remedy(cls) -> str:
        return f"install a {cls.traits.product}"

    def _places(self) -> dict[str, object]:
        # It has a second protocol, on a port of its own.
        return {**super()._places(), "mysqlx": "OFF"}
