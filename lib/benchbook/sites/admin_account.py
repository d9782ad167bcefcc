"""The administrator of a server that knows none by the name of a system's user: a password for each lab."""

from __future__ import annotations

import hashlib
import secrets

from benchbook.sites import lab as labs

ADMIN = "root"


def secret(lab: labs.Lab) -> str:
    """Return the administrator's password, drawn when first asked for."""
    path = lab.folder / "secrets" / "admin.cnf"
    if not path.exists():
        lab.own("secrets", None)
        text = f'mysql-user="{ADMIN}"\nmysql-password="{secrets.token_urlsafe(24)}"\n'
        labs.write_private(path, text)
    return labs.read_secret(path)[1]


def locks(lab: labs.Lab) -> str:
    """Return a digest of the lab's passwords: data made under others can't be entered."""
    return hashlib.sha256(f"{secret(lab)} {lab.password()}".encode()).hexdigest()[:12]
