"""Arms that are commits of a server: which they are, where they are built, the study that compares them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from benchbook.core.study.study import Study
from benchbook.core.study.study_sections import Build
from benchbook.core.util import git, paths
from benchbook.core.util.errors import InputErrors
from benchbook.sites.engines import packages

# Options that say how a commit is built, and their keys in `engine.build`, which says what is left out.
OPTIONS = {"repo": "repo", "build": "command", "binary": "binary"}


def asked(study: Study, **given: str | None) -> Build:
    """Return how a commit is built; InputErrors with each of `OPTIONS` that neither words nor study give."""
    known = study.engine.build.model_dump() if study.engine.build is not None else {"ref": "HEAD"}
    if study.engine.build is not None:
        known["repo"] = str((paths.root() / known["repo"]).resolve())
    known |= {OPTIONS[name]: word for name, word in given.items() if word is not None}
    absent = [
        f"--{name}: missing; give it, or write engine.build.{key} in the study"
        for name, key in OPTIONS.items()
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
        yield partial(packages.build, repo, work.resolve(), asked)
        return
    try:
        with tempfile.TemporaryDirectory(prefix="benchbook-built-") as folder:
            # A server gives its rights away, and its user must reach the program.
            Path(folder).chmod(0o755)
            yield partial(packages.build, repo, Path(folder).resolve(), asked)
    finally:
        git.says("worktree", "prune", root=repo)


@contextmanager
def compared(
    study: Study, base: str | None, head: str | None, work: Path | None, **built_by: Any
) -> Iterator[Study]:
    """Build the two commits that are to be compared, and return the study of them; as it is without any."""
    refs = {"base": base, "head": head}
    if not any(refs.values()):
        yield study
        return
    if wrong := [
        f"--{name}: missing; a base and a head are compared" for name, ref in refs.items() if not ref
    ]:
        raise InputErrors(wrong)
    how = asked(study, **built_by)
    of = {name: commit(how.repo, str(ref), f"--{name}") for name, ref in refs.items()}
    with builder(how, work) as build:
        yield arms(study, {name: build(one) for name, one in of.items()})


def commit(repo: str, ref: str, option: str) -> str:
    """Return the commit that a word names; InputErrors, which names the option, where git knows none."""
    if (found := git.commit(ref, Path(repo))) is None:
        raise InputErrors([f"{option}: {ref}: git knows no such commit in {repo}"])
    return found
