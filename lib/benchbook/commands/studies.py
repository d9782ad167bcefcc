"""Commands about study files: whether they are in order, what they plan, and what is written from them."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial

from benchbook.commands import lab
from benchbook.core import load, paths, pooled, sizes
from benchbook.core.errors import InputErrors


def check(arguments: argparse.Namespace) -> int:
    """Check params.yaml and every study file; return an exit code."""
    wrong: list[str] = []
    written = paths.studies()
    named = [*written, *(size for name in written for size in _sizes(name) if size not in written)]
    attempts: list[Callable[[], object]] = [load.params, *(partial(load.to_measure, name) for name in named)]
    for attempt in attempts:
        try:
            attempt()
        except InputErrors as error:
            wrong += error.errors
    if wrong:
        raise InputErrors(wrong)
    print(f"params.yaml and {len(written)} study files are in order")
    return 0


def _sizes(study: str) -> list[str]:
    try:
        return sizes.names(study)
    except InputErrors:
        return []  # Loading the study lists what is wrong with its file.


def plan_options(parser: argparse.ArgumentParser) -> None:
    """Add what `benchbook plan` takes."""
    parser.add_argument("study", help="name of a file in studies/")
    parser.add_argument("--runs", action="store_true", help="list every run in its order")
    parser.add_argument(
        "--manifests", action="store_true", help="print only what a cluster would get, as YAML"
    )


def plan(arguments: argparse.Namespace) -> int:
    """Print a study's schedule, what it takes, and what can't be made here; return an exit code."""
    from benchbook import sites
    from benchbook.compare import more_sessions
    from benchbook.plan import schedule
    from benchbook.sites.arms import obstacles

    study = load.to_measure(arguments.study)
    kind = sites.kind(study)
    if arguments.manifests and (manifests := kind.manifests(arguments.study, study)):
        print(manifests)
        return 0
    print(schedule.summary(arguments.study, study))
    advice = more_sessions.lines(pooled.of(arguments.study))
    for text in filter(None, (kind.needs(arguments.study, study), lab.cluster_summary(study), *advice)):
        print(text)
    for arm, why in obstacles.foreseen(study).items():
        print(f"  not made    {arm}: {why}")
    if arguments.runs:
        runs = schedule.table(schedule.sketched(arguments.study, study))
        if study.plan.seed is None:
            # Names and order follow from what a session draws.
            runs = runs.drop(columns=["position", "run_id", "seed"])
        print(runs.to_string(index=False))
    return 0


def schema_options(parser: argparse.ArgumentParser) -> None:
    """Add what `benchbook schema` takes."""
    parser.add_argument("--check", action="store_true", help="only say whether the file is current")


def schema(arguments: argparse.Namespace) -> int:
    """Write the JSON schemas of study files, sources, findings and audits; return an exit code."""
    from benchbook.core import reference as made

    return made.write_schemas(paths.root() / "schemas", check=arguments.check)


reference_options = schema_options


def reference(arguments: argparse.Namespace) -> int:
    """Write the pages that are made from code and studies; return an exit code."""
    from benchbook.commands import questions
    from benchbook.core import reference as made

    pages = {
        "studies/README.md": questions.build(),
        "docs/parameters.md": made.page(),
    }
    root = paths.root()
    return max(made.keep(root / name, text, "reference", arguments.check) for name, text in pages.items())
