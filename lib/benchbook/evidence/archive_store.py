"""Archives of recorded sessions outside the folder: in commits of this clone, or in a DVC remote.

The remote (a folder, S3, SSH, HTTP) is the one that `dvc remote default` names; each file has its SHA-256 for
a name there. What comes from either is checked before it stands in the record.
"""

from __future__ import annotations

import configparser
import subprocess
from pathlib import Path
from typing import Any

from benchbook.core.artifacts.record import RecordedSession
from benchbook.core.util import files, git, paths
from benchbook.core.util.errors import BenchbookError

FOLDER = "benchbook"
REMEDY = "`git fetch --unshallow` brings all commits, `dvc remote add -d NAME URL` names a remote"


def open_store() -> ArchiveStore:
    """The default remote of this clone; without one, its commits."""
    config = configparser.ConfigParser()
    config.read([paths.find_root() / ".dvc" / name for name in ("config", "config.local")], encoding="utf-8")
    # DVC itself takes a second to say so.
    return RemoteStore() if config.has_option("core", "remote") else ArchiveStore()


def bring_archive(session: RecordedSession) -> Path:
    """Archive of a session at its place in the record, fetched if it is not there."""
    return session.where.archive if session.where.archive.is_file() else open_store().fetch(session)


class ArchiveStore:
    """The commits of a clone. BenchbookError where none has an archive with the bytes of an entry."""

    name = "git's history"

    def put(self, session: RecordedSession) -> None:
        """Make sure that an archive can be fetched again."""
        if wrong := session.other_archive():
            raise BenchbookError(wrong)
        copy = session.where.archive.with_name(f".{session.id}.back")
        try:
            self._fetch(session, copy)
        finally:
            copy.unlink(missing_ok=True)

    def fetch(self, session: RecordedSession) -> Path:
        """Bring an archive to its place in the record; BenchbookError if it is not the entry's."""
        part = session.where.archive.with_name(f".{session.id}.part")
        part.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._fetch(session, part)
            _ignore_fetched(session)
            return part.replace(session.where.archive)
        finally:
            part.unlink(missing_ok=True)

    def _fetch(self, session: RecordedSession, target: Path) -> None:
        root, place = session.where.clone, session.archive_name
        listed = git.run_git("log", "--all", "--format=%H", "--diff-filter=AM", "--", place, root=root) or ""
        for commit in listed.split():
            with target.open("wb") as file:
                subprocess.run(["git", "-C", root, "cat-file", "blob", f"{commit}:{place}"], stdout=file)
            if files.digest_file(target) == session.entry.sha256:
                return
        raise BenchbookError(f"{place}: no commit of this clone has the archive of {session.id}: {REMEDY}")


def is_fetched(session: RecordedSession) -> bool:
    """True if the archive came from a commit or the remote, so that git ignores it in this clone."""
    return git.run_git("check-ignore", session.archive_name, root=session.where.clone) is not None


def _ignore_fetched(session: RecordedSession) -> None:
    """Let git ignore this one archive in this clone; a newly recorded one shows as untracked."""
    root, line = session.where.clone, f"/{session.archive_name}"
    if place := git.run_git("rev-parse", "--git-path", "info/exclude", root=root):
        exclude = root / place.strip()
        lines = exclude.read_text(encoding="utf-8").splitlines() if exclude.is_file() else []
        if line not in lines:
            exclude.parent.mkdir(exist_ok=True)
            exclude.write_text("\n".join([*lines, line, ""]), encoding="utf-8")


class RemoteStore(ArchiveStore):
    """The default remote of a clone. BenchbookError if it can't be reached, or has another file."""

    name = "the remote"

    def __init__(self) -> None:
        # DVC takes a second to load, which all other commands can do without.
        from dvc.exceptions import DvcException
        from dvc.repo import Repo

        try:
            with Repo(str(paths.find_root())) as repo:
                remote = repo.cloud.get_remote()
                self._fs: Any = remote.fs
                self._base = str(remote.path)
        except DvcException as error:
            raise BenchbookError(f"the DVC remote can't be used: {error}") from None

    def put(self, session: RecordedSession) -> None:
        """Send an archive unless the remote has it, and read it back."""
        target = self._place(session)
        if session.other_archive() is None and not self._do(self._fs.exists, target):
            self._do(self._fs.makedirs, self._fs.parent(target), exist_ok=True)
            self._do(self._fs.put_file, str(session.where.archive), target)
        super().put(session)

    def _place(self, session: RecordedSession) -> str:
        """Path or URL of an archive in the remote."""
        digest = session.entry.sha256
        return str(self._fs.join(self._base, FOLDER, digest[:2], f"{digest[2:]}.tar.xz"))

    def _fetch(self, session: RecordedSession, target: Path) -> None:
        source = self._place(session)
        self._do(self._fs.get_file, source, str(target))
        if files.digest_file(target) != session.entry.sha256:
            raise BenchbookError(f"{source}: not the archive of {session.id}: its bytes are others")

    def _do(self, call: Any, *values: Any, **more: Any) -> Any:
        """Call a file system of DVC's; whatever its kind raises becomes one error that names the place."""
        try:
            return call(*values, **more)
        except FileNotFoundError:
            raise BenchbookError(f"{values[0]}: the remote has no such archive") from None
        except Exception as error:
            raise BenchbookError(f"{values[0]}: {type(error).__name__}: {error}") from None
