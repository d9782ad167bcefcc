"""The copy of a server's data is whole or absent, whoever stops its making or changes it."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchbook.core.util.errors import CopyLost, SiteError
from benchbook.sites import workspace as labs
from benchbook.sites.machine import data_snapshots
from benchbook.sites.machine.local_machine import LocalMachine
from tests.goldens import assert_golden

CALLS = ("remove", "private_folder", "run_to_end", "sample", "write", "rename")
ROWS = {f"sbtest{number}.ibd": bytes([number]) * 300_000 for number in range(1, 4)}


class Cut(Exception):
    """The process ends here."""


class Cuttable(LocalMachine):
    """This machine, whose call number `last` is cut: what removes a folder has left the record alone."""

    last, calls = 0, 0


def _cuttable(name: str) -> Callable[..., Any]:
    def call(self: Cuttable, *given: Any, **named: Any) -> Any:
        self.calls += 1
        if self.calls != self.last:
            if name == "run_to_end" and given[0][0] == "sync":
                return None  # It would wait for what others write to the disk.
            return getattr(LocalMachine, name)(self, *given, **named)
        if name == "remove":
            shutil.rmtree(self.folder / given[0] / "data", ignore_errors=True)
        elif name == "run_to_end" and given[0][0] == "cp":
            os.makedirs(given[0][-1])
        raise Cut

    return call


for name in CALLS:
    setattr(Cuttable, name, _cuttable(name))


class Server:
    """A server that starts if all its tables are there."""

    has_copies, is_sparse, is_untried, role, user, made_with = True, False, False, "server", None, {"v": 1}
    place = SimpleNamespace(prepared="snapshot")

    def __init__(self, folder: Path) -> None:
        self.machine = Cuttable(labs.Lab(folder, "token"))
        self.machine.private_folder("run")
        self.machine.private_folder("server/data")
        self.create()
        self.machine.write("server/made.json", '{"v": 1}')

    @property
    def data(self) -> Path:
        return Path(self.machine.folder) / "server" / "data"

    def create(self) -> None:
        for name, content in ROWS.items():
            (self.data / name).write_bytes(content)

    def stop(self) -> bool:
        return True

    def ensure(self) -> None:
        with data_snapshots.first_start(self):
            if {path.name for path in self.data.iterdir()} != ROWS.keys():
                raise SiteError("the server did not start")


@pytest.fixture
def server(tmp_path: Path) -> Server:
    made = Server(tmp_path / "lab")
    data_snapshots.save_data(made, [made], "small")
    assert data_snapshots.is_kept(made, "small")
    return made


def test_a_copy_that_is_cut_at_any_call_is_whole_or_none(server: Server):
    machine, cuts = server.machine, 0
    while True:
        cuts += 1
        machine.calls, machine.last = 0, cuts
        try:
            data_snapshots.save_data(server, [server], "small")
            break
        except Cut:
            machine.last = 0
        if data_snapshots.is_kept(server, "small"):
            data_snapshots.put_back([server], "small")
        data_snapshots.save_data(server, [server], "small")
        data_snapshots.put_back([server], "small")
        assert {path.name: path.read_bytes() for path in server.data.iterdir()} == ROWS
    assert cuts > len(CALLS)


def shown(lost: pytest.ExceptionInfo[CopyLost], server: Server) -> str:
    """Return what is said of a copy, without where it is."""
    return str(lost.value).replace(str(server.machine.folder), "FOLDER") + "\n"


@pytest.mark.parametrize("change", ["other bytes", "a row", "gone"])
def test_a_copy_that_somebody_changed_is_removed_and_named(server: Server, change: str):
    table = Path(server.machine.folder) / "snapshot" / "data" / "sbtest2.ibd"
    before = table.stat()
    if change == "gone":
        table.unlink()
    else:
        table.write_bytes(b"\1" * 300_000 if change == "other bytes" else table.read_bytes())
    if change == "other bytes":
        os.utime(table, (before.st_atime, before.st_mtime))
    elif change == "a row":
        os.utime(table, (before.st_atime, before.st_mtime + 60))
    with pytest.raises(CopyLost) as lost:
        data_snapshots.put_back([server], "small")
    assert_golden("machine/copy-changed.txt", shown(lost, server))
    assert not data_snapshots.is_kept(server, None)
    with pytest.raises(SiteError, match="holds no prepared data"):
        data_snapshots.put_back([server], "small")


def test_a_copy_from_which_no_server_starts_is_removed_with_its_data(server: Server):
    (server.data / "sbtest3.ibd").unlink()
    server.is_untried = True
    with pytest.raises(CopyLost) as lost:
        server.ensure()
    assert_golden("machine/copy-unusable.txt", shown(lost, server))
    assert not data_snapshots.is_kept(server, None)
    assert server.machine.read("server/made.json") is None
