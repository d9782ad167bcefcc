"""What the kernel says about processes, known by id and start time together, and about the processor."""

from __future__ import annotations

import contextlib
import os
import re
import select
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from benchbook.sites.processes import control_groups, firewall, taskstats

PROC = Path("/proc")
MIB = 1024 * 1024
TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
GONE = "gone"
# Fields of the first line of /proc/stat (proc(5)); guest time is counted in user time already.
IDLE, IOWAIT, STEAL = 3, 4, 7
# More threads than this would take too long one by one.
MOST_TASKS = 64


class Stat(NamedTuple):
    """What the kernel says of a process."""

    state: str
    parent: int
    group: int
    started: int
    """Field 22 of /proc/PID/stat, in clock ticks since boot."""
    used: int
    """Clock ticks of processor time."""
    used_by_ended: int
    """The same of children that it has waited for."""

    @property
    def lives(self) -> bool:
        """Say whether it is more than a zombie."""
        return self.state not in "ZX"


def stat(pid: int) -> Stat | None:
    """Return what the kernel says of a process, or None if there is none."""
    if not (rest := _fields(str(pid))):
        return None
    user, system, of_users, of_systems = map(int, rest[11:15])
    of = (int(rest[1]), int(rest[2]), int(rest[19]))
    return Stat(rest[0].decode(), *of, user + system, of_users + of_systems)


def _fields(task: str) -> list[bytes]:
    """Return the fields of a process's or thread's `stat` from the third on; none where it is gone."""
    # The name before them is in brackets and may itself hold brackets and spaces.
    return read(f"{task}/stat").rpartition(b")")[2].split()


def read(name: str) -> bytes:
    """Return what a file of the kernel's says; nothing where it is gone, or not ours to read."""
    try:
        return (PROC / name).read_bytes()
    except OSError:
        return b""


def is_alive(pid: int, started: int | None = None) -> bool:
    """Say whether a process lives: it exists, is no zombie, and started when it should have."""
    found = stat(pid)
    return found is not None and found.lives and started in (None, found.started)


def any_ended(handles: Sequence[int], wait_s: float = 0.0) -> bool:
    """Say whether one of some processes, given by pidfd_open(2), ends before so many seconds are over."""
    poll = select.poll()
    for handle in handles:
        poll.register(handle, select.POLLIN)
    return bool(poll.poll(wait_s * 1000))


def environment(pid: int) -> dict[str, str]:
    """Return the environment a process was started with; empty if it is gone or not ours to read."""
    pairs = (item.partition(b"=") for item in read(f"{pid}/environ").split(b"\0") if b"=" in item)
    return {os.fsdecode(key): os.fsdecode(value) for key, _, value in pairs}


def command(pid: int) -> str:
    """Return the command line of a process, or its name in brackets, or `gone`."""
    if raw := read(f"{pid}/cmdline"):
        return os.fsdecode(raw.replace(b"\0", b" ").strip())[:300]
    return f"[{name}]" if (name := program(pid)) != GONE else GONE


def open_files_limit(pid: int) -> int | None:
    """Return how many files a process may open, or None if that cannot be seen."""
    return _number(rb"^Max open files +(\d+)", f"{pid}/limits")


def session_nice(pid: int) -> int | None:
    """Return the nice value of a process's session, or None where the kernel doesn't schedule sessions."""
    return _number(rb"(-?\d+)$", f"{pid}/autogroup")


def set_session_nice(pid: int, nice: int) -> None:
    """Set the nice value of a process's session; OSError without the right to it."""
    (PROC / str(pid) / "autogroup").write_text(str(nice), encoding="ascii")


def _number(pattern: bytes, name: str, base: int = 10) -> int | None:
    """Return the number that a pattern finds in a file of the kernel's, or None."""
    found = re.search(pattern, read(name), re.MULTILINE)
    return int(found[1], base) if found else None


