"""Percona Server under a name of its own: what it is beside MySQL, in one module."""

from dataclasses import replace

from benchbook.sites.descriptors import mysql
from benchbook.sites.engines.mysql import MySQL

TRAITS = replace(
    mysql.TRAITS,
    name="percona",
    product="Percona Server",
    code="tests.others.percona:Percona",
    packages={"apt-get": "percona-server-server"},
    said_by="percona",
)


class Percona(MySQL):
    """One server."""

    traits = TRAITS
