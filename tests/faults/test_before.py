"""What can be known to go wrong is refused before the first run, in words; a full disk costs one run."""

import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbformat
import psutil
import pytest

from benchbook.commands import stage
from benchbook.core.artifacts import run_folder
from benchbook.core.util import paths
from benchbook.core.util.errors import BenchbookError, SiteError
from benchbook.measure import dataset, preflight, scheduler
from benchbook.measure.statement_counters import open_session
from benchbook.plan import schedule
from benchbook.sites.processes import procfs
from tests import beside, ports
from tests.faults import acts, leftovers
from tests.faults.scene import Scene
from tests.goldens import assert_golden
from tests.limits import LIMITS

ROOT = Path(__file__).resolve().parents[2]
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root")


@pytest.mark.server
@pytest.mark.parametrize(
    ("row", "name", "low", "usual", "said"),
    [
        ("F12", "max_connections", 10, 1024, "max_connections is 10, 64 sessions at once need 74"),
        # 64 threads with nine statements on each of two tables, BEGIN and COMMIT.
        ("F13", "max_prepared_stmt_count", 100, 1048576, "is 100, 64 sessions at once need 1280"),
        ("F16", "read_only", 1, 0, "the server is read_only"),
    ],
)
def test_a_server_that_cannot_take_the_study_is_refused(row, name, low, usual, said, scene, inject):
    here = scene(threads=(1, 64))
    here.site.up("direct")
    with open_session(here.site) as connection:
        assert preflight.check_server(here.study, connection) == []
    inject(row, f"{name} = {low}, seen before the first run")
    here.sql(f"SET GLOBAL {name} = {low}")
    here.undo(lambda: here.sql(f"SET GLOBAL {name} = {usual}"))
    refused = pytest.raises(BenchbookError, match=r"^this can't be measured: .*" + said)
    with open_session(here.site) as connection, refused:
        preflight.refuse_problems(preflight.check_server(here.study, connection))


def test_too_few_open_files_are_refused_before_any_server_starts(make_study, tmp_path, inject):
    inject("F19", "100 open files for 64 threads")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (100, hard))
    try:
        found = preflight.check_machine(make_study(threads=(64,)), {"raw logs": tmp_path}, {"free_mib": 1})
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert_golden("faults/open-files.txt", "\n".join([*found, ""]))


def test_too_little_space_is_refused_before_any_server_starts(make_study, tmp_path, inject, monkeypatch):
    """The machine's lock is not even asked for."""
    inject("F21", "no room for raw logs")
    monkeypatch.setenv("BENCHBOOK_LOCK", str(tmp_path / "no folder" / "lock"))
    monkeypatch.setenv("BENCHBOOK_LAB_DIR", str(tmp_path / "lab"))
    study, where = make_study(), paths.StudyPaths("test", tmp_path)
    runs = schedule.plan_runs("test", study, {})
    limits = LIMITS | {"free_mib": 10_000_000}
    said = r"MiB are free for raw logs, 10000000 are needed .*; free some space"
    with pytest.raises(BenchbookError, match=said):
        scheduler.complete_schedule("test", study, runs, {}, {}, where, lambda folder: None, limits)
    assert not (tmp_path / "lab").exists()


@needs_root
@pytest.mark.server
@pytest.mark.faults
@pytest.mark.parametrize("left", [0, 4096, 12288])
def test_a_full_disk_for_logs_costs_one_run(left, site, make_study, book, open_folder, small_disk, inject):
    disk = small_disk(open_folder / f"logs{left}", "600m")
    here = Scene(site, make_study(), disk, book)
    inject("F21", f"{left} bytes left on the disk of the logs")
    said = ""
    try:
        with preflight.explain_errors(here.raw):
            here.walk(acts.fill(disk, left), "before")
    except BenchbookError as error:
        said = str(error)
    here.settle()
    assert said == "" or "no space left" in said
    if said:
        # The run was lost before it was judged: nothing valid is there, and the same command goes on.
        assert list(run_folder.list_folders(here.raw)) == []
        here.walk(None)
    assert here.voids()[0]["status"] in ("killed", "invalid", "indeterminate")
    here.assert_resumed()
    subprocess.run(["umount", str(disk)], check=True)
    here.assert_nothing_left()


@needs_root
@pytest.mark.server
@pytest.mark.faults
def test_a_full_disk_of_the_database_is_noticed(scene: Callable[..., Scene], inject: Callable[..., None]):
    here = scene(workloads={"oltp_insert": {"rand_type": "uniform"}})
    disk = here.site.lab.folder.parent
    if not leftovers.mounts(disk):
        pytest.skip("the lab has no disk of its own here")
    inject("F21", "the database's disk full in a run")
    here.walk(acts.fill(disk, 0, "256K"), "before")
    here.assert_mended("V1", "V3", "V7", "V17")


