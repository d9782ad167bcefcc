"""The data of a server on a host: made, kept as a copy, and put back, so that every block starts alike.

All of it happens on the host. A copy is complete or absent: it is made under another name and renamed.
"""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime
from typing import Any

from benchbook.core.errors import SiteError
from benchbook.sites.mariadb_install import FREE_BYTES
from benchbook.sites.ssh.host import Host

COPY_S = 3600.0
LOOK_S = 2.0
SPARE_BYTES = 256 << 20


def make(server: Any) -> None:
    """Make a server's data folder unless it is there, made with the same: from the copy, or by `create`.

    It is made as `new`, so that it is whole or absent.
    """
    host, role, copy = server.host, server.role, server.part.prepared
    heal(server)
    if _json(host, f"{role}/made.json") == server.made_with:
        return
    host.call("remove", name=role)
    if (_json(host, _record(server)) or {}).get("made_with") != server.made_with:
        host.call("remove", name=copy)
    if host.call("free") < FREE_BYTES:
        raise SiteError(f"{host.name}: less than 1 GiB free for {host.folder}; free some space there")
    is_prepared = has(server, None)
    for name in (role, f"{role}/tmp", *([] if is_prepared else [f"{role}/new"])):
        host.call("own", name=name, user=server.user)
    # A server that comes to a host later has what the others there have.
    if is_prepared:
        _copy(host, f"{copy}/data", f"{role}/new")
    else:
        server.create()
    host.call("rename", name=f"{role}/new", to=f"{role}/data")
    host.call("write", name=f"{role}/made.json", text=json.dumps(server.made_with), user=server.user)


def save(server: Any, label: str) -> None:
    """Copy the data folder of a stopped server, in place of an earlier copy."""
    host, copy = server.host, server.part.prepared
    host.call("remove", name=copy)
    host.call("own", name=copy, user=server.user)
    _copy(host, f"{server.role}/data", f"{copy}/data")
    record = {
        "label": label,
        "made_with": server.made_with,
        "saved_utc": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    host.call("write", name=_record(server), text=json.dumps(record), user=server.user)


def has(server: Any, label: str | None) -> bool:
    """Say whether there is a whole copy, made by this engine and under this label (None: under any)."""
    record = _json(server.host, _record(server)) or {}
    return record.get("made_with") == server.made_with and label in (None, record.get("label"))


def put_back(server: Any) -> None:
    """Replace the data folder of a stopped server by the copy; `heal` mends a crash in between."""
    host, role = server.host, server.role
    heal(server)
    if host.call("size", name=f"{role}/data") is None:
        # It was never up on this host.
        make(server)
        return
    _copy(host, f"{server.part.prepared}/data", f"{role}/fresh")
    host.call("rename", name=f"{role}/data", to=f"{role}/old")
    host.call("rename", name=f"{role}/fresh", to=f"{role}/data")
    host.call("remove", name=f"{role}/old")


def carry(server: Any, other: Any) -> None:
    """Bring a server's copy to another host, through us: a whole archive, held against its hash there."""
    here, there, copy = server.host, other.host, server.part.prepared
    # The name that tar gets must not be that of the copy, which is complete or absent.
    for host, user in ((here, server.user), (there, other.user)):
        host.call("remove", name="carried.tar")
        host.call("own", name="run")
        if host is there:
            host.call("remove", name=copy)
            host.call("own", name=copy, user=user)
    packed = f"{here.folder}/carried.tar"
    argv = ["tar", "-C", f"{here.folder}/{copy}", "-cf", packed, "data", "snapshot.json"]
    work(here, "the data could not be packed", argv, COPY_S, None)
    digest = here.call("sha256", path=packed)
    here.send("carried.tar", there)
    if there.call("sha256", path=f"{there.folder}/carried.tar") != digest:
        raise SiteError(f"{there.name}: the data did not arrive as they were sent; look at its disk")
    argv = ["tar", "-C", f"{there.folder}/{copy}", "-xpf", f"{there.folder}/carried.tar"]
    work(there, "the data could not be unpacked", argv, COPY_S, None)
    for host in (here, there):
        host.call("remove", name="carried.tar")


def heal(server: Any) -> None:
    """Bring a data folder back that a crash caught between two names, and remove half-made copies."""
    host, role = server.host, server.role
    has_data, has_old = (host.call("size", name=f"{role}/{name}") is not None for name in ("data", "old"))
    if not has_data and has_old:
        host.call("rename", name=f"{role}/old", to=f"{role}/data")
    for stale in ("fresh", "old"):
        host.call("remove", name=f"{role}/{stale}")


def _copy(host: Host, name: str, to: str) -> None:
    used = host.call("size", name=name) or 0
    if host.call("free") < used + SPARE_BYTES:
        raise SiteError(
            f"{host.name}: {used >> 20} MiB are needed for a copy of the data in {host.folder}; "
            "free some space there"
        )
    source, target = f"{host.folder}/{name}", f"{host.folder}/{to}"
    # Written out before the server starts, so that the disk is not busy with it while we measure.
    for argv in (["cp", "-a", "--reflink=auto", source, target], ["sync", "-f", target]):
        work(host, "the data could not be copied", argv, COPY_S, None)


def work(
    host: Host,
    wrong: str,
    argv: list[str],
    most_s: float,
    user: str | None,
    env: dict[str, str] | None = None,
) -> str:
    """Run a program on a host to its end and return what it printed; SiteError with the end of that if it
    fails."""
    job = f"work.{uuid.uuid4().hex[:8]}"
    host.call("own", name="run")
    known = host.call("start", job=job, argv=argv, out="run/work.log", user=user, env=env)
    while known["code"] is None:
        if known["age_s"] > most_s:
            host.call("stop", job=job, grace_s=2.0)
        known = host.call("wait", job=job, up_to_s=LOOK_S)
    printed = host.call("read", name="run/work.log") or ""
    if known["code"] != 0:
        said = "\n  ".join(printed.splitlines()[-5:])
        raise SiteError(f"{host.name}: {wrong} (exit code {known['code']}):\n  {said}")
    return str(printed)


def _record(server: Any) -> str:
    return f"{server.part.prepared}/snapshot.json"


def _json(host: Host, name: str) -> Any:
    try:
        return json.loads(host.call("read", name=name) or "null")
    except ValueError:
        return None
