"""Commands of the pipeline: all of it, one stage, and what its own stages call."""

from __future__ import annotations

import argparse

from benchbook.core.errors import InputErrors


def repro_options(parser: argparse.ArgumentParser) -> None:
    """Add what `benchbook repro` takes."""
    parser.add_argument("arguments", nargs="*", help="[--study NAME] and words for `dvc repro`")


def repro(arguments: argparse.Namespace) -> int:
    """Run the pipeline; return an exit code."""
    from benchbook.commands import repro

    words = arguments.arguments
    return repro.run(words[2:], words[1]) if words[:1] == ["--study"] else repro.run(words)


def pages(_: argparse.Namespace) -> int:
    """Rebuild the record and the pages about everything; return an exit code."""
    from benchbook.commands import repro

    return repro.pages()


def stage_options(parser: argparse.ArgumentParser) -> None:
    """Add what `benchbook stage` takes."""
    parser.add_argument("stage", help="a stage in dvc.yaml, such as parse, or several as parse,analyze")
    parser.add_argument("study", help="name of a file in studies/")
    parser.add_argument("--here", action="store_true", help="in this process, without a kernel of its own")


def stage(arguments: argparse.Namespace) -> int:
    """Run stages one after another until one fails; return an exit code."""
    from benchbook.commands import stage

    asked = arguments.stage.split(",")
    if wrong := [one for one in asked if one not in stage.STAGES]:
        raise InputErrors(
            [f"stage: {one}: no such stage; write one of {', '.join(stage.STAGES)}" for one in wrong]
        )
    return next((code for one in asked if (code := stage.run(one, arguments.study, arguments.here))), 0)


def code(arguments: argparse.Namespace) -> int:
    """Write which code each study's measuring runs; return an exit code."""
    from benchbook.commands import code

    return code.write()


def audit_options(parser: argparse.ArgumentParser) -> None:
    """Add what `benchbook audit` takes."""
    parser.add_argument("source", help="name of a folder in data/published/")


def audit(arguments: argparse.Namespace) -> int:
    """Audit one published source; return an exit code."""
    from benchbook.commands import stage

    return stage.audit(arguments.source)


def page(arguments: argparse.Namespace) -> int:
    """Render the page about everything that the command names; return an exit code."""
    from benchbook.commands import stage

    return stage.page(arguments.command)
