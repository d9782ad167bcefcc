"""The tutorial, followed word by word in a fresh clone; only lengths and limits are a test's."""

import json
import os
import re
import shutil
import sys
import tomllib
from pathlib import Path

import pytest

import benchbook as bb
from benchbook.commands import cli
from tests import rooms
from tests.house import tree
from tests.pipeline.clone import PARAMS, Clone, make

FILE = tree.ROOT / "docs" / "tutorial.md"
PAGE = FILE.read_text(encoding="utf-8")
# With this set, everything is run in the page's own lengths, and what it prints is put into the page.
IS_WRITING = bool(os.environ.get("BENCHBOOK_WRITE_TUTORIAL"))
# A reader has minutes and a machine of their own; a test has seconds and neighbours.
SHORTER = {
    "discard_s: 0.5, run_s: 3": "discard_s: 0.3, run_s: 1, max_repeats: 5",
    "pilot_s: 3": "pilot_s: 2",
    "table_size: 20000": "table_size: 1000",
    "{kind: local}": f"{{kind: local, port: {rooms.port(340)}}}",
}
MOST_LINES = 20
TOLD = re.compile(r"^(\[|report: |Report: |[0-9]+ runs planned)")


def blocks() -> list[str]:
    """Return the commands of the page, one text a fenced block."""
    return re.findall(r"^```sh\n(.*?)^```$", PAGE, re.M | re.S)


def outputs() -> list[str]:
    """Return the output that the page shows."""
    return re.findall(r"^```text\n(.*?)^```$", PAGE, re.M | re.S)


def test_it_shows_real_output_and_nothing_is_left_to_fill_in():
    assert len(blocks()) >= 12 and len(outputs()) >= 3
    assert not [text for text in outputs() if "OUTPUT" in text or len(text.splitlines()) < 3]


def test_its_study_file_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from benchbook.core.study import load
    from benchbook.plan import schedule

    text = re.search(r"own\.yaml <<'END'\n(.*?)^END$", PAGE, re.M | re.S)
    assert text
    (tmp_path / "own.yaml").write_text(text[1], encoding="utf-8")
    study = load.study_file(tmp_path / "own.yaml")
    runs = schedule.plan_runs("own", study, {})
    # Two arms with two workloads, and the twin with one.
    assert len(runs) == 3 * (2 * 2 + 1)
    assert schedule.estimate_seconds(study, runs) + schedule.pilot_seconds(study) < 3 * 60


def test_its_commands_are_there():
    typed = "\n".join(blocks())
    assert {*re.findall(r"^make ([a-z-]+)", typed, re.M)} <= tree.make_targets()
    commands = {*tomllib.loads(cli.KNOWN.read_text(encoding="utf-8"))}
    assert {*re.findall(r"(?<!import )\bbenchbook ([a-z-]+)", typed)} <= commands
    assert {*re.findall(r"\bbb\.([a-z_]+)", typed)} <= {*dir(bb)}
    files = re.findall(r"(?:tests|studies|docs|data)/[\w./-]+\w", typed)
    assert not [name for name in files if "own" not in name and not (tree.ROOT / name).exists()]


