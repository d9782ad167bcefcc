"""A connection to PostgreSQL that its host's agent holds for us."""

from __future__ import annotations

from typing import Any

import psycopg

from benchbook.sites.engines import postgresql_carried as carried
from benchbook.sites.hosts.host import Host
from benchbook.sites.hosts.stream import FarSocket
from benchbook.sites.lab import Lab


def connect(host: Host, target: str | tuple[str, int], lab: Lab, **account: Any) -> psycopg.Connection[Any]:
    """Open a connection from a host; `target` as in FarSocket, psycopg's own arguments for the account."""
    try:
        far = FarSocket(host, target)
    except ConnectionError as error:
        raise psycopg.OperationalError(str(error)) from None
    return carried.connect(far, lab, **account)
