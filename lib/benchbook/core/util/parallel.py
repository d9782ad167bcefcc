"""Several processes that give their results in the order of their tasks."""

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from multiprocessing import connection
from typing import Any

from benchbook.core.util.errors import BenchbookError

# Below so many tasks one process has done them before others have started.
WORTH_IT = 200
MOST = 8
# Tasks handed out ahead of the one whose result is waited for: results never pile up.
AHEAD = 2

Each = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]
# Hands a function and its arguments to another process.
Submit = Callable[..., Future[Any]]


@contextmanager
def map_tasks(tasks: int, cores: int | None = None) -> Iterator[Each]:
    """A function like `map`: over several processes if there are many tasks and several cores.

    Function and tasks travel to other processes, so they must be picklable. Results come in order, and only
    a few are computed ahead.
    """
    number = min(cores or len(os.sched_getaffinity(0)), MOST)
    if tasks < WORTH_IT or number < 2:
        yield map
        return
    with process_pool(number) as submit:
        yield partial(_in_order, submit, number)


@contextmanager
def process_pool(number: int | None = None) -> Iterator[Submit]:
    """Submitter of functions to so many processes (None: as many as there are cores).

    With one it is done at once, in this process. The processes start with the first task. BenchbookError if
    one of them is killed, as the kernel does where memory runs out.
    """
    number = number or len(os.sched_getaffinity(0))
    if number < 2:
        yield _at_once
        return
    # Not forked: a notebook's kernel has threads, and a fork copies their locks but not them.
    context = multiprocessing.get_context("spawn")
    try:
        with ProcessPoolExecutor(number, context, initializer=end_with_parent) as pool:
            yield partial(_submit_task, pool)
    except BrokenProcessPool:
        raise BenchbookError(
            "a process that worked for this one was killed, by the kernel where memory ran out (`dmesg` says "
            "so) or by hand; what was complete is kept, and the same command goes on"
        ) from None


def _submit_task(pool: ProcessPoolExecutor, *task: Any, **named: Any) -> Future[Any]:
    """Hand a task over; its process does not hear Ctrl-C, left to its parent."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        return pool.submit(*task, **named)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _at_once(function: Callable[..., Any], /, *inputs: Any, **named: Any) -> Future[Any]:
    done: Future[Any] = Future()
    try:
        done.set_result(function(*inputs, **named))
    except Exception as error:
        done.set_exception(error)
    return done


def _in_order(
    submit: Submit, number: int, function: Callable[[Any], Any], tasks: Iterable[Any]
) -> Iterator[Any]:
    waiting: deque[Future[Any]] = deque()
    for task in tasks:
        waiting.append(submit(function, task))
        if len(waiting) > AHEAD * number:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def end_with_parent() -> None:
    """End this process when the one that started it ends, however that ends."""

    def watch(parent: Any) -> None:
        connection.wait([parent.sentinel])
        os._exit(1)

    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=watch, args=(parent,), daemon=True).start()
