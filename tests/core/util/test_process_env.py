"""A password reaches the programs that need it and no other; what is made can't be written by others."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchbook.commands import stage
from benchbook.core.util import process_env
from tests import forked

STUDY = """title: There
question: Does it hold?
site: {kind: existing, existing: {host: 127.0.0.1, user: me, password_env: THEIR_WORD}}
engine: {}
arms: {one: {}, two: {endpoint: {host: 127.0.0.1, port: 3307}}}
aa: null
dataset: {tables: 1, table_size: 100}
workloads: {oltp_read_write: {}}
threads: [1]
plan: {seed: 3, blocks: 3, discard_s: 1, run_s: 10}
warm_up: {}
claims: []
"""


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A clone with one study that names a variable, which is set."""
    (tmp_path / "studies").mkdir()
    (tmp_path / "studies" / "there.yaml").write_text(STUDY)
    (tmp_path / "params.yaml").write_text("studies: [there]\nsources: []\nanalysis: {}\nlimits: {}\n")
    monkeypatch.setenv("BENCHBOOK_ROOT", str(tmp_path))
    monkeypatch.setenv("THEIR_WORD", "s3cret")
    monkeypatch.setattr(process_env, "_hidden", {})
    yield tmp_path


def test_a_password_that_is_hidden_is_inherited_by_nothing_and_still_known_here(clone: Path) -> None:
    process_env.drop_passwords()
    shown = subprocess.run(["env"], capture_output=True, text=True).stdout
    assert "s3cret" not in shown and "THEIR_WORD" not in shown
    assert process_env.read_password("THEIR_WORD") == "s3cret"
    assert process_env.read_password("ANOTHER") == ""


@pytest.mark.parametrize(
    ("name", "is_there"),
    [("provision", True), ("run-matrix", True), ("parse", False), ("analyze", False), ("report", False)],
)
def test_only_stages_that_connect_have_the_password(clone, name, is_there, monkeypatch) -> None:
    seen: list[bool] = []

    def execute(*_: object, **__: object) -> int:
        seen.append("THEIR_WORD" in os.environ)
        return 1

    monkeypatch.setattr(stage, "execute_notebook", execute)
    stage.run_stage(name, "there")
    assert seen == [is_there]


def test_commands_that_connect_to_nothing_run_without_it(clone: Path) -> None:
    program = (
        "import os, pathlib; from benchbook.commands import cli, studies; "
        "own = lambda: b's3cret' in pathlib.Path('/proc/self/environ').read_bytes(); before = own(); "
        "studies.check_studies = lambda: print('THEIR_WORD' in os.environ, before, own()) or 0; "
        "cli.main(['check'])"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert said.stdout == "False True False\n", said.stderr


UMASKS = {"0": "0o22", "2": "0o22", "77": "0o77", "27": "0o27"}
CHECK = """
import os
from benchbook.commands import cli

def call(umask):
    os.umask(int(umask, 8))
    cli.main(["check"])
    return oct(os.umask(0))
"""


def test_a_umask_that_lets_others_write_is_closed_at_the_entry(clone: Path) -> None:
    with forked.calls(CHECK) as call:
        results = {umask: call(umask) for umask in UMASKS}
    assert {umask: answer for umask, (_, answer, _) in results.items()} == UMASKS, results
