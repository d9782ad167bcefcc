"""What a fleet's script does on a host: its lease, and what another fleet left there."""

import contextlib
import os
import shutil
import subprocess
import tarfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchbook.commands import fleet, fleet_sessions
from benchbook.commands import record as recording
from benchbook.core.artifacts import record
from benchbook.core.util import paths
from benchbook.core.util.errors import InputErrors, SiteError
from tests.goldens import assert_golden

ARCHIVE = "2026-01-01T0000Z-abcd.tar.xz"


def script(base: Path, token: str, **other: object) -> list[str]:
    with tarfile.open(base / f"fleet-{token}.tar.gz", "w:gz"):
        pass
    words = {"base": base, "token": token, "wait": 5, "setup": "exit 0", "studies": "tiny", "words": ""}
    return ["sh", "-c", fleet.SCRIPT.format(**(words | {"lease": 60} | other))]


def run(base: Path, token: str) -> list[str]:
    """Begin a fleet whose set-up ends it; what it kept of the one before."""
    read, write = os.pipe()
    process = subprocess.Popen(script(base, token), stdin=read, start_new_session=True)
    assert process.wait(timeout=20) in (0, -15)
    os.close(write)
    os.close(read)
    return sorted(file.name for file in (base / "kept").iterdir())


def test_the_next_fleet_finds_what_another_one_measured_and_did_not_fetch(tmp_path: Path):
    assert run(tmp_path, "aaaaaaaa") == []
    study, recorded = tmp_path / "fleet/data/tiny", tmp_path / "fleet/data/record/tiny"

    def measure(*archives: str) -> None:
        for folder in (study / "raw" / "b01", recorded):
            folder.mkdir(parents=True)
        for file in (study / "session.json", *(recorded / name for name in archives)):
            file.write_text("{}")

    measure()
    # The same fleet, once more: nothing is moved.
    assert run(tmp_path, "aaaaaaaa") == [] and (study / "raw" / "b01").is_dir()
    # Another one: the session is not whole.
    assert run(tmp_path, "bbbbbbbb") == ["tiny.aaaaaaaa.json"] and not study.exists()
    measure(ARCHIVE)
    assert run(tmp_path, "cccccccc") == [ARCHIVE, "tiny.aaaaaaaa.json"]
    # One that was fetched is neither kept nor counted.
    measure(f"{ARCHIVE}.taken")
    assert run(tmp_path, "dddddddd") == [ARCHIVE, "tiny.aaaaaaaa.json"]


def test_a_session_ends_when_its_lease_is_over_though_its_connection_stands(tmp_path: Path):
    read, write = os.pipe()
    command = script(tmp_path, "aaaaaaaa", setup="sleep 60", lease=1)
    began = time.monotonic()
    process = subprocess.Popen(command, stdin=read, start_new_session=True)
    # A word now and then keeps it.
    for _ in range(6):
        time.sleep(0.4)
        os.write(write, b".")
    assert process.poll() is None
    assert process.wait(timeout=20) != 0 and time.monotonic() - began < 30
    os.close(write)


def test_occasions_are_named_before_anything_is_sent():
    """Fifty equal machines; three, of which one was not reached: goldens/fleet-occasions.txt."""
    lines = [
        fleet_sessions.describe_occasions(sessions, models, "processor model")
        for sessions, models in ((50, ["AMD 25 17"] * 50), (2, ["a", "b", ""]))
    ]
    assert_golden("fleet-occasions.txt", "\n".join(lines) + "\n")


def test_a_session_that_was_begun_in_vain_is_counted_once():
    missed = record.NotRecorded(begun="2026-01-01T00:00Z", processor="x", why="its fleet was gone")
    before = record.read_index()
    written = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record, "write_study", lambda _, study: written.append(study))
        line = fleet_sessions.count_lost("quick", missed)
        patch.setattr(record, "read_index", lambda: record.Index(studies={"quick": written[0]}))
        fleet_sessions.count_lost("quick", missed)
    assert len(written) == 1
    assert_golden("fleet-lost.txt", f"{line}\n")
    counted = written[0].not_recorded
    assert len(counted) == len(before.studies["quick"].not_recorded) + 1


