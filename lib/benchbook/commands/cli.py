"""The command `benchbook`: of those in `commands.toml`, only the requested one's module is imported."""

from __future__ import annotations

import argparse
import errno
import importlib
import io
import os
import sys
import tomllib
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchbook.core.study import study_variants
from benchbook.core.util import process_env
from benchbook.core.util.errors import BenchbookError, InputErrors
from benchbook.sites.processes import signal_handling

KNOWN = Path(__file__).with_name("commands.toml")
PIPE_CLOSED = 141
"""The exit code of a program that SIGPIPE ends, as shells tell it."""
TYPES: dict[str, Callable[[str], Any]] = {"path": Path, "file": Path, "int": int, "float": float}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; print errors without a traceback. Exit codes: 0, 1 failed, 2 an input is wrong, or
    what the command has for both; 130 it was stopped, by whichever signal."""
    words = list(sys.argv[1:] if argv is None else argv)
    loads = tomllib.loads(KNOWN.read_text(encoding="utf-8"))
    request = words[0] if words else ""
    try:
        inputs = vars(_build_parser(loads, request).parse_args(words))
    except SystemExit as error:
        # Words that can't be read are no answer either.
        raise SystemExit(error.code and loads.get(request, {}).get("failed", error.code)) from None
    name = inputs.pop("command")
    # What is said stands in a file or a pipe at once, too.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)
    process_env.restrict_umask()
    with signal_handling.Command(name, loads[name].get("holds", False)) as command:
        code = _run_command(loads[name], partial(_call_command, loads[name], inputs), command)
    return signal_handling.STOPPED if command.is_stopped else code


def _call_command(entry: Mapping[str, Any], inputs: dict[str, Any]) -> object:
    """Result of a command; its module, perhaps heavy, is imported once its words are no mistake."""
    passed_on = inputs.get("words", ())
    named = passed_on[1:2] if passed_on[:1] == ["--study"] else inputs.get("study") or ()
    for study in [named] if isinstance(named, str) else named:
        study_variants.require_study(study)
    for word, about in entry.get("takes", {}).items():
        file = inputs.get(word.lstrip("-"))
        if about.get("type") == "file" and file is not None and not file.exists():
            raise BenchbookError(f"{file}: no such file")
    return _import_command(entry)(**inputs)


def _import_command(entry: Mapping[str, Any]) -> Callable[..., object]:
    room, _, called = entry["run"].partition(".")
    function: Callable[..., object] = getattr(importlib.import_module(f"benchbook.commands.{room}"), called)
    return function


def _run_command(
    entry: Mapping[str, Any], run: Callable[[], object], command: signal_handling.Command
) -> int:
    try:
        if not entry.get("measures"):
            process_env.drop_passwords()
        done = run()
        if isinstance(done, int):
            return done
        print(done)
        return 0
    except KeyboardInterrupt:
        return signal_handling.STOPPED
    except BrokenPipeError:
        # Whoever read us, such as `head`, has enough; what Python still has for it goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    except BaseException as error:
        # What it says of parts that were ended by the same signal is no news.
        if command.is_stopped:
            return signal_handling.STOPPED
        if (code := _print_error(error)) is None:
            if "failed" not in entry or not isinstance(error, Exception):
                raise
            traceback.print_exc()
        return int(entry.get("failed", code))


def _print_error(error: BaseException) -> int | None:
    """Print an error that names a remedy; return its exit code, None for one that does not."""
    message, code = f"benchbook: {error}", 1
    if isinstance(error, InputErrors):
        message, code = "\n".join(error.errors), 2
    elif isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        place = error.filename or "which one is not known"
        message = f"benchbook: no space left on the disk ({place}); what was complete is kept: "
        message += "free some space, run it again"
    elif isinstance(error, OSError) and error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        message = f"benchbook: {error.filename}: {error.strerror}; look at its owner, mode and mount (after "
        message += "`sudo make`, `sudo chown -R $USER .` helps)"
    elif not isinstance(error, BenchbookError):
        return None
    print(message, file=sys.stderr)
    return code


def _build_parser(entries: Mapping[str, Any], request: str) -> argparse.ArgumentParser:
    """Parser of all commands, with the options of the requested one."""
    parser = argparse.ArgumentParser(
        prog="benchbook",
        description="Reproducible database benchmarks: study files, six notebooks, one report.",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")
    for name, item in entries.items():
        form: dict[str, Any] = {"prefix_chars": "+", "add_help": False} if item.get("passes_on") else {}
        add_parser = commands.add_parser(name, help=item["about"], description=item["about"], **form)
        if name != request:
            continue
        add_parser.set_defaults(**item.get("given", {}))
        for word, about in item.get("takes", {}).items():
            kind: dict[str, Any] = {"type": TYPES[about["type"]]} if "type" in about else {}
            add_parser.add_argument(word, **(about | kind))
        # What follows from the installed engines stands in no file.
        if "options" in item:
            _import_command({"run": item["options"]})(add_parser)
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
