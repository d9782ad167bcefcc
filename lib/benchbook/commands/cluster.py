"""The command `benchbook cluster`, and the question of `benchbook down`: clusters that cost money."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchbook.core import load, paths
from benchbook.core.study import Study


def options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    parser.add_argument("study", help="name of a file in studies/")
    parser.add_argument(
        "act", choices=("up", "down"), help="make what is missing, or remove it once confirmed"
    )


def run(arguments: argparse.Namespace) -> int:
    """Make or remove a study's cluster; return an exit code."""
    from benchbook.sites.gke import commands
    from benchbook.sites.lab import lab_folder

    study, folder = load.study(arguments.study), lab_folder(paths.root(), arguments.study)
    if arguments.act == "down":
        return 0 if commands.down(folder) else 1
    kubeconfig = commands.up(study, folder)
    for volume in commands.prepare_nodes(study, folder, kubeconfig):
        print(f"volume {volume}")
    print(f"export BENCHBOOK_KUBECONFIG={kubeconfig}")
    return 0


def summary(study: Study) -> str:
    """Return what makes a study's cluster, as `plan` shows it; empty where it names no cluster to make."""
    if study.site.kubernetes is None or study.site.kubernetes.gke is None:
        return ""
    from benchbook.sites.gke import commands

    return "\n".join(f"  {line}" for line in commands.summary(study))


def left(lab_root: Path, ask: Callable[[str], str] | None = None, **given: Any) -> list[str]:
    """Offer to remove every cluster that labs below a folder made; return what is still there, in words."""
    from benchbook.sites.arms import clean
    from benchbook.sites.gke import commands

    # Without a person at the terminal nothing is removed.
    question = ask or (input if sys.stdin.isatty() else lambda said: "")
    found = []
    for folder in clean.find_labs(lab_root):
        known = commands.recorded(folder)
        if known is not None and not commands.down(folder, question, **given):
            found.append(
                f"the cluster {known[0].name} is still there and costs money: "
                f"`benchbook cluster {folder.name} down`"
            )
    return found