def test_archives_are_recorded_when_all_have_arrived_and_so_are_those_of_a_part_that_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / f"host1-{ARCHIVE}").touch()
    (tmp_path / f"host2-{ARCHIVE}").touch()
    names, calls = iter(["host2", "host3", ""]), []

    def fetch(self: fleet.HostFleet) -> fleet_sessions.FetchedSessions:
        if not (name := next(names)):
            raise SiteError("host4: its session is lost")
        return fleet_sessions.FetchedSessions([tmp_path / f"{name}-{ARCHIVE}"])

    def record_all(files: list[Path]) -> dict[Path, str]:
        calls.append(sorted({file.name.partition("-")[0] for file in files}))
        for file in files:
            file.touch()
        return {file: f"data/record/tiny/{file.name}: taken" for file in files}

    monkeypatch.setattr(fleet_sessions, "make_arrivals", lambda token: tmp_path)
    monkeypatch.setattr(fleet.HostFleet, "_session", fetch)
    monkeypatch.setattr(recording, "take_archives", record_all)
    hosts = fleet.HostFleet(("tiny",), "0123abcd", "", "", tree=tmp_path, targets=[])
    monkeypatch.setattr(fleet, "ThreadPoolExecutor", lambda number: ThreadPoolExecutor(max(1, number)))
    assert hosts.measure(3) == 3
    assert calls == [["host1", "host2", "host3"]] and not list(tmp_path.iterdir())


def test_what_a_host_has_is_fetched_counted_as_recorded_or_counted_as_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """SFTP over a folder of this machine; tests/pipeline/test_fleet.py has real hosts, and takes minutes."""
    recorded = next(iter(record.read_index().studies["quick"].sessions))
    base, arrivals = tmp_path / "host", tmp_path / "arrivals"
    index = base / "fleet/data/record/quick/index.json"
    arrivals.mkdir()
    for name, text in {
        f"kept/{ARCHIVE}": "",
        "kept/quick.aaaaaaaa.json": '{"begun_utc": "2026-01-01T00:00:00Z"}',
        "fleet/data/record/quick/index.json": "{}",
        f"fleet/data/record/quick/{recorded}.tar.xz.taken": "",
        "fleet/data/record/quick/2026-01-02T0000Z-abcd.tar.xz": "",
        "fleet/data/record/quick/2026-01-02T0000Z-abcd.json": "{}",
    }.items():
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).write_text(text)
    sftp = SimpleNamespace(
        listdir=os.listdir, get=shutil.copy, posix_rename=os.rename, open=open, remove=os.remove
    )
    connection = SimpleNamespace(sftp=lambda: contextlib.nullcontext(sftp))
    monkeypatch.setattr(fleet_sessions, "make_arrivals", lambda token: arrivals)
    monkeypatch.setattr(fleet, "_read_processor", lambda target: "x")
    hosts = fleet.HostFleet(("quick",), "0123abcd", "", "", tree=tmp_path, targets=[])
    fetched = hosts._fetch(connection, SimpleNamespace(name="host1"), str(base))
    assert sorted(file.name for file in arrivals.iterdir()) == sorted(file.name for file in fetched.archives)
    assert len(fetched.archives) == 2 and fetched.recorded == 1
    assert [(study, lost.begun) for study, lost in fetched.lost] == [("quick", "2026-01-01T00:00Z")]
    assert not list(base.rglob("*.tar.xz")) and index.exists()


def test_a_study_of_another_kind_of_site_is_refused_before_it_is_sent(tmp_path: Path):
    file = tmp_path / "hosts.yaml"
    file.write_text("hosts: {a: {host: 192.0.2.1, roles: [client]}}\n")
    with pytest.raises(InputErrors, match=r"cluster-network\.yaml: site\.kind: kubernetes"):
        fleet.run_fleet(["cluster-network"], file, 1, "true", anyway=False, resume=None)


def test_the_commit_that_is_sent_is_whole_for_git_and_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    clone = tmp_path / "clone"
    shared = ("git", "clone", "-q", "--shared", "--no-checkout")
    subprocess.run([*shared, str(paths.find_root()), str(clone)], check=True)
    monkeypatch.setattr(fleet.paths, "find_root", lambda: clone)
    packed = fleet.pack_clone(tmp_path / "tree.tar.gz")
    assert packed.stat().st_size < 4_000_000
    with tarfile.open(packed) as tar:
        tar.extractall(tmp_path / "there", filter="data")
    status = ["git", "-C", str(tmp_path / "there"), "status", "--short"]
    assert subprocess.run(status, capture_output=True, text=True, check=True).stdout == ""
    assert not (tmp_path / "there" / "data" / "record").exists()
