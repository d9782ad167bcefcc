"""What can be named in a study file, and where its code is.

Adding an engine, a proxy or a site is one new module in `sites` and one line here. The modules are
named as text and loaded by `sites` when used, so that this floor imports nothing above it.
"""

from __future__ import annotations

SITES = {
    "local": "benchbook.sites.local.site:LocalSite",
    "kubernetes": "benchbook.sites.kube.site:KubernetesSite",
    "ssh": "benchbook.sites.hosts.site:HostsSite",
    "existing": "benchbook.sites.existing.site:ExistingSite",
}
ENGINES = {
    "mariadb": "benchbook.sites.engines.mariadb:MariaDB",
    "mysql": "benchbook.sites.engines.mysql:MySQL",
    "postgresql": "benchbook.sites.engines.postgresql:PostgreSQL",
    "tidb": "benchbook.sites.engines.tidb:TiDB",
}
# The programs that a host needs for each, the first of which says the version.
PROGRAMS = {
    "mariadb": ("mariadbd", "mariadb-install-db"),
    "mysql": ("mysqld",),
    "postgresql": ("postgres",),
    "tidb": ("tidb-server",),
}
# Engines that speak another protocol than MySQL's, with the name of sysbench's driver for it.
DRIVERS = {"postgresql": "pgsql"}
# Engines that are not made on every kind of site.
ENGINES_ON = {"mysql": frozenset({"local", "ssh"}), "postgresql": frozenset({"kubernetes", "local", "ssh"})}
# Engines that begin a process for each session, which a clock of turns can't let stand still.
WITH_BACKENDS = frozenset({"postgresql"})
# What makes an engine's cluster, where a study asks for one (`engine.cluster`).
CLUSTERS = {"tidb": "benchbook.sites.local.tidb_cluster:Cluster"}
# Engines that have a settings file with items beside variables: names with a dot or a dash.
WITH_ITEMS = frozenset({"tidb"})
# Engines that leave gaps between the ids they give, so that rows are loaded with ids of our own.
WITH_GAPS = frozenset({"tidb"})
# Engines whose server works on after it has answered: what Go collects late, another's turn would pay for.
WITH_OWN_WORK = frozenset({"tidb"})
# None: no program runs between client and server. A service is a rule of the kernel (`sites.local.service`).
ACCESS = {
    "direct": None,
    "haproxy": "benchbook.sites.proxies.haproxy:HAProxy",
    "service": None,
    "socket": None,
    "load_balancer": "benchbook.sites.proxies.haproxy:HAProxy",
    "pgbouncer": "benchbook.sites.proxies.pgbouncer:PgBouncer",
    "tiproxy": "benchbook.sites.proxies.tiproxy:TiProxy",
}
# The way of access over a file of the server's own machine, and the engines that can be reached by it.
SOCKET, WITH_SOCKET = "socket", frozenset({"mariadb", "mysql", "postgresql"})
# Proxies that understand what they relay, with the one driver of sysbench that they serve.
OF_DRIVER = {"pgbouncer": "pgsql", "tiproxy": "mysql"}
# Reached through a virtual address that the kernel rewrites to the server's.
THROUGH_SERVICE = frozenset({"service", "load_balancer"})

# The programs among them, which hosts too can run between client and server.
PROXIES = tuple(name for name, kind in ACCESS.items() if kind is not None and name not in THROUGH_SERVICE)
# How many ports in a row a program takes where it is more than one: these answer questions about themselves
# on the port after their own.
PORTS = {"tiproxy": 2, "tidb": 2}

# Proxies that can record the traffic that goes through them.
CAPTURING = frozenset({"tiproxy"})

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


def driver(engine: str) -> str:
    """Return the name of sysbench's driver for an engine."""
    return DRIVERS.get(engine, "mysql")
