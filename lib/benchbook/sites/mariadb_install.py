"""Find a MariaDB server on this machine and make its data folder, open to nobody but its administrator."""

from __future__ import annotations

import json
import os
import pwd
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from benchbook.core.errors import SiteError
from benchbook.sites import lab as labs
from benchbook.sites import process
from benchbook.sites.supervised import tail

INSTALL = "apt-get install mariadb-server"
INSTALL_S = 180.0
FREE_BYTES = 1 << 30


def admin_name() -> str:
    """Return the administrative account: the name of the user of this process."""
    return pwd.getpwuid(os.geteuid()).pw_name


def find_binary(given: str | None) -> Path:
    """Return the server's program, or SiteError naming the command that installs it."""
    if given is not None:
        path = Path(given).expanduser()
        if not os.access(path, os.X_OK) or path.is_dir():
            raise SiteError(
                f"engine.binary: {given}: no program there; write the path of a mariadbd, or null"
            )
        return path.resolve()
    found = shutil.which("mariadbd", path=process.PATH)
    if found is None:
        raise SiteError(f"mariadbd is not installed; run `{INSTALL}`")
    return Path(found)


def binary_version(binary: Path) -> str:
    """Return the version of a MariaDB server binary, such as 10.11.6."""
    try:
        said = subprocess.run(
            [str(binary), "--no-defaults", "--version"], capture_output=True, text=True, timeout=20
        ).stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SiteError(f"{binary} cannot be run: {error}; check engine.binary") from None
    match = re.search(r"Ver ([0-9.]+)-MariaDB", said)
    if match is None:
        raise SiteError(
            f"{binary} is not a MariaDB server (it says {said.strip()[:80]!r}); correct engine.binary"
        )
    return match[1]


def make_data(
    lab: labs.Lab,
    binary: Path,
    given: str | None,
    made_with: dict[str, Any],
    user: str | None,
    role: str = "server",
    keep: tuple[int, ...] = (),
    prepared: str = "snapshot",
) -> Path:
    """Make a server's data folder unless it is there, made with the same; complete or absent. Return it.

    A folder made with something else is removed, and so is the prepared copy: both can be loaded again.
    The administrator comes in over the socket by the name of the OS user; there are no anonymous accounts.
    """
    folder = lab.own(role, user)
    record, data, new = folder / "made.json", folder / "data", folder / "new"
    if data.is_dir() and _read_json(record) == made_with:
        return data
    labs.remove(lab, role)
    if _read_json(lab.folder / prepared / "snapshot.json", {}).get("made_with") != made_with:
        labs.remove(lab, prepared)
    if labs.free_bytes(lab.folder) < FREE_BYTES:
        raise SiteError(
            f"{lab.folder}: less than 1 GiB free; free some space, or set BENCHBOOK_LAB_DIR to another disk"
        )
    for name in (role, f"{role}/new", f"{role}/tmp"):
        lab.own(name, user)
    log = lab.run / "install.log"
    child = process.start(
        "install",
        [
            _installer(binary, given),
            "--no-defaults",
            f"--datadir={new}",
            f"--tmpdir={folder / 'tmp'}",
            "--auth-root-authentication-method=socket",
            f"--auth-root-socket-user={admin_name()}",
            "--skip-test-db",
            "--skip-name-resolve",
            "--skip-log-bin",
            *[f"--{key}={value}" for key, value in made_with["settings"].items()],
        ],
        token=lab.token,
        folder=lab.folder,
        out=log,
        user=user,
        keep=keep,
        append=False,
        cwd=folder,
    )
    if process.wait(child, INSTALL_S) != 0:
        raise SiteError(f"MariaDB's data folder could not be made; see {log}:\n  {tail(log)}")
    new.rename(data)
    labs.write_private(record, json.dumps(made_with), user)
    return data


def _installer(binary: Path, given: str | None) -> str:
    beside = (
        [binary.parent.parent / folder / "mariadb-install-db" for folder in ("bin", "scripts")]
        if given
        else []
    )
    found = next((str(path) for path in beside if path.exists()), None) or shutil.which(
        "mariadb-install-db", path=process.PATH
    )
    if found is None:
        raise SiteError(f"mariadb-install-db is not installed; run `{INSTALL}`")
    return found


def _read_json(path: Path, otherwise: Any = None) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return otherwise
