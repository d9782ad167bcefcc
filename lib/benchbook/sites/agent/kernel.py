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


def apply(folder: Path, name: str, value: int) -> int:
    """Set one of the allowed settings and return what the kernel then has."""
    if name not in ALLOWED:
        raise SiteError(f"{name}: not a setting that may be changed; write one of {', '.join(ALLOWED)}")
    place = SYSCTL / name
    try:
        before, now = changed(folder), int(place.read_text(encoding="ascii"))
        if now != value:
            labs.write_private(folder / RECORD, json.dumps({name: now, **before}))
            place.write_text(str(value), encoding="ascii")
        return int(place.read_text(encoding="ascii"))
    except OSError as error:
        raise SiteError(f"{place}: {error.strerror}; run as root, or leave out arms.NAME.kernel") from None


def set_all(profile: Any, put: Callable[[str, str, int], int], who: str = "the kernel") -> dict[str, int]:
    """Have settings of a profile `put` by key, file and value; SiteError where `who` has another then."""
    got = {}
    for key, name in {**OF_NAMESPACE, **OF_MACHINE}.items():
        if (value := getattr(profile, key)) is not None:
            got[key] = put(key, name, value)
            if got[key] != value:
                raise SiteError(
                    f"kernel.{key}: asked {value}, {who} has {got[key]}; write a value it can hold"
                )
    return got


def changed(folder: Path) -> dict[str, int]:
    """Return {name: value before} of what was changed and not put back."""
    return {name: int(value) for name, value in labs.noted(folder / RECORD).items() if name in ALLOWED}


def restore(folder: Path) -> list[str]:
    """Put the settings back as they were; return what was put back."""
    done = []
    for name, value in changed(folder).items():
        (SYSCTL / name).write_text(str(value), encoding="ascii")
        done.append(f"{name} set back to {value}")
    (folder / RECORD).unlink(missing_ok=True)
    return done
