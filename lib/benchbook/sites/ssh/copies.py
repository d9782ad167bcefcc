"""The prepared data of all servers of a study on hosts: kept, brought to where they are needed, put back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchbook.core.errors import SiteError
from benchbook.sites.ssh import data
from benchbook.sites.ssh.cluster import Cluster


def keep(server: Any, servers: Sequence[Any], label: str) -> None:
    """Keep a server's data under a label; `servers` are all, of which those with the same data get them."""
    server.ensure()
    if isinstance(server, Cluster):
        server.mark(label)
        return
    if not server.stop():
        raise SiteError(
            f"the server on {server.host.name} did not shut down by itself, so its data cannot be "
            "copied; run the prepare stage again"
        )
    data.save(server, label)
    mine = [one for one in servers if one.part.prepared == server.part.prepared and one is not server]
    for host in {one.host.name: one for one in mine if one.host is not server.host}.values():
        data.carry(server, host)
    for other in mine:
        if other.job is not None:
            _put_back(other)
    server.ensure()


def is_kept(server: Any, label: str | None) -> bool:
    """Say whether there is prepared data for a server, under a label (None: under any)."""
    return server.is_marked(label) if isinstance(server, Cluster) else data.has(server, label)


def put_back(servers: Sequence[Any], label: str | None) -> None:
    """Put the prepared data back on every server and start it; a cluster is started as it is."""
    if lacking := [server.host.name for server in servers if not is_kept(server, label)]:
        raise SiteError(f"{lacking[0]} holds no prepared data of this data set; run the prepare stage again")
    for server in servers:
        if isinstance(server, Cluster):
            server.ensure()
        else:
            _put_back(server)


def _put_back(server: Any) -> None:
    server.stop()
    data.put_back(server)
    server.ensure()