@pytest.fixture(scope="module")
def followed(open_folder: Path) -> tuple[Clone, str]:
    """A clone in which all commands of the page were run, one after the other in one shell."""
    clone = make(open_folder / "tutorial")
    (clone.path / "studies" / "tiny.yaml").unlink()
    params = (tree.ROOT / "params.yaml").read_text(encoding="utf-8").partition("\nlimits:")[0]
    limits = PARAMS[PARAMS.index("\nlimits:") :]
    (clone.path / "params.yaml").write_text(f"{params}{limits}", encoding="utf-8")
    shutil.copy(tree.ROOT / "studies" / "quick.yaml", clone.path / "studies" / "quick.yaml")
    _environment(clone)
    (clone.path / ".git" / "info" / "exclude").write_text("/.machine.lock\n", encoding="utf-8")
    script = "\n".join(f"echo '### {number}'\n{text}" for number, text in enumerate(blocks()))
    for long, short in SHORTER.items():
        assert long in script
        if not IS_WRITING or "port" in short:
            script = script.replace(long, short)
    script = re.sub(r"^make ", "make --assume-old=setup ", script, flags=re.M)
    who = ["git config user.name reader", "git config user.email reader@example.org", "git add -A"]
    first = "\n".join([*who, "git commit -qm clone", "unset DISPLAY WAYLAND_DISPLAY"])
    (clone.path.parent / "tutorial.sh").write_text(f"set -eu\n{first}\n{script}", encoding="utf-8")
    code, said = clone.run("sh", str(clone.path.parent / "tutorial.sh"), timeout_s=1500)
    assert code == 0, said[-6000:]
    said = said.replace(str(clone.path), "/home/me/benchbook")
    if IS_WRITING:
        FILE.write_text(filled(said), encoding="utf-8")
    return clone, said


def _environment(clone: Clone) -> None:
    """Put a .venv into the clone that has what this test runs in, but the clone's own library."""
    programs = clone.path / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name in ("benchbook", "dvc", "python"):
        real = Path(sys.executable).parent / name
        script = f'#!/bin/sh\nPYTHONPATH="{clone.path}/lib" exec "{real}" "$@"\n'
        (programs / name).write_text(script, encoding="utf-8")
        (programs / name).chmod(0o755)
    (programs / "activate").write_text(f'PATH="{programs}:$PATH"\n', encoding="utf-8")


def filled(said: str) -> str:
    """Return the page with what its commands printed; of long output, what tells how a measurement goes."""
    printed = re.split(r"^### [0-9]+\n", said, flags=re.M)[1:]
    numbers = iter(range(len(printed)))

    def put(found: re.Match[str]) -> str:
        lines = printed[next(numbers)].rstrip().splitlines()
        if len(lines) > MOST_LINES:
            told = [line for line in lines if TOLD.match(line)]
            table = [line for line in lines if line.startswith(("Path ", "data/", "| ", "|-"))]
            lines = table or [*told[:4], "…", *told[-4:]]
        # Whether a run was voided is an accident of the day, not the form of the output.
        lines = [line for line in lines if "voided_runs  " not in line]
        text = "\n".join(line.rstrip() for line in lines)
        shown = f"{found[2]}```text\n{text}\n```\n" if found[2] is not None else ""
        return found[1] + shown

    return re.sub(r"(^```sh\n.*?^```\n)(?:(\n)```text\n.*?^```\n)?", put, PAGE, flags=re.M | re.S)


@pytest.mark.slow
@pytest.mark.server
def test_every_command_works_and_ends_in_an_own_study(followed: tuple[Clone, str]):
    clone, said = followed
    found = json.loads((clone.path / "data" / "own" / "findings.json").read_text(encoding="utf-8"))
    # The experiment is put away again: five blocks at four threads.
    assert found["blocks"] == {"planned": 5, "complete": 5}
    assert {one["workload"]: one["threads"] for one in found["findings"]} == {"small": [4], "large": [4]}
    assert "15 runs planned, 0 there already" in said
    assert "25 runs planned, 15 there already" in said
    assert "45 runs planned, 25 there already" in said
    # The answer to the question: the effects on both, and the one over the other.
    assert re.search(r"large over small +[+-][0-9.]+ %", said)


@pytest.mark.slow
@pytest.mark.server
def test_what_it_prints_has_the_form_that_the_page_shows(followed: tuple[Clone, str]):
    _, said = followed
    for shown in outputs():
        for line in shown.splitlines():
            # What an effect was called on the day is a result, not the form of the output.
            words = re.findall(r"[A-Za-z_]{4,}", line.replace("depends on threads", ""))
            assert all(word in said for word in words), (words, line)
