"""The folder of a local site: its access rights, its token, its accounts.

LAB/             0711, so that the server's own user reaches its folder
  lab.json       token and name of this lab
  owner.json     who works here now
  run/           pid files                          0700, ours
  secrets/       sysbench's account, an admin's     0700, ours, files 0600
  server/        data, socket, log of the engine    0700, the engine's user
  proxy/         settings and socket of the proxy   0700, the proxy's user
                 further ones: server-2/, proxy-2/
  snapshot/      the prepared data                  0700, the engine's user
                 further ones where arms differ in engine or load: snapshot-2/
"""

from __future__ import annotations

import hashlib
import json
import os
import pwd
import re
import secrets
import shutil
import stat
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchbook.core.util.errors import SiteError
from benchbook.sites.processes import process
from benchbook.sites.processes.spawn import ANYWHERE, ProcessPlacement

LOOPBACK = "127.0.0.1"
# Where connections over a server's socket come from, as servers name it.
OVER_SOCKET = "localhost"
# Of a server whose clients have addresses that nobody knows beforehand, such as pods.
ANYWHERE_AT = "%"
USER, ADMIN = "benchbook", "root"
SCHEMA = "sbtest"
# sockaddr_un holds 108 bytes with the closing zero (unix(7)).
SOCKET_BYTES = 107


def lab_root(clone: Path) -> Path:
    """Folder of a clone's labs: BENCHBOOK_LAB_DIR, else /var/lib for root, else the home folder.

    A digest of the clone's path is in the name. SiteError for a path that servers' own scripts can't take.
    """
    named = os.environ.get("BENCHBOOK_LAB_DIR")
    base = Path("/var/lib") if os.geteuid() == 0 else Path.home() / ".local" / "share"
    digest = hashlib.sha256(str(clone.resolve()).encode()).hexdigest()[:10]
    root = Path(named).resolve() if named else base / "benchbook" / digest
    if not re.fullmatch(r"[A-Za-z0-9_./+-]+", str(root)):
        remedy = "set BENCHBOOK_LAB_DIR to a folder of letters, digits and . _ + - only"
        raise SiteError(f"{root}: a server's own scripts can't take this path; {remedy}")
    return root


def lab_folder(clone: Path, study: str) -> Path:
    """Lab of one study of a clone."""
    return lab_root(clone) / study


def service_user(name: str) -> str | None:
    """Account a service runs as: its own if we are root, else None, that is ours."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam(name).pw_name
    except KeyError:
        remedy = f"install the package that brings it, or `useradd -r {name}`"
        raise SiteError(f"there is no user {name}, and a server must not run as root; {remedy}") from None


def read_tokens(folder: Path) -> set[str]:
    """Tokens of the labs right below a folder, such as those of one clone's studies."""
    results = [file.read_text(encoding="utf-8") for file in folder.glob("*/lab.json")]
    return {str(json.loads(text)["token"]) for text in results}


def lab_id(token: str) -> str:
    """Name of a lab's parts in a kernel: eight hex digits of its token."""
    return token[:8]


@dataclass(frozen=True)
class PartLocation:
    """Place of a lab's part: its name, also that of its files, its address, and its placement."""

    name: str
    address: str
    port: int
    where: ProcessPlacement = ANYWHERE
    peers: Callable[[], Sequence[str]] = lambda: (LOOPBACK,)
    connections: int = 0
    prepared: str = "snapshot"

    @property
    def is_here(self) -> bool:
        """True if it is in this machine's own network, so that its port must be free."""
        return self.where.namespace is None


