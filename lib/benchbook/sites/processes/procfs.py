"""The kernel's figures of processes and processors; proofs of ownership rest on them."""

from __future__ import annotations

import contextlib
import os
import re
import select
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from benchbook.sites.processes import cgroup_limits, firewall, taskstats

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
    """The kernel's `stat` of a process."""

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
        """True if it is more than a zombie."""
        return self.state not in "ZX"


def read_stat(pid: int) -> Stat | None:
    """The kernel's `stat` of a process, or None if there is none."""
    if not (rest := _read_fields(str(pid))):
        return None
    user, system, of_users, of_systems = map(int, rest[11:15])
    of = (int(rest[1]), int(rest[2]), int(rest[19]))
    return Stat(rest[0].decode(), *of, user + system, of_users + of_systems)


def _read_fields(task: str) -> list[bytes]:
    """Fields of a process's or thread's `stat` from the third on; none if it is gone."""
    # The name before them is in brackets and may itself hold brackets and spaces.
    return read_file(f"{task}/stat").rpartition(b")")[2].split()


def read_file(name: str) -> bytes:
    """Content of one of the kernel's files; empty if it is gone, or not ours to read."""
    try:
        return (PROC / name).read_bytes()
    except OSError:
        return b""


def is_alive(pid: int, started: int | None = None) -> bool:
    """True if a process lives: it exists, is no zombie, and started at the expected time."""
    stat = read_stat(pid)
    return stat is not None and stat.lives and started in (None, stat.started)


def any_ended(handles: Sequence[int], wait_s: float = 0.0) -> bool:
    """True if one of some processes, as pidfd_open(2) handles, ends within so many seconds."""
    poll = select.poll()
    for handle in handles:
        poll.register(handle, select.POLLIN)
    return bool(poll.poll(wait_s * 1000))


def read_environment(pid: int) -> dict[str, str]:
    """Environment that a process was started with; empty if it is gone or not ours to read."""
    pairs = (item.partition(b"=") for item in read_file(f"{pid}/environ").split(b"\0") if b"=" in item)
    return {os.fsdecode(key): os.fsdecode(value) for key, _, value in pairs}


def read_command(pid: int) -> str:
    """Command line of a process, or its name in brackets, or `gone`."""
    if raw := read_file(f"{pid}/cmdline"):
        return os.fsdecode(raw.replace(b"\0", b" ").strip())[:300]
    return f"[{name}]" if (name := read_program(pid)) != GONE else GONE


def open_files_limit(pid: int) -> int | None:
    """Number of files that a process may open, or None if that can't be read."""
    return _find_number(rb"^Max open files +(\d+)", f"{pid}/limits")


def session_nice(pid: int) -> int | None:
    """Nice value of a process's session; None if the kernel doesn't schedule sessions."""
    return _find_number(rb"(-?\d+)$", f"{pid}/autogroup")


def set_session_nice(pid: int, nice: int) -> None:
    """Set the nice value of a process's session; OSError without the right to it."""
    (PROC / str(pid) / "autogroup").write_text(str(nice), encoding="ascii")


def _find_number(pattern: bytes, name: str, base: int = 10) -> int | None:
    """Number that a pattern finds in one of the kernel's files, or None."""
    match = re.search(pattern, read_file(name), re.MULTILINE)
    return int(match[1], base) if match else None


def describe_placement(pid: int) -> dict[str, str]:
    """Placement of a process's threads: each value once for all threads that have it.

    `nice`, `policy` (of the scheduler), `cores`, `groups` (control groups), `limits` (soft ones that are
    set), `group_limits` (those that others set on its groups), `traced` (by whom), and `firewall`, the rules
    in its network. Empty if it is gone.
    """
    niceness, policies, cores = set(), set(), set()
    try:
        for name in os.listdir(PROC / str(pid) / "task"):
            # Fields 19 and 41 of proc(5).
            if rest := _read_fields(f"{pid}/task/{name}"):
                niceness.add(int(rest[16]))
                policies.add(int(rest[38]))
                with contextlib.suppress(ProcessLookupError):
                    cores.add(tuple(sorted(os.sched_getaffinity(int(name)))))
        groups = (PROC / str(pid) / "cgroup").read_text(encoding="utf-8", errors="replace")
        limits = (PROC / str(pid) / "limits").read_text(encoding="ascii").splitlines()[1:]
    except OSError:
        return {}
    results: dict[str, list[str]] = {}
    for line in groups.splitlines():
        _, controllers, path = line.split(":", 2)
        results.setdefault(path, []).append(controllers or "v2")
    return {
        "nice": _join_sorted(niceness),
        "policy": _join_sorted(policies),
        "cores": " or ".join(format_ranges(each) for each in sorted(cores)),
        "groups": "; ".join(f"{path}: {','.join(sorted(names))}" for path, names in sorted(results.items())),
        "limits": ", ".join(
            f"{line[:25].strip().removeprefix('Max ')} {line[26:46].strip()}"
            for line in limits
            if line[26:46].strip() != "unlimited"
        ),
        "group_limits": "; ".join(cgroup_limits.describe_limits(pid)),
        "traced": find_tracer(pid) or "",
        "firewall": firewall.describe_rules(pid),
    }


