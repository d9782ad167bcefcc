"""`benchbook new`: a valid file from options or a terminal, all mistakes at once, no file replaced."""

import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchbook.commands import cli, new
from benchbook.core.study import descriptors, load
from benchbook.core.study.engines import engine_of
from benchbook.core.util import yaml_file
from benchbook.plan import schedule

POOLS = "small: innodb_buffer_pool_size=8388608; large: innodb_buffer_pool_size=268435456, qos=none"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("BENCHBOOK_ROOT", str(tmp_path))
    (tmp_path / "studies").mkdir()
    with open(os.devnull) as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        yield tmp_path


def test_options_alone_make_a_file_that_plan_accepts(root, capsys):
    question = 'Does a "larger" pool help: by 5 % # or C:\\more?'
    assert cli.main(["new", "--name", "pool", "--question", question, "--differs", POOLS]) == 0
    study = load.load_study("pool")
    assert study.question == question and study.baseline == "small"
    assert study.arms["large"].engine.settings == {"innodb_buffer_pool_size": 268435456}
    assert study.threads == (1, 8) and list(study.workloads) == ["oltp_point_select", "oltp_read_write"]
    summary = schedule.describe_plan("pool", study)
    assert "20 at most, fewer once all is decided at a look, order drawn by each session" in summary
    assert "make plan STUDY=pool" in capsys.readouterr().out
    text = (root / "studies" / "pool.yaml").read_text()
    assert text.count("#") > 8 and text.startswith("# yaml-language-server")


@pytest.mark.parametrize("engine", new.list_engines())
def test_the_defaults_are_valid_for_each_engine(root, engine):
    given = ["--name", "mine", "--question", "What does it cost?", "--engine", engine]
    assert cli.main(["new", *given, "--load", "oltp_read_only,16 4"]) == 0
    study = load.load_study("mine")
    assert list(study.arms) == ["direct", "haproxy"] and study.threads == (16, 4)


def test_two_versions_differ_in_their_version(root):
    given = ["--name", "v", "--question", "What changed?", "--engine", "tidb"]
    assert cli.main(["new", *given, "--differs", "old: version=5.0; new: version=6.6"]) == 0
    assert load.load_study("v").arms["old"].engine.version == "5.0"


@pytest.mark.parametrize(
    ("about", "given", "order"),
    [
        ("setting", [], "turns of"),
        ("proxy", [], "turns of"),
        ("engines", [], "turns of"),
        (
            "versions",
            ["--differs", "before: binary=/opt/a/mariadbd; after: binary=/opt/b/mariadbd"],
            "turns of",
        ),
        ("servers", ["--differs", "old: endpoint=db-a:3306; new: endpoint=db-b:3307"], "turns of"),
        ("script", ["--load", "workloads/mine.lua 4"], "turns of"),
    ],
)
def test_each_of_the_six_questions_becomes_a_study_that_is_planned(root, capsys, about, given, order):
    (root / "workloads").mkdir()
    (root / "workloads" / "mine.lua").write_text("function event() con:query('SELECT 1') end\n")
    words = ["new", "--about", about, "--name", "mine", "--question", "Which one serves more?", *given]
    assert cli.main(words) == 0, capsys.readouterr().err
    study = load.load_study("mine")
    assert order in schedule.describe_plan("mine", study)
    second = list(study.arms.values())[1]
    if about == "engines":
        assert second.engine.name == "postgresql"
    if about == "script":
        assert study.plan.run_s == 10
    if about == "servers":
        assert (study.site.existing.host, study.site.existing.port) == ("db-a", 3306)
        assert (second.endpoint.host, second.endpoint.port) == ("db-b", 3307)


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