@needs_root
@pytest.mark.parametrize(
    ("words", "place"),
    [("stage provision quick", "data/quick/notebooks: "), ("repro", "/.dvc: "), ("pages", "/.dvc: ")],
)
def test_a_repository_that_cannot_be_written_is_told_before_anything_starts(words, place, tmp_path, inject):
    inject("F49", f"the repository mounted read-only, benchbook {words}")
    (tmp_path / "studies").mkdir()
    (tmp_path / "lab").mkdir()
    shutil.copy(ROOT / "studies" / "quick.yaml", tmp_path / "studies")
    shutil.copytree(ROOT / "data" / "published", tmp_path / "data" / "published")
    (tmp_path / "params.yaml").write_text(
        "studies: {quick: studies/quick.yaml}\nsources: []\nanalysis: {}\nlimits: {}\n"
    )
    shell = (
        f"mount --bind '{tmp_path}' '{tmp_path}' && mount -o remount,ro,bind '{tmp_path}' && "
        f"exec '{sys.executable}' -m benchbook.commands.cli {words}"
    )
    environment = os.environ | {"BENCHBOOK_ROOT": str(tmp_path), "BENCHBOOK_LAB_DIR": str(tmp_path / "lab")}
    asked = ["unshare", "--mount", "sh", "-c", shell]
    done = subprocess.run(asked, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert place in done.stderr and "Read-only file system; look" in done.stderr
    assert "Traceback" not in done.stderr
    assert leftovers.of(tmp_path) == []


@pytest.mark.server
@pytest.mark.faults
def test_a_server_on_another_data_folder_is_refused_and_left_alone(scene, inject):
    here = scene()
    inject("F11", "server replaced between runs by one on another data folder")
    here.walk(None)
    here.arm = "proxy"
    folder = here.site.lab.folder.parent / "other"
    with _another_server(here, folder) as pid:
        with pytest.raises(SiteError, match=rf"port {here.study.site.port} .* pid {pid}: "):
            here.walk(None)
        assert psutil.pid_exists(pid)
    here.walk(None)
    here.assert_resumed_for("direct", "proxy")
    here.assert_nothing_left()


@contextmanager
def _another_server(here: Scene, folder: Path) -> Iterator[int]:
    """Kill the server and start one on a copy of its data, on the same port."""
    with here.site.admin().connect() as connection:
        data = Path(connection.exec_driver_sql("SELECT @@datadir").scalar_one())
    binary, words = os.readlink(f"/proc/{here.server}/exe"), procfs.read_command(here.server)
    usual = Path(re.search(r"--defaults-file=(\S+)", words)[1]).read_text(encoding="utf-8")
    os.kill(here.server, signal.SIGKILL)
    shutil.copytree(data, folder, ignore=shutil.ignore_patterns("*.sock"))
    subprocess.run(["chown", "-R", "mysql", str(folder)], check=False)
    said = usual.replace(str(data), str(folder)).replace("m.sock", "o.sock").replace("m.pid", "o.pid")
    config = folder.with_suffix(".cnf")
    config.write_text(said, encoding="utf-8")
    beside.gone(lambda: ports.listeners(here.study.site.port))
    user = ["--user=mysql"] if os.geteuid() == 0 else []
    other = subprocess.Popen(
        [binary, f"--defaults-file={config}", *user], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        beside.until(lambda: ports.listeners(here.study.site.port))
        yield other.pid
    finally:
        other.kill()
        other.wait()
        shutil.rmtree(folder)
        config.unlink()


@needs_root
def test_a_disk_that_fills_up_in_a_stage_is_told_in_words(tmp_path, small_disk, inject, monkeypatch, capfd):
    """Papermill can't save the notebook then, and nothing but an exit code would be left."""
    inject("F21", "the disk of the clone full in a stage")
    root = small_disk(tmp_path / "clone", "2m")
    cell = nbformat.v4.new_code_cell("open('filler', 'wb').write(bytes(4_000_000))")
    (root / "notebooks").mkdir()
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), root / "notebooks" / "full.ipynb")
    monkeypatch.setenv("BENCHBOOK_ROOT", str(root))
    assert stage.execute_notebook("full", root / "data", root / "data" / "failed", is_here=False) != 0
    said = capfd.readouterr().err
    told = ("full failed: ", "is full (", "free some space and run the stage again")
    assert all(words in said for words in told) and "Traceback" not in said


@pytest.mark.server
def test_a_server_that_is_started_again_between_runs_is_told_in_words(scene, inject, monkeypatch):
    inject("F54", "the server killed while its data are read into memory")
    here = scene()
    here.site.up("direct")

    def kill(*_: Any) -> None:
        os.kill(here.server, signal.SIGKILL)
        time.sleep(0.2)
        with open_session(here.site) as connection:
            connection.exec_driver_sql("SELECT 1")

    monkeypatch.setattr(dataset, "prewarm_all", kill)
    said = r"ended, was restarted or refused while no run was going on .* are kept"
    with pytest.raises(BenchbookError, match=said), preflight.explain_errors(here.raw):
        here.walk(None)
    monkeypatch.undo()
    here.walk(None)
    here.assert_resumed()
    here.assert_nothing_left()
