"""Servers built from commits of their source, each once: two refs of a repository as two arms."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

from benchbook.core import git, paths
from benchbook.core.errors import SiteError
from benchbook.core.study_sections import Build, Engine
from benchbook.sites.tidb.build import engines

END_LINES = 3


class NotBuiltError(SiteError):
    """A commit can't be built."""


def obstacle(asked: Build) -> str | None:
    """Return why a commit can't be had, or None; nothing is built to find out."""
    if _commit(asked) is not None:
        return None
    return f"engine.build.ref: {asked.ref}: git knows no such commit in {asked.repo}; fetch it there first"


def resolved(engine: Engine) -> Engine:
    """Return an engine whose program is there: built from its commit, where the study names one."""
    if engine.build is None:
        return engine
    if (commit := _commit(engine.build)) is None:
        raise SiteError(str(obstacle(engine.build)))
    made = build(_folder(engine.build), engines() / "commits", engine.build, commit)
    return engine.model_copy(update={"binary": str(made), "build": None})


def build(repo: Path, work: Path, asked: Build, commit: str) -> Path:
    """Return a commit's program, built in a worktree of its own below `work` unless it is there.

    NotBuiltError with the end of the log.
    """
    digest = hashlib.sha256(asked.command.encode()).hexdigest()[:8]
    tree = work / f"{commit[:16]}-{digest}"
    made, log = tree / asked.binary, tree.with_suffix(".log")
    if made.is_file():
        return made
    # A server gives its rights away, and its user must reach the program.
    work.mkdir(mode=0o755, parents=True, exist_ok=True)
    if not tree.is_dir() and git.says("worktree", "prune", root=repo) is not None:
        git.says("worktree", "add", "--detach", "--force", str(tree), commit, root=repo)
    if not tree.is_dir():
        raise NotBuiltError(f"git can't lay {commit[:10]} of {repo} out below {work}")
    print(f"building {commit[:10]} with `{asked.command}`, once", flush=True)
    with log.open("wb") as into:
        code = subprocess.run(["sh", "-c", asked.command], cwd=tree, stdout=into, stderr=into).returncode
    if code or not made.is_file():
        end = " ".join(log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-END_LINES:])
        raise NotBuiltError(f"`{asked.command}` ended with {code}: {end or f'no {asked.binary}'}")
    return made


def _folder(asked: Build) -> Path:
    return (paths.root() / asked.repo).resolve()


def _commit(asked: Build) -> str | None:
    said = git.says("rev-parse", "--verify", "--quiet", f"{asked.ref}^{{commit}}", root=_folder(asked))
    return said.strip() if said else None
