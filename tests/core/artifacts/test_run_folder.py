"""A run folder is complete or absent, shows every change to it, and is never written again."""

import hashlib
import json
import os
import stat
from pathlib import Path

import pytest

from benchbook.core.artifacts import run_folder
from benchbook.core.artifacts.run_folder import RunFolder
from tests.goldens import assert_golden_case

RUN = "b01-oltp_read_only-t0004-direct-0123456789"


def begun(parent: Path, run_id: str = RUN) -> Path:
    """Begin a run and write everything that a run leaves."""
    part = run_folder.begin_folder(parent, {"run_id": run_id, "threads": 4})
    (part / "sysbench.out").write_bytes(b"caf\xe9 1\nqueries: 5\n")
    (part / "sysbench.err").write_bytes(b"")
    (part / "evidence.json").write_text('{"exit_code": 0}\n')
    (part / "monitor.csv").write_text("second,part\n")
    return part


def made(raw: Path, run_id: str = RUN, attempt: int = 1) -> RunFolder:
    return run_folder.move_to_raw(run_folder.seal_folder(begun(raw, run_id), attempt), raw)


def state(folder: Path) -> dict[str, tuple]:
    """Bytes and time of every file below a folder."""
    below = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns) for path in below}


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    return tmp_path / "raw"


def assert_faults(case: str, *folders: RunFolder) -> None:
    """Compare what is found wrong in run folders with the golden file."""
    assert_golden_case("run_folders.txt", case, "\n".join(line for each in folders for line in each.verify()))


def listed(raw: Path) -> tuple[list[Path], list[RunFolder]]:
    return run_folder.list_unfinished(raw), list(run_folder.list_folders(raw))


def test_a_run_takes_its_name_only_when_it_is_whole(raw: Path):
    part = begun(raw)
    assert listed(raw) == ([part], [])
    with pytest.raises(FileExistsError):
        begun(raw)
    sealed = run_folder.seal_folder(part, 2)
    assert sealed.verify() == []
    assert listed(raw) == ([part], []), "sealed, and still to be judged"
    kept = run_folder.move_to_raw(sealed, raw)
    assert listed(raw) == ([], [kept])
    assert (kept.name, kept.manifest().attempt) == (RUN, 2)
    assert (kept.plan()["threads"], kept.evidence()["exit_code"]) == (4, 0)
    assert kept.text("sysbench.out").startswith("caf\ufffd 1\n"), "bytes that are no text are kept and shown"
    assert kept.verify() == []


def test_a_run_without_one_of_its_files_is_never_sealed(raw: Path):
    part = begun(raw)
    (part / "monitor.csv").unlink()
    with pytest.raises(FileNotFoundError):
        run_folder.seal_folder(part, 1)
    assert RunFolder(part).verify()[0].startswith("manifest.json: FileNotFoundError")


def test_every_flipped_byte_and_every_missing_file_is_found(raw: Path):
    folder, told = made(raw), []
    for name in run_folder.CONTENT:
        path = folder.path / name
        whole = path.read_bytes()
        flipped = [whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :] for at in range(len(whole))]
        faults = set()
        for other in (*flipped, whole + b"\n"):
            path.write_bytes(other)
            faults.add("\n".join(folder.verify()))
        path.unlink()
        told += [*sorted(faults), *folder.verify()]
        path.write_bytes(whole)
    assert folder.verify() == []
    assert_golden_case("run_folders.txt", "each byte and each file", "\n".join(told))


def test_a_file_or_folder_too_many_is_named(raw: Path):
    folder = made(raw)
    (folder.path / "note.txt").write_text("x")
    (folder.path / "core").mkdir()
    assert_faults("a file and a folder too many", folder)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"files": 1}', '{"files": {"plan.json": {}}}', "\0"])
def test_a_damaged_manifest_is_told(raw: Path, text: str):
    folder = made(raw)
    (folder.path / "manifest.json").write_text(text)
    (said,) = folder.verify()
    assert said.startswith("manifest.json: ")


def test_a_manifest_of_another_format_or_another_run_is_told(raw: Path):
    folder = made(raw)
    manifest = folder.manifest().plain
    (folder.path / "manifest.json").write_text(json.dumps(manifest | {"format": 99}))
    assert_faults("another format", folder)
    (folder.path / "manifest.json").write_text(json.dumps(manifest))
    moved = folder.path.rename(raw / RUN.replace("b01", "b02"))
    assert_faults("another run", RunFolder(moved))


def test_a_voided_run_keeps_its_bytes_and_its_reason(raw: Path, tmp_path: Path):
    folder, beside = made(raw), made(raw, RUN.replace("b01", "b02"))
    before, of_beside = state(folder.path), state(beside.path)
    folder.verify(), folder.plan(), folder.evidence()
    target = run_folder.void_folder(folder.path, tmp_path / "void", "invalid", ["V1 exit code: 1"])
    assert target == tmp_path / "void" / f"{RUN}.a1"
    assert state(target) == before
    assert RunFolder(target).verify() == []
    note = json.loads((tmp_path / "void" / f"{RUN}.a1.void.json").read_text())
    assert note == {"run_id": RUN, "attempt": 1, "status": "invalid", "reasons": ["V1 exit code: 1"]}
    assert list(run_folder.list_folders(raw)) == [beside] and state(beside.path) == of_beside


