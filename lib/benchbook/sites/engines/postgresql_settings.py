"""A PostgreSQL server's settings: what a benchmark starts from, and whether the server took them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any

import sqlalchemy

from benchbook.core.errors import SettingsDiffer
from benchbook.sites.settings import SWITCH, Value, recorded, text, unstated

# What every PostgreSQL starts from unless the study says otherwise: value, and why.
DEFAULTS: dict[str, tuple[Value, str]] = {
    "shared_buffers": ("512MB", "holds a sysbench data set of 2 million rows; the same on every machine"),
    "max_wal_size": ("4GB", "no checkpoint storms within a run of minutes"),
    "checkpoint_timeout": ("15min", "no checkpoint by the clock within a run of minutes"),
    "synchronous_commit": ("on", "the durable setting; a study that relaxes it must say so"),
    "fsync": ("on", "the durable setting; a study that relaxes it must say so"),
    "max_connections": (1024, "above any thread level of a small machine, with room for other sessions"),
    "huge_pages": ("off", "the same on every machine"),
    "jit": ("off", "no statement of sysbench is long enough to gain from it"),
    "ssl": ("off", "no encryption on loopback"),
    "shared_preload_libraries": ("pg_stat_statements", "the ledger: it counts statements"),
    "pg_stat_statements.max": (5000, "above the kinds of statements of any workload"),
    "pg_stat_statements.save": ("off", "every start begins with empty counters"),
    "password_encryption": ("scram-sha-256", "passwords never cross a connection"),
    "log_min_messages": ("warning", "errors and crashes, and nothing for each statement"),
    "default_toast_compression": ("pglz", "not left to the package's settings"),
}

# Different at every start, or a session's own, so never part of the digest.
VOLATILE = frozenset({"cluster_name", "in_hot_standby", "listen_addresses", "port", "application_name"})
# `on` is another name for one of these.
ON_MEANS = {"wal_compression": "pglz"}
# To bytes and milliseconds. PostgreSQL's own units have a number before them, such as 8kB.
UNITS = {"B": 1.0, "kB": 2.0**10, "MB": 2.0**20, "GB": 2.0**30, "TB": 2.0**40}
UNITS |= {"us": 0.001, "ms": 1.0, "s": 1000.0, "min": 60_000.0, "h": 3_600_000.0, "d": 86_400_000.0}
QUERY = "SELECT name, setting, unit, vartype, pending_restart FROM pg_settings"


def complete(asked: Mapping[str, Value]) -> dict[str, Value]:
    """Return the benchmark defaults with a study's settings on top."""
    return {**{key: value for key, (value, _) in DEFAULTS.items()}, **asked}


def written(asked: Mapping[str, Value], places: Mapping[str, object]) -> str:
    """Return the text of a settings file; `places` come last, which is what counts."""
    lines = [f"{key}='{text(value)}'" for key, value in sorted(asked.items())]
    return "\n".join([*lines, *(f"{key}='{value}'" for key, value in places.items())]) + "\n"


def taken(asked: Mapping[str, Value], chosen: Mapping[str, Value], rows: Iterable[Any]) -> dict[str, Any]:
    """Return what the server says of each setting asked for; SettingsDiffer where it did not take one."""
    known = {row.name: row for row in rows}
    differing: dict[str, tuple[Value, str | None]] = {}
    for key, value in asked.items():
        row = known.get(key)
        if row is None or row.pending_restart or not same(key, value, row.setting, row.unit, row.vartype):
            differing[key] = (value, None if row is None else shown(row))
    if differing:
        raise SettingsDiffer(differing)
    return recorded(asked, chosen, lambda key: shown(known[key]))


def facts(
    engine: sqlalchemy.Engine,
    version: str,
    asked: Mapping[str, Value],
    chosen: Mapping[str, Value],
    folder: PurePath,
) -> dict[str, Any]:
    """Return what a server says it is, wherever it runs; SettingsDiffer if it did not take what was asked."""
    with engine.connect() as connection:
        rows = connection.exec_driver_sql(QUERY).all()
        comment = str(connection.exec_driver_sql("SELECT version()").scalar_one())
    return {
        "name": "postgresql",
        "version": version,
        "version_comment": comment,
        "tls": "off",
        "settings": taken(asked, chosen, rows),
        "unstated": unstated(asked, {row.name: shown(row) for row in rows}.get),
        "variables": len(rows),
        "variables_sha256": digest(rows, folder),
    }


def shown(row: Any) -> str:
    """Return a setting as it is read: its number with the unit that it counts."""
    return (
        f"{row.setting} x {row.unit}"
        if row.unit and row.unit[0].isdigit()
        else f"{row.setting}{row.unit or ''}"
    )


def same(name: str, asked: Value, got: str, unit: str | None, kind: str) -> bool:
    """Say whether a value asked for is the one read back, across the ways of writing it."""
    wanted = text(asked).strip()
    if kind == "bool":
        return SWITCH.get(wanted.lower()) == got
    if kind in ("integer", "real"):
        return _number(wanted, unit) == _number(got, unit)
    if kind == "enum":
        switched = SWITCH.get(wanted.lower(), wanted.lower())
        return got.lower() in {wanted.lower(), switched, ON_MEANS.get(name) if switched == "on" else switched}
    return [word.strip() for word in wanted.split(",")] == [word.strip() for word in got.split(",")]


def digest(rows: Iterable[Any], folder: PurePath) -> str:
    """Return the SHA-256 of all settings that mean the same at the next start and in another place."""
    kept = sorted(
        f"{row.name}={row.setting}".replace(str(folder), "SERVER") for row in rows if row.name not in VOLATILE
    )
    return hashlib.sha256("\n".join(kept).encode()).hexdigest()


def _number(word: str, unit: str | None) -> float | None:
    """Return a number in bytes, milliseconds or as it is; one without a unit counts the setting's own."""
    match = re.fullmatch(r"(-?[0-9.]+)\s*([A-Za-z]*)", word)
    if match is None:
        return None
    scale, own = match[2], re.fullmatch(r"([0-9]*)([A-Za-z]+)", unit or "")
    if scale:
        return float(match[1]) * UNITS[scale] if scale in UNITS and own is not None else None
    # Zero and less are words of their own: none, or as another setting says.
    if own is None or float(match[1]) <= 0:
        return float(match[1])
    return float(match[1]) * float(own[1] or 1) * UNITS[own[2]]
