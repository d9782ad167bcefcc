"""A TiDB cluster as one server, whoever starts it: this machine, `tiup` on hosts, or an operator in pods."""

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from pathlib import PurePath
from typing import Any

import pymysql
import sqlalchemy

from benchbook.sites import sql
from benchbook.sites import workspace as labs
from benchbook.sites.machine.supervised_process import Component
from benchbook.sites.settings import Value
from benchbook.sites.tidb import config, data
from benchbook.sites.tidb.status import Status


class TidbServers(Component):
    """Several TiDB over one storage; `statuses`, `ports` and `connect` have them in the same order.

    `opened` is the number of connections to them that this process has opened, None where it is not counted.
    """

    asked: config.TidbSettings
    storage: str
    lab: labs.Lab
    statuses: Sequence[Status]
    ports: Sequence[int]
    opened: int | None = None

    def connect(self, number: int = 0, password: str | None = None) -> pymysql.Connection:
        """Open the administrator's connection to one TiDB; `password` is another than the lab's."""
        secret = self.lab.admin_password() if password is None else password
        status, port = self.statuses[number], self.ports[number]
        return status.by.connect((status.address, port), user=labs.ADMIN, password=secret)

    def admin(self, number: int | None = None) -> sqlalchemy.Engine:
        """Administrative account on one TiDB with its counters; None: the first, with those of all."""
        # A new engine asks the server about itself at its first connection, between two looks at counters.
        if number not in self._admins:
            statuses = self.statuses if number is None else [self.statuses[number]]
            connect = partial(self.connect, number or 0)
            self._admins[number] = data.open_admin(connect, statuses, opened=lambda: self.opened)
        return self._admins[number]

    @cached_property
    def _admins(self) -> dict[int | None, sqlalchemy.Engine]:
        return {}

    def read_facts(
        self, version: str | None, folder: PurePath, mine: Mapping[str, Value], may_lack: bool = False
    ) -> dict[str, Any]:
        """Facts that its TiDB tell of themselves; SettingsDiffer if one did not take its settings."""
        variables = [sql.read_variables(self.admin(number)) for number in range(len(self.statuses))]
        each = zip(self.statuses, variables, strict=True)
        read = [self.asked.taken(mine, status.config(), known, may_lack) for status, known in each]
        return data.collect_facts(version, self.storage, read[0], variables[0], folder)
