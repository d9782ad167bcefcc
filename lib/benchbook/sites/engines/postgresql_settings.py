"""A PostgreSQL server's settings as it writes and tells them, and a check that it took them."""

import re
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any

import sqlalchemy

from benchbook.sites import settings
from benchbook.sites.settings import SWITCH, Value, format_value

# Different at every start, or a session's own, so never part of the digest.
VOLATILE = frozenset({"cluster_name", "in_hot_standby", "listen_addresses", "port", "application_name"})
# `on` is another name for one of these.
ON_MEANS = {"wal_compression": "pglz"}
# To bytes and milliseconds. PostgreSQL's own units have a number before them, such as 8kB.
UNITS = {"B": 1.0, "kB": 2.0**10, "MB": 2.0**20, "GB": 2.0**30, "TB": 2.0**40}
UNITS |= {"us": 0.001, "ms": 1.0, "s": 1000.0, "min": 60_000.0, "h": 3_600_000.0, "d": 86_400_000.0}
QUERY = "SELECT name, setting, unit, vartype, pending_restart FROM pg_settings"


def verify_settings(
    requests: Mapping[str, Value], chosen: Mapping[str, Value], rows: Iterable[Any]
) -> dict[str, Any]:
    """The server's value of each setting asked for; SettingsDiffer if it did not take one."""
    by_name = {row.name: row for row in rows}
    got = {name: format_setting(row) for name, row in by_name.items()}.get

    def is_same(key: str, value: Value, _: str) -> bool:
        row = by_name[key]
        return not row.pending_restart and is_same_value(key, value, row.setting, row.unit, row.vartype)

    return settings.verify_settings(requests, chosen, got, settings.not_taken(requests, got, is_same))


def collect_facts(
    engine: sqlalchemy.Engine,
    version: str,
    requests: Mapping[str, Value],
    chosen: Mapping[str, Value],
    folder: PurePath,
) -> dict[str, Any]:
    """Facts that a server tells, on any machine; SettingsDiffer if it did not take a setting."""
    with engine.connect() as connection:
        rows = connection.exec_driver_sql(QUERY).all()
        comment = str(connection.exec_driver_sql("SELECT version()").scalar_one())
    lasting = {row.name: row.setting for row in rows if row.name not in VOLATILE}
    return {
        "name": "postgresql",
        "version": version,
        "version_comment": comment,
        "tls": "off",
        "settings": verify_settings(requests, chosen, rows),
        "unstated": settings.list_unstated(requests, {row.name: format_setting(row) for row in rows}.get),
        "variables": len(rows),
        "variables_sha256": settings.hash_variables(lasting, folder),
    }


def format_setting(row: Any) -> str:
    """A setting as it is read: its number with the unit that it counts."""
    unit = row.unit or ""
    return f"{row.setting} x {unit}" if unit[:1].isdigit() else f"{row.setting}{unit}"


def is_same_value(name: str, request: Value, got: str, unit: str | None, kind: str) -> bool:
    """True if a value asked for is the one read back, across the ways of writing it."""
    wanted = format_value(request).strip()
    if kind == "bool":
        return SWITCH.get(wanted.lower()) == got
    if kind in ("integer", "real"):
        return _parse_number(wanted, unit) == _parse_number(got, unit)
    if kind == "enum":
        switched = SWITCH.get(wanted.lower(), wanted.lower())
        return got.lower() in {wanted.lower(), switched, ON_MEANS.get(name) if switched == "on" else switched}
    return [word.strip() for word in wanted.split(",")] == [word.strip() for word in got.split(",")]


def _parse_number(word: str, unit: str | None) -> float | None:
    """A number in bytes, milliseconds or as it is; one without a unit counts the setting's own."""
    match = re.fullmatch(r"(-?[0-9.]+)\s*([A-Za-z]*)", word)
    if match is None:
        return None
    scale, unit_match = match[2], re.fullmatch(r"([0-9]*)([A-Za-z]+)", unit or "")
    if scale:
        return float(match[1]) * UNITS[scale] if scale in UNITS and unit_match is not None else None
    # Zero and less are words of their own: none, or as another setting says.
    if unit_match is None or float(match[1]) <= 0:
        return float(match[1])
    return float(match[1]) * float(unit_match[1] or 1) * UNITS[unit_match[2]]