def place(pid: int) -> dict[str, str]:
    """Return where a process's threads may run, and how: each value once for all threads that have it.

    `nice`, `policy` (of the scheduler), `cores`, `groups` (control groups), `limits` (soft ones that are
    set), `group_limits` (those that others set on its groups), `traced` (by whom), and `firewall`, the rules
    in its network. Empty if it is gone.
    """
    niceness, policies, cores = set(), set(), set()
    try:
        for name in os.listdir(PROC / str(pid) / "task"):
            # Fields 19 and 41 of proc(5).
            if rest := _fields(f"{pid}/task/{name}"):
                niceness.add(int(rest[16]))
                policies.add(int(rest[38]))
                with contextlib.suppress(ProcessLookupError):
                    cores.add(tuple(sorted(os.sched_getaffinity(int(name)))))
        groups = (PROC / str(pid) / "cgroup").read_text(encoding="utf-8", errors="replace")
        limits = (PROC / str(pid) / "limits").read_text(encoding="ascii").splitlines()[1:]
    except OSError:
        return {}
    return {
        "nice": _listed(niceness),
        "policy": _listed(policies),
        "cores": " or ".join(ranges(each) for each in sorted(cores)),
        "groups": _groups(groups),
        "limits": ", ".join(
            f"{line[:25].strip().removeprefix('Max ')} {line[26:46].strip()}"
            for line in limits
            if line[26:46].strip() != "unlimited"
        ),
        "group_limits": "; ".join(control_groups.limits(pid)),
        "traced": tracer(pid) or "",
        "firewall": firewall.said(pid),
    }


def tracer(pid: int, first: int = 0, most: int = MOST_TASKS) -> str | None:
    """Program that traces a process (ptrace(2)), or None; its first thread and `most` others are asked."""
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return None
    others = [tasks[(first + number) % len(tasks)] for number in range(min(most, len(tasks)))]
    for task in (str(pid), *others):
        try:
            with open(f"/proc/{pid}/task/{task}/status", "rb", buffering=0) as file:
                by = int(file.read(1024).partition(b"TracerPid:")[2].split(None, 1)[0])
        except (OSError, ValueError, IndexError):
            continue
        if by:
            return program(by)
    return None


def program(pid: int) -> str:
    """Return the name of the program that a process runs, or `gone`."""
    raw = read(f"{pid}/comm")
    return raw.decode("utf-8", "replace").strip() if raw else GONE


def is_stopped(pid: int) -> bool:
    """Say whether a process stands still, by a signal or under a tracer."""
    found = stat(pid)
    return found is not None and found.state in "Tt"


def ranges(cores: Iterable[int]) -> str:
    """Return cores as the kernel writes them: 0-3,6."""
    found: list[list[int]] = []
    for core in sorted(cores):
        if found and found[-1][1] == core - 1:
            found[-1][1] = core
        else:
            found.append([core, core])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in found)


def _listed(values: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(values)))


