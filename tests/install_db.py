"""MariaDB's installer for tests: of data folders that are made with the same words the first is made."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from benchbook.core.errors import SiteError
from benchbook.sites import lab as labs
from benchbook.sites.machine import here
from tests import rooms

PROGRAM, ACCOUNT = "mariadb-install-db", "mysql"
# It makes a log of 96 MiB, which a server of a test makes one of 8 MiB at its first start.
SCRIPT = """#!/bin/sh
set -e
for word; do
  case $word in
    --datadir=*) data=${word#*=} ;;
    --tmpdir=*) ;;
    *) same="$same $word" ;;
  esac
done
model=${0%/*}/$(printf %s "$same" | sha256sum | cut -c -16)
exec 9> "$model.lock"
flock 9
if [ -d "$model" ]; then
  cp -a --sparse=always "$model/." "$data"
else
  PROGRAM "$@" --innodb-log-file-size=8M
  cp -a --sparse=always "$data" "$model.part"
  mv "$model.part" "$model"
fi
"""


def begin() -> Path | None:
    """Let this process and all that it starts make copies; return the folder that they are made from.

    None where there is no MariaDB, or another installer is named. Tests on hosts and in clones have the true
    one, for neither inherits our environment.
    """
    variable = here.variable(PROGRAM)
    program = here.find(PROGRAM)
    if program is None or variable in os.environ:
        return None
    try:
        account = labs.service_user(ACCOUNT)
    except SiteError:
        return None
    folder = Path(tempfile.mkdtemp(prefix="bb-install-", dir=rooms.folder()))
    folder.chmod(0o755)
    if account is not None:
        shutil.chown(folder, account)
    script = folder / PROGRAM
    script.write_text(SCRIPT.replace("PROGRAM", program), encoding="utf-8")
    script.chmod(0o755)
    os.environ[variable] = str(script)
    return folder


def end(folder: Path | None) -> None:
    """Remove what `begin` made."""
    if folder is not None:
        del os.environ[here.variable(PROGRAM)]
        shutil.rmtree(folder)
