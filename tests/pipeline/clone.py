"""A clone of this checkout as it stands, with a study of seconds, in which the pipeline runs for real."""

import contextlib
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchbook.sites.processes import process
from benchbook.sites.topology import teardown
from tests import forked, programs, rooms
from tests.sites.ssh_hosts import Rack

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
# A machine's figures take seconds of a processor; tests/sites/agent measures them in full.
FIGURES = {'\nECHO = """': '\nWAKE_S = FLUSH_S = MOST_S = 0.1\nECHO = """'}
STUDY = """
title: A study of seconds
question: Does the pipeline find its way from a study file to a report?
site: {{kind: local, port: {port}}}
engine: {{name: mariadb, settings: {{innodb_buffer_pool_size: 32M, innodb_log_file_size: 8M}}}}
arms:
  direct: {{access: direct}}
  haproxy: {{access: haproxy}}
aa: {aa}
dataset: {{tables: 2, table_size: 500}}
workloads:
  oltp_point_select: {{}}
threads: {threads}
plan: {{blocks: {blocks}, discard_s: {discard_s}, run_s: {run_s}, max_repeats: 3, turn_ms: 50}}
warm_up: {{pilot_s: {pilot_s}}}
claims: []
"""
# Programs of `Clone.fork`.
BENCHBOOK = """
from benchbook.commands import cli, notebooks, record

def call(*words):
    return cli.main(words)
"""
DVC = """
import dvc.repo, dvc.repo.metrics.show, dvc.repo.reproduce, dvc.repo.status, dvc.stage.run
from dvc.cli import main

def call(*words):
    return main(list(words))
"""
USUAL: dict[str, object] = {"blocks": 3, "threads": "[1]", "port": rooms.port(300), "aa": "{threads: [1]}"}
USUAL |= {"discard_s": 1, "run_s": 2, "pilot_s": 1}


@dataclass(frozen=True)
class Clone:
    """A temporary clone and where its lab is."""

    path: Path
    lab: Path

    @property
    def data(self) -> Path:
        """What the pipeline makes of the study."""
        return self.path / "data" / "tiny"

    def study(self, **changes: object) -> None:
        """Write the study file, some of its values as given."""
        assert changes.keys() <= USUAL.keys()
        text = STUDY.format(**USUAL | changes)
        (self.path / "studies" / "tiny.yaml").write_text(text, encoding="utf-8")

    def environment(self) -> dict[str, str]:
        """Return an environment in which this clone's library and notebooks are used, and no other's."""
        ours = ("BENCHBOOK_", "DVC_")
        others = (key for key in os.environ if not key.startswith(ours) or key == programs.INSTALLED)
        kept = {key: os.environ[key] for key in others}
        return kept | {
            "PATH": f"{Path(sys.executable).parent}:{kept['PATH']}",
            "PYTHONPATH": str(self.path / "lib"),
            "DVC_NO_ANALYTICS": "1",
            "BENCHBOOK_LAB_DIR": str(self.lab),
            "BENCHBOOK_LOCK": str(self.path / ".machine.lock"),
            "DVC_SITE_CACHE_DIR": str(self.path / ".dvc" / "tmp" / "site"),
        }

    def commit(self, *options: str) -> None:
        """Commit all that has changed, with further options of `git add`."""
        for argv in (["add", "-A", *options], ["commit", "-qm", "t"]):
            git = ["git", "-c", "user.name=t", "-c", "user.email=t@t", *argv]
            subprocess.run(git, cwd=self.path, check=True, capture_output=True)

    def start(self, *argv: str, more: dict[str, str] | None = None) -> subprocess.Popen[str]:
        """Start a command in the clone, in a process group of its own, with more in its environment."""
        return subprocess.Popen(
            argv, cwd=self.path, env=self.environment() | (more or {}), text=True, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

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

    @contextlib.contextmanager
    def fork(self, program: str) -> Iterator[Callable[..., tuple[int, str]]]:
        """Return a function that runs a program's `call` in the clone; what it imports is imported once."""
        with forked.calls(program, cwd=self.path, env=self.environment()) as call:

            def run(*words: str) -> tuple[int, str]:
                code, answer, printed = call(*words)
                return code or answer, printed

            yield run

    def runs(self) -> list[Path]:
        """Return the finished run folders."""
        raw = self.data / "raw"
        return sorted(path for path in raw.iterdir() if path.suffix != ".part") if raw.is_dir() else []

    def processes(self) -> list[int]:
        """Return the living processes that were started in this clone's lab."""
        return [child.pid for child in teardown.find_processes(self.lab, set())]


@contextlib.contextmanager
def with_rack(*names: str) -> Iterator[tuple[Clone, Rack]]:
    """Make a clone and a rack of hosts with these names; both go with the block."""
    with tempfile.TemporaryDirectory(prefix="bb-", dir="/var/tmp") as folder:
        Path(folder).chmod(0o711)
        (Path(folder) / "rack").mkdir(mode=0o711)
        with Rack(Path(folder) / "rack", 100 + rooms.number()) as rack:
            for name in names:
                rack.add(name)
            yield make(Path(folder)), rack


def make(into: Path) -> Clone:
    """Copy the files that git knows or would add, as they are now, into a fresh repository.

    What DVC made here it has not made there, so its book stays behind. So do the archives of the record: to
    make them again takes longer than the study of seconds, and `tests/site/test_the_record.py` does it.
    """
    path = into / "clone of benchbook"
    asked = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(asked, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file() and name != "dvc.lock" and not name.startswith("data/record/"):
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, path / name)
            _compiled(ROOT / name, path / name)
    sites = path / "lib/benchbook/sites"
    _change(sites / "agent/microbenchmarks.py", FIGURES)
    if home := process.PLAIN.get("HOME"):
        # sysbench waits in this clone, too, whose processes have the environment that is written there.
        before = '\nPLAIN = {"PATH": PATH, '
        _change(sites / "processes/process.py", {before: f'{before}"HOME": {home!r}, '})
    clone = Clone(path, into / "lab")
    (path / "params.yaml").write_text(PARAMS, encoding="utf-8")
    (path / "data" / "record").mkdir()
    (path / "data" / "record" / ".gitkeep").touch()
    clone.study()
    subprocess.run(["git", "init", "-q"], cwd=path, check=True)
    clone.commit()
    return clone


def _compiled(module: Path, copy: Path) -> None:
    """Bring a module's compiled form along, or the first command takes seconds to compile all of them."""
    there, here = (Path(importlib.util.cache_from_source(str(one))) for one in (module, copy))
    if module.suffix == ".py" and there.is_file():
        here.parent.mkdir(exist_ok=True)
        shutil.copy2(there, here)


def _change(module: Path, changes: Mapping[str, str]) -> None:
    """Replace texts of a module that it has once."""
    text = module.read_text(encoding="utf-8")
    for before, after in changes.items():
        assert text.count(before) == 1
        text = text.replace(before, after)
    module.write_text(text, encoding="utf-8")
