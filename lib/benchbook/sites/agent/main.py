"""The agent's commands, as they are run on a host: `python3 agent.pyz COMMAND FOLDER`.

serve   start the agent of a folder, out of reach of this connection; what it needs to know comes on stdin
talk    carry requests and answers between this connection and the agent
look    say what this host is, and start nothing
drive   hold and make connections, as `sites.agent.connection_load` says
end     end the agent of a folder and all it started, also one that no longer answers
purge   the same, and remove its data
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchbook.core.util.errors import BenchbookError, SiteError
from benchbook.sites import workspace as labs
from benchbook.sites.agent import facts, jobs, kernel
from benchbook.sites.agent.server import BOOK, SOCKET, Agent
from benchbook.sites.processes import process, procfs

LOCK = "host.lock"
READY_S, END_S = 15.0, 90.0


def main() -> None:
    """Run one command; an error is one line of JSON, with exit code 1."""
    command, folder = sys.argv[1], Path(os.path.abspath(sys.argv[2]))
    try:
        if command == "drive":
            # What it needs takes time to load, and the agent itself has no use for it.
            from benchbook.sites.agent import connection_load

            connection_load.main(sys.argv[2:])
        elif command == "run":
            _run_agent(folder)
        elif command == "talk":
            _relay_bytes(folder)
        else:
            does = {"serve": _start_agent, "look": _inspect_host, "end": _end_agent, "purge": _purge_folder}
            print(json.dumps({"ok": does[command](folder)}), flush=True)
    except (BenchbookError, OSError) as error:
        print(json.dumps({"error": str(error)}), flush=True)
        sys.exit(1)


def _inspect_host(folder: Path) -> dict[str, Any]:
    order = json.loads(sys.stdin.readline())
    return facts.inspect_host(folder, order["required_programs"], order["programs"])._asdict()


def _start_agent(folder: Path) -> dict[str, Any]:
    order = json.loads(sys.stdin.readline())
    os.umask(os.umask(0o077) | 0o022)
    folder.mkdir(mode=0o711, parents=True, exist_ok=True)
    # A server's own user has to pass through; it can't look around.
    folder.chmod(0o711)
    _end_agent(folder)
    log = os.open(folder / "agent.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    argv = [sys.executable, sys.argv[0], "run", str(folder)]
    how: dict[str, Any] = {"cwd": "/", "start_new_session": True}
    env = {**process.PLAIN, process.TOKEN: order["token"], process.FOLDER: str(folder)}
    started = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=log, stderr=log, env=env, **how)
    assert started.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        started.stdin.write(json.dumps(order).encode() + b"\n")
        started.stdin.close()
    deadline = time.monotonic() + READY_S
    while not (folder / BOOK).exists() or not (folder / SOCKET).exists():
        if started.poll() is not None or time.monotonic() > deadline:
            last = (folder / "agent.log").read_text(encoding="utf-8", errors="replace").splitlines()[-1:]
            raise SiteError(last[0] if last else "the agent did not start")
        time.sleep(0.01)
    return json.loads((folder / BOOK).read_text(encoding="utf-8"))


def _run_agent(folder: Path) -> None:
    order = json.loads(sys.stdin.readline())
    lock = os.open(folder.parent / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print(f"this host is being measured by {os.pread(lock, 300, 0).decode('utf-8', 'replace')}")
        sys.exit(1)
    os.ftruncate(lock, 0)
    os.pwrite(lock, f"{order['owner']} in {folder}".encode(), 0)
    stat = procfs.read_stat(os.getpid())
    book = {"pid": os.getpid(), "started": stat.started if stat else 0, "owner": order["owner"]}
    agent = Agent(folder, order["token"], float(order["lease_s"]), (lock,))
    labs.write_private(folder / BOOK, json.dumps(book))
    agent.run()
    print(f"ended: {agent.why}", flush=True)


def _relay_bytes(folder: Path) -> None:
    """Carry bytes both ways until one side ends."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as agent:
        agent.connect(str(folder / SOCKET))
        sources: list[int | socket.socket] = [0, agent]
        while True:
            for item in select.select(sources, [], [])[0]:
                data = os.read(0, 1 << 16) if item == 0 else agent.recv(1 << 16)
                if not data:
                    return
                if item == 0:
                    agent.sendall(data)
                else:
                    sys.stdout.buffer.write(data)
                    sys.stdout.buffer.flush()


def _end_agent(folder: Path) -> dict[str, list[str]]:
    """End all that runs for a folder, the agent first, and with it the rest; lists, in words."""
    stopped = []
    for name, child in _find_processes(folder).items():
        stopped.append(name)
        # An agent ends its programs itself, and they take their time.
        process.stop_child(child, grace_s=END_S)
    stopped += jobs.run_at_end(folder) if folder.is_dir() else []
    settings = kernel.restore_settings(folder) if folder.is_dir() else []
    for name in (SOCKET, BOOK):
        (folder / name).unlink(missing_ok=True)
    return {"stopped": stopped, "removed": settings, "left": [*_find_processes(folder)]}


def _purge_folder(folder: Path) -> dict[str, list[str]]:
    done = _end_agent(folder)
    done["removed"] += jobs.run_at_end(folder, purge=True) if folder.is_dir() else []
    if not done["left"] and folder.is_dir():
        shutil.rmtree(folder)
        done["removed"].append(str(folder))
        # Where no lab is left on this host, what labs share goes too, this file among it.
        base = folder.parent
        shared = {base / LOCK, *base.glob("agent-*.pyz*")}
        if set(base.iterdir()) <= shared:
            for path in shared:
                path.unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                base.rmdir()
    return done


def _find_processes(folder: Path) -> dict[str, process.Child]:
    """Processes that were started with this folder by id and command, first started first; never by name."""
    living = process.find_living(lambda environment: environment.get(process.FOLDER) == str(folder))
    return {f"pid {child.pid} ({procfs.read_command(child.pid)})": child for child in living}
