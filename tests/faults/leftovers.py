"""What is left on a machine: processes, listeners, mounts, rules, a lock."""

import fcntl
import json
import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from benchbook.sites.local import network
from benchbook.sites.processes import procfs
from benchbook.sites.topology import teardown
from benchbook.sites.workspace import lab_id
from tests import ports, rooms

# This process's own, since tests of other processes and clones put rules in force meanwhile.
COMMENT = f"benchbook-fault-{rooms.number():02d}"


def of(lab_root: Path, numbers: Iterable[int] = (), spared: Iterable[int] = ()) -> list[str]:
    """Return what of ours still runs below a lab folder, listens on some ports, is mounted or in force.

    `spared` are processes that have a right to be there: a server that stays up for the next test.
    """
    spared = set(spared)
    found = [
        f"process {child.pid}: {procfs.read_command(child.pid)}"
        for child in teardown.find_processes(lab_root, set())
        if child.pid not in spared
    ]
    for number in numbers:
        if ports.listeners(number) and not spared & set(ports.holders(number)):
            found.append(f"a listener on port {number}")
    return found + rules() + networks(lab_root)


def networks(lab_root: Path) -> list[str]:
    """Return what carries the id of a lab in the kernel: namespaces, links, rules of the firewall."""
    found = []
    for folder in teardown.find_labs(lab_root):
        number = lab_id(json.loads((folder / "lab.json").read_text(encoding="utf-8"))["token"])
        places = (network.NAMESPACES, Path("/sys/class/net"))
        found += [str(path) for place in places if place.is_dir() for path in place.glob(f"*-{number}*")]
        found += [rule for rule in rules("benchbook ") if number in rule]
    return found


def mounts(folder: Path) -> list[str]:
    """Return what is mounted at or below a folder."""
    lines = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    points = [line.split()[1].replace("\\040", " ") for line in lines]
    return [f"mount {point}" for point in points if Path(point).is_relative_to(folder)]


def rules(comment: str = COMMENT) -> list[str]:
    """Return the firewall rules with a comment, such as those that faults put in force."""
    if shutil.which("iptables-save") is None or os.geteuid() != 0:
        return []
    saved = subprocess.run(["iptables-save"], capture_output=True, text=True, timeout=20, check=False).stdout
    return [f"rule {line}" for line in saved.splitlines() if comment in line]


def held(lock: Path) -> list[str]:
    """Return a lock that is still held: it goes with the last process that inherited it."""
    try:
        with lock.open("rb") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return []
    except BlockingIOError:
        return [f"lock {lock}"]
    return []


def of_lab(lab: Path, port: int, lock: Path) -> list[str]:
    """Return what is left of a lab whose server has a port and whose proxy the next, its lock included."""
    return of(lab, (port, port + 1)) + held(lock)
