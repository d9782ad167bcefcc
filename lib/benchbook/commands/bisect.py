"""`benchbook bisect`: the first commit of a server that is slower than an earlier one, found by gates."""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from benchbook.commands import commit_builds, gate, gate_report
from benchbook.compare.stats.noninferiority import Answer
from benchbook.core.util import git
from benchbook.core.util.errors import BenchbookError, InputErrors, require_value
from benchbook.sites.engines import packages

NOTHING = "there is nothing to look for; ask with a smaller --slower or more --minutes"
TRIES = 3
"""Gates for one commit, each with twice the minutes of the one before, until its answer is decided."""


class GateAnswer(NamedTuple):
    """Answer of a gate on a commit, each effect in words, and half of the least certain loss."""

    answer: Answer
    effect: str
    half: float = 0.0


Gate = Callable[[str, float, float], GateAnswer]
"""Asks whether a commit is slower than the good one by a margin, within so many minutes."""


@dataclass
class Search:
    """State of a search: commits after the good one, oldest first, and answers known of them."""

    commits: Sequence[str]
    ask: Gate
    minutes: float
    margin: float
    answers: dict[str, GateAnswer] = field(default_factory=dict)
    unbuilt: set[str] = field(default_factory=set)

    def answer(self, commit: str) -> Answer | None:
        """Ask of a commit until it is decided; None if it can't be built, `undecided` after all tries."""
        for attempt in range(TRIES):
            minutes = self.minutes * 2**attempt
            try:
                gate_answer = self.answers[commit] = self.ask(commit, minutes, self.margin)
            except packages.NotBuiltError as error:
                print(f"bisect: {commit[:10]}: left out: {error}")
                self.unbuilt.add(commit)
                return None
            print(f"bisect: {commit[:10]}: {gate_answer.answer}: {gate_answer.effect}")
            if gate_answer.answer != "undecided":
                return gate_answer.answer
        return "undecided"


def narrow_commits(search: Search) -> list[str]:
    """Commits that hold the first slower one, oldest first; one commit if all could be decided.

    The last commit is asked first, and the others whether they have lost half of what it lost at least, where
    that is more than the margin: short gates tell that. Empty where the last is not slower;
    BenchbookError where it stays undecided.
    """
    last = search.commits[-1]
    if (answer := search.answer(last)) == "not slower":
        return []
    if answer != "slower":
        raise BenchbookError(f"the bad commit {last[:10]} is {answer or 'not to be built'}: {NOTHING}")
    if (half := search.answers[last].half) > search.margin:
        search.margin = half
        print(f"bisect: the others are asked for half of what is lost at least: {100 * half:.1f} %")
    low, high = 0, len(search.commits) - 1
    while open_ := [number for number in range(low, high) if search.commits[number] not in search.unbuilt]:
        middle = min(open_, key=lambda item: abs(2 * item - low - high + 1))
        answer = search.answer(search.commits[middle])
        if answer == "undecided":
            break
        if answer == "slower":
            high = middle
        elif answer == "not slower":
            low = middle + 1
    return list(search.commits[low : high + 1])


def run_bisect(
    study: str, good: str, bad: str, slower: str, minutes: str, work: Path | None, **built_by: Any
) -> int:
    """Search and print; return 0 if one commit is left, 2 if more are, 1 if the bad one is not slower."""
    gate_request = gate.read_request(study, slower, minutes)
    how = commit_builds.resolve_build(gate_request.study, **built_by)
    first = commit_builds.resolve_commit(how.repo, good, "--good")
    last = commit_builds.resolve_commit(how.repo, bad, "--bad")
    says = partial(git.run_git, root=Path(how.repo))
    listed = says("rev-list", "--reverse", "--first-parent", f"{first}..{last}")
    if listed is None:
        raise BenchbookError(f"git can't list the commits of {how.repo} after {good}; see `git fsck` there")
    if not (after := listed.split()):
        raise InputErrors([f"--bad: {bad}: no commit after {good}; write a later one"])
    print(f"bisect: {len(after)} commits after {first[:10]}")
    with commit_builds.open_builder(how, work) as build:
        baseline = build(first)

        def ask(commit: str, minutes: float, margin: float) -> GateAnswer:
            arms = commit_builds.build_arms(gate_request.study, {"good": baseline, "asked": build(commit)})
            of = dataclasses.replace(gate_request, study=arms, minutes=minutes, margin=margin)
            result = gate.measure_blocks(of, say=lambda line: print(f"  {line}", file=sys.stderr))
            effects = (f"{item.workload} {gate_report.format_effect(item)}" for item in result.decisions)
            slower = (item.interval for item in result.decisions if item.answer == "slower")
            most = min((require_value(interval.log_high) for interval in slower), default=0.0)
            return GateAnswer(result.answer, "; ".join(effects), -math.expm1(most / 2))

        search = Search(after, ask, gate_request.minutes, gate_request.margin)
        left = narrow_commits(search)
    return _print_result(search, left, lambda commit: says("log", "-1", "--format=%h %s", commit) or commit)


def _print_result(search: Search, left: Sequence[str], describe: Callable[[str], str]) -> int:
    """Print the first slower commit, or the candidates for it, with measured effects; return an exit code."""
    if not left:
        print(f"the bad commit {search.commits[-1][:10]} is not slower: {NOTHING}")
        return 1
    print(f"the first slower commit{f' is one of {len(left)}' if len(left) > 1 else ''}:")
    for commit in left:
        answer = search.answers.get(commit)
        observed = f"{answer.answer} {answer.effect}" if answer else "not asked"
        shown = "could not be built" if commit in search.unbuilt else observed
        print(f"  {describe(commit).strip()}: {shown}")
    return 0 if len(left) == 1 else 2