def find_tracer(pid: int, first: int = 0) -> str | None:
    """Program that traces a process (ptrace(2)), by its name, or None."""
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return None
    others = [tasks[(first + number) % len(tasks)] for number in range(min(MOST_TASKS, len(tasks)))]
    for task in (str(pid), *others):
        try:
            with open(f"/proc/{pid}/task/{task}/status", "rb", buffering=0) as file:
                by = int(file.read(1024).partition(b"TracerPid:")[2].split(None, 1)[0])
        except (OSError, ValueError, IndexError):
            continue
        if by:
            return read_program(by)
    return None


def read_program(pid: int) -> str:
    """Name of the program that a process runs, or `gone`."""
    raw = read_file(f"{pid}/comm")
    return raw.decode("utf-8", "replace").strip() if raw else GONE


def is_stopped(pid: int) -> bool:
    """True if a process stands still, by a signal or under a tracer."""
    stat = read_stat(pid)
    return stat is not None and stat.state in "Tt"


def format_ranges(cores: Iterable[int]) -> str:
    """Cores as the kernel writes them: 0-3,6."""
    results: list[list[int]] = []
    for core in sorted(cores):
        if results and results[-1][1] == core - 1:
            results[-1][1] = core
        else:
            results.append([core, core])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in results)


def _join_sorted(values: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(values)))


def has_capability(number: int) -> bool:
    """True if this process has one of the rights that root is divided into (capabilities(7))."""
    return bool((_find_number(rb"^CapEff:\s*(\w+)", "self/status", 16) or 0) >> number & 1)


def list_pids() -> list[int]:
    """Ids of all processes that can be seen."""
    return [int(name) for name in os.listdir(PROC) if name.isdigit()]


def find_descendants(root: int) -> list[int]:
    """All living descendants of a process, parents before children."""
    children: dict[int, list[int]] = {}
    # Many kernels have no /proc/PID/task/TID/children.
    for pid in list_pids():
        stat = read_stat(pid)
        if stat is not None and stat.lives:
            children.setdefault(stat.parent, []).append(pid)
    found_all: list[int] = []
    level = [root]
    while level:
        level = [child for parent in level for child in children.get(parent, [])]
        found_all += level
    return found_all


def iter_links(pid: int) -> Iterator[str]:
    """Open files of a process, as the kernel names them: a path, or such as `socket:[NUMBER]`."""
    folder = f"{PROC}/{pid}/fd"
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            with contextlib.suppress(OSError):
                yield os.readlink(f"{folder}/{name}")


def opened_by(path: Path) -> list[int]:
    """Processes that hold a file open."""
    try:
        wanted = os.stat(path)
    except OSError:
        return []
    holders = []
    for pid in list_pids():
        try:
            for name in os.scandir(PROC / str(pid) / "fd"):
                status = name.stat()
                if (status.st_dev, status.st_ino) == (wanted.st_dev, wanted.st_ino):
                    holders.append(pid)
                    break
        except OSError:
            continue
    return holders


def parse_processor(cpuinfo: str) -> str | None:
    """Processor's name in `/proc/cpuinfo` with its family, model and stepping, or None."""
    its = dict(re.findall(r"^(model name|cpu family|model|stepping)\s*:[ \t]*(.+)$", cpuinfo, re.MULTILINE))
    name = its.pop("model name", None)
    if name is None or len(its) < 3:
        return name
    return f"{name} (family {its['cpu family']}, model {its['model']}, stepping {its['stepping']})"


def machine_times() -> list[float]:
    """Times of the machine's cores since its start, in seconds, by the fields of /proc/stat."""
    fields = (PROC / "stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]
    return [int(field) / TICKS for field in fields]


def cpu_s(pids: Sequence[int], families: Collection[int] = ()) -> float | None:
    """Processor time of processes in s, and of children of `families`; None without any, or if ended."""
    ticks = 0
    for pid in pids:
        if pid in families:
            # Once a child is waited for, what it used is in its parent's account.
            children = map(read_stat, taskstats.children_of(pid))
            ticks += sum(stat.used for stat in children if stat and stat.lives)
        its = read_stat(pid)
        if its is None or not its.lives:
            return None
        ticks += its.used + (its.used_by_ended if pid in families else 0)
    return ticks / TICKS if pids else None


def rss_mib(pids: list[int]) -> float:
    """Memory of some processes in MiB, 0 if one has ended."""
    try:
        return sum(int((PROC / str(pid) / "statm").read_text().split()[1]) * PAGE for pid in pids) / MIB
    except (OSError, ValueError, IndexError):
        return 0.0


def runqueue_wait_s(pid: int) -> float:
    """Seconds all threads of a process have waited for a core, from the scheduler's own books."""
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
    """Number of processes that the kernel has ended for want of memory."""
    # Not by `_find_number`: what can't be read is no proof that none was ended.
    match = re.search(rb"^oom_kill (\d+)", (PROC / "vmstat").read_bytes(), re.MULTILINE)
    return int(match[1]) if match else 0


def parse_throttling(cpu_stat: str) -> dict[str, float | int]:
    """Periods of a group's quota, throttled ones (nr_throttled), and their seconds in all."""
    stat = dict(line.split() for line in cpu_stat.splitlines() if line)
    seconds = int(stat.get("throttled_time", 0)) / 1e9 + int(stat.get("throttled_usec", 0)) / 1e6
    periods, held = int(stat.get("nr_periods", 0)), int(stat.get("nr_throttled", 0))
    return {"periods": periods, "throttled": held, "throttled_s": seconds}


def throttled_since(before: dict[str, float | int], now: dict[str, float | int]) -> dict[str, float | int]:
    """Growth of the figures of `throttled` since another reading."""
    return {name: round(value - before[name], 6) for name, value in now.items()}
