"""Descriptor of PostgreSQL, and the settings that are not a study's to make of it."""

import re

from benchbook.core.study import descriptors

# Places, who may enter, what is run or loaded, what sessions begin with, and replication.
RESERVED = frozenset({
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
RUNS = re.compile(
    r"(_file|_directory|_directories|_command|_library|_libraries|_conninfo)$"
    r"|^(archive_|recovery_|restore_|ssl|krb_|gss_|syslog_|debug_|ignore_|local_preload|log_file|oauth_)"
)
# It counts statements, and without it there is no ledger; others may listen, write or answer in its place.
LOADS = "pg_stat_statements"


def find_reserved(settings: descriptors.Settings) -> list[str]:
    """Settings that a study may not make of a PostgreSQL, sorted; its names are exact."""
    return sorted(
        key
        for key, value in settings.items()
        if (
            value != LOADS
            if key == "shared_preload_libraries"
            else key in RESERVED or RUNS.search(key) is not None or descriptors.is_leading_out(value)
        )
    )


TRAITS = descriptors.EngineDescriptor(
    name="postgresql",
    product="PostgreSQL",
    code="benchbook.sites.engines.postgresql:PostgreSQL",
    programs=("postgres",),
    packages={
        **dict.fromkeys(("apk", "apt-get", "brew", "pacman"), "postgresql"),
        **dict.fromkeys(("dnf", "zypper"), "postgresql-server"),
    },
    account="postgres",
    sites=frozenset({"existing", "kubernetes", "local", "ssh"}),
    driver=descriptors.PGSQL,
    reserved=find_reserved,
    has_backends=True,
    has_own_work=False,
    leaves_gaps=False,
    tells_settings=True,
    must_limit_connections=True,
    said_by=None,
    apart=("postgresql-{major}",),
    uncounted=frozenset({"Com_begin", "Com_commit", "Com_stmt_execute"}),
    has_socket=True,
    meanings={
        "memory for pages": {"shared_buffers": "256MB"},
        "a commit waits for the disk": {"fsync": "on", "synchronous_commit": "on"},
        "torn pages are mended": {"full_page_writes": "on"},
        "size of the log": {"max_wal_size": "256MB"},
        "isolation": {"default_transaction_isolation": "read committed"},
        **{about: {} for about in descriptors.TEXT},  # fixed when its folder is made
    },
    text=("UTF8", "C"),
    example="""\
settings:
  shared_buffers: 256MB
  synchronous_commit: "on"
  max_wal_size: 1GB           # the prepared copy is put back in every block, its log with it""",
)
