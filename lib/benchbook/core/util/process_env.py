"""Inheritance of this process: passwords in its environment, and the mode of new files.

A study may name the variable that holds an account's password. A program that doesn't need it takes it out of
its environment before it starts another one, and out of its own memory that the kernel shows as `environ`.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Iterable

from benchbook.core.util import paths

NAMED = re.compile(r"\bpassword_env\s*[\"']?\s*:\s*[\"']?([A-Z][A-Z0-9_]{0,63})\b")
OTHERS_WRITE = 0o022

_hidden: dict[str, str] = {}


def password_variables() -> set[str]:
    """Variables that the study files of this clone name as holding a password."""
    variables: set[str] = set()
    for several in paths.study_files().values():
        for file in several:
            variables.update(NAMED.findall(file.read_bytes().decode("utf-8", "replace")))
    return variables


def drop_passwords(needed: Iterable[str] = ()) -> None:
    """Take passwords out of the environment that its own programs inherit, but for those `needed` by them.

    `password` still finds those that this process may use itself.
    """
    kept = set(needed)
    for name in password_variables() - kept:
        if name in os.environ:
            _overwrite_value(name)
        value = os.environ.pop(name, None)
        if value:
            _hidden[name] = value


def _overwrite_value(name: str) -> None:
    """Overwrite a variable's value in its original place; the interpreter has a copy."""
    libc = ctypes.CDLL(None)
    libc.getenv.restype = ctypes.c_void_p
    if place := libc.getenv(os.fsencode(name)):
        ctypes.memset(place, 0, len(os.fsencode(os.environ[name])))


def read_password(name: str) -> str:
    """The password that a variable holds or held; empty if it was never set."""
    return os.environ.get(name) or _hidden.get(name, "")


def restrict_umask() -> None:
    """See that nothing this process and its children make can be written by others, whatever the umask."""
    os.umask(os.umask(0o077) | OTHERS_WRITE)
