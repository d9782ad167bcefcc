"""The data of servers: made, kept as a copy, brought to other machines, and put back for each block.

All of it happens on the server's machine. A copy is complete or absent: it is made under another name and
renamed, and it goes record first. One whose bytes are not those that were kept, or from which no server
starts, is removed, so that the data are loaded again. Where the disk can share blocks (XFS, Btrfs) a copy
costs next to nothing.
"""

import abc
import contextlib
import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from benchbook.core.util.errors import CopyLost, SiteError
from benchbook.sites.machine import concurrent_steps
from benchbook.sites.machine.contract import Machine
from benchbook.sites.machine.supervised_process import Component

COPY_S, LOOK_S = 3600.0, 0.05
FREE_BYTES, SPARE_BYTES = 1 << 30, 256 << 20
RECORD = "snapshot.json"
LOST = "{}: the prepared copy is removed; the same command loads the data again"


class Loaded(Component, abc.ABC):
    """A cluster with data that can't be copied: loaded once, and used as they are."""

    has_copies = False
    role: str
    notes: Machine

    @property
    @abc.abstractmethod
    def id(self) -> str | None:
        """Mark that tells it from one made again later; None as long as it is not made."""

    def mark(self, label: str) -> None:
        self.notes.write(f"{self.role}/loaded.json", json.dumps({"label": label, "id": self.id}))

    def is_marked(self, label: str | None) -> bool:
        """True if its data were loaded under a label; None: under any."""
        record = read_record(self.notes, f"{self.role}/loaded.json")
        return bool(record) and record["id"] == self.id and label in (None, record["label"])


def create_data(server: Any) -> None:
    """Make a server's data folder unless it is there whole, made with the same; from a copy or anew."""
    concurrent_steps.run_steps(create_stepwise(server), LOOK_S)


def create_stepwise(server: Any) -> concurrent_steps.Steps:
    """Make the data as `make` does; yields while a server with `creating` waits for new data."""
    machine, role, copy = server.machine, server.role, server.place.prepared
    repair_data(server)
    is_current = read_record(machine, f"{role}/made.json") == server.made_with
    if is_current and machine.size(f"{role}/data") is not None:
        return
    machine.remove(role)
    if read_record(machine, _record_path(server)).get("made_with") != server.made_with:
        remove_copy(machine, copy)
    if machine.free() < FREE_BYTES:
        raise SiteError(f"{_format_place(machine)}: less than 1 GiB free; {_suggest_space(machine)}")
    is_prepared = is_kept(server, None)
    for name in (role, f"{role}/tmp", *([] if is_prepared else [f"{role}/new"])):
        machine.private_folder(name, server.user)
    # A server that is new has what the others with the same data have.
    if is_prepared:
        _take_copy(server, f"{role}/new")
    elif hasattr(server, "creating"):
        yield from server.creating()
    else:
        server.create()
    machine.rename(f"{role}/new", f"{role}/data")
    machine.write(f"{role}/made.json", json.dumps(server.made_with), server.user)


def repair_data(server: Any) -> None:
    """Bring a data folder back that a crash caught between two names, and remove half-made copies."""
    machine, role = server.machine, server.role
    has_data, has_old = (machine.size(f"{role}/{name}") is not None for name in ("data", "old"))
    if not has_data and has_old:
        machine.rename(f"{role}/old", f"{role}/data")
    for stale in ("fresh", "old"):
        machine.remove(f"{role}/{stale}")


def save_data(server: Any, servers: Sequence[Any], label: str) -> None:
    """Shut a server down, keep a copy of its data, bring it to `servers` with the same, and start it."""
    server.ensure()
    if not server.has_copies:
        server.mark(label)
        return
    if not server.stop():
        raise SiteError(
            f"the server{_format_host(server.machine)} did not shut down by itself, so its data cannot be "
            f"copied; see {server.log} and run the prepare stage again"
        )
    machine, copy = server.machine, server.place.prepared
    part = f"{copy}.part"
    remove_copy(machine, copy)
    machine.remove(part)
    machine.private_folder(part, server.user)
    _copy_folder(server, f"{server.role}/data", f"{part}/data")
    saved_utc = datetime.now(UTC).isoformat(timespec="seconds")
    record = {"label": label, "made_with": server.made_with, "saved_utc": saved_utc}
    record["sample"] = machine.sample(f"{part}/data")
    machine.write(f"{part}/{RECORD}", json.dumps(record), server.user)
    machine.rename(part, copy)
    _share_copy(server, servers)
    server.ensure()


def _share_copy(server: Any, servers: Sequence[Any]) -> None:
    """Bring a server's copy to those of `servers` with the same data; those that run start again from it."""
    others = [item for item in servers if item.has_copies and item is not server]
    others = [item for item in others if item.place.prepared == server.place.prepared]
    elsewhere = {item.machine.host: item for item in others}
    elsewhere.pop(server.machine.host, None)
    # Servers of one arm that are on several machines are on hosts.
    for other in elsewhere.values():
        server.machine.carry(server.place.prepared, other.machine, other.user)
    for other in others:
        if other.child is not None:
            _replace_data(other)
            other.ensure()


