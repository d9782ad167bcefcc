"""What a test waits for, and what it does in a thread beside its own work."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import psutil

LOOK_S = 0.05
# Longer than what is waited for takes on a machine that is busy with other tests; what is to be gone would
# mostly end by itself after a minute.
PATIENCE_S, GONE_S = 60.0, 20.0
Seen = TypeVar("Seen")


def until(has_come: Callable[[], Seen], within_s: float = PATIENCE_S) -> Seen:
    """Wait until something is so, at most some seconds; return what was seen last."""
    deadline = time.monotonic() + within_s
    while not (seen := has_come()) and time.monotonic() < deadline:
        time.sleep(LOOK_S)
    return seen


def gone(look: Callable[[], Seen], within_s: float = GONE_S) -> Seen:
    """Look until nothing is left, at most some seconds; return what is left then."""
    deadline = time.monotonic() + within_s
    while (left := look()) and time.monotonic() < deadline:
        time.sleep(LOOK_S)
    return left


@contextmanager
def working(work: Callable[[threading.Event], object]) -> Iterator[None]:
    """Let a function work beside the block; an event tells it that the block is over.

    What it raises is raised then.
    """
    over, troubles = threading.Event(), list[BaseException]()

    def run() -> None:
        try:
            work(over)
        except BaseException as trouble:
            troubles.append(trouble)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    if troubles:
        raise troubles[0]


@contextmanager
def once(has_come: Callable[[], object], act: Callable[[], object], after_s: float = 0.0) -> Iterator[None]:
    """Do something once, some seconds after its moment has come; AssertionError if it never came."""
    done: list[bool] = []

    def work(over: threading.Event) -> None:
        while not has_come():
            if over.wait(LOOK_S):
                return
        if not over.wait(after_s):
            act()
            done.append(True)

    with working(work):
        yield
    assert done, "its moment did not come as long as the work beside it lasted"


@contextmanager
def again(act: Callable[[], object], each_s: float = LOOK_S) -> Iterator[None]:
    """Do something again and again."""

    def work(over: threading.Event) -> None:
        while not over.wait(each_s):
            act()

    with working(work):
        yield


def clients() -> list[psutil.Process]:
    """Return our children that are sysbench, but those that have ended since they were listed."""
    found = []
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            found += [child] if child.name() == "sysbench" else []
    return found


def begun(raw: Path, arm: str = "*") -> int:
    """Count the clients of runs underway below a folder whose threads have started, by what they printed."""
    # A run that is over has another name.
    with contextlib.suppress(FileNotFoundError):
        outs = raw.glob(f"*-{arm}-*.part/**/sysbench.out")
        return sum(b"Threads started!" in out.read_bytes() for out in outs)
    return 0