def test_the_options_of_a_script_are_written_with_its_own_defaults(root):
    """A hundred warehouses are ten gigabytes: who did not write the script must see it."""
    folder = root / "workloads"
    folder.mkdir()
    (folder / "common.lua").write_text(TPCC)
    (folder / "tpc-c.lua").write_text('require("common")\nfunction event() end\n')
    words = ["--about", "script", "--name", "mine", "--question", "Which?", "--load", "workloads/tpc-c.lua 4"]
    assert cli.main(["new", *words]) == 0
    found = load.load_study("mine").workloads["tpc_c"]
    assert found.options == {
        "scale": 100, "trx_level": "RR", "force_pk": False, "mysql_storage_engine": "innodb"
    }  # fmt: skip
    text = (root / "studies" / "mine.yaml").read_text()
    assert "scale: 100              # Scale factor (warehouses)" in text
    assert '"innodb" # Storage engine' in text
    assert cli.main(["new", *words[:3], "other", *words[4:-1], "workloads/gone.lua 4"]) == 1
    assert not (root / "studies" / "other.yaml").exists()


def test_two_engines_get_the_same_memory_durability_log_and_isolation(root):
    given = ["--about", "engines", "--name", "mine", "--question", "Which one serves more?"]
    assert cli.main(["new", *given]) == 0
    study = load.load_study("mine")
    for arm, engine in (("mariadb", "mariadb"), ("postgresql", "postgresql")):
        asked = engine_of(study, arm)
        alike = descriptors.find_engine(engine).meanings.values()
        assert asked.name == engine
        assert asked.settings == {name: value for one in alike for name, value in one.items()}
    assert study.arms["postgresql"].engine.settings["synchronous_commit"] == "on"


def test_two_commits_are_two_arms_and_all_that_a_search_needs(root, capsys):
    words = "before: ref=v1.4, repo=../server, command=make -j2 && make check, binary=build/mariadbd; "
    words += "after: ref=main~2"
    given = ["--about", "versions", "--name", "mine", "--question", "Is it slower?", "--differs", words]
    assert cli.main(["new", *given]) == 0, capsys.readouterr().err
    study = load.load_study("mine")
    built = [engine_of(study, arm).build for arm in ("before", "after")]
    assert [one.ref for one in built] == ["v1.4", "main~2"] and study.engine.build == built[0]
    assert built[1].command == "make -j2 && make check" and built[1].binary == "build/mariadbd"
    assert "benchbook gate mine --slower 3%" in capsys.readouterr().out


def test_an_existing_file_stays_as_it_is(root, capsys):
    file = root / "studies" / "pool.yaml"
    file.write_text("mine")
    assert cli.main(["new", "--name", "pool", "--question", "What now?"]) == 2
    assert file.read_text() == "mine"
    assert "studies/pool.yaml is there already" in capsys.readouterr().err


def test_every_mistake_is_said_at_once_and_nothing_is_written(root, capsys):
    given = {
        "--name": "Not A Name", "--question": "?", "--differs": "one", "--engine": "mariab",
        "--load": "oltp_point_selec 1",
    }  # fmt: skip
    assert cli.main(["new", *(word for pair in given.items() for word in pair)]) == 2
    told = capsys.readouterr().err
    assert all(option in told for option in given)
    assert "mariadb" in told and "oltp_point_select" in told
    assert not list((root / "studies").iterdir())


def test_what_the_study_refuses_is_said_with_its_key(root, capsys):
    given = ["--name", "p", "--question", "Which?", "--differs", "a: access=no; b: access=haproxy"]
    assert cli.main(["new", *given]) == 2
    assert "access" in capsys.readouterr().err
    assert not list((root / "studies").iterdir())


def test_without_a_terminal_a_missing_answer_is_an_error(root, capsys):
    assert cli.main(["new", "--name", "pool"]) == 2
    assert "--question: missing" in capsys.readouterr().err
    given = ["--name", "mine", "--question", "Which one?"]
    assert cli.main(["new", "--about", "script", *given]) == 2
    assert "give it: Workloads of sysbench, and threads, such as workloads/" in capsys.readouterr().err


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
