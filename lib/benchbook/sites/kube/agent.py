"""The first process of a client's pod, and how load is started in it: the standard library alone.

It is carried into the pod as a file, so of ours it imports only what is carried along. A job goes on whatever
becomes of the connection over which it was asked for; what it printed, and what was seen of it, stay in its
folder.

    agent.py hold              the pod's first process: collect what ends, until it is told to go
    agent.py start             start the job described by one line of JSON on stdin; print its pid
    agent.py wait JOB          wait for a job's end; print its record as one line of JSON
    agent.py fetch JOB NAME    print a file of a job
    agent.py signal JOB N      send a signal to a job
    agent.py remove JOB        remove a job's folder
    agent.py clock             answer each line on stdin with the machine's monotonic clock
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

try:
    from procfs import STEAL, cpu_s, machine_times, oom_kills, rss_mib, runqueue_wait_s, stat
    from tcp_bytes import Counter, Hop
except ModuleNotFoundError:
    # Not carried, but read where they belong.
    from benchbook.sites.processes.procfs import (
        STEAL,
        cpu_s,
        machine_times,
        oom_kills,
        rss_mib,
        runqueue_wait_s,
        stat,
    )
    from benchbook.sites.processes.tcp_bytes import Counter, Hop

HOME = Path(os.environ.get("BENCHBOOK_JOBS", "/var/lib/benchbook/jobs"))
# As the monitor of one machine: finer ticks take more of the core that is being measured.
TICK_S, LOOK_S = 0.025, 0.2
# A job that takes turns is stopped for seconds at the most. After this long whoever should have let it go on
# is gone, and it is ended.
STILL_S = 60.0
# Stands still until it is let go, notes when that was, and becomes the program.
HELD = (
    "import os, signal, sys, time; os.kill(os.getpid(), signal.SIGSTOP); "
    "open(sys.argv[1], 'w').write(repr(time.monotonic())); os.execvp(sys.argv[2], sys.argv[2:])"
)


def hold() -> None:
    """Collect ended children, which the kernel gives to a pod's first process, until TERM."""
    for signum in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signum, lambda *_: sys.exit(0))
    signal.signal(signal.SIGCHLD, lambda *_: None)
    HOME.mkdir(parents=True, exist_ok=True)
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            signal.pause()


def start(job: dict[str, Any]) -> int:
    """Start a job under a watcher of its own, which no connection's end can end; return its pid."""
    folder = HOME / job["job"]
    folder.mkdir(parents=True)
    for name, text in job["files"].items():
        (folder / name).write_bytes(base64.b64decode(text))
    mine, theirs = os.pipe()
    if os.fork() == 0:
        os.close(mine)
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        _watch(folder, job, theirs)
        os._exit(0)
    os.close(theirs)
    with os.fdopen(mine, "rb") as told:
        said = told.read()
    if not said.isdigit():
        raise SystemExit(said.decode() or "the job could not be started")
    return int(said)


def wait(job: str) -> str:
    """Return a job's record once it has ended."""
    record = HOME / job / "record.json"
    while not record.exists():
        time.sleep(0.02)
    return record.read_text(encoding="utf-8")


def _watch(folder: Path, job: dict[str, Any], told: int) -> None:
    argv = [word.replace("{JOB}", str(folder)) for word in job["argv"]]
    if job.get("held"):
        argv = [sys.executable, "-I", "-S", "-c", HELD, str(folder / "begun"), *argv]
    with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
        try:
            child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=folder)
        except OSError as error:
            os.write(told, f"{argv[0]}: {error.strerror}".encode())
            return
    (folder / "pid").write_text(str(child.pid), encoding="ascii")
    os.write(told, str(child.pid).encode())
    os.close(told)
    seen = _look(child, job.get("hops") or [])
    for pid in job.get("continues") or ():
        # However the clock of turns ended, nothing that it has stopped stays so.
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
    begun = folder / "begun"
    # One that waited for a moment wrote down when it began.
    seen["begun_s"] = float(begun.read_text()) if begun.exists() else None
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    digests = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in ("out", "err")}
    seen |= {"exit_code": child.returncode, "cpu_s": usage.ru_utime + usage.ru_stime, "sha256": digests}
    (folder / "record.new").write_text(json.dumps(seen), encoding="utf-8")
    (folder / "record.new").rename(folder / "record.json")


def _look(child: subprocess.Popen[bytes], hops: list[list[Any]]) -> dict[str, Any]:
    carried = Counter([Hop(*hop) for hop in hops])
    began, wall, times, kills = time.monotonic(), time.time(), machine_times(), oom_kills()
    last = looked = sampled = began
    moved, used_s = began, None
    before, pause_ms, waited_s, rows = cpu_s([child.pid]), 0.0, 0.0, []
    while child.poll() is None:
        time.sleep(TICK_S)
        now = time.monotonic()
        pause_ms = max(pause_ms, (now - last - TICK_S) * 1000)
        last = now
        if now - looked > LOOK_S:
            waited_s = max(waited_s, runqueue_wait_s(child.pid))
            last = looked = time.monotonic()
            found = stat(child.pid)
            if found is None or found["state"] != "T" or cpu_s([child.pid]) != used_s:
                moved, used_s = looked, cpu_s([child.pid])
            elif looked - moved > STILL_S:
                child.kill()
        if now - sampled >= 1.0:
            cpu = cpu_s([child.pid])
            if cpu is not None and before is not None:
                used = (cpu - before) / (now - sampled)
                bytes_of = carried.look(now - sampled)
                rows.append([round(now - began, 3), used, rss_mib([child.pid]), bytes_of])
            before, sampled = cpu, now
            last = time.monotonic()
    spent = [now - was for now, was in zip(machine_times(), times)]  # noqa: B905 (Python 3.9 knows no `strict`)
    step = (time.time() - wall) - (time.monotonic() - began)
    steal = 100 * spent[STEAL] / sum(spent) if sum(spent) > 0 else 0.0
    return {
        "longest_pause_ms": pause_ms,
        "runqueue_wait_s": waited_s,
        "steal_pct": steal,
        "oom_kills": oom_kills() - kills,
        "clock_step_s": step,
        "cores": os.cpu_count(),
        "began_s": began,
        "lasted_s": time.monotonic() - began,
        "rows": rows,
    }


def main() -> None:
    """Do what the first argument says."""
    act, *rest = sys.argv[1:]
    if act == "hold":
        hold()
    elif act == "start":
        print(start(json.loads(sys.stdin.readline())), flush=True)
    elif act == "wait":
        print(wait(rest[0]), flush=True)
    elif act == "fetch":
        sys.stdout.buffer.write((HOME / rest[0] / rest[1]).read_bytes())
    elif act == "signal":
        os.kill(int((HOME / rest[0] / "pid").read_text()), int(rest[1]))
    elif act == "remove":
        for file in (HOME / rest[0]).iterdir():
            file.unlink()
        (HOME / rest[0]).rmdir()
    elif act == "clock":
        for _ in sys.stdin:
            print(repr(time.monotonic()), flush=True)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
