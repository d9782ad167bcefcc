"""Kernel settings as a source made them: set, read back, and put back as they were.

What belongs to a network namespace is set inside it and goes with it. What the whole machine shares is
written down in the lab before it is touched (`agent.kernel`), so that the next start or `down` can put it
back, whatever ended us.
"""

from __future__ import annotations

from pathlib import Path

from benchbook.core.errors import SiteError
from benchbook.core.study_arm import Kernel
from benchbook.sites.agent import kernel as sysctl
from benchbook.sites.agent.kernel import OF_MACHINE, OF_NAMESPACE, SYSCTL
from benchbook.sites.local.network import run

NOFILE_LIMIT = SYSCTL / "fs/nr_open"
# The right to raise a limit above its hard value (capabilities(7)).
CAP_SYS_RESOURCE = 24


def apply(profile: Kernel, namespace: Path | None, records: Path) -> dict[str, int]:
    """Set a profile in a namespace (None: the machine's) and return {key: value read back}, or SiteError."""
    got = {}
    for key, name in (OF_NAMESPACE | OF_MACHINE).items():
        value = getattr(profile, key)
        if value is None:
            continue
        if namespace is not None and key in OF_NAMESPACE:
            got[key] = _inside(namespace, name, value)
        else:
            got[key] = sysctl.apply(records, name, value)
        if got[key] != value:
            raise SiteError(
                f"kernel.{key}: asked {value}, the kernel has {got[key]}; write a value it can hold"
            )
    return got


def _inside(namespace: Path, name: str, value: int) -> int:
    place = str(SYSCTL / name)
    run("nsenter", f"--net={namespace}", "tee", place, stdin=str(value))
    return int(run("nsenter", f"--net={namespace}", "cat", place))
