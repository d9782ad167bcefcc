"""Kernel settings as a source made them: set, read back, and put back as they were.

What belongs to a network namespace is set inside it and goes with it. What the whole machine shares is
written down in the lab before it is touched, so that the next start or `down` can put it back, whatever ended
us.
"""

from __future__ import annotations

import json
from pathlib import Path

from benchbook.core.errors import SiteError
from benchbook.core.study_arm import Kernel
from benchbook.sites.network import run

SYSCTL = Path("/proc/sys")
OF_NAMESPACE = {"somaxconn": "net/core/somaxconn", "syncookies": "net/ipv4/tcp_syncookies"}
OF_MACHINE = {"swappiness": "vm/swappiness"}
NOFILE_LIMIT = SYSCTL / "fs/nr_open"
RECORD = "kernel.json"
# The right to raise a limit above its hard value (capabilities(7)).
CAP_SYS_RESOURCE = 24


def apply(profile: Kernel, namespace: Path | None, records: Path) -> dict[str, int]:
    """Set a profile and return {key: value read back}; SiteError if the kernel has another value.

    `namespace` is the server's own, or None for the machine's; `records` is the lab's folder of pid files.
    """
    got = {}
    for key, name in (OF_NAMESPACE | OF_MACHINE).items():
        value = getattr(profile, key)
        if value is None:
            continue
        if namespace is not None and key in OF_NAMESPACE:
            got[key] = _inside(namespace, name, value)
        else:
            got[key] = _outside(name, value, records / RECORD)
        if got[key] != value:
            raise SiteError(
                f"kernel.{key}: asked {value}, the kernel has {got[key]}; write a value it can hold"
            )
    return got


def changed(records: Path) -> dict[str, int]:
    """Return {name: value before} of the machine's settings that a lab has changed and not put back."""
    try:
        found = json.loads((records / RECORD).read_text(encoding="utf-8"))
        return {str(name): int(value) for name, value in found.items()}
    except (OSError, ValueError, AttributeError):
        return {}


def restore(records: Path) -> list[str]:
    """Put the machine's settings back as they were before a lab changed them; return what was put back."""
    done = []
    allowed = set(OF_NAMESPACE.values()) | set(OF_MACHINE.values())
    for name, value in changed(records).items():
        # The record lies in our own folder, but only these few settings are ever ours to write.
        if name in allowed:
            (SYSCTL / name).write_text(str(value), encoding="ascii")
            done.append(f"{name} set back to {value}")
    (records / RECORD).unlink(missing_ok=True)
    return done


def _inside(namespace: Path, name: str, value: int) -> int:
    place = str(SYSCTL / name)
    run("nsenter", f"--net={namespace}", "tee", place, stdin=str(value))
    return int(run("nsenter", f"--net={namespace}", "cat", place))


def _outside(name: str, value: int, record: Path) -> int:
    path = SYSCTL / name
    try:
        before = changed(record.parent)
        now = int(path.read_text(encoding="ascii"))
        if now != value:
            temporary = record.with_suffix(".tmp")
            temporary.write_text(json.dumps({name: now, **before}), encoding="utf-8")
            temporary.rename(record)
            path.write_text(str(value), encoding="ascii")
        return int(path.read_text(encoding="ascii"))
    except OSError as error:
        raise SiteError(f"{path}: {error.strerror}; run as root, or leave out arms.NAME.kernel") from None
