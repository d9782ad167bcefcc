"""Descriptor of TiDB, and the settings that are not a study's to make of it."""

from benchbook.core.study import descriptors

RESERVED = frozenset({
    "advertise-address", "cors", "datadir", "host", "hostname", "init_connect",
    "initialize-sql-file", "lease", "log.slow-query-file", "path", "plugin_dir", "plugin_load",
    "port", "repair-mode", "require_secure_transport", "socket", "store", "temp-dir",
    "tidb_slow_query_file", "tmp-storage-path", "top-sql.receiver-address",
    "validate_password.enable",
})  # fmt: skip
SECTIONS = (
    "status.", "security.", "plugin.", "proxy-protocol.", "opentracing.", "binlog.",
    "log.file.filename", "instance.plugin", "instance.tidb_slow_query_file",
)  # fmt: skip

# Different at every look or every start, or where the server lives: never part of the digest.
MOVING = frozenset({
    "hostname", "last_insert_id", "server_id", "tidb_config", "tidb_current_ts",
    "tidb_last_ddl_info", "tidb_last_query_info", "tidb_last_txn_info", "timestamp", "port",
    "socket", "datadir",
})  # fmt: skip


def find_reserved(settings: descriptors.Settings) -> list[str]:
    """Settings that a study may not make of a TiDB, sorted; its file's items are exact names."""
    return sorted(
        key
        for key, value in settings.items()
        if {key, key.replace("_", "-")} & RESERVED
        or key.startswith(SECTIONS)
        or descriptors.is_leading_out(value)
    )


TRAITS = descriptors.EngineDescriptor(
    name="tidb",
    product="TiDB",
    code="benchbook.sites.engines.tidb:TiDB",
    programs=("tidb-server",),
    version_by=("-V",),
    sites=frozenset({"existing", "kubernetes", "local", "ssh"}),
    ports=2,
    driver=descriptors.MYSQL,
    reserved=find_reserved,
    has_backends=False,
    has_own_work=True,
    leaves_gaps=True,
    # What it was asked for is split into items and variables, under names of its own.
    tells_settings=False,
    must_limit_connections=False,
    said_by="tidb",
    closed_since="6.6",
    has_items=True,
    moving=MOVING,
    cluster="benchbook.sites.local.tidb_cluster:UnistoreCluster",
    clusters_by=frozenset({"kubernetes.tidb", "tiup"}),
    uncounted=frozenset({"Connections", "Rows_sent"}),
    block_overhead_s=6.0,
    # It keeps its rows in a store of its own kind, with a memory and a log that compare with no page's.
    meanings={key: {} for key in descriptors.MEANINGS}
    | {"isolation": {"transaction_isolation": "READ-COMMITTED"}},
    text=("utf8mb4", "utf8mb4_bin"),
    example='version: "6.6"              # built from its Go module, with embedded storage (tools/tidb)',
)
