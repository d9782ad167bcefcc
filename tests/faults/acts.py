"""What faults do: real signals, real rules, real statements. Each takes the scene it disturbs."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchbook.core.study.model import Endpoint
from benchbook.measure import sysbench
from benchbook.sites.processes import procfs
from benchbook.sites.workspace import read_secret
from tests.faults import outside_limits
from tests.faults.leftovers import COMMENT
from tests.faults.scene import Scene

PAUSE_S = 2.5


@dataclass(frozen=True)
class Fault:
    """One fault: its row of the matrix, what is done and when, and the checks one of which must name it."""

    row: str
    what: str
    act: Callable[[Scene], None]
    checks: tuple[str, ...]
    when: str = "running"
    arm: str = "direct"
    words: str = ""
    is_long: bool = True


def send(part: str, signum: signal.Signals) -> Callable[[Scene], None]:
    """Send a signal to the server, the proxy or the client."""
    return lambda scene: os.kill(_pid(scene, part), signum)


def pause(part: str) -> Callable[[Scene], None]:
    """Stop a part for a while."""

    def act(scene: Scene) -> None:
        pid = _pid(scene, part)
        os.kill(pid, signal.SIGSTOP)
        scene.undo(lambda: go_on(pid))
        time.sleep(PAUSE_S)
        go_on(pid)

    return act


def hang(part: str) -> Callable[[Scene], None]:
    """Stop a part for good."""
    return send(part, signal.SIGSTOP)


def go_on(pid: int) -> None:
    """Let a stopped process go on, if it is there."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)


def lock(scene: Scene) -> None:
    """Lock the tables from a foreign session for a while."""
    with scene.site.admin().connect() as connection:
        connection.exec_driver_sql("LOCK TABLES sbtest.sbtest1 WRITE, sbtest.sbtest2 WRITE")
        time.sleep(PAUSE_S)
        connection.exec_driver_sql("UNLOCK TABLES")


def sql(*statements: str) -> Callable[[Scene], None]:
    """Say something to the server as its administrator."""
    return lambda scene: scene.sql(*statements)


def setting(name: str, value: int, usual: int) -> Callable[[Scene], None]:
    """Change a setting of the living server until the attempt is judged."""

    def act(scene: Scene) -> None:
        scene.undo(lambda: scene.sql(f"SET GLOBAL {name} = {usual}"))
        scene.sql(f"SET GLOBAL {name} = {value}")

    return act


def limit(part: str, kind: str) -> Callable[[Scene], None]:
    """Put a part, or this process and what it starts (`stage`), into a group that others have limited."""

    def act(scene: Scene) -> None:
        pid = os.getpid() if part == "stage" else _pid(scene, part)
        (_group(scene, kind) / "cgroup.procs").write_text(str(pid))

    return act


def limit_client(kind: str) -> Callable[[Scene], None]:
    """Have the first client begin in such a group, as a rule of cgrules does."""

    def act(scene: Scene) -> None:
        scene.prefix = ["sh", "-c", f'echo $$ >{_group(scene, kind)}/cgroup.procs && exec "$@"', "sh"]

    return act


def _group(scene: Scene, kind: str) -> Path:
    """The folder of a limited group, which is removed once the attempt is judged."""
    folder = outside_limits.group(kind)
    scene.undo(lambda: outside_limits.remove(folder))
    return folder


def partition(seconds: float | None) -> Callable[[Scene], None]:
    """Drop every packet to the server's port, for a while or until the attempt is judged."""

    def act(scene: Scene) -> None:
        port = str(scene.study.site.port)
        rule = ["-i", "lo", "-p", "tcp", "--dport", port, "-m", "comment", "--comment", COMMENT, "-j", "DROP"]
        waiting = ["-D", "-I"]

        def remove() -> None:
            if waiting:
                command = ["iptables", "-w", waiting.pop(), "INPUT", *rule]
                subprocess.run(command, check=True, capture_output=True)

        remove()
        scene.undo(remove)
        if seconds is not None:
            time.sleep(seconds)
            remove()

    return act


