"""Descriptor of MariaDB, and the settings that are not a study's to make of it."""

import re
from typing import Any

from benchbook.core.study import descriptors

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


def find_reserved(settings: descriptors.Settings) -> list[str]:
    """Settings that a study may not make of a MariaDB, sorted."""
    return sorted(key for key, value in settings.items() if _is_reserved(key.replace("-", "_"), value))


def _is_reserved(name: str, value: Any) -> bool:
    return any((
        name.startswith((*PREFIXES, *FAMILIES)),
        name.startswith("skip_") and name not in SKIPS,
        WRITES.search(name) and name not in NOT_FILES,
        # MariaDB takes any beginning of a name that fits one option alone.
        name not in WHOLE and any(reserved.startswith(name) for reserved in MARIADB),
        descriptors.is_leading_out(value) and name not in WITH_SLASH,
    ))  # fmt: skip


TRAITS = descriptors.EngineDescriptor(
    name="mariadb",
    product="MariaDB",
    code="benchbook.sites.engines.mariadb:MariaDB",
    programs=("mariadbd", "mariadb-install-db"),
    version_by=("--no-defaults", "--version"),
    packages={
        **dict.fromkeys(("apt-get", "dnf"), "mariadb-server"),
        **dict.fromkeys(("apk", "brew", "pacman", "zypper"), "mariadb"),
    },
    account="mysql",
    is_basic=True,
    sites=frozenset({"existing", "kubernetes", "local", "ssh"}),
    driver=descriptors.MYSQL,
    reserved=find_reserved,
    has_backends=False,
    has_own_work=False,
    leaves_gaps=False,
    tells_settings=True,
    must_limit_connections=True,
    said_by="mariadb",
    apart=("mariadb-server-core", "mariadb-client-core"),
    has_checksum=True,
    has_socket=True,
    encrypts=True,
    runs_own_scripts=True,
    meanings={
        "memory for pages": {"innodb_buffer_pool_size": 268435456},
        "a commit waits for the disk": {"innodb_flush_log_at_trx_commit": 1},
        "torn pages are mended": {"innodb_doublewrite": "ON"},
        "size of the log": {"innodb_log_file_size": 268435456},
        "isolation": {"transaction_isolation": "READ-COMMITTED"},
        "character set": {"character_set_server": "utf8mb4"},
        "order of text": {"collation_server": "utf8mb4_bin"},
    },
    text=("utf8mb4", "utf8mb4_bin"),
    example="""\
settings:
  innodb_buffer_pool_size: 268435456
  innodb_flush_log_at_trx_commit: 2
  innodb_log_file_size: 33554432      # the prepared copy is put back in every block, its log with it""",
)
