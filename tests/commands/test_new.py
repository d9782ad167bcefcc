"""`benchbook new`: a valid file from options or a terminal, all mistakes at once, no file replaced."""

import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchbook.commands import cli, new
from benchbook.core.study import load
from benchbook.core.util import yaml_file
from benchbook.plan import schedule
from tests.goldens import assert_golden

POOLS = "small: innodb_buffer_pool_size=8388608; large: innodb_buffer_pool_size=268435456, qos=none"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("BENCHBOOK_ROOT", str(tmp_path))
    (tmp_path / "studies").mkdir()
    with open(os.devnull) as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        yield tmp_path


TPCC = """
-- what it takes
sysbench.cmdline.options = {
   scale =
      {"Scale factor (warehouses)", 100},
   trx_level = {"Isolation level (RC, RR or SER)", "RR"},
   table_options = {"Extra table options, e.g. 'COLLATE latin1_bin'", ""},
   force_pk = {"Force a key", false},
   mysql_storage_engine = {"Storage engine", "innodb"},
}
"""
QUESTION = 'Does a "larger" pool help: by 5 % # or C:\\more?'
COMMITS = "before: ref=v1.4, repo=../server, command=make -j2 && make check, binary=build/mariadbd; "
COMMITS += "after: ref=main~2"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("settings", ["--about", "setting", "--differs", POOLS]),
        ("proxy", []),
        ("engines", ["--about", "engines"]),
        (
            "versions",
            ["--engine", "tidb", "--about", "versions", "--differs", "a: version=5; b: version=6"],
        ),
        (
            "binaries",
            ["--about", "versions", "--differs", "a: binary=/a/mariadbd; b: binary=/b/mariadbd"],
        ),
        ("commits", ["--about", "versions", "--differs", COMMITS]),
        ("servers", ["--about", "servers", "--differs", "old: endpoint=db-a:3306; new: db-b:3307"]),
        ("script", ["--about", "script", "--load", "workloads/tpc-c.lua 4"]),
    ],
)
def test_options_alone_make_a_file_that_plan_accepts(root, capsys, name, words):
    """A hundred warehouses of a script are ten gigabytes: who did not write it must see that."""
    (root / "workloads").mkdir()
    (root / "workloads" / "common.lua").write_text(TPCC)
    (root / "workloads" / "tpc-c.lua").write_text('require("common")\nfunction event() end\n')
    assert cli.main(["new", "--name", "mine", "--question", QUESTION, *words]) == 0, capsys.readouterr().err
    study = load.load_study("mine")
    assert study.question == QUESTION and "turns of" in schedule.describe_plan("mine", study)
    text = (root / "studies" / "mine.yaml").read_text()
    assert_golden(f"new/{name}.txt", f"{text}\n=== said\n{capsys.readouterr().out}")


@pytest.mark.parametrize("engine", new.list_engines())
def test_the_defaults_are_valid_for_each_engine(root, engine):
    given = ["--name", "mine", "--question", "What does it cost?", "--engine", engine]
    assert cli.main(["new", *given, "--load", "oltp_read_only,16 4"]) == 0
    study = load.load_study("mine")
    assert list(study.arms) == ["direct", "haproxy"] and study.threads == (16, 4)


def test_a_script_that_is_not_there_makes_no_file(root):
    words = ["--about", "script", "--name", "mine", "--question", "Which?", "--load", "workloads/gone.lua 4"]
    assert cli.main(["new", *words]) == 1
    assert not (root / "studies" / "mine.yaml").exists()


MISTAKES = "new --name Not-A-Name --question ? --differs one --engine mariab --load oltp_point_selec,1"
WHICH = "--question Which? "


@pytest.mark.parametrize(
    ("words", "texts"),
    [
        (f"new --name pool {WHICH}", ["studies/pool.yaml is there already"]),
        (MISTAKES, [*MISTAKES.split()[1::2], "did you mean mariadb", "did you mean oltp_point_select"]),
        (f"new --name p {WHICH} --differs a:access=no;b:access=haproxy", ["access"]),
        ("new --name p", ["--question: missing"]),
        (
            f"new --about script --name p {WHICH}",
            ["give it: Workloads of sysbench, and threads, such as"],
        ),
    ],
)
def test_every_mistake_is_said_at_once_and_nothing_is_written(root, capsys, words, texts):
    file = root / "studies" / "pool.yaml"
    file.write_text("mine")
    assert cli.main(words.split()) == 2
    printed = capsys.readouterr().err
    assert [text for text in texts if text not in printed] == []
    assert list((root / "studies").iterdir()) == [file] and file.read_text() == "mine"


@pytest.mark.parametrize("text", ["a; a", "a: x=1; b: x=1", "a; B", "a: =1; b", "a: x=1 2; b", ""])
def test_arms_that_are_the_same_or_unreadable_are_refused(text):
    assert new._check_differs(text)


def test_a_person_on_a_terminal_is_asked_six_times_and_again_after_a_mistake(root):
    """A real terminal: a wrong name is refused and asked for again; Enter takes what stands in brackets."""
    mine, theirs = pty.openpty()
    argv = [sys.executable, "-m", "benchbook.commands.cli", "new"]
    child = subprocess.Popen(argv, stdin=theirs, stdout=subprocess.PIPE, text=True, env={**os.environ})
    os.write(mine, b"proxi\nproxy\nWrong Name\nproxy\nWhat does a proxy cost?\n\n\n\n")
    told, _ = child.communicate(timeout=120)
    os.close(mine), os.close(theirs)
    assert child.returncode == 0, told
    assert told.count(": ") >= 6 and "write lower-case letters" in told
    assert (
        yaml_file.read_mapping(root / "studies" / "proxy.yaml").data["question"] == "What does a proxy cost?"
    )
