"""Descriptor of PgBouncer."""

from benchbook.core.study import descriptors

# The words of its settings that a study may give.
WORDS = (
    "default_pool_size", "max_client_conn", "max_prepared_statements", "min_pool_size", "pkt_buf",
    "pool_mode", "query_wait_timeout", "reserve_pool_size", "reserve_pool_timeout", "sbuf_loopcnt",
    "server_idle_timeout", "server_lifetime", "server_round_robin", "so_reuseport", "tcp_socket_buffer",
)  # fmt: skip

TRAITS = descriptors.ProxyDescriptor(
    name="pgbouncer",
    product="PgBouncer",
    code="benchbook.sites.proxies.pgbouncer:PgBouncer",
    programs=("pgbouncer",),
    packages={"apt-get": "pgbouncer"},
    account="postgres",
    driver=descriptors.PGSQL,
    relays_tls=False,
    refused=descriptors.allow_only(*WORDS),
)
