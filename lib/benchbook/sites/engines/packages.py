"""Servers of another version than is installed: packages laid out apart, or built from a commit."""

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
from benchbook.sites.tidb.build import locate_engines

TOOLS = ("apt-cache", "apt-get", "dpkg-deb")
FETCH_S = 600.0
END_LINES = 3


class NotBuiltError(SiteError):
    """A commit can't be built."""


def find_obstacle(engine: Engine) -> str | None:
    """Reason that a version can't be had, or None; nothing is fetched or built for the answer."""
    if engine.build is not None:
        return None if _find_commit(engine.build) is not None else _describe_unknown(engine.build)
    if not _is_missing(engine) or _laid_out(engine) is not None:
        return None
    of = descriptors.find_engine(engine.name)
    listed = [_strip_revision(version) for version in _list_versions(of.apart[0], engine)]
    if any(sql.is_version(text, engine.version) for text in listed):
        return None
    there = ", ".join(dict.fromkeys(listed)) or "none"
    fault = f"engine.version: {engine.version}: not installed, and this system's packages have {there}"
    return f"{fault}; write one of these, run `apt-get update`, or name its program in engine.binary"


def resolve_engine(engine: Engine) -> Engine:
    """An engine with a program: built from its commit if it names one, else fetched where it is missing."""
    if engine.build is not None:
        if (commit := _find_commit(engine.build)) is None:
            raise SiteError(_describe_unknown(engine.build))
        work = locate_engines() / "commits"
        program = build_commit(_locate_repo(engine.build), work, engine.build, commit)
        return engine.model_copy(update={"binary": str(program), "build": None})
    if not _is_missing(engine) or find_obstacle(engine) is not None:
        return engine
    program = _laid_out(engine) or _fetch_packages(engine)
    return engine.model_copy(update={"binary": str(program)})


def _is_missing(engine: Engine) -> bool:
    """True if the version asked for is not installed, of an engine that can lie apart."""
    of = descriptors.find_engine(engine.name)
    if engine.version is None or engine.binary is not None or engine.build is not None:
        return False
    if not of.apart or not all(map(shutil.which, TOOLS)):
        return False
    program, words = of.programs[0], load(of.code).version_words
    there = filter(None, {local_machine.find_program(program), *files.find_programs(program)})
    statements = [files.read_output([path, *of.version_by]) for path in there]
    versions = [match[1] for match in map(words.search, statements) if match]
    return not any(sql.is_version(item, engine.version) for item in versions)


def _fetch_packages(engine: Engine) -> Path:
    of = descriptors.find_engine(engine.name)
    listed = _list_versions(of.apart[0], engine)
    version = next(text for text in listed if sql.is_version(_strip_revision(text), engine.version))
    place = _locate_packages() / f"{engine.name}-{version.partition(':')[2] or version}"
    place.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    names = [_format_package(name, engine) for name in of.apart]
    print(f"fetching {', '.join(names)} {version} from this system's packages, once", flush=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as scratch:
        wanted = [f"{name}={version}" for name in names]
        _run_command(["apt-get", "download", "--quiet", *wanted], Path(scratch))
        tree = Path(scratch) / "tree"
        for package in sorted(Path(scratch).glob("*.deb")):
            _run_command(["dpkg-deb", "-x", str(package), str(tree)], Path(scratch))
        tree.chmod(0o755)
        if not place.exists():
            tree.rename(place)
    packages = _find_program(engine, place)
    if packages is None:
        raise SiteError(f"{place}: holds no {of.programs[0]}; name one in engine.binary")
    return packages


def _run_command(argv: list[str], folder: Path) -> None:
    try:
        done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=FETCH_S)
    except subprocess.TimeoutExpired:
        raise SiteError(f"`{' '.join(argv)}` took more than {FETCH_S:.0f} s; try again") from None
    if done.returncode:
        raise SiteError(f"`{' '.join(argv)}` ended with {done.returncode}: {done.stderr.strip()[-300:]}")


def _laid_out(engine: Engine) -> Path | None:
    for folder in sorted(_locate_packages().glob(f"{engine.name}-*"), reverse=True):
        version = _strip_revision(folder.name.removeprefix(f"{engine.name}-"))
        if sql.is_version(version, engine.version) and (out := _find_program(engine, folder)) is not None:
            return out
    return None


def _locate_packages() -> Path:
    return locate_engines() / "packages"


def _find_program(engine: Engine, folder: Path) -> Path | None:
    name = descriptors.find_engine(engine.name).programs[0]
    there = sorted(folder.rglob(name))
    return next((path for path in there if path.is_file() and os.access(path, os.X_OK)), None)


def _format_package(package: str, engine: Engine) -> str:
    return package.format(major=str(engine.version).split(".")[0])


def _list_versions(package: str, engine: Engine) -> Iterator[str]:
    """Versions of a package in the system's lists, newest first, as they name them."""
    name = _format_package(package, engine)
    for line in files.read_output(["apt-cache", "madison", name]).splitlines():
        words = [word.strip() for word in line.split("|")]
        if len(words) > 1 and words[0] == name:
            yield words[1]


def _strip_revision(version: str) -> str:
    """A package's version without epoch and the system's revision: 10.11.19 of 1:10.11.19-0+deb12u1."""
    return version.rpartition(":")[2].split("-")[0].split("+")[0]


def build_commit(repo: Path, work: Path, build: Build, commit: str) -> Path:
    """A commit's program, built in a worktree of its own below `work` unless it is there."""
    digest = hashlib.sha256(build.command.encode()).hexdigest()[:8]
    tree = work / f"{commit[:16]}-{digest}"
    new_commit, log = tree / build.binary, tree.with_suffix(".log")
    if new_commit.is_file():
        return new_commit
    # A server gives its rights away, and its user must reach the program.
    work.mkdir(mode=0o755, parents=True, exist_ok=True)
    if not tree.is_dir() and git.run_git("worktree", "prune", root=repo) is not None:
        git.run_git("worktree", "add", "--detach", "--force", str(tree), commit, root=repo)
    if not tree.is_dir():
        raise NotBuiltError(f"git can't lay {commit[:10]} of {repo} out below {work}")
    print(f"building {commit[:10]} with `{build.command}`, once", flush=True)
    with log.open("wb") as into:
        code = subprocess.run(["sh", "-c", build.command], cwd=tree, stdout=into, stderr=into).returncode
    if code or not new_commit.is_file():
        end = " ".join(log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-END_LINES:])
        raise NotBuiltError(f"`{build.command}` ended with {code}: {end or f'no {build.binary}'}")
    return new_commit


def _locate_repo(build: Build) -> Path:
    return (paths.find_root() / build.repo).resolve()


def _find_commit(build: Build) -> str | None:
    return git.resolve_commit(build.ref, _locate_repo(build))


def _describe_unknown(build: Build) -> str:
    return f"engine.build.ref: {build.ref}: git knows no such commit in {build.repo}; fetch it there first"
