"""Inheritance of this process: passwords in its environment, and the mode of new files.

A study may name the variable that holds an account's password. A program that doesn't need it takes it out of
its environment before it starts another one, and out of its own memory that the kernel shows as `environ`.
"""

import ctypes
import os
import re
from collections.abc import Iterable

from benchbook.core.util import paths

NAMED = re.compile(r"\bpassword_env\s*[\"']?\s*:\s*[\"']?([A-Z][A-Z0-9_]{0,63})\b")
OTHERS_WRITE = 0o022

_hidden: dict[str, str] = {}


def drop_passwords(needed: Iterable[str] = ()) -> None:
    """Hide passwords, but those `needed`, from programs that inherit them; `read_password` has all."""
    libc = ctypes.CDLL(None)
    libc.getenv.restype = ctypes.c_void_p
    texts = [file.read_bytes() for several in paths.study_files().values() for file in several]
    named = {name for text in texts for name in NAMED.findall(text.decode("utf-8", "replace"))}
    for name in (named - {*needed}) & {*os.environ}:
        # The value in its original place is overwritten; the interpreter has a copy.
        if place := libc.getenv(os.fsencode(name)):
            ctypes.memset(place, 0, len(os.fsencode(os.environ[name])))
        if value := os.environ.pop(name):
            _hidden[name] = value


def read_password(name: str) -> str:
    """The password that a variable holds or held; empty if it was never set."""
    return os.environ.get(name) or _hidden.get(name, "")


def restrict_umask() -> None:
    """See that nothing this process and its children make can be written by others, whatever the umask."""
    os.umask(os.umask(0o077) | OTHERS_WRITE)
