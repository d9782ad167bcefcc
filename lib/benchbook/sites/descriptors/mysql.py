"""Descriptor of MySQL and Percona Server, and the settings that are not a study's to make."""

from dataclasses import replace

from benchbook.core.study import descriptors
from benchbook.sites.descriptors import mariadb

# What they have beside MariaDB's, or under another name.
MYSQL = frozenset({
    "admin_address", "admin_port", "authentication_policy", "daemonize",
    "default_authentication_plugin", "early_plugin_load", "init_replica", "initialize",
    "initialize_insecure", "innodb_directories", "innodb_redo_log_archive_dirs", "mandatory_roles",
    "mysqlx", "require_secure_transport", "tls_version", "upgrade", "validate_config",
})  # fmt: skip
MYSQL_FAMILIES = (
    "admin_", "authentication_", "caching_sha2_", "create_admin_", "keyring", "log_error", "mysqlx",
)  # fmt: skip


def find_reserved(settings: descriptors.Settings) -> list[str]:
    """Settings that a study may not make of a MySQL, sorted: MariaDB's and its own."""
    # It too takes any beginning that fits one option alone.
    prefixes = (*MYSQL, *MYSQL_FAMILIES)
    names = {key: key.replace("-", "_") for key in settings}
    reserved = {key for key, name in names.items() if name.startswith(MYSQL_FAMILIES)}
    reserved |= {key for key, name in names.items() if any(text.startswith(name) for text in prefixes)}
    return sorted(reserved | set(mariadb.find_reserved(settings)))


TRAITS = replace(
    mariadb.TRAITS,
    name="mysql",
    product="MySQL",
    code="benchbook.sites.engines.mysql:MySQL",
    programs=("mysqld",),
    is_basic=False,
    packages={"apt-get": "mysql-server"},
    reserved=find_reserved,
    said_by="",
    apart=(),
    has_checksum=False,
    encrypts=False,
    uncounted=frozenset({"Com_stmt_execute", "Rows_read", "Rows_sent"}),
    meanings={**mariadb.TRAITS.meanings, "size of the log": {"innodb_redo_log_capacity": 268435456}},
    example="""\
settings:
  innodb_buffer_pool_size: 268435456
  innodb_flush_log_at_trx_commit: 2
  innodb_redo_log_capacity: 67108864  # the prepared copy is put back in every block, its log with it""",
)
