"""Settings that are not a study's to make: where a server lives, who reaches it, and what files it writes.

MariaDB takes a name by any beginning that fits one variable alone, with `loose_` and its like before it, and
with dashes for underscores; so what could stand for a reserved name is refused as that name is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

MARIADB = frozenset({
    "aria_log_dir_path", "basedir", "bind_address", "bootstrap", "character_sets_dir", "chroot",
    "console", "core_file", "datadir", "debug", "debug_gdb", "defaults_extra_file", "defaults_file",
    "defaults_group_suffix", "des_key_file", "extra_port", "feedback", "flush_caches",
    "ft_stopword_file", "gdb", "general_log_file", "help", "init_connect", "init_file",
    "init_rpl_role", "init_slave", "innodb_buffer_pool_filename", "innodb_data_home_dir",
    "innodb_log_group_home_dir", "innodb_status_file", "innodb_tmpdir", "innodb_undo_directory",
    "install_server", "language", "lc_messages_dir", "log_basename", "log_bin_index",
    "log_ddl_recovery", "log_error", "log_isam", "log_slow_query_file", "log_tc", "master_host",
    "master_info_file", "memlock", "old_style_user_limits", "pid_file", "plugin_dir", "plugin_load",
    "plugin_load_add", "port", "proxy_protocol_networks", "relay_log", "relay_log_index",
    "relay_log_info_file", "replicate_same_server_id", "report_host", "report_password",
    "report_port", "report_user", "safe_user_create", "secure_file_priv", "skip_bind_address",
    "skip_grant_tables", "skip_networking", "slave_load_tmpdir", "slow_query_log_file", "socket",
    "ssl_capath", "ssl_crlpath", "symbolic_links", "tc_heuristic_recover", "temp_pool", "tmpdir",
    "user", "verbose", "version", "wsrep_on", "wsrep_provider",
})  # fmt: skip
# Variables that are whole words and also begin a reserved one.
WHOLE = frozenset({
    "flush", "general_log", "lc_messages", "log_bin", "log_slow_query", "old", "slow_query_log",
    "ssl_ca", "ssl_crl",
})  # fmt: skip
# MariaDB reads each before any name of an option.
PREFIXES = ("loose_", "enable_", "disable_", "maximum_", "autoset_")
SKIPS = frozenset({
    "skip_external_locking", "skip_host_cache", "skip_log_bin", "skip_name_resolve",
    "skip_parallel_replication", "skip_replication", "skip_show_database", "skip_slave_start",
})  # fmt: skip
FAMILIES = ("plugin_", "wsrep_", "feedback_", "server_audit", "handlersocket")
WRITES = re.compile(r"_(file|filename|dir|directory|path|capath|basename|tmpdir)$")
NOT_FILES = frozenset({"aria_sync_log_dir", "innodb_data_file_path", "innodb_temp_data_file_path"})
# Certificates are read, not written.
WITH_SLASH = frozenset({"default_time_zone", "ssl_ca", "ssl_cert", "ssl_crl", "ssl_key", "time_zone"})

TIDB = frozenset({
    "advertise-address", "cors", "datadir", "host", "hostname", "init_connect",
    "initialize-sql-file", "lease", "log.slow-query-file", "path", "plugin_dir", "plugin_load",
    "port", "repair-mode", "require_secure_transport", "socket", "store", "temp-dir",
    "tidb_slow_query_file", "tmp-storage-path", "top-sql.receiver-address",
    "validate_password.enable",
})  # fmt: skip
TIDB_SECTIONS = (
    "status.", "security.", "plugin.", "proxy-protocol.", "opentracing.", "binlog.",
    "log.file.filename", "instance.plugin", "instance.tidb_slow_query_file",
)  # fmt: skip


def mariadb(settings: Mapping[str, Any]) -> list[str]:
    """Return the settings that a study may not make of a MariaDB, sorted."""
    return sorted(key for key, value in settings.items() if _mariadb(key.replace("-", "_"), value))


def tidb(settings: Mapping[str, Any]) -> list[str]:
    """Return the settings that a study may not make of a TiDB, sorted; its file's items are exact names."""
    return sorted(
        key
        for key, value in settings.items()
        if key in TIDB or key.replace("_", "-") in TIDB or key.startswith(TIDB_SECTIONS) or _is_path(value)
    )


