"""A server's settings: the initial ones, those asked for, and a check that it took them."""

import hashlib
import re
from collections.abc import Callable, Container, Mapping
from functools import partial
from pathlib import Path, PurePath
from typing import Any

from benchbook.core.study import descriptors
from benchbook.core.util import yaml_file
from benchbook.core.util.errors import SettingsDiffer, SiteError

Value = int | float | str | bool
Got = Callable[[str], str | None]
Differences = dict[str, tuple[Value, str | None]]

# Fixed when a data folder is made: another value needs another folder.
AT_CREATION = (
    "innodb_page_size", "innodb_data_file_path", "innodb_undo_tablespaces",
    "lower_case_table_names", "innodb_checksum_algorithm",
    # A schema keeps those of the server that made it.
    "character_set_server", "collation_server",
)  # fmt: skip

# Different at every look or every start, so never part of the digest.
VOLATILE = frozenset({
    "error_count", "gtid_binlog_pos", "gtid_binlog_state", "gtid_current_pos", "gtid_executed",
    "gtid_purged", "gtid_slave_pos", "hostname", "identity", "in_transaction",
    "innodb_buffer_pool_size_max", "insert_id", "last_gtid", "last_insert_id", "proxy_user",
    "pseudo_thread_id", "rand_seed1", "rand_seed2", "report_host", "server_uid", "server_uuid",
    "timestamp", "warning_count",
})  # fmt: skip

# Where a server lives, which its identity holds.
PLACE = frozenset(("bind_address", "port", "report_port"))

# MariaDB before 11.1 takes an option under one name and tells it under another.
TOLD_AS = {"transaction_isolation": "tx_isolation"}

_UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40, "p": 1 << 50}
SWITCH = dict.fromkeys(("on", "true", "yes", "1"), "on") | dict.fromkeys(("off", "false", "no", "0"), "off")


def complete_settings(requests: Mapping[str, Value], *engines: str, version: str = "") -> dict[str, Value]:
    """Initial settings (`defaults.yaml`), later engines before earlier, a study's above all."""
    here = parse_version(version)
    read = yaml_file.read_mapping(Path(__file__).with_name("defaults.yaml")).data
    rows = {name: row for engine in engines for name, row in read[engine].items()}
    merged: dict[str, Value] = {
        name: row["value"]
        for name, row in rows.items()
        if row["value"] is not None
        and parse_version(row.get("since", "")) <= here
        and ("until" not in row or here[:2] <= parse_version(row["until"]))
    }
    if any(key.startswith("log_bin") for key in requests):
        merged.pop("skip_log_bin", None)
    return {**merged, **requests}


def parse_version(version: object) -> list[int]:
    """Numbers of a version such as 6.6.0-20230103."""
    return [int(part) for part in str(version).partition("-")[0].split(".") if part.isdigit()]


def must_be_free(engine: Any) -> None:
    """Raise SiteError for a setting that is not a study's to make, in the words that refuse its file."""
    for wrong in descriptors.find_reserved("engine", engine.name, engine.settings):
        raise SiteError(wrong)


def format_value(value: Value) -> str:
    """A value as a settings file writes it."""
    return ("ON" if value else "OFF") if isinstance(value, bool) else str(value)


def find_differences(requests: Mapping[str, Value], variables: Mapping[str, str]) -> Differences:
    """{setting: (asked, got)} of those that a server of MySQL's family did not take."""

    def is_same(key: str, value: Value, statement: str) -> bool:
        if key not in variables and key.startswith("skip_"):
            value = "OFF" if SWITCH.get(format_value(value).lower()) == "on" else "ON"
        return is_same_value(value, statement)

    return not_taken(requests, partial(read_back, variables=variables), is_same)