@dataclass(frozen=True)
class Lab:
    """An opened lab folder; `keep` are file descriptors that its programs inherit, such as the lock's."""

    folder: Path
    token: str
    keep: tuple[int, ...] = ()

    @property
    def run(self) -> Path:
        return self.folder / "run"

    def start(self, role: str, argv: Sequence[str], **how: Any) -> process.Child:
        """Start a program as `process.start_child` does; its output goes to `run/ROLE.log`, or to `out`."""
        its: dict[str, Any] = {"token": self.token, "folder": self.folder, "keep": self.keep}
        return process.start_child(role, argv, **its | {"out": self.run / f"{role}.log"} | how)

    @property
    def secret(self) -> Path:
        """sysbench's account: the only place that holds a password."""
        return self.folder / "secrets" / "sysbench.cnf"

    def secret_of(self, driver: str) -> Path:
        return self.secret if driver == "mysql" else self.secret.with_name(f"sysbench-{driver}.cnf")

    def pidfile(self, role: str) -> Path:
        return self.run / f"{role}.json"

    def private_folder(self, name: str, user: str | None) -> Path:
        """Folder below the lab that only `user` (None: we) and root can enter, made if missing."""
        return private_folder(self.folder / name, user)

    def socket(self, path: Path) -> Path:
        """Check that a socket's path fits into the kernel's limit and return it."""
        if len(os.fsencode(path)) > SOCKET_BYTES:
            raise SiteError(
                f"{path}: over {SOCKET_BYTES} bytes, too long for a socket; shorten BENCHBOOK_LAB_DIR"
            )
        return path

    def password(self, driver: str = "mysql") -> str:
        """Password of sysbench's account for a driver, drawn when first asked for."""
        return self._drawn(self.secret_of(driver), driver, USER)

    def admin_password(self) -> str:
        """Password of an administrator whom no server knows by a system's user, drawn at need."""
        return self._drawn(self.folder / "secrets" / "admin.cnf", "mysql", ADMIN)

    def _drawn(self, file: Path, driver: str, user: str) -> str:
        if not file.exists():
            self.private_folder("secrets", None)
            word = secrets.token_urlsafe(24)
            write_private(file, f'{driver}-user="{user}"\n{driver}-password="{word}"\n')
        return read_secret(file, driver)[1]

    def locks(self) -> str:
        """Digest of the lab's passwords: data made under others can't be entered."""
        return hashlib.sha256(f"{self.admin_password()} {self.password()}".encode()).hexdigest()[:12]


def private_folder(path: Path, user: str | None) -> Path:
    """Folder that only `user` (None: we) and root can enter, made if missing."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.chmod(0o700)
    _change_owner(path, user)
    return path


def write_private(path: Path, text: str, user: str | None = None) -> Path:
    """Write a file that only `user` (None: we) reads; others never do, not even for a moment."""
    temporary = path.with_name(path.name + ".tmp")
    temporary.unlink(missing_ok=True)
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        file.write(text)
    _change_owner(temporary, user)
    temporary.rename(path)
    return path


def read_record(path: Path) -> dict[str, Any]:
    """Contents of a JSON file of ours; empty if there is none, or if it can't be read."""
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return {}


def _change_owner(path: Path, user: str | None) -> None:
    if user is not None:
        account = pwd.getpwnam(user)
        os.chown(path, account.pw_uid, account.pw_gid)


def read_secret(path: Path, driver: str = "mysql") -> tuple[str, str]:
    """User and password of a driver from a sysbench settings file."""
    try:
        pairs = [line.partition("=") for line in path.read_text(encoding="utf-8").splitlines()]
    except OSError as error:
        raise SiteError(
            f"{path}: the account cannot be read: {error.strerror}; run provision again"
        ) from None
    results = {key.strip(): value.strip().strip('"') for key, is_pair, value in pairs if is_pair}
    try:
        return results[f"{driver}-user"], results[f"{driver}-password"]
    except KeyError as error:
        raise SiteError(
            f"{path}: {error.args[0]} is missing; remove the file and run provision again"
        ) from None


def open_lab(folder: Path) -> Lab:
    """Make a lab folder or find it again, and check that a service's user can get there."""
    folder = Path(os.path.abspath(folder))
    marker = folder / "lab.json"
    try:
        new = [path for path in folder.parents if not path.exists()]
        folder.mkdir(mode=0o711, parents=True, exist_ok=True)
        # A umask of 077 closes them to the server's user.
        for path in new:
            path.chmod(0o711)
        if not marker.exists() and {path.name for path in folder.iterdir()} - {"lab.json.tmp"}:
            raise SiteError(f"{folder}: not empty and not a lab; name a new folder in BENCHBOOK_LAB_DIR")
        folder.chmod(0o711)
        if not marker.exists():
            write_private(marker, json.dumps({"format": 1, "token": uuid.uuid4().hex, "folder": str(folder)}))
        token = str(json.loads(marker.read_text(encoding="utf-8"))["token"])
    except (OSError, ValueError, KeyError) as error:
        remedy = "set BENCHBOOK_LAB_DIR to a folder of yours on a local disk"
        raise SiteError(f"{folder}: cannot be used as the lab: {error}; {remedy}") from None
    if os.geteuid() == 0:
        for parent in folder.parents:
            if not parent.stat().st_mode & stat.S_IXOTH:
                remedy = f"open it with `chmod o+x {parent}`, or set BENCHBOOK_LAB_DIR elsewhere"
                raise SiteError(f"{parent}: closed to the server's user, which must reach {folder}; {remedy}")
    lab = Lab(folder, token)
    lab.private_folder("run", None)
    return lab


def find_nearest(folder: Path) -> Path:
    """A folder, or of those above it the first that is there."""
    while not folder.exists():
        folder = folder.parent
    return folder


def free_bytes(folder: Path) -> int:
    """Free space, in bytes, at a folder's present or future place."""
    return shutil.disk_usage(find_nearest(folder)).free
