"""Kernel settings of this machine: written down before they are touched, and put back."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchbook.core.util.errors import SiteError
from benchbook.sites import workspace as labs

SYSCTL = Path("/proc/sys")
RECORD = "kernel.json"
# Only these few are ever ours to write, whoever asks.
OF_NAMESPACE = {"somaxconn": "net/core/somaxconn", "syncookies": "net/ipv4/tcp_syncookies"}
OF_MACHINE = {"swappiness": "vm/swappiness"}
ALLOWED = (*OF_NAMESPACE.values(), *OF_MACHINE.values(), "fs/nr_open")


def apply_setting(folder: Path, name: str, value: int) -> int:
    """Set one of the allowed settings and return the kernel's value afterwards."""
    if name not in ALLOWED:
        raise SiteError(f"{name}: not a setting that may be changed; write one of {', '.join(ALLOWED)}")
    place = SYSCTL / name
    try:
        before, now = read_changes(folder), int(place.read_text(encoding="ascii"))
        if now != value:
            labs.write_private(folder / RECORD, json.dumps({name: now, **before}))
            place.write_text(str(value), encoding="ascii")
        return int(place.read_text(encoding="ascii"))
    except OSError as error:
        raise SiteError(f"{place}: {error.strerror}; run as root, or leave out arms.NAME.kernel") from None


def set_all(profile: Any, put: Callable[[str, str, int], int], who: str = "the kernel") -> dict[str, int]:
    """Have each setting of a profile `put` by key, file and value; values by key afterwards."""
    got = {}
    for key, name in {**OF_NAMESPACE, **OF_MACHINE}.items():
        if (value := getattr(profile, key)) is not None:
            if (now := put(key, name, value)) != value:
                raise SiteError(f"kernel.{key}: asked {value}, {who} has {now}; write a value it can hold")
            got[key] = now
    return got


def read_changes(folder: Path) -> dict[str, int]:
    """{name: value before} of the settings that were changed and not put back."""
    return {name: int(value) for name, value in labs.read_record(folder / RECORD).items() if name in ALLOWED}


def restore_settings(folder: Path) -> list[str]:
    """Put the settings back as they were; one line for each."""
    done = []
    for name, value in read_changes(folder).items():
        (SYSCTL / name).write_text(str(value), encoding="ascii")
        done.append(f"{name} set back to {value}")
    (folder / RECORD).unlink(missing_ok=True)
    return done