# Of PostgreSQL: places, who may enter, what is run or loaded, what sessions begin with, and replication.
POSTGRESQL = frozenset({
    "allow_in_place_tablespaces", "authentication_timeout", "bonjour", "bonjour_name",
    "cluster_name", "config_file", "default_tablespace", "default_transaction_read_only",
    "dynamic_library_path", "event_source", "external_pid_file", "include", "include_dir",
    "include_if_exists", "listen_addresses", "log_destination", "log_error_verbosity",
    "log_min_messages", "logging_collector", "password_encryption", "pg_stat_statements.track",
    "pg_stat_statements.track_utility", "port", "primary_conninfo", "primary_slot_name",
    "promote_trigger_file", "role", "search_path", "session_authorization",
    "session_preload_libraries", "stats_fetch_consistency", "stats_temp_directory",
    "temp_tablespaces", "track_activities", "track_counts", "unix_socket_directories",
    "unix_socket_group", "unix_socket_permissions", "zero_damaged_pages",
})  # fmt: skip
POSTGRESQL_RUNS = re.compile(
    r"(_file|_directory|_directories|_command|_library|_libraries|_conninfo)$"
    r"|^(archive_|recovery_|restore_|ssl|krb_|gss_|syslog_|debug_|ignore_|local_preload|log_file|oauth_)"
)
# It counts statements, and without it there is no ledger; others may listen, write or answer in its place.
POSTGRESQL_LOADS = "pg_stat_statements"


def postgresql(settings: Mapping[str, Any]) -> list[str]:
    """Return the settings that a study may not make of a PostgreSQL, sorted; its names are exact."""
    return sorted(key for key, value in settings.items() if _postgresql(key, value))


def _postgresql(name: str, value: Any) -> bool:
    if name == "shared_preload_libraries":
        return value != POSTGRESQL_LOADS
    return name in POSTGRESQL or POSTGRESQL_RUNS.search(name) is not None or _is_path(value)


# What MySQL and Percona Server have beside MariaDB's, or under another name.
MYSQL = frozenset({
    "admin_address", "admin_port", "authentication_policy", "daemonize",
    "default_authentication_plugin", "early_plugin_load", "init_replica", "initialize",
    "initialize_insecure", "innodb_directories", "innodb_redo_log_archive_dirs", "mandatory_roles",
    "mysqlx", "require_secure_transport", "tls_version", "upgrade", "validate_config",
})  # fmt: skip
MYSQL_FAMILIES = (
    "admin_", "authentication_", "caching_sha2_", "create_admin_", "keyring", "log_error", "mysqlx",
)  # fmt: skip


def mysql(settings: Mapping[str, Any]) -> list[str]:
    """Return the settings that a study may not make of a MySQL, sorted: MariaDB's and its own."""
    return sorted({key for key in settings if _mysql(key.replace("-", "_"))} | set(mariadb(settings)))


def _mysql(name: str) -> bool:
    # It too takes any beginning that fits one option alone.
    known = (*MYSQL, *MYSQL_FAMILIES)
    return name.startswith(MYSQL_FAMILIES) or any(one.startswith(name) for one in known)


# Of the parts of a cluster: addresses, folders, encryption, what a log is written to, and what the cluster's
# own keys say.
PARTS = {
    "pd": re.compile(
        r"(advertise-|initial-|join$|name$|lease$|client-urls$|peer-urls$|data-dir$|force-new-cluster$|security"
        r"|log\.file|metric\.|dashboard\.|replication\.max-replicas$|replication-mode|cluster-version$)"
    ),
    "store": re.compile(r"(server\.(pd-addr|store-addr|status-addr|log-file|raft)$|engine\.db-path$)"),
}


def of_part(place: str, part: str, settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield each setting of a cluster's part (`pd`, `store`) that is not a study's, with what to write."""
    for key, value in settings.items():
        if PARTS[part].match(key) or _is_path(value):
            yield (
                f"{place}.{part}_settings.{key}: not a study's to set: it says where the part listens, lives "
                "or writes, or what the cluster's own keys say (replicas); remove it"
            )


OF_ENGINE: dict[str, Callable[[Mapping[str, Any]], list[str]]] = {
    "mariadb": mariadb,
    "mysql": mysql,
    "postgresql": postgresql,
    "tidb": tidb,
}


def mistakes(place: str, engine: str, settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield each setting under a path of the study that its engine reserves, with what to write instead."""
    for key in OF_ENGINE.get(engine, lambda _: [])(settings):
        yield (
            f"{place}.settings.{key}: not a study's to set: it says, or is short for what says, where the "
            "server listens, lives or writes; remove it, or write in full the variable that is meant"
        )


def _mariadb(name: str, value: Any) -> bool:
    if name.startswith(PREFIXES) or (name.startswith("skip_") and name not in SKIPS):
        return True
    if name in MARIADB or name.startswith(FAMILIES) or (WRITES.search(name) and name not in NOT_FILES):
        return True
    if name not in WHOLE and any(known.startswith(name) for known in MARIADB):
        return True
    return _is_path(value) and name not in WITH_SLASH


def _is_path(value: Any) -> bool:
    """Say whether a value leads out of the server's own folder."""
    return isinstance(value, str) and ("/" in value or ".." in value or "\\" in value)
