"""The command line says everything, is accepted by the real sysbench, and holds no secret."""

import dataclasses
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchbook.core.study import sysbench_workloads
from benchbook.core.study.model import Endpoint, PlannedRun
from benchbook.core.study.study_sections import Workload
from benchbook.measure import sysbench
from benchbook.measure.data_plan import plan_data
from benchbook.plan import order
from tests.goldens import assert_golden

ENDPOINT = Endpoint("127.0.0.1", 33061, "sbtest", Path("/lab/secrets/sysbench.cnf"))


def planned(script: str, **changes: Any) -> PlannedRun:
    """Return a run of a script with the options that a study file leaves to their defaults."""
    options = Workload(**changes.pop("workload", {})).model_dump(mode="json", exclude={"rate", "script"})
    run = PlannedRun(
        study="s", block=1, position=0, group="g", arm="direct", arm_setting={}, workload=script,
        script=script, options=options, threads=8, discard_s=15, run_s=45, percentile=99, rate=0, seed=4711,
        tables=4, table_size=10000,
    )  # fmt: skip
    return dataclasses.replace(run, **changes)


# What a study may ask for, with what it does to the command line of oltp_read_write.
CHANGES: list[dict[str, Any]] = [
    {"discard_s": 0},
    {"rate": 500},
    {"threads": 64},
    {"workload": {"rand_type": "pareto"}},
    {"workload": {"rand_type": "pareto", "rand_pareto_h": 0.2}},
    {"workload": {"ignore_errors": ()}},
    {"workload": {"skip_trx": True}},
    {"workload": {"ps_mode": "disable"}},
    {"workload": {"point_selects": 0}},
]


def test_every_option_is_explicit_and_each_setting_reaches_the_command_line(make_study):
    plain = sysbench.run_argv(ENDPOINT, planned("oltp_read_write"))
    told = [" ".join(plain).replace(" --", "\n  --")]
    given = {script: planned(script) for script in sysbench_workloads.SCRIPTS}
    given |= {str(change): planned("oltp_read_write", **change) for change in CHANGES}
    for name, run in given.items():
        argv = sysbench.run_argv(ENDPOINT, run)
        # What differs stands where it stood, in the order of the whole.
        gone, new = (
            [word for word in one if word not in other] for one, other in ((plain, argv), (argv, plain))
        )
        assert [word for word in argv if word in plain] == [word for word in plain if word in argv]
        told.append(f"{name}: {' '.join(gone) or 'nothing'} -> {' '.join(new) or 'nothing'}")
    own = {"script": "../beside/mine.lua", "options": {"use_fk": False, "scale": 3, "level": "RC"}}
    on_socket = dataclasses.replace(ENDPOINT, socket=Path("/lab/m.sock"))
    study = make_study(dataset={"tables": 3, "table_size": 1000, "seed": 7})
    assert sysbench.LOAD.is_file()
    loader = sysbench.loader_argvs(plan_data(study), "direct", ENDPOINT)[2]
    for name, argv in {
        "an own script, its own options and no others": sysbench.run_argv(
            ENDPOINT, planned("mine.lua", workload=own)
        ),
        "a socket in the place of host and port": sysbench.run_argv(on_socket, planned("oltp_insert")),
        "with a file, the account, the script and its own options": sysbench.run_argv(
            ENDPOINT, planned("oltp_point_select"), Path("/run/sysbench.cnf")
        ),
        "the loader of the third table, with a seed of its own": loader,
    }.items():
        told.append(f"{name}\n  {' '.join(argv).replace(str(sysbench.LOAD), sysbench.LOAD.name)}")
    assert f"--rand-seed={order.table_seed(7, 3)}" in loader
    assert_golden("sysbench.txt", "\n\n".join(told) + "\n")


OTHER: dict[str, Any] = {"rand_type": "gaussian", "rand_pareto_h": 0.3, "ps_mode": "disable"}
OTHER |= {"skip_trx": True, "ignore_errors": ()}


# In which order runs are made is nothing that sysbench is told.
@pytest.mark.parametrize("key", sorted(set(Workload.model_fields) - {"script", "rate", "options", "order"}))
def test_every_option_of_a_workload_is_passed_on(key: str):
    """An option that is added to the model and forgotten here would be a setting without an effect."""
    base = {"rand_type": "pareto"}
    reached = [
        script
        for script in ("oltp_read_write", "select_random_points", "select_random_ranges")
        if sysbench.run_argv(ENDPOINT, planned(script, workload=base))
        != sysbench.run_argv(ENDPOINT, planned(script, workload=base | {key: OTHER.get(key, 77)}))
    ]
    assert reached


@pytest.mark.parametrize("script", sysbench_workloads.SCRIPTS)
def test_the_account_stands_in_no_argument(script: str, tmp_path: Path):
    secret = tmp_path / "sysbench.cnf"
    secret.write_text('mysql-user="canary-user"\nmysql-password="canary-word"\n')
    endpoint = dataclasses.replace(ENDPOINT, secret=secret)
    loading = sysbench.once_argv(endpoint, 1, sysbench.LOAD)
    for argv in (sysbench.run_argv(endpoint, planned(script)), loading):
        assert "canary" not in " ".join(argv)
        assert not [word for word in argv if "password" in word or "mysql-user" in word]