def fill(disk: Path, left: int, each: str = "1M") -> Callable[[Scene], None]:
    """Fill a disk but for some bytes."""

    def act(scene: Scene) -> None:
        filler = disk / "filler"
        scene.undo(lambda: filler.unlink(missing_ok=True))
        subprocess.run(["dd", "if=/dev/zero", f"of={filler}", f"bs={each}"], capture_output=True, check=False)
        os.truncate(filler, filler.stat().st_size - left)

    return act


def reload_proxy(scene: Scene) -> None:
    """Start a second proxy that takes the port over and asks the first to end softly, as a reload does."""
    start(scene, [*procfs.read_command(scene.proxy).split(), "-sf", str(scene.proxy)])
    time.sleep(0.5)


def start(scene: Scene, argv: list[str], cores: set[int] | None = None) -> None:
    """Start a program, on some cores alone if they are named; it is killed once the attempt is judged."""
    pinned = (lambda: os.sched_setaffinity(0, cores)) if cores else None
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(argv, preexec_fn=pinned, **quiet)

    def end() -> None:
        process.kill()
        process.wait()

    scene.undo(end)


def second_client(scene: Scene) -> None:
    """Run another sysbench on the same server."""
    endpoint = Endpoint("127.0.0.1", scene.study.site.port, "sbtest", scene.site.lab.secret)
    argv = sysbench.run_argv(endpoint, scene.runs[0])
    start(scene, [word for word in argv if not word.startswith("--report-checkpoints")])
    time.sleep(1)


def starve(scene: Scene) -> None:
    """Keep the client's cores busy with ten loops until the attempt is judged."""
    cores = set(scene.site.cpus["client"] or os.sched_getaffinity(0))
    for _ in range(10 * len(cores)):
        start(scene, [sys.executable, "-c", "while True: pass"], cores)


def wrong_password(scene: Scene) -> None:
    """Give the account another password than the one in its file."""
    scene.sql("ALTER USER 'benchbook'@'127.0.0.1' IDENTIFIED BY 'another one'")
    _, word = read_secret(Path(scene.site.lab.secret))
    scene.undo(lambda: scene.sql(f"ALTER USER 'benchbook'@'127.0.0.1' IDENTIFIED BY '{word}'"))


def elsewhere(host: str, port: int) -> Callable[[Scene], None]:
    """Have the first attempt go to another place."""

    def act(scene: Scene) -> None:
        scene.endpoint = Endpoint(host, port, "sbtest", scene.site.lab.secret)

    return act


def silent_listener(scene: Scene) -> None:
    """Have the first attempt go to a port that accepts and never says a word."""
    listener = socket.create_server(("127.0.0.1", 0))
    scene.undo(listener.close)
    elsewhere("127.0.0.1", listener.getsockname()[1])(scene)


def few_files(scene: Scene) -> None:
    """Allow the client no file beside its outputs: with one more, a single thread sometimes gets through."""
    scene.prefix = ["prlimit", "--nofile=3:3"]


def reader(scene: Scene) -> None:
    """Look what the client's output goes into; a pipe could lose it."""
    scene.seen = [os.readlink(f"/proc/{scene.client.pid}/fd/{number}") for number in (0, 1, 2)]


def clock(scene: Scene, module: Any, patch: Any, step_s: float) -> None:
    """Set the clock that a module reads forward or back once it was read in a run; monotonic time goes on.

    The machine's own clock is everybody's, so this one is injected.
    """
    real = module.time
    read: list[float] = []

    class Clock:
        monotonic = staticmethod(real.monotonic)
        sleep = staticmethod(real.sleep)

        @staticmethod
        def time() -> float:
            if scene.client is not None:
                read.append(real.time())
            return real.time() + (step_s if len(read) > 1 else 0.0)

    patch.setattr(module, "time", Clock)


def _pid(scene: Scene, part: str) -> int:
    return scene.client.pid if part == "client" else getattr(scene, part)
