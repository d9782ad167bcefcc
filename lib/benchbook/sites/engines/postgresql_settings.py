"""A PostgreSQL server's settings as it writes and tells them, and whether it took them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any

import sqlalchemy

from benchbook.sites import settings
from benchbook.sites.settings import SWITCH, Value, text

# Different at every start, or a session's own, so never part of the digest.
VOLATILE = frozenset({"cluster_name", "in_hot_standby", "listen_addresses", "port", "application_name"})
# `on` is another name for one of these.
ON_MEANS = {"wal_compression": "pglz"}
# To bytes and milliseconds. PostgreSQL's own units have a number before them, such as 8kB.
UNITS = {"B": 1.0, "kB": 2.0**10, "MB": 2.0**20, "GB": 2.0**30, "TB": 2.0**40}
UNITS |= {"us": 0.001, "ms": 1.0, "s": 1000.0, "min": 60_000.0, "h": 3_600_000.0, "d": 86_400_000.0}
QUERY = "SELECT name, setting, unit, vartype, pending_restart FROM pg_settings"


def taken(asked: Mapping[str, Value], chosen: Mapping[str, Value], rows: Iterable[Any]) -> dict[str, Any]:
    """Return what the server says of each setting asked for; SettingsDiffer where it did not take one."""
    known = {row.name: row for row in rows}
    got = {name: shown(row) for name, row in known.items()}.get

    def is_same(key: str, value: Value, _: str) -> bool:
        row = known[key]
        return not row.pending_restart and same(key, value, row.setting, row.unit, row.vartype)

    return settings.taken(asked, chosen, got, settings.not_taken(asked, got, is_same))


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
    lasting = {row.name: row.setting for row in rows if row.name not in VOLATILE}
    return {
        "name": "postgresql",
        "version": version,
        "version_comment": comment,
        "tls": "off",
        "settings": taken(asked, chosen, rows),
        "unstated": settings.unstated(asked, {row.name: shown(row) for row in rows}.get),
        "variables": len(rows),
        "variables_sha256": settings.digest(lasting, folder),
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
