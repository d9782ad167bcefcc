"""Archives of recorded sessions in a DVC remote: a folder, S3, SSH or HTTP, each file under its SHA-256.

The remote is the one that `dvc remote default` names. What comes from it is checked before it has its name.
"""

from __future__ import annotations

import configparser
from pathlib import Path
from typing import Any

from benchbook.core.artifacts.record import RecordedSession
from benchbook.core.util import files, paths
from benchbook.core.util.errors import BenchbookError

FOLDER = "benchbook"
REMEDY = "`dvc remote add -d NAME URL` names one (docs/sessions.md)"


def is_configured() -> bool:
    """True if this clone names a default remote; DVC itself takes a second to say so."""
    config = configparser.ConfigParser()
    config.read([paths.find_root() / ".dvc" / name for name in ("config", "config.local")], encoding="utf-8")
    return config.has_option("core", "remote")


class ArchiveStore:
    """The default remote of a clone. BenchbookError if there is none, or it can't be reached."""

    def __init__(self) -> None:
        if not is_configured():
            raise BenchbookError(f"no DVC remote: {REMEDY}")
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

    def place(self, digest: str) -> str:
        """Path or URL of an archive in the remote."""
        return str(self._fs.join(self._base, FOLDER, digest[:2], f"{digest[2:]}.tar.xz"))

    def put(self, session: RecordedSession) -> bool:
        """Send an archive unless the remote has it, and read it back; True if it was sent."""
        target = self.place(session.entry.sha256)
        if wrong := session.other_archive():
            raise BenchbookError(wrong)
        is_new = not self._do(self._fs.exists, target)
        if is_new:
            self._do(self._fs.makedirs, self._fs.parent(target), exist_ok=True)
            self._do(self._fs.put_file, str(session.where.archive), target)
        copy = session.where.archive.with_name(f".{session.id}.back")
        try:
            self._fetch(session, copy)
        finally:
            copy.unlink(missing_ok=True)
        return is_new

    def fetch(self, session: RecordedSession) -> Path:
        """Bring an archive to its place in the record; BenchbookError if it is not the entry's."""
        part = session.where.archive.with_name(f".{session.id}.part")
        try:
            self._fetch(session, part)
            part.replace(session.where.archive)
        finally:
            part.unlink(missing_ok=True)
        return session.where.archive

    def _fetch(self, session: RecordedSession, target: Path) -> None:
        source = self.place(session.entry.sha256)
        target.parent.mkdir(parents=True, exist_ok=True)
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