def test_voided_attempts_are_numbered_and_never_overwritten(raw: Path, tmp_path: Path):
    void = tmp_path / "void"
    other = RUN.replace("direct", "haproxy")
    names = [run_folder.void_folder(made(raw).path, void, "invalid", [str(n)]).name for n in range(3)]
    assert names == [f"{RUN}.a{n}" for n in (1, 2, 3)]
    assert run_folder.void_folder(made(raw, other).path, void, "invalid", []).name == f"{other}.a1"
    assert run_folder.void_folder(begun(raw), void, "killed", ["half"]).name == f"{RUN}.a4"
    # The first comes back to `raw`, and its number is not given to the next.
    (void / f"{RUN}.a1").rename(raw / RUN)
    (void / f"{RUN}.a1.void.json").unlink()
    before = state(void)
    assert run_folder.void_folder(raw / RUN, void, "invalid", []).name == f"{RUN}.a5"
    assert before.items() <= state(void).items()


def test_files_that_are_no_folders_are_no_runs(raw: Path, tmp_path: Path):
    folder = made(raw)
    (raw / "x.part").write_text("")
    (raw / ".gitkeep").write_text("")
    assert listed(raw) == ([], [folder])
    assert listed(tmp_path / "none") == ([], [])


def of_three(raw: Path) -> RunFolder:
    """Make the folder of a run with three clients."""
    plan = {"run_id": RUN, "threads": 6, "arm_setting": {"access": "direct", "clients": 3}}
    part = run_folder.begin_folder(raw, plan)
    for name in run_folder.planned_files(plan)[1:]:
        (part / name).write_text(f"{name}\n")
    return run_folder.move_to_raw(run_folder.seal_folder(part, 1), raw)


def test_what_every_client_printed_is_in_the_manifest(raw: Path):
    folder = of_three(raw)
    assert folder.verify() == []
    printed = [f"client-{number}/sysbench.{end}" for number in (1, 2) for end in ("err", "out")]
    assert [name for name in folder.manifest().files if name.startswith("client-")] == printed
    out = folder.path / "client-2" / "sysbench.out"
    out.write_text("CLIENT-2/sysbench.out\n")
    assert_faults("another output of a client", folder)
    out.unlink()
    (folder.path / "client-2" / "sysbench.cnf").write_text("threads=2\n")
    (folder.path / "client-3").mkdir()
    assert_faults("a client's output missing, and one too many", folder)


def test_a_client_without_a_log_is_never_sealed_and_never_left_out_of_the_manifest(raw: Path):
    folder = of_three(raw)
    manifest = folder.manifest().plain
    del manifest["files"]["client-1/sysbench.out"]
    (folder.path / "client-1" / "sysbench.out").unlink()
    (folder.path / "manifest.json").write_text(json.dumps(manifest))
    assert_faults("a client left out of the manifest", folder)
    part = folder.path.rename(raw / f"{RUN}.part")
    with pytest.raises(FileNotFoundError):
        run_folder.seal_folder(part, 1)


def test_options_in_a_file_are_kept_with_the_run():
    setting = {"clients": 2, "options_by": "file"}
    of_second = tuple(f"client-1/sysbench.{end}" for end in ("out", "err", "cnf"))
    assert run_folder.planned_files({"arm_setting": setting})[5:] == ("sysbench.cnf", *of_second)
    assert run_folder.planned_files({}) == run_folder.planned_files({"arm_setting": {}}) == run_folder.CONTENT


def test_nothing_but_plain_files_and_folders_is_a_run(raw: Path):
    kinds = {
        "a FIFO": os.mkfifo,
        "a socket": lambda path: os.mknod(path, stat.S_IFSOCK | 0o600),
        "a symbolic link": lambda path: path.symlink_to("/etc/hostname"),
    }
    names, odd = ("sysbench.out", "plan.json", "evidence.json", "manifest.json", "more"), []
    for number, (kind, make) in enumerate(kinds.items()):
        for place, name in enumerate(names):
            folder = made(raw, f"{RUN[:-10]}{number}{place:09x}")
            (folder.path / name).unlink(missing_ok=True)
            make(folder.path / name)
            with pytest.raises(OSError, match=f"it is {kind}"):
                folder.text(name)
            odd.append(folder)
    assert_faults("no plain files", *odd)


def test_a_run_folder_that_is_a_link_is_no_run(raw: Path, tmp_path: Path):
    made(tmp_path / "elsewhere")
    raw.mkdir()
    (raw / RUN).symlink_to(tmp_path / "elsewhere" / RUN)
    assert_faults("a link to a folder", RunFolder(raw / RUN))


def test_a_further_file_that_the_manifest_lists_is_held_against_its_hash(raw: Path):
    folder = made(raw)
    (folder.path / "turns.parquet").write_bytes(b"PAR1")
    manifest = folder.manifest().plain
    manifest["files"]["turns.parquet"] = {"sha256": hashlib.sha256(b"PAR1").hexdigest(), "bytes": 4}
    (folder.path / "manifest.json").write_text(json.dumps(manifest))
    assert folder.verify() == []
    (folder.path / "turns.parquet").write_bytes(b"PAR2")
    assert_faults("other bytes of a further file", folder)
