"""The command `benchbook`: what the Makefile's targets and the pipeline's stages call.

Each command lives in a module of its own or beside those of its kind, which adds its options and runs it;
only the one that was asked for is imported.
"""

from __future__ import annotations

import argparse
import errno
import importlib
import sys
from collections.abc import Sequence
from typing import Any

from benchbook.core import surroundings
from benchbook.core.errors import BenchbookError, InputErrors
from benchbook.sites.processes import end_signals

# Each command's function in a module beside this one, and what it is for. Options are added by the function
# `options`, or by `NAME_options` where a module has several commands.
COMMANDS = {
    "repro": (
        "repro.command",
        "run the pipeline, as `dvc repro` does, and see that everything it made was kept",
    ),
    "doctor": ("lab.doctor", "say what this machine can do, and what it can't and why"),
    "check": ("studies.check", "check params.yaml and every study file, and start nothing"),
    "plan": (
        "studies.plan",
        "show the schedule of a study and how long it takes, before a second is spent",
    ),
    "up": ("lab.up", "bring the arms of a study up and hold them until Ctrl-C, for a look by hand"),
    "down": ("lab.down", "stop everything this project started on this machine, remove what it set up"),
    "cluster": ("lab.cluster", "make or remove the cluster that a study describes (GKE), each command shown"),
    "calibrate": (
        "campaigns.command",
        "put questions whose answer is known to real servers, and keep the evidence",
    ),
    "stage": ("stage.command", "run one stage's notebook for a study, as the pipeline does"),
    "code": ("code.run", "say which code each study's measuring runs, as the pipeline does"),
    "audit": ("stage.audit", "audit one published source, as the pipeline does"),
    "method": ("stage.page", "render the page on the method, as the pipeline does"),
    "claims": ("stage.page", "render the page of claims, studies and sources, as the pipeline does"),
    "story": ("stage.page", "render the story of the five reports, as the pipeline does"),
    "findings": ("stage.page", "render the site's first page, as the pipeline does"),
    "publish": ("pages.publish", "put the site together in one folder, for any static host"),
    "export": ("archives.export", "pack a study's whole evidence into one archive"),
    "session": ("session.run", "measure what the record needs most on this machine, and record it"),
    "fleet": ("fleet.run", "measure a session of a study on each of several hosts, and pool them"),
    "record": ("record.command", "put a measured study into the record, data/record, as evidence in git"),
    "pages": (
        "repro.pages",
        "rebuild the record and all pages that need no measuring, and measure nothing",
    ),
    "remake": ("remake.command", "make recorded sessions again where something changed"),
    "verify": ("archives.verify", "check an archive: its hashes, its findings made again from raw files"),
    "new": ("new.run", "ask six questions and write a study file"),
    "review": ("review.command", "write one page on what changed: notebooks, keys, findings"),
    "rerun": ("archives.rerun", "judge another team's findings of a study by our own"),
    "gate": ("gate.run", "say by exit code if an arm is slower than the baseline: 0 no, 1 yes, 2 open"),
    "bisect": ("bisect.run", "find the first commit of a server that is slower than an earlier one"),
    "schema": ("studies.schema", "write the JSON schemas of study files, sources, findings and audits"),
    "reference": ("studies.reference", "write the pages that are made from code and studies"),
}
# Words after these are somebody else's, such as dvc's --force.
PASSED_ON = ("repro",)
# Studies are measured by these: the accounts of servers that others run stay in their environment.
MEASURING = ("repro", "stage", "session")
# These start servers, and end them in their own order when they are stopped.
HOLDING = ("stage", "session", "up", "down", "doctor", "calibrate", "gate", "bisect", "cluster")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; print errors without a traceback. Exit codes: 0, 1 failed, 2 an input is wrong,
    130 it was stopped, by whichever signal."""
    words = list(sys.argv[1:] if argv is None else argv)
    arguments = _parser(words[0] if words else "").parse_args(words)
    surroundings.close()
    with end_signals.Command(arguments.command, arguments.command in HOLDING) as command:
        code = _run(arguments, command)
    return end_signals.STOPPED if command.is_stopped else code


def _run(arguments: argparse.Namespace, command: end_signals.Command) -> int:
    try:
        if arguments.command not in MEASURING:
            surroundings.hide()
        return int(arguments.run(arguments))
    except InputErrors as error:
        print("\n".join(error.errors), file=sys.stderr)
        return 2
    except BenchbookError as error:
        print(f"benchbook: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        said = f"no space left on the disk ({error.filename or 'which one is not known'})"
        print(f"benchbook: {said}; what was complete is kept: free some space, run it again", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return end_signals.STOPPED
    except BaseException:
        if command.is_stopped:
            return end_signals.STOPPED
        raise


def _parser(asked: str) -> argparse.ArgumentParser:
    """Return the parser of all commands, with the options of the one that was asked for."""
    parser = argparse.ArgumentParser(
        prog="benchbook",
        description="Reproducible database benchmarks: study files, six notebooks, one report.",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")
    for name, (function, about) in COMMANDS.items():
        form: dict[str, Any] = {"prefix_chars": "+", "add_help": False} if name in PASSED_ON else {}
        made = commands.add_parser(name, help=about, description=about, **form)
        if name == asked:
            _ask_for(made, function)
    return parser


def _ask_for(parser: argparse.ArgumentParser, function: str) -> None:
    room, _, called = function.partition(".")
    module = importlib.import_module(f"benchbook.commands.{room}")
    parser.set_defaults(run=getattr(module, called))
    options = getattr(module, f"{called}_options", None) or getattr(module, "options", None)
    if options is not None:
        options(parser)


if __name__ == "__main__":
    raise SystemExit(main())
