"""`benchbook bisect`: the first commit of a server that is slower than an earlier one, found by gates.

Each commit is built once, in a worktree of its own, and measured beside the good one in the same minutes.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from benchbook.commands import built, gate, gate_report
from benchbook.compare.noninferiority import Answer
from benchbook.core.errors import BenchbookError, InputErrors
from benchbook.sites.engines import commits

GOOD, ASKED = "good", "asked"
TRIES = 3
"""Gates for one commit, each with twice the minutes of the one before, until its answer is decided."""
NOT_FOUND = 2

Gate = Callable[[str, float], tuple[Answer, str]]
"""Asks whether a commit is slower than the good one within so many minutes; returns answer and effect."""


@dataclass
class Search:
    """Where a search stands: commits after the good one, oldest first, and what is known of them."""

    commits: Sequence[str]
    ask: Gate
    minutes: float
    say: Callable[[str], None] = print
    known: dict[str, tuple[Answer, str]] = field(default_factory=dict)
    unbuilt: set[str] = field(default_factory=set)

    def answer(self, commit: str) -> Answer | None:
        """Ask of a commit until it is decided; None if it can't be built, `undecided` after all tries."""
        minutes = self.minutes
        for _ in range(TRIES):
            try:
                self.known[commit] = self.ask(commit, minutes)
            except commits.NotBuiltError as error:
                self.say(f"bisect: {commit[:10]}: left out: {error}")
                self.unbuilt.add(commit)
                return None
            answer, effect = self.known[commit]
            self.say(f"bisect: {commit[:10]}: {answer}: {effect}")
            if answer != "undecided":
                return answer
            minutes *= 2
        return "undecided"


def narrowed(search: Search) -> list[str]:
    """Return the commits among which the first slower one is, oldest first; one, where all could be decided.

    The last commit is asked first. BenchbookError where it is not slower: then there is nothing to look for.
    """
    last = search.commits[-1]
    if (answer := search.answer(last)) != "slower":
        raise BenchbookError(
            f"the bad commit {last[:10]} is {answer or 'not to be built'}: there is nothing to look for; "
            "ask with a smaller --slower or more --minutes"
        )
    low, high = 0, len(search.commits) - 1
    while open_ := [one for one in range(low, high) if search.commits[one] not in search.unbuilt]:
        middle = min(open_, key=lambda one: abs(2 * one - low - high + 1))
        answer = search.answer(search.commits[middle])
        if answer == "undecided":
            break
        if answer == "slower":
            high = middle
        elif answer == "not slower":
            low = middle + 1
    return list(search.commits[low : high + 1])


def options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    parser.add_argument("study", help="name of a file in studies/; its first arm is set up")
    parser.add_argument("--good", required=True, metavar="REF", help="a commit that is fast enough")
    parser.add_argument("--bad", required=True, metavar="REF", help="a later commit that is slower")
    built.options(parser)
    parser.add_argument("--slower", default="3%", metavar="PERCENT", help="what may be lost (default: 3%%)")
    parser.add_argument("--minutes", default="5", help="of each gate at first (default: 5)")


def run(arguments: argparse.Namespace) -> int:
    """Search and print; return 0 if one commit is left, 2 if more are."""
    asked = gate.ask(arguments.study, arguments.slower, arguments.minutes)
    how = built.asked(arguments, asked.study)
    good = built.commit(how.repo, arguments.good, "--good")
    bad = built.commit(how.repo, arguments.bad, "--bad")
    git = partial(built.git, Path(how.repo))
    after = git("rev-list", "--reverse", "--first-parent", f"{good}..{bad}").split()
    if not after:
        raise InputErrors([f"--bad: {arguments.bad}: no commit after {arguments.good}; write a later one"])
    print(f"bisect: {len(after)} commits after {good[:10]}", flush=True)
    with built.builder(how, arguments.work) as build:
        baseline = build(good)
        search = Search(
            after,
            lambda commit, minutes: _ask(asked, {GOOD: baseline, ASKED: build(commit)}, minutes),
            asked.minutes,
            partial(print, flush=True),
        )
        left = narrowed(search)
    print(told(search, left, partial(git, "log", "-1", "--format=%h %s")))
    return 0 if len(left) == 1 else NOT_FOUND


def told(search: Search, left: Sequence[str], describe: Callable[[str], str]) -> str:
    """Say which commit is the first slower one, or among which it is, each with what was measured of it."""
    first = "the first slower commit" if len(left) == 1 else f"the first slower commit is one of {len(left)}"
    lines = [f"{first}:"]
    for commit in left:
        answer, effect = search.known.get(commit, ("not asked", ""))
        shown = "could not be built" if commit in search.unbuilt else f"{answer} {effect}".strip()
        lines.append(f"  {describe(commit).strip()}: {shown}")
    return "\n".join(lines)


def _ask(asked: gate.Asked, binaries: Mapping[str, Path], minutes: float) -> tuple[Answer, str]:
    found = gate.measure(
        dataclasses.replace(asked, study=built.arms(asked.study, binaries), minutes=minutes),
        say=lambda line: print(f"  {line}", file=sys.stderr, flush=True),
    )
    return found.answer, "; ".join(f"{one.workload} {gate_report.effect(one)}" for one in found.decisions)
