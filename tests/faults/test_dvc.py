"""What DVC leaves open is closed by `benchbook repro`: full caches, dead locks, outputs that git has."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from benchbook.commands import repro
from tests.pipeline.clone import Clone, make

# As many kinds of outputs as the real pipeline has, made in no time.
PIPELINE = """
stages:
  run-matrix:
    foreach: ${studies}
    do:
      cmd: >-
        mkdir -p data/${key}/raw data/${key}/notebooks &&
        for i in 1 2 3 4 5 6 7 8; do head -c 20000 /dev/urandom > data/${key}/raw/$i; done &&
        echo 1 > data/${key}/schedule.csv && date > data/${key}/notebooks/04_run_matrix.ipynb
      outs:
        - data/${key}/schedule.csv
        - data/${key}/raw:
            persist: true
        - data/${key}/notebooks/04_run_matrix.ipynb
"""
# By its name, since the pages that a whole study asks for are made by other stages.
REPRO = ("benchbook", "repro", "run-matrix@tiny")


@pytest.fixture(scope="module")
def clone(open_folder: Path) -> Clone:
    """A clone whose pipeline is one quick stage."""
    made = make(open_folder / "dvc")
    (made.path / "dvc.yaml").write_text(PIPELINE, encoding="utf-8")
    (made.path / "dvc.lock").unlink(missing_ok=True)
    return made


@pytest.fixture
def rwlock(clone: Clone) -> Iterator[Path]:
    file = clone.path / ".dvc" / "tmp" / "rwlock"
    file.parent.mkdir(parents=True, exist_ok=True)
    yield file
    file.unlink(missing_ok=True)


def of_faults(*texts: str) -> list[Any]:
    """Return parameters that only the long set has."""
    return [pytest.param(text, marks=pytest.mark.faults) for text in texts]


@pytest.mark.parametrize("text", ["", *of_faults('{"/a": {"wri', "[]")])
def test_an_empty_or_cut_lock_is_explained_with_its_remedy(text, clone, rwlock, inject):
    inject("F35", f"rwlock of DVC holds {text!r}")
    rwlock.write_text(text, encoding="utf-8")
    code, output = clone.run(*REPRO)
    assert code == 2
    assert "rwlock: empty or cut" in output and "`rm .dvc/tmp/rwlock`" in output
    assert "Traceback" not in output


@pytest.mark.faults
def test_a_lock_of_the_dead_holds_nobody_and_one_of_the_living_does(clone, rwlock, inject):
    inject("F35", "rwlock of DVC names a dead process")
    dead = subprocess.Popen(["true"])
    dead.wait()
    _hold(rwlock, dead.pid)
    code, output = clone.run(*REPRO, "--force")
    assert code == 0, output
    inject("F35", "rwlock of DVC names a zombie, whose parent has not collected it")
    with subprocess.Popen(["true"]) as zombie:
        os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)
        _hold(rwlock, zombie.pid)
        code, output = clone.run(*REPRO, "--force")
    assert code == 0, output
    inject("F34", "rwlock of DVC held by a living process")
    _hold(rwlock, os.getpid())
    code, output = clone.run(*REPRO, "--force")
    assert code == 2 and "Running stage" not in output
    pid = os.getpid()
    assert f"this clone: process {pid}," in output and f"`kill -INT {pid}`" in output
    inject("F35", "rwlock of DVC names a process that took over the number")
    os.utime(rwlock, (1, 1))
    code, output = clone.run(*REPRO)
    assert code == 2
    assert f"process {pid}, which is gone" in output and "`rm .dvc/tmp/rwlock`" in output


def _hold(rwlock: Path, pid: int) -> None:
    raw = str(rwlock.parents[2] / "data" / "tiny" / "raw")
    rwlock.write_text(json.dumps({"write": {raw: {"pid": pid, "cmd": "dvc repro"}}, "read": {}}))


def test_outputs_that_git_tracks_are_told_before_the_stage_runs(clone: Clone, inject: Callable[..., None]):
    inject("F39", "raw logs tracked by git")
    raw = clone.data / "raw"
    raw.mkdir(parents=True, exist_ok=True)
    (raw / "tracked").write_text("x")
    git = ["git", "-C", str(clone.path)]
    subprocess.run([*git, "add", "-f", "data/tiny/raw/tracked"], check=True)
    try:
        code, output = clone.run(*REPRO, "--force")
    finally:
        subprocess.run([*git, "rm", "-q", "-f", "--cached", "data/tiny/raw/tracked"], check=True)
    assert code == 2
    assert "data/tiny/raw: 1 files" in output
    assert "Running stage" not in output


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root")
@pytest.mark.parametrize("size", ["64k", "128k"])
@pytest.mark.faults
def test_a_full_cache_is_noticed_and_nothing_is_measured_again(size, clone, small_disk, inject):
    inject("F39", f"DVC's cache on a disk of {size}")
    cache = small_disk(clone.path.parent / f"cache-{size}", size)
    assert clone.run("dvc", "cache", "dir", "--local", str(cache))[0] == 0
    try:
        code, output = clone.run(*REPRO, "--force")
        before = {path.name: path.read_bytes() for path in (clone.data / "raw").iterdir()}
        assert code != 0, output
        assert "No space left" in output or "could not keep" in output
        subprocess.run(["mount", "-o", "remount,size=64m", str(cache)], check=True)
        code, output = clone.run("dvc", "commit", "-f")
        assert code == 0, output
        code, output = clone.run(*REPRO)
        assert code == 0 and "Running stage" not in output, output
        assert {path.name: path.read_bytes() for path in (clone.data / "raw").iterdir()} == before
    finally:
        (clone.path / ".dvc" / "config.local").unlink(missing_ok=True)
        subprocess.run(["umount", str(cache)], check=True)


@pytest.mark.faults
def test_what_the_cache_has_not_is_seen(clone: Clone, inject: Callable[..., None]):
    inject("F39", "objects gone from DVC's cache")
    code, output = clone.run(*REPRO, "--force")
    assert code == 0, output
    assert repro.find_absent(clone.path) == []
    for path in (clone.path / ".dvc" / "cache" / "files").rglob("*"):
        if path.is_file():
            path.unlink()
    assert "data/tiny/raw" in repro.find_absent(clone.path)
    assert " are free on " in repro.cache_space(clone.path)
    assert clone.run("dvc", "commit", "-f")[0] == 0
    assert repro.find_absent(clone.path) == []


@pytest.mark.parametrize("text", ["010", *of_faults("0o17", "1:30", "1e3", "yes", "1_000")])
def test_what_two_readers_of_yaml_would_read_differently_is_refused(text, clone, inject):
    """DVC reads YAML 1.2, papermill 1.1; nothing that differs may be in a lock file."""
    inject("F45", f"threads: [{text}]")
    clone.study(threads=f"[{text}]")
    try:
        code, output = clone.run("benchbook", "stage", "provision", "tiny")
    finally:
        clone.study()
    assert code == 2
    assert "studies/tiny.yaml:" in output and "threads.0" in output and "Traceback" not in output