def _groups(text: str) -> str:
    """Return a process's control groups, those that share a path together."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        _, controllers, path = line.split(":", 2)
        found.setdefault(path, []).append(controllers or "v2")
    return "; ".join(f"{path}: {','.join(sorted(names))}" for path, names in sorted(found.items()))


def has_capability(number: int) -> bool:
    """Say whether this process has one of the rights that root is divided into (capabilities(7))."""
    return bool((_number(rb"^CapEff:\s*(\w+)", "self/status", 16) or 0) >> number & 1)


def pids() -> list[int]:
    """Return the ids of all processes that can be seen."""
    return [int(name) for name in os.listdir(PROC) if name.isdigit()]


def descendants(root: int) -> list[int]:
    """Return all living descendants of a process, parents before children."""
    children: dict[int, list[int]] = {}
    # Many kernels have no /proc/PID/task/TID/children.
    for pid in pids():
        found = stat(pid)
        if found is not None and found.lives:
            children.setdefault(found.parent, []).append(pid)
    found_all: list[int] = []
    level = [root]
    while level:
        level = [child for parent in level for child in children.get(parent, [])]
        found_all += level
    return found_all


def links(pid: int) -> Iterator[str]:
    """What a process has open, as the kernel names it (a path, `socket:[NUMBER]`); nothing if gone."""
    folder = f"{PROC}/{pid}/fd"
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            with contextlib.suppress(OSError):
                yield os.readlink(f"{folder}/{name}")


def opened_by(path: Path) -> list[int]:
    """Return the processes that hold a file open."""
    try:
        wanted = os.stat(path)
    except OSError:
        return []
    holders = []
    for pid in pids():
        try:
            for name in os.scandir(PROC / str(pid) / "fd"):
                found = name.stat()
                if (found.st_dev, found.st_ino) == (wanted.st_dev, wanted.st_ino):
                    holders.append(pid)
                    break
        except OSError:
            continue
    return holders


def processor(cpuinfo: str) -> str | None:
    """Processor's name with family, model and stepping: hypervisors give several generations one name."""
    told = dict(re.findall(r"^(model name|cpu family|model|stepping)\s*:[ \t]*(.+)$", cpuinfo, re.MULTILINE))
    name = told.pop("model name", None)
    if name is None or len(told) < 3:
        return name
    return f"{name} (family {told['cpu family']}, model {told['model']}, stepping {told['stepping']})"


def machine_times() -> list[float]:
    """Return what the machine's cores did since it was started, in seconds, by the fields of /proc/stat."""
    fields = (PROC / "stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]
    return [int(field) / TICKS for field in fields]


def cpu_s(pids: Sequence[int], families: Collection[int] = ()) -> float | None:
    """Processor time of processes in s, and of children of `families`; None without any, or if ended."""
    ticks = 0
    for pid in pids:
        if pid in families:
            # Once a child is waited for, what it used is in its parent's account.
            ticks += sum(one.used for one in map(stat, taskstats.children_of(pid)) if one and one.lives)
        its = stat(pid)
        if its is None or not its.lives:
            return None
        ticks += its.used + (its.used_by_ended if pid in families else 0)
    return ticks / TICKS if pids else None


def rss_mib(pids: list[int]) -> float:
    """Return the memory of some processes in MiB, 0 if one has ended."""
    try:
        return sum(int((PROC / str(pid) / "statm").read_text().split()[1]) * PAGE for pid in pids) / MIB
    except (OSError, ValueError, IndexError):
        return 0.0


def runqueue_wait_s(pid: int) -> float:
    """Return the seconds all threads of a process have waited for a core, from the scheduler's own books."""
    total, tasks = 0, f"/proc/{pid}/task"
    try:
        for task in os.listdir(tasks):
            # A path object for each of some hundred threads would cost as much again as reading it.
            with open(f"{tasks}/{task}/schedstat", "rb", buffering=0) as books:
                total += int(books.read(100).split()[1])
    except (OSError, ValueError, IndexError):
        return 0.0
    return total / 1e9


def oom_kills() -> int:
    """Return how many processes the kernel has ended for want of memory."""
    # Not by `_number`: what can't be read is no proof that none was ended.
    found = re.search(rb"^oom_kill (\d+)", (PROC / "vmstat").read_bytes(), re.MULTILINE)
    return int(found[1]) if found else 0


def throttled(cpu_stat: str) -> dict[str, float | int]:
    """Periods of a group's quota, the throttled ones, and seconds, from `cpu.stat` of either version."""
    stat = dict(line.split() for line in cpu_stat.splitlines() if line)
    seconds = int(stat.get("throttled_time", 0)) / 1e9 + int(stat.get("throttled_usec", 0)) / 1e6
    periods, held = int(stat.get("nr_periods", 0)), int(stat.get("nr_throttled", 0))
    return {"periods": periods, "throttled": held, "throttled_s": seconds}


def throttled_since(before: dict[str, float | int], now: dict[str, float | int]) -> dict[str, float | int]:
    """What came to the figures of `throttled` since another reading."""
    return {name: round(value - before[name], 6) for name, value in now.items()}
