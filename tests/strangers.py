"""What a stranger does to a process: traces it, counts its events, stops it again and again."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psutil

from tests import beside

# PTRACE_SEIZE of <linux/ptrace.h>: it traces without stopping.
SEIZE = """
import ctypes, os, time
libc = ctypes.CDLL(None, use_errno=True)
assert libc.ptrace(0x4206, {pid}, None, None) == 0, ctypes.get_errno()
print(os.getpid(), flush=True)
time.sleep(600)
"""
# perf_event_open(2) of a software event, PERF_COUNT_SW_TASK_CLOCK: 64 bytes of attributes, the rest are zero.
COUNT = """
import ctypes, os, struct, time
attributes = struct.pack("=IIQ", 1, 64, 1) + bytes(48)
number = {"x86_64": 298, "aarch64": 241}[os.uname().machine]
opened = ctypes.CDLL(None).syscall(number, ctypes.create_string_buffer(attributes), os.getpid(), -1, -1, 0)
print(os.getpid() if opened > 0 else 0, flush=True)
time.sleep(600)
"""


@contextmanager
def running(program: str) -> Iterator[bool]:
    """Run a program of Python that is no child of ours; say whether it could do what it is for."""
    away = ["setsid", "--fork", sys.executable, "-c", program]
    with subprocess.Popen(away, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        pid = int(child.stdout.readline() or 0)
        try:
            yield pid != 0
        finally:
            if pid:
                with contextlib.suppress(psutil.NoSuchProcess):
                    # What it did ends with it, and it is no child that the kernel would wait for.
                    (tracer := psutil.Process(pid)).kill()
                    tracer.wait(10)


@contextmanager
def stopping(pid: int, each_s: float = 0.1, still_s: float = 0.05) -> Iterator[None]:
    """Let a process stand still for a part of each stretch of time."""

    def stop() -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
            time.sleep(still_s)
            os.kill(pid, signal.SIGCONT)

    with beside.again(stop, each_s - still_s):
        yield
