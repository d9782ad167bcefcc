"""Arms that are commits of a server: which they are, where they are built, the study that compares them."""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from benchbook.core import paths
from benchbook.core.errors import BenchbookError, InputErrors
from benchbook.core.study import Study
from benchbook.core.study_sections import Build
from benchbook.sites.engines import versions

# Each option's key in `engine.build`, its form, and what it is for.
OPTIONS: Mapping[str, tuple[str, str, str]] = {
    "repo": ("repo", "FOLDER", "git clone of the server"),
    "build": ("command", "COMMAND", "builds a commit, in its worktree"),
    "binary": ("binary", "PATH", "what is built, below the worktree"),
}


def options(parser: argparse.ArgumentParser) -> None:
    """Add what says how a commit is built; what is left out, the study's `engine.build` says."""
    for name, (_, metavar, about) in OPTIONS.items():
        parser.add_argument(f"--{name}", metavar=metavar, help=f"{about} (default: as engine.build says)")
    parser.add_argument(
        "--work", type=Path, metavar="FOLDER", help="keep what was built there (default: nothing is kept)"
    )


def asked(arguments: argparse.Namespace, study: Study) -> Build:
    """Return how a commit is built; InputErrors with each option that neither words nor study give."""
    known = study.engine.build.model_dump() if study.engine.build is not None else {"ref": "HEAD"}
    if study.engine.build is not None:
        known["repo"] = str((paths.root() / known["repo"]).resolve())
    given = {key: getattr(arguments, name) for name, (key, *_) in OPTIONS.items()}
    known |= {key: word for key, word in given.items() if word is not None}
    absent = [
        f"--{name}: missing; give it, or write engine.build.{key} in the study"
        for name, (key, *_) in OPTIONS.items()
        if key not in known
    ]
    if absent:
        raise InputErrors(absent)
    return Build(**known)


def arms(study: Study, binaries: Mapping[str, Path]) -> Study:
    """Return the study with its baseline arm once for each binary, the first as the new baseline."""
    first = study.arms[study.baseline].model_dump(exclude_unset=True)
    of_arm = {key: value for key, value in (first.get("engine") or {}).items() if key != "build"}
    made = {name: first | {"engine": of_arm | {"binary": str(path)}} for name, path in binaries.items()}
    engine = study.engine.model_copy(update={"build": None})
    return Study.model_validate(dict(study) | {"engine": engine, "arms": made})


@contextmanager
def builder(asked: Build, work: Path | None) -> Iterator[Callable[[str], Path]]:
    """Return what builds a commit, once, and gives its program; without `work` nothing of it stays."""
    repo = Path(asked.repo)
    if work is not None:
        work.mkdir(parents=True, exist_ok=True)
        yield partial(versions.build, repo, work.resolve(), asked)
        return
    try:
        with tempfile.TemporaryDirectory(prefix="benchbook-built-") as folder:
            # A server gives its rights away, and its user must reach the program.
            Path(folder).chmod(0o755)
            yield partial(versions.build, repo, Path(folder).resolve(), asked)
    finally:
        git(repo, "worktree", "prune")


def compared_options(parser: argparse.ArgumentParser) -> None:
    """Add what names two commits that are compared in place of a study's arms."""
    parser.add_argument("--base", metavar="REF", help="a commit to compare with, in place of the arms")
    parser.add_argument("--head", metavar="REF", help="the commit in question, with --base")
    options(parser)


@contextmanager
def compared(arguments: argparse.Namespace, study: Study) -> Iterator[Study]:
    """Build the two commits that are to be compared, and return the study of them; as it is without any."""
    refs = {"base": arguments.base, "head": arguments.head}
    if not any(refs.values()):
        yield study
        return
    if wrong := [
        f"--{name}: missing; a base and a head are compared" for name, ref in refs.items() if not ref
    ]:
        raise InputErrors(wrong)
    how = asked(arguments, study)
    of = {name: commit(how.repo, ref, f"--{name}") for name, ref in refs.items()}
    with builder(how, arguments.work) as build:
        yield arms(study, {name: build(one) for name, one in of.items()})


def commit(repo: str, ref: str, option: str) -> str:
    """Return the commit that a word names; InputErrors, which names the option, where git knows none."""
    try:
        return git(Path(repo), "rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}").strip()
    except BenchbookError:
        raise InputErrors([f"{option}: {ref}: git knows no such commit in {repo}"]) from None


def git(repo: Path, *words: str) -> str:
    """Return what git says in a clone; BenchbookError with its own words where it fails."""
    done = subprocess.run(["git", "-C", str(repo), *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchbookError(f"git {words[0]} in {repo}: {done.stderr.strip() or done.returncode}")
    return done.stdout
