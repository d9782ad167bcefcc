"""Arms that are commits of a server: their choice, their builds, and the study comparing them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from benchbook.core.study.study import StudySpec
from benchbook.core.study.study_sections import Build
from benchbook.core.util import git, paths
from benchbook.core.util.errors import InputErrors
from benchbook.sites.engines import packages

# Options that say how a commit is built, and their keys in `engine.build`, which says what is left out.
OPTIONS = {"repo": "repo", "build": "command", "binary": "binary"}


def resolve_build(study: StudySpec, **inputs: str | None) -> Build:
    """Build settings of a commit; InputErrors with each of `OPTIONS` that words and study lack."""
    build = study.engine.build.model_dump() if study.engine.build is not None else {"ref": "HEAD"}
    if study.engine.build is not None:
        build["repo"] = str((paths.find_root() / build["repo"]).resolve())
    build |= {OPTIONS[name]: word for name, word in inputs.items() if word is not None}
    absent = {name: key for name, key in OPTIONS.items() if key not in build}
    remedy = "missing; give it, or write engine.build"
    if absent:
        raise InputErrors([f"--{name}: {remedy}.{key} in the study" for name, key in absent.items()])
    return Build(**build)


def build_arms(study: StudySpec, binaries: Mapping[str, Path]) -> StudySpec:
    """The study with its baseline arm once for each binary, the first as the new baseline."""
    first = study.arms[study.baseline].model_dump(exclude_unset=True)
    of_arm = {key: value for key, value in (first.get("engine") or {}).items() if key != "build"}
    results = {name: first | {"engine": of_arm | {"binary": str(path)}} for name, path in binaries.items()}
    engine = study.engine.model_copy(update={"build": None})
    return StudySpec.model_validate(dict(study) | {"engine": engine, "arms": results})


@contextmanager
def open_builder(build: Build, work: Path | None) -> Iterator[Callable[[str], Path]]:
    """Function that builds a commit, once, and returns its program; without `work` nothing stays."""
    repo = Path(build.repo)
    if work is not None:
        work.mkdir(parents=True, exist_ok=True)
        yield partial(packages.build_commit, repo, work.resolve(), build)
        return
    try:
        with tempfile.TemporaryDirectory(prefix="benchbook-built-") as folder:
            # A server gives its rights away, and its user must reach the program.
            Path(folder).chmod(0o755)
            yield partial(packages.build_commit, repo, Path(folder).resolve(), build)
    finally:
        git.run_git("worktree", "prune", root=repo)


@contextmanager
def compare_commits(
    study: StudySpec, base: str | None, head: str | None, work: Path | None, **built_by: Any
) -> Iterator[StudySpec]:
    """Build the two commits to be compared; the study of them, or the study unchanged without any."""
    refs = {"base": base, "head": head}
    if not any(refs.values()):
        yield study
        return
    for name, ref in refs.items():
        if not ref:
            raise InputErrors([f"--{name}: missing; a base and a head are compared"])
    how = resolve_build(study, **built_by)
    of = {name: resolve_commit(how.repo, str(ref), f"--{name}") for name, ref in refs.items()}
    with open_builder(how, work) as build:
        yield build_arms(study, {name: build(text) for name, text in of.items()})


def resolve_commit(repo: str, ref: str, option: str) -> str:
    """The commit that a word names; InputErrors, naming the option, if git knows none."""
    if (commit := git.resolve_commit(ref, Path(repo))) is None:
        raise InputErrors([f"{option}: {ref}: git knows no such commit in {repo}"])
    return commit
