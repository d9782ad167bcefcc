"""Starting and ending several parts side by side, as most of the time is waiting.

Programs are started from the main thread alone, because they die with the thread that started them. Parts
that come up side by side therefore take turns there: each starts something and yields while it is not ready.
To end one needs no particular thread, so ends have a thread each.
"""

import contextlib
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Steps = Generator[None, None, None]
T = TypeVar("T")
_END = object()


def run_steps(steps: Steps, look_s: float) -> None:
    """Take all steps, with a pause after each; any end of the walk closes them for their cleanup."""
    with contextlib.closing(steps):
        for _ in steps:
            time.sleep(look_s)


def interleave_steps(*several: Steps) -> Steps:
    """Take the steps of several side by side; the first error closes all others and is raised."""
    with contextlib.ExitStack() as stack:
        left = [stack.enter_context(contextlib.closing(items)) for items in several]
        while left := [items for items in left if next(items, _END) is None]:
            yield


def at_once(ends: Sequence[Callable[[], T]]) -> list[T]:
    """Call each in a separate thread and return all results; none may start a program."""
    with ThreadPoolExecutor(max(1, len(ends))) as pool:
        calls = [pool.submit(end) for end in ends]
    return [call.result() for call in calls]