@pytest.mark.server
@pytest.mark.parametrize("script", sysbench_workloads.SCRIPTS)
def test_the_real_sysbench_knows_every_option(script: str, tmp_path: Path):
    """A dry run connects to nothing; sysbench refuses an option that a script does not know."""
    secret = tmp_path / "sysbench.cnf"
    secret.write_text('mysql-user="nobody"\n')
    endpoint = dataclasses.replace(ENDPOINT, secret=secret)
    argv = sysbench.run_argv(endpoint, planned(script, discard_s=0, run_s=1, threads=1))
    argv[argv.index("--events=0")] = "--events=5"
    dry = [argv[0], "--mysql-dry-run=on", *argv[1:]]
    taken = subprocess.run(dry, capture_output=True, text=True, timeout=60)
    assert taken.returncode == 0, taken.stdout + taken.stderr
    wrong = [*dry[:-1], "--no-such-option=1", "run"]
    assert subprocess.run(wrong, capture_output=True, timeout=10).returncode != 0, "it would say so"


@pytest.mark.parametrize(("index", "is_first"), [("before", True), ("after", False)])
def test_an_index_that_is_asked_for_before_the_rows_is_made_before_them(make_study, index, is_first):
    study = make_study(arms={"direct": {"data": {"index": index}}, "proxy": {"access": "haproxy"}})
    found = sysbench.loader_argvs(plan_data(study), "direct", ENDPOINT)
    assert ["--index-first=on" in argv for argv in found] == [is_first, is_first]
    assert [argv[-1] for argv in found] == ["run", "run"]


class Held:
    """A loader that never ends by itself."""

    def __init__(self) -> None:
        self.popen, self.ended = self, []

    def poll(self) -> None:
        return None

    def kill(self) -> None:
        self.ended.append("killed")

    def wait(self) -> None:
        self.ended.append("waited for")


def test_loaders_that_do_not_end_are_killed_and_named_when_the_longest_time_is_over(
    make_study, monkeypatch, capsys
):
    """A minute, and for each of two tables 15 s and a second for each 2,000 of its 3,000 rows: 93 s."""
    loaders: list[Held] = []

    def client(start: object) -> Held:
        loaders.append(Held())
        return loaders[-1]

    now = iter([0.0, 92.9, 93.1])
    monkeypatch.setattr(sysbench.time, "monotonic", lambda: next(now))
    monkeypatch.setattr(sysbench.time, "sleep", lambda _: None)
    study = make_study(dataset={"tables": 2, "table_size": 3000})
    found = sysbench.load_tables(SimpleNamespace(client=client), plan_data(study), "direct", ENDPOINT)
    (fault,), took_s = found
    assert took_s == 93.0
    assert_golden("measure/endless-loaders.txt", f"{capsys.readouterr().out}{fault}\n")
    assert loaders and all(one.ended == ["killed", "waited for"] for one in loaders)


def test_a_sysbench_that_goes_on_ends_with_what_it_was_started_for():
    child = Held()
    with sysbench.start_client(SimpleNamespace(client=lambda start: child), object()) as given:
        assert given is child and child.ended == []
    assert child.ended == ["killed", "waited for"]


def taken(file: Path) -> dict[str, str]:
    """Ask the real sysbench what it takes from a file."""
    answer = subprocess.run(sysbench.show_argv(file), capture_output=True, text=True, timeout=30, check=True)
    assert answer.stderr == ""
    return sysbench.parse_shown(answer.stdout)


@pytest.mark.parametrize(
    "run",
    [
        planned("oltp_read_write"),
        planned("oltp_point_select", discard_s=0, rate=500, workload={"ps_mode": "disable"}),
        planned(
            "oltp_read_only", workload={"rand_type": "pareto", "rand_pareto_h": 0.2, "ignore_errors": ()}
        ),
    ],
    ids=["defaults", "rate", "pareto"],
)
@pytest.mark.parametrize("tls", ["off", "required"])
def test_sysbench_takes_every_option_from_the_file(run, tls: str, tmp_path: Path):
    asked = sysbench.general_options(dataclasses.replace(ENDPOINT, tls=tls), run)
    file = tmp_path / "sysbench.cnf"
    file.write_text(sysbench.in_file(asked))
    said = taken(file)
    assert {name: said.get(name) for name in asked} == asked


def test_a_switch_that_is_off_is_left_out_since_sysbench_takes_it_for_on(tmp_path: Path):
    file = tmp_path / "x.cnf"
    file.write_text("histogram=off\n")
    assert taken(file)["histogram"] == "on", "if this fails, sysbench has mended it and `OFF` can go"
    assert "mysql-ssl" not in sysbench.in_file({"threads": "1", "mysql-ssl": "off"})


def test_an_account_is_never_shown(tmp_path: Path):
    file = tmp_path / "x.cnf"
    file.write_text('mysql-user="somebody"\nmysql-password="hidden"\n')
    out = subprocess.run(sysbench.show_argv(file), capture_output=True, text=True, timeout=30).stdout
    assert "hidden" not in out and "somebody" not in out and "mysql_host" in out
