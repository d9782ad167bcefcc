"""Calls in processes of their own that need not import everything again: each is a copy of one that has."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Call = Callable[..., tuple[int, Any, str]]
# A copy ends by os._exit: what the first process had begun is not the copy's to end.
LOOP = """
import json, os, sys, traceback

for asked in sys.stdin:
    answer, printed, *words = json.loads(asked)
    if (copy := os.fork()) == 0:
        into = os.open(printed, os.O_WRONLY)
        os.dup2(into, 1)
        os.dup2(into, 2)
        code = 1
        try:
            with open(answer, "w") as file:
                json.dump(call(*words), file)
            code = 0
        except BaseException:
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1]), flush=True)
"""


@contextlib.contextmanager
def calls(program: str, **given: Any) -> Iterator[Call]:
    """Return a function that calls `call` of a Python program with some words, each time in a fresh copy.

    It returns the copy's exit code, what `call` returned (None where it ended badly), and all it printed.
    The program is run once; `given` is for the process that runs it, such as its environment.
    """
    argv = [sys.executable, "-c", program + LOOP]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with tempfile.TemporaryDirectory() as folder, subprocess.Popen(argv, **pipes, **given) as process:
        answer, printed = Path(folder, "answer"), Path(folder, "printed")

        def call(*words: str | os.PathLike[str]) -> tuple[int, Any, str]:
            answer.write_text("null")
            printed.write_text("")
            asked = json.dumps([str(one) for one in (answer, printed, *words)])
            assert process.stdin is not None and process.stdout is not None
            print(asked, file=process.stdin, flush=True)
            code = int(process.stdout.readline())
            return code, json.loads(answer.read_text() or "null"), printed.read_text(errors="replace")

        yield call
