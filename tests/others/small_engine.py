"""A MariaDB with one more default of its own: an engine of another package, in one module."""

from collections.abc import Mapping
from dataclasses import replace

from benchbook.sites.descriptors import mariadb
from benchbook.sites.engines.mariadb import MariaDB
from benchbook.sites.settings import Value

TRAITS = replace(
    mariadb.TRAITS,
    name="small",
    is_basic=False,
    product="Small",
    code="tests.others.small_engine:Small",
    sites=frozenset({"kubernetes", "local", "ssh"}),
    said_by=None,
    runs_own_scripts=False,
)
OWN: dict[str, Value] = {"innodb_buffer_pool_size": "32M"}


class Small(MariaDB):
    """One server with a pool of 32 MB unless a study says otherwise."""

    traits = TRAITS

    def _complete(self, asked: Mapping[str, Value]) -> dict[str, Value]:
        return {**super()._complete({}), **OWN, **asked}