def is_kept(server: Any, label: str | None) -> bool:
    """True if there is a whole copy, made by this engine and under this label (None: any)."""
    if not server.has_copies:
        return bool(server.is_marked(label))
    record = read_record(server.machine, _record_path(server))
    is_ours = record.get("made_with") == server.made_with and "sample" in record
    return is_ours and label in (None, record.get("label"))


def put_back(servers: Sequence[Any], label: str | None) -> None:
    """Put the prepared data back on every server and start it: cold, the same bytes every time."""
    if lacking := [server for server in servers if not is_kept(server, label)]:
        fault = f"{_format_place(lacking[0].machine)} holds no prepared data of this engine and data set"
        raise SiteError(f"{fault}; run the prepare stage again")
    waiting = [server for server in servers if hasattr(server, "starting")]
    for server in servers:
        _replace_data(server)
        if server not in waiting:
            server.ensure()
    start_servers(waiting)


def drop_caches(server: Any) -> None:
    """Start a server again, its data out of its memory and, by posix_fadvise(2), out of the kernel's."""
    machine, data = server.machine, f"{server.machine.folder}/{server.role}/data"
    server.stop()
    each = ["-exec", "dd", "if={}", "iflag=nocache", "count=0", "status=none", ";"]
    for argv in (["sync", "-f", data], ["find", data, "-type", "f", *each]):
        machine.run_to_end(argv, "the data could not be taken out of memory", COPY_S)
    server.ensure()


def start_servers(servers: Sequence[Any]) -> None:
    """Start servers that mostly wait while they start, side by side."""
    steps = (server.starting() for server in servers)
    concurrent_steps.run_steps(concurrent_steps.interleave_steps(*steps), LOOK_S)


@contextlib.contextmanager
def first_start(server: Any) -> Iterator[None]:
    """A server's start; if it fails with data just put back, their copy is removed: CopyLost."""
    try:
        yield
    except SiteError as error:
        if not server.is_untried:
            raise
        remove_copy(server.machine, server.place.prepared)
        # So that its own data are made again, too.
        server.machine.remove(f"{server.role}/made.json")
        raise CopyLost(f"{error}\n{LOST.format(_format_place(server.machine))}") from None
    server.is_untried = False


def remove_copy(machine: Machine, copy: str) -> None:
    """Remove a copy, its record first: a half-removed one counts as none."""
    machine.remove(f"{copy}/{RECORD}")
    machine.remove(copy)


def _replace_data(server: Any) -> None:
    """End a server that has copies, and put the prepared data in the place of its own."""
    machine, role = server.machine, server.role
    if server.has_copies:
        repair_data(server)
        if machine.size(f"{role}/data") is None:
            # It was never up there: its folder, its accounts and what it was made with come first.
            create_data(server) if hasattr(server, "starting") else server.ensure()
        server.stop()
        _take_copy(server, f"{role}/fresh")
        machine.rename(f"{role}/data", f"{role}/old")
        machine.rename(f"{role}/fresh", f"{role}/data")
        machine.remove(f"{role}/old")


def _take_copy(server: Any, to: str) -> None:
    """Copy the prepared data to a server's folder; CopyLost if they are not as they were kept."""
    machine, copy = server.machine, server.place.prepared
    if read_record(machine, _record_path(server)).get("sample") != machine.sample(f"{copy}/data"):
        remove_copy(machine, copy)
        raise CopyLost(f"the prepared data are not as they were kept; {LOST.format(_format_place(machine))}")
    _copy_folder(server, f"{copy}/data", to)
    server.is_untried = True


def _copy_folder(server: Any, name: str, to: str) -> None:
    machine = server.machine
    used = machine.size(name) or 0
    if machine.free() < used + SPARE_BYTES:
        fault = f"{_format_place(machine)}: {used >> 20} MiB are needed for a copy of the data"
        raise SiteError(f"{fault}; {_suggest_space(machine)}")
    source, target = f"{machine.folder}/{name}", f"{machine.folder}/{to}"
    # Files that are mostly set aside are not written in full; a server that counts on that does not say so.
    holes = ["--sparse=always"] if server.is_sparse else []
    # Written out before the server starts, so that the disk is not busy with it while we measure.
    for argv in (["cp", "-a", "--reflink=auto", *holes, source, target], ["sync", "-f", target]):
        machine.run_to_end(argv, "the data could not be copied", COPY_S)


def _record_path(server: Any) -> str:
    return f"{server.place.prepared}/{RECORD}"


def read_record(machine: Machine, name: str) -> dict[str, Any]:
    """Content of a JSON file of a machine; empty if there is none, or it can't be read."""
    try:
        return dict(json.loads(machine.read(name) or "{}"))
    except ValueError:
        return {}


def _format_host(machine: Machine) -> str:
    return f" on {machine.host}" if machine.host is not None else ""


def _format_place(machine: Machine) -> str:
    return f"{machine.folder}{_format_host(machine)}"


def _suggest_space(machine: Machine) -> str:
    is_here = machine.host is None
    return f"free some space{', or set BENCHBOOK_LAB_DIR to another disk' if is_here else ' there'}"
