"""`benchbook bisect`: the first commit of a server that is slower than an earlier one, found by gates.

Each commit is built once, in a worktree of its own, and measured beside the good one in the same minutes.
"""

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

GOOD, ASKED = "good", "asked"
NOTHING = "there is nothing to look for; ask with a smaller --slower or more --minutes"
TRIES = 3
"""Gates for one commit, each with twice the minutes of the one before, until its answer is decided."""
EXIT_CODES = {1: 0, 0: 1}
"""By how many commits are left; several end with 2."""


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
    say: Callable[[str], None] = print
    answers: dict[str, GateAnswer] = field(default_factory=dict)
    unbuilt: set[str] = field(default_factory=set)

    def answer(self, commit: str) -> Answer | None:
        """Ask of a commit until it is decided; None if it can't be built, `undecided` after all tries."""
        minutes = self.minutes
        for _ in range(TRIES):
            try:
                gate_answer = self.answers[commit] = self.ask(commit, minutes, self.margin)
            except packages.NotBuiltError as error:
                self.say(f"bisect: {commit[:10]}: left out: {error}")
                self.unbuilt.add(commit)
                return None
            self.say(f"bisect: {commit[:10]}: {gate_answer.answer}: {gate_answer.effect}")
            if gate_answer.answer != "undecided":
                return gate_answer.answer
            minutes *= 2
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
        search.say(f"bisect: the others are asked for half of what is lost at least: {100 * half:.1f} %")
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
            of_commits = commit_builds.build_arms(gate_request.study, {GOOD: baseline, ASKED: build(commit)})
            of = dataclasses.replace(gate_request, study=of_commits, minutes=minutes, margin=margin)
            gate_result = gate.measure_blocks(of, say=lambda line: print(f"  {line}", file=sys.stderr))
            effects = "; ".join(
                f"{decision.workload} {gate_report.format_effect(decision)}"
                for decision in gate_result.decisions
            )
            slower = (
                require_value(decision.interval.log_high)
                for decision in gate_result.decisions
                if decision.answer == "slower"
            )
            return GateAnswer(gate_result.answer, effects, -math.expm1(min(slower, default=0.0) / 2))

        search = Search(after, ask, gate_request.minutes, gate_request.margin)
        left = narrow_commits(search)
    print(describe_result(search, left, lambda commit: says("log", "-1", "--format=%h %s", commit) or commit))
    return EXIT_CODES.get(len(left), 2)


def describe_result(search: Search, left: Sequence[str], describe: Callable[[str], str]) -> str:
    """Text on the first slower commit, or the candidates for it, each with its measured effect."""
    if not left:
        return f"the bad commit {search.commits[-1][:10]} is not slower: {NOTHING}"
    first = "the first slower commit" if len(left) == 1 else f"the first slower commit is one of {len(left)}"
    lines = [f"{first}:"]
    for commit in left:
        gate_answer = search.answers.get(commit)
        observed = f"{gate_answer.answer} {gate_answer.effect}" if gate_answer else "not asked"
        shown = "could not be built" if commit in search.unbuilt else observed
        lines.append(f"  {describe(commit).strip()}: {shown}")
    return "\n".join(lines)