def not_taken(
    requests: Mapping[str, Value],
    got: Got,
    is_same: Callable[[str, Value, str], bool] = lambda _, value, statement: is_same_value(value, statement),
) -> Differences:
    """{setting: (asked, got)} of those not taken; got is None if there is no such setting."""
    pairs = {key: (value, got(key)) for key, value in requests.items()}
    return {
        key: (value, statement)
        for key, (value, statement) in pairs.items()
        if statement is None or not is_same(key, value, statement)
    }


def read_back(key: str, variables: Mapping[str, str]) -> str | None:
    """The server's value of a setting; `skip_log_bin` is answered by `log_bin`."""
    if key in variables:
        return variables[key]
    if key in TOLD_AS:
        return variables.get(TOLD_AS[key])
    return variables.get(key.removeprefix("skip_")) if key.startswith("skip_") else None


def report_settings(
    requests: Mapping[str, Value], chosen: Container[str], variables: Mapping[str, str]
) -> dict[str, dict[str, Any]]:
    """`settings` and `unstated` of a server of MySQL's family; SettingsDiffer if one did not hold."""
    got = partial(read_back, variables=variables)
    taken = verify_settings(requests, chosen, got, find_differences(requests, variables))
    return {"settings": taken, "unstated": list_unstated(requests, got)}


def verify_settings(
    requests: Mapping[str, Value], chosen: Container[str], got: Got, differing: Differences
) -> dict[str, dict[str, str | None]]:
    """By setting: the value asked for, the server's (`got`), and its origin."""
    if differing:
        raise SettingsDiffer(differing)
    return {
        key: {"asked": format_value(item), "got": got(key), "from": "study" if key in chosen else "benchbook"}
        for key, item in sorted(requests.items())
    }


def list_unstated(stated: Container[str], got: Got) -> dict[str, str]:
    """A server's values of the settings that compare between engines and that a study leaves out."""
    engines = descriptors.load_engines().values()
    names = {name for of in engines for alike in of.meanings.values() for name in alike}
    return {key: value for key in sorted(names) if key not in stated and (value := got(key)) is not None}


def is_same_value(request: Value, got: str) -> bool:
    """True if a value asked for is the value read back, across the ways of writing it."""
    wanted, have = format_value(request).strip(), got.strip()
    if {wanted.upper(), have.upper()} & {"ON", "OFF", "YES", "NO"}:
        # Old TiDB says 0 and 1 where it was asked in words.
        switches = [SWITCH.get(text.lower()) for text in (wanted, have)]
        return None not in switches and switches[0] == switches[1]
    number, other = _parse_number(wanted), _parse_number(have)
    if number is not None and other is not None:
        return number == other
    return _split_parts(wanted) == _split_parts(have)


def hash_variables(variables: Mapping[str, str], folder: PurePath) -> str:
    """SHA-256 of all variables that mean the same at the next start and in another place."""
    lasting = {key: value for key, value in variables.items() if key not in VOLATILE | PLACE}
    kept = sorted((key, value.replace(str(folder), "SERVER")) for key, value in lasting.items())
    return hashlib.sha256("\n".join(f"{key}={value}" for key, value in kept).encode()).hexdigest()


def neutralize_text(text: str, folder: PurePath, moved: Mapping[str, str] | None = None) -> str:
    """A settings file's text without the lab's place; `moved` maps addresses to those at first."""
    text = text.replace(str(folder), "SERVER")
    if moved:
        # In one pass, since two parts may have changed places with each other.
        text = re.sub("|".join(f"{re.escape(old)}(?!\\d)" for old in moved), lambda hit: moved[hit[0]], text)
    return "\n".join(line for line in text.splitlines() if line.partition("=")[0] not in PLACE)


def _parse_number(word: str) -> float | None:
    scale = _UNITS.get(word[-1:].lower(), 1)
    try:
        return float(word[:-1] if scale > 1 else word) * scale
    except ValueError:
        return None


def _split_parts(value: Any) -> list[str]:
    return sorted(part.strip().rstrip("/").casefold() for part in str(value).split(","))
