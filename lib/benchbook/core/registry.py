"""What can be named in a study file, and where its code is.

A kind of site is a room in `sites` and one line here, named as text and loaded by `sites` when used. Engines
and proxies say what they are themselves (`core.traits`).
"""

from __future__ import annotations

from benchbook.core import traits

SITES = {
    "local": "benchbook.sites.local.site:LocalSite",
    "kubernetes": "benchbook.sites.kube.site:KubernetesSite",
    "ssh": "benchbook.sites.hosts.site:HostsSite",
    "existing": "benchbook.sites.existing.site:ExistingSite",
}
# Ways of access that are no proxy. A service is a rule of the kernel (`sites.local.running`), a socket a file
# of the server's own machine.
DIRECT, SERVICE, SOCKET = "direct", "service", "socket"
WAYS = frozenset({DIRECT, SERVICE, SOCKET, traits.LOAD_BALANCER})
# Reached through a virtual address that the kernel rewrites to the server's.
THROUGH_SERVICE = frozenset({SERVICE, traits.LOAD_BALANCER})

# The scripts that sysbench 1.0 and 1.1 ship and that measure queries.
SCRIPTS = (
    "oltp_delete", "oltp_insert", "oltp_point_select", "oltp_read_only", "oltp_read_write",
    "oltp_update_index", "oltp_update_non_index", "oltp_write_only", "select_random_points",
    "select_random_ranges",
)  # fmt: skip

# Scripts that change rows.
WRITING = frozenset({
    "oltp_delete", "oltp_insert", "oltp_read_write", "oltp_update_index", "oltp_update_non_index",
    "oltp_write_only",
})  # fmt: skip


def access() -> list[str]:
    """Return all ways of access, sorted: those that are no proxy, and the proxies."""
    return sorted({*WAYS, *traits.proxies()})
