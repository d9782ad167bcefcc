"""A clone of this checkout as it stands, with a study of seconds, in which the pipeline runs for real."""

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from benchbook.sites.processes import process
from benchbook.sites.topology import teardown
from tests import programs, rooms

ROOT = Path(__file__).resolve().parents[2]
# A busy machine must not void runs here: these tests are about the pipeline, not about the machine.
PARAMS = """
studies: {tiny: studies/tiny.yaml}
sources: []
analysis: {looks: [5, 10, 20]}
limits:
  {steal_pct: 100.0, steal_in_turns_pct: 100.0, client_wait: 10.0, pause_ms: 60000.0, client_cpu: 1.0,
   overrun_s: 30.0}
"""
STUDY = """
title: A study of seconds
question: Does the pipeline find its way from a study file to a report?
site: {kind: local, port: PORT}
engine: {name: mariadb, settings: {innodb_buffer_pool_size: 32M, innodb_log_file_size: 8M}}
arms:
  direct: {access: direct}
  haproxy: {access: haproxy}
aa: AA
dataset: {tables: 2, table_size: 500}
workloads:
  oltp_point_select: {}
threads: THREADS
plan: {blocks: BLOCKS, discard_s: DISCARD_S, run_s: RUN_S, max_repeats: 3, turn_ms: 50}
warm_up: {pilot_s: PILOT_S}
claims: []
"""


@dataclass(frozen=True)
class Clone:
    """A temporary clone and where its lab is."""

    path: Path
    lab: Path

    @property
    def data(self) -> Path:
        """What the pipeline makes of the study."""
        return self.path / "data" / "tiny"

    def study(
        self,
        blocks: int = 3,
        threads: str = "[1]",
        port: int = rooms.port(300),
        discard_s: float = 1,
        run_s: int = 2,
        pilot_s: int = 1,
        aa: str = "{threads: [1]}",
    ) -> None:
        """Write the study file."""
        text = STUDY.replace("BLOCKS", str(blocks)).replace("THREADS", threads).replace("PORT", str(port))
        text = text.replace("DISCARD_S", str(discard_s)).replace("RUN_S", str(run_s))
        text = text.replace("PILOT_S", str(pilot_s)).replace("AA", aa)
        (self.path / "studies" / "tiny.yaml").write_text(text, encoding="utf-8")

    def environment(self) -> dict[str, str]:
        """Return an environment in which this clone's library and notebooks are used, and no other's."""
        ours = ("BENCHBOOK_", "DVC_")
        kept = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(ours) or key == programs.INSTALLED
        }
        return kept | {
            "PATH": f"{Path(sys.executable).parent}:{kept['PATH']}",
            "PYTHONPATH": str(self.path / "lib"),
            "DVC_NO_ANALYTICS": "1",
            "BENCHBOOK_LAB_DIR": str(self.lab),
            "BENCHBOOK_LOCK": str(self.path / ".machine.lock"),
            "DVC_SITE_CACHE_DIR": str(self.path / ".dvc" / "tmp" / "site"),
        }

    def start(self, *argv: str) -> subprocess.Popen[str]:
        """Start a command in the clone, in a process group of its own."""
        return subprocess.Popen(
            argv,
            cwd=self.path,
            env=self.environment(),
            text=True,
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def run(self, *argv: str, timeout_s: float = 400) -> tuple[int, str]:
        """Run a command in the clone to its end; return its exit code and all it printed."""
        process = self.start(*argv)
        try:
            said, _ = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            said, _ = process.communicate()
            said += f"\nkilled after {timeout_s} s"
        return process.returncode, said

    def runs(self) -> list[Path]:
        """Return the finished run folders."""
        raw = self.data / "raw"
        return sorted(path for path in raw.iterdir() if path.suffix != ".part") if raw.is_dir() else []

    def processes(self) -> list[int]:
        """Return the living processes that were started in this clone's lab."""
        return [child.pid for child in teardown.find_processes(self.lab, set())]


def make(into: Path) -> Clone:
    """Copy the files that git knows or would add, as they are now, into a fresh repository.

    What DVC made here it has not made there, so its book stays behind. So do the archives of the record: to
    make them again takes longer than the study of seconds, and `tests/site/test_the_record.py` does it.
    """
    path = into / "clone of benchbook"
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    names = [name for name in listed.split("\0") if name]
    for name in names:
        if (ROOT / name).is_file() and name != "dvc.lock" and not name.startswith("data/record/"):
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, path / name)
            _compiled(ROOT / name, path / name)
    if home := process.PLAIN.get("HOME"):
        _calmed(path / "lib/benchbook/sites/processes/process.py", home)
    clone = Clone(path, into / "lab")
    (path / "params.yaml").write_text(PARAMS, encoding="utf-8")
    (path / "data" / "record").mkdir()
    (path / "data" / "record" / ".gitkeep").touch()
    clone.study()
    for argv in (
        ["init", "-q"],
        ["add", "-A"],
        ["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "t"],
    ):
        subprocess.run(["git", *argv], cwd=path, check=True, capture_output=True)
    return clone


def _compiled(module: Path, copy: Path) -> None:
    """Bring a module's compiled form along, or the first command takes seconds to compile all of them."""
    there, here = (Path(importlib.util.cache_from_source(str(one))) for one in (module, copy))
    if module.suffix == ".py" and there.is_file():
        here.parent.mkdir(exist_ok=True)
        shutil.copy2(there, here)


def _calmed(module: Path, home: str) -> None:
    """Let sysbench wait in this clone, too, whose processes are told only what their library has."""
    text, told = module.read_text(encoding="utf-8"), '\nPLAIN = {"PATH": PATH, '
    assert text.count(told) == 1
    module.write_text(text.replace(told, f'{told}"HOME": {home!r}, '), encoding="utf-8")
