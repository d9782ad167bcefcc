"""Servers of another version than is installed: packages laid out apart, or built from a commit."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchbook.core.study import descriptors
from benchbook.core.study.study_sections import Build, Engine
from benchbook.core.util import git, paths
from benchbook.core.util.errors import SiteError
from benchbook.sites import load, sql
from benchbook.sites.agent import files
from benchbook.sites.machine import local_machine
from benchbook.sites.tidb.build import engines

TOOLS = ("apt-cache", "apt-get", "dpkg-deb")
FETCH_S = 600.0
END_LINES = 3


class NotBuiltError(SiteError):
    """A commit can't be built."""


def obstacle(engine: Engine) -> str | None:
    """Return why a version can't be had, or None; nothing is fetched or built to find out."""
    if engine.build is not None:
        return None if _commit(engine.build) is not None else _unknown(engine.build)
    if not _is_missing(engine) or _laid_out(engine) is not None:
        return None
    listed = [_upstream(one) for one in _listed(descriptors.engine(engine.name).apart[0], engine)]
    if any(sql.is_version(one, engine.version) for one in listed):
        return None
    there = ", ".join(dict.fromkeys(listed)) or "none"
    return (
        f"engine.version: {engine.version}: not installed, and this system's packages have {there}; "
        "write one of these, run `apt-get update`, or name its program in engine.binary"
    )


def resolved(engine: Engine) -> Engine:
    """Return an engine whose program is there: built from its commit where the study names one, else fetched
    from the system's packages where it is missing."""
    if engine.build is not None:
        if (commit := _commit(engine.build)) is None:
            raise SiteError(_unknown(engine.build))
        made = build(_folder(engine.build), engines() / "commits", engine.build, commit)
        return engine.model_copy(update={"binary": str(made), "build": None})
    if not _is_missing(engine) or obstacle(engine) is not None:
        return engine
    found = _laid_out(engine) or _fetched(engine)
    return engine.model_copy(update={"binary": str(found)})


def _is_missing(engine: Engine) -> bool:
    """Say whether a version was asked for that is not installed, of an engine that can lie apart."""
    of = descriptors.engine(engine.name)
    if engine.version is None or engine.binary is not None or engine.build is not None or not of.apart:
        return False
    if any(shutil.which(tool) is None for tool in TOOLS):
        return False
    program, words = of.programs[0], load(of.code).version_words
    said = [
        files.says([one, *of.version_by])
        for one in {local_machine.find(program), *files.programs(program)}
        if one
    ]
    known = [match[1] for match in map(words.search, said) if match]
    return not any(sql.is_version(one, engine.version) for one in known)


def _fetched(engine: Engine) -> Path:
    of = descriptors.engine(engine.name)
    fits = (one for one in _listed(of.apart[0], engine) if sql.is_version(_upstream(one), engine.version))
    version = next(fits)
    place = _packages() / f"{engine.name}-{version.partition(':')[2] or version}"
    place.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    names = [_named(name, engine) for name in of.apart]
    print(f"fetching {', '.join(names)} {version} from this system's packages, once", flush=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as scratch:
        _run(["apt-get", "download", "--quiet", *(f"{name}={version}" for name in names)], Path(scratch))
        tree = Path(scratch) / "tree"
        for package in sorted(Path(scratch).glob("*.deb")):
            _run(["dpkg-deb", "-x", str(package), str(tree)], Path(scratch))
        tree.chmod(0o755)
        if not place.exists():
            tree.rename(place)
    found = _program(engine, place)
    if found is None:
        raise SiteError(f"{place}: holds no {of.programs[0]}; name one in engine.binary")
    return found


def _run(argv: list[str], folder: Path) -> None:
    try:
        done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=FETCH_S)
    except subprocess.TimeoutExpired:
        raise SiteError(f"`{' '.join(argv)}` took more than {FETCH_S:.0f} s; try again") from None
    if done.returncode:
        raise SiteError(f"`{' '.join(argv)}` ended with {done.returncode}: {done.stderr.strip()[-300:]}")


def _laid_out(engine: Engine) -> Path | None:
    for folder in sorted(_packages().glob(f"{engine.name}-*"), reverse=True):
        version = _upstream(folder.name.removeprefix(f"{engine.name}-"))
        if sql.is_version(version, engine.version) and (found := _program(engine, folder)) is not None:
            return found
    return None


def _packages() -> Path:
    return engines() / "packages"


def _program(engine: Engine, folder: Path) -> Path | None:
    name = descriptors.engine(engine.name).programs[0]
    there = sorted(folder.rglob(name))
    return next((one for one in there if one.is_file() and os.access(one, os.X_OK)), None)


def _named(package: str, engine: Engine) -> str:
    return package.format(major=str(engine.version).split(".")[0])


def _listed(package: str, engine: Engine) -> Iterator[str]:
    """Yield the versions of a package in the system's lists, newest first, as they name them."""
    name = _named(package, engine)
    for line in files.says(["apt-cache", "madison", name]).splitlines():
        words = [word.strip() for word in line.split("|")]
        if len(words) > 1 and words[0] == name:
            yield words[1]


def _upstream(version: str) -> str:
    """Return what a package's version says of its program: without epoch and the system's own revision.

    >>> _upstream("1:10.11.19-0+deb12u1")
    '10.11.19'
    """
    return version.rpartition(":")[2].split("-")[0].split("+")[0]


def build(repo: Path, work: Path, asked: Build, commit: str) -> Path:
    """Program of a commit, built in a worktree below `work` at need; NotBuiltError with the log's end."""
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
    return git.commit(asked.ref, _folder(asked))


def _unknown(asked: Build) -> str:
    return f"engine.build.ref: {asked.ref}: git knows no such commit in {asked.repo}; fetch it there first"
