"""What measuring works out by itself, without any server: each number here is one that can be redone."""

import signal
import subprocess
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchbook.core.util.errors import BenchbookError
from benchbook.measure import (
    clients,
    custom_data,
    dataset,
    run_executor,
    scheduler,
    statement_counters,
    sysbench,
)
from tests.goldens import assert_golden
from tests.measure import stand_in
from tests.measure.test_sysbench import ENDPOINT, planned


@pytest.mark.parametrize(
    ("first", "last", "count", "ends", "many"),
    [
        # 64 windows of 200 are 12,800 ids: fewer are all looked at.
        (0, 0, 64, None, 0),
        (3, 3, 64, (3, 3), 1),
        (1, 12_800, 64, (1, 12_800), 1),
        # 12,801 - 200 ids in 63 steps are 200 each: windows that just touch.
        (1, 12_801, 64, (1, 12_800), 64),
        # (1,000,000 - 200) / 63 is 15,869: the last begins 63 x 15,869 after the first.
        (1, 1_000_000, 64, (1, 999_947), 64),
        # One window has nowhere to step to.
        (5, 204, 1, (5, 204), 1),
        (5, 205, 1, (5, 204), 1),
    ],
)
def test_ids_are_looked_at_in_windows_evenly_apart(first: int, last: int, count: int, ends: Any, many: int):
    found = statement_counters._sample_windows(first, last, count)
    assert len(found) == many
    assert (found and (found[0][0], found[-1][1])) == (ends or [])
    if many > 1:
        assert len({later[0] - former[0] for former, later in pairwise(found)}) == 1
        assert {high - low + 1 for low, high in found} == {200}
        assert all(former[1] < later[0] for former, later in pairwise(found))


@pytest.mark.parametrize(
    ("ids", "there", "found"),
    [
        ((None, None), 0, {"first": 0, "last": 0, "asked": 0, "there": 0}),
        ((3, 1002), 990, {"first": 3, "last": 1002, "asked": 1000, "there": 990}),
        # Of two tables each has half of the 64 windows, 200 ids in each.
        ((1, 100_000), 150, {"first": 1, "last": 100_000, "asked": 6400, "there": 32 * 150}),
    ],
)
def test_a_sample_tells_the_ids_and_how_many_of_those_asked_for_are_there(ids, there, found):
    words = SimpleNamespace(tables=lambda _: ["sbtest1", "sbtest2", "others"])
    answer = SimpleNamespace(one=lambda: ids, scalar_one=lambda: there)
    connection: Any = SimpleNamespace(info={"dialect": words}, execute=lambda _: answer)
    assert statement_counters.sample_ids(connection) == {"sbtest1": found, "sbtest2": found}


@pytest.mark.parametrize(("rows", "is_small"), [(4_000_000, True), (4_000_001, False)])
def test_tables_of_a_script_have_a_checksum_up_to_five_million_rows(monkeypatch, rows, is_small):
    counted = {"account": rows, "log": 1_000_000}
    monkeypatch.setattr(custom_data, "list_tables", lambda _: list(counted))
    monkeypatch.setattr(custom_data, "_table_checksum", lambda _, name: len(name))

    def answer(asked: object) -> SimpleNamespace:
        return SimpleNamespace(scalar_one=lambda: counted[str(asked).split("`")[1]])

    connection: Any = SimpleNamespace(execute=answer)
    sums = (7, 3) if is_small else (None, None)
    due = {
        name: {"rows": counted[name], "checksum": value} for name, value in zip(counted, sums, strict=True)
    }
    assert custom_data.describe_tables(connection) == due


def test_tables_that_a_script_made_otherwise_are_named_the_first_three_of_them():
    one = {name: {"rows": 1} for name in "abcd"}
    other = {name: {"rows": 2} for name in "abcd"}
    study: Any = None
    with pytest.raises(BenchbookError) as error:
        custom_data.record_scripts(study, {"direct": one, "again": dict(one), "before": other})
    said = str(error.value)
    assert said.count("recorded are") == 3
    assert_golden("measure/scripts-differ.txt", f"{said}\n")


def test_a_walk_tells_after_each_run_how_long_is_left_and_what_it_has_not_told_yet(monkeypatch):
    """Two runs took 90 s, and three are left: 3 x 90 / 2 = 135 s."""
    said: list[str] = []
    state: Any = SimpleNamespace(left=set("cde"), runs=range(5), began=1000.0, done=2, say=said.append)
    run: Any = SimpleNamespace(block=1, workload="reads", threads=1, arm="direct")
    monkeypatch.setattr(scheduler, "time", SimpleNamespace(monotonic=lambda: 1090.0))
    verdict: Any = SimpleNamespace(status="invalid", qps=None, reasons=["V1 exit code", "V6 time"])
    scheduler._report_run(state, run, verdict, {"V1 exit code"})
    assert_golden("measure/run.txt", "\n".join([*said, ""]))
    assert [scheduler._format_duration(seconds) for seconds in (0.4, 59.4, 59.5, 120.0)] == [
        "0 s", "59 s", "1 min 00 s", "2 min 00 s"
    ]  # fmt: skip


def test_runs_that_took_turns_are_counted_together_for_the_time_left(monkeypatch):
    """A group of two took 60 s; with four runs left after it, 120 s at its end."""
    said: list[str] = []
    fields: Any = {"left": set("abcdef"), "runs": range(6), "began": 0.0, "done": 0, "sysbench_s": 0.0}
    state: Any = SimpleNamespace(**fields, say=said.append, raw=None, void=None)
    state.judge = lambda _: SimpleNamespace(status="valid", qps=1.0, reasons=[])
    alike = {"partners": "ab", "block": 1, "workload": "w", "threads": 1}
    members: Any = [SimpleNamespace(run_id=arm, arm=arm, **alike) for arm in "ab"]
    folders = [SimpleNamespace(times=lambda: SimpleNamespace(sysbench_s=50.0))] * 2
    monkeypatch.setattr(scheduler, "time", SimpleNamespace(monotonic=lambda: 60.0))
    monkeypatch.setattr(scheduler, "_bind_run", lambda *_: None)
    monkeypatch.setattr(scheduler, "count_attempts", lambda *_: 0)
    monkeypatch.setattr(scheduler, "execute_together", lambda *_: folders)
    monkeypatch.setattr(scheduler.run_folder, "move_to_raw", lambda *_: None)
    assert scheduler._run_group(state, members, None)
    assert [line.rpartition("·")[2] for line in said] == [" 2 min 30 s left", " 2 min 00 s left"]


def test_the_overhead_is_what_a_walk_took_beside_sysbench_for_each_run():
    fields: Any = {"spent_s": 100.0, "sysbench_s": 60.0, "done": 8}
    nothing: Any = None
    walk = scheduler.MatrixRunner(nothing, [], None, Path(), Path(), nothing, {}, **fields)
    # (100 - 60) / 8
    assert walk.table()["overhead_s a run"][0] == 5.0
    walk.done = 0
    assert walk.table()["overhead_s a run"][0] == 0.0


def test_options_are_kept_as_asked_and_those_that_sysbench_took_of_them(tmp_path: Path):
    run = planned("oltp_point_select")
    asked = sysbench.general_options(ENDPOINT, run)
    taken = {name: value for name, value in asked.items() if name != "time"}

    def client(start: Any) -> Any:
        assert start.argv == sysbench.show_argv(tmp_path / "sysbench.cnf")
        shown = {**taken, "luajit-cmd": "on"}
        start.out.write_text("".join(f"{name.replace('-', '_')}={value}\n" for name, value in shown.items()))
        ended = SimpleNamespace(wait=lambda timeout: 0, poll=lambda: 0)
        return SimpleNamespace(popen=ended)

    site: Any = SimpleNamespace(client=client)
    found = sysbench.write_options(site, "direct", ENDPOINT, run, tmp_path / "sysbench.cnf")
    assert found == {"asked": asked, "taken": taken}
    assert (tmp_path / "sysbench.cnf").read_text() == sysbench.in_file(asked)


TURNED = {
    "turns": [("direct", 1_000, 51_000), ("proxy", 51_500, 101_500), ("direct", 102_000, 150_000)],
    "asked": {"turns": 40},
    "stopped": {"direct": "a trigger", "proxy": "a quota"},
    "cpu_s": {"direct": {"client": 1.5, "server": 2.0}},
    "counted": {"direct": {"server": {"reads": 7}}},
    "exit_code": 0,
    "window": [1.0, 5.0],
    "outside_s": {"direct": 0.25, "proxy": 0.5},
}


def test_a_run_has_its_own_arms_turns_of_those_of_the_group(tmp_path: Path):
    """Its arm's two turns took 50,000 and 48,000 us."""
    run = planned("oltp_point_select", arm="direct")
    found = clients.evidence_of_turns(TURNED, run, {"client": {"threads": 8, "cpu_s": 9.0}})
    assert found["client"] == {"threads": 8, "cpu_s": 1.5}
    assert found["counted"] == {"server": {"reads": 7}}
    seen = found["turns"]
    assert (seen["asked"], seen["count"], seen["active_s"]) == (40, 2, pytest.approx(0.098))
    assert (seen["stopped"], seen["outside_s"], seen["costs"]) == ("a trigger", 0.25, {})
    assert [seen["clock"][key] for key in ("exit_code", "window", "gone")] == [0, [1.0, 5.0], None]
    other = clients.evidence_of_turns(TURNED, planned("oltp_point_select", arm="proxy"), {"client": {}})
    assert other["client"] == {"cpu_s": 0.0} and "counted" not in other
    assert (other["turns"]["count"], other["turns"]["active_s"]) == (1, pytest.approx(0.05))
    clients.write_turns(TURNED, tmp_path)
    assert_golden("measure/turns.csv", (tmp_path / "turns.csv").read_text())


def test_the_proof_of_a_data_set_has_what_was_asked_beside_what_was_found(make_study: Any):
    indexes = {"sbtest1": ["PRIMARY", "k_1"], "sbtest2": ["PRIMARY"]}
    state: dict[str, Any] = {"rows": {"sbtest1": 1200, "sbtest2": 1199}, "indexes": indexes}
    state |= {"checksums": {"sbtest1": 7}, "seed": 3}
    asked = make_study(dataset={"tables": 2, "table_size": 1200}).dataset
    good, bad, seed = "the server has what was asked", "DIFFERS", "what seed 3 gives"
    assert [tuple(row) for row in dataset.proof_table(state, asked).to_numpy()] == [
        ("sbtest1", "rows", "1,200", "1,200", good),
        ("sbtest1", "index", "k_1", "PRIMARY, k_1", good),
        ("sbtest1", "checksum", seed, 7, "compared before every measurement"),
        ("sbtest2", "rows", "1,200", "1,199", bad),
        ("sbtest2", "index", "k_2", "PRIMARY", bad),
        ("sbtest2", "checksum", seed, "not taken: too large", "none"),
    ]


def test_files_of_own_scripts_that_warm_up_did_not_see_so_are_named():
    now = SimpleNamespace(digests=lambda: {"a.lua": "1", "b.lua": "2", "c.lua": "3"})
    known = {"scripts": {"mine": {"sha256": {"a.lua": "1", "b.lua": "9", "d.lua": "4"}}}}
    data: Any = SimpleNamespace(scripts={"mine": now})
    changed = custom_data.find_changed_scripts(data, known)
    assert_golden("measure/changed-scripts.txt", "\n".join([*changed, ""]))
    assert len(custom_data.find_changed_scripts(data, {})) == 3


def test_what_a_cold_arm_read_at_first_is_its_servers_first_second(tmp_path: Path):
    monitor = tmp_path / "monitor.csv"
    assert run_executor._read_at_first(monitor) is None
    monitor.write_text("part,read_kib_s\nclient,4\nserver,12.5\nserver,99\n")
    assert run_executor._read_at_first(monitor) == 12.5
    monitor.write_text("part,read_kib_s\nclient,4\nserver,\nserver,99\n")
    assert run_executor._read_at_first(monitor) is None
    monitor.write_text("part,read_kib_s\nclient,4\n")
    assert run_executor._read_at_first(monitor) is None


class Timed:
    """A process that ends at a moment of a clock which goes on by what is waited."""

    def __init__(self, clock: stand_in.Clock, lasts_s: float, code: int = 0, is_deaf: bool = False) -> None:
        self.clock, self.ends_s, self.code, self.is_deaf = clock, clock.now + lasts_s, code, is_deaf
        self.got: list[int] = []

    def wait(self, timeout: float) -> int:
        if self.clock.now + timeout < self.ends_s:
            self.clock.now += timeout
            raise subprocess.TimeoutExpired("sysbench", timeout)
        self.clock.now = max(self.clock.now, self.ends_s)
        return self.code

    def send_signal(self, signum: int) -> None:
        self.got.append(signum)
        if signum == signal.SIGKILL or not self.is_deaf:
            self.ends_s, self.code = self.clock.now, -signum

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> stand_in.Clock:
    made = stand_in.Clock()
    made.install(monkeypatch)
    return made


@pytest.mark.parametrize(
    ("programs", "ends", "first", "took_s"),
    [
        ([(3.0, 0, False)], [(0, "itself", [])], 0, 3),
        ([(2.0, -signal.SIGSEGV, False)], [(-signal.SIGSEGV, "signal", [])], 0, 2),
        ([(1000.0, 0, False)], [(-15, "deadline", [15])], 0, 10),
        # One that hears no signal has 5 s, too.
        ([(1000.0, 0, True)], [(-9, "deadline", [15, 9])], 0, 15),
        ([(2.0, 0, False), (4.0, 0, False), (3.0, 0, False)], [(0, "itself", [])] * 3, 0, 4),
        ([(1000.0, 0, False), (2.0, 1, False), (1000.0, 0, False)],
         [(-15, "another client", [15]), (1, "itself", []), (-15, "another client", [15])], 1, 2),
    ],
)  # fmt: skip
def test_clients_are_waited_for_and_one_that_fails_or_lasts_too_long_ends_all(
    clock: stand_in.Clock, programs: Any, ends: Any, first: int, took_s: float
):
    processes = [Timed(clock, *program) for program in programs]
    clients_ = [clients.RunningClient(n, [], SimpleNamespace(popen=one)) for n, one in enumerate(processes)]
    clients.wait_for_clients(clients_, 10.0, lambda: None)
    told = [(one.exit_code, one.ended_by, one.process.popen.got) for one in clients_]
    assert told == ends and clients.first_failed(clients_) is clients_[first]
    # Several are looked at in turn, ten times a second.
    assert clock.now == pytest.approx(stand_in.BEGUN_S + took_s, abs=0.2 if len(programs) > 1 else 1e-6)
    assert len(programs) > 1 or clients_[0].ended_s == clock.now


def test_of_clients_that_fail_by_themselves_the_first_in_time_counts():
    ended = [(1, "itself", 12.0), (1, "itself", 11.0), (-15, "another client", 10.0), (0, "itself", 9.0)]
    own: list[Any] = [
        SimpleNamespace(exit_code=code, ended_by=by, ended_s=at, process=SimpleNamespace(begun_s=at / 4))
        for code, by, at in ended
    ]
    assert clients.first_failed(own) is own[1]
    # 12 / 4 less 9 / 4 are 0.75 s.
    assert clients.spread_ms(own) == 750.0
    own[0].process.begun_s = None
    assert clients.spread_ms(own) is None


def test_a_walk_ends_where_a_quarter_of_its_groups_was_given_up(monkeypatch):
    answers = []
    # Three at the least; of both numbers the last group is one.
    for tried, given_up in ((1, 1), (3, 3), (12, 3), (13, 3), (16, 4), (17, 4)):
        earlier = [f"g{number}" for number in range(tried - 1)]
        said = [f"{given_up} of {tried}"]
        study = SimpleNamespace(plan=SimpleNamespace(max_repeats=2))
        state: Any = SimpleNamespace(
            study=study, void=Path("void"), tried=set(earlier), abandoned=earlier[: given_up - 1],
            not_here=None, say=said.append,
        )  # fmt: skip
        members: Any = [SimpleNamespace(group="last", run_id="a"), SimpleNamespace(group="last", run_id="b")]
        for tries, is_given_up in (({"a": 2, "b": 1}, False), ({"a": 2, "b": 3}, True)):
            monkeypatch.setattr(scheduler, "count_attempts", lambda void, run_id, tries=tries: tries[run_id])
            assert scheduler._is_given_up(state, members) is is_given_up
        assert said[2:] == ([state.not_here] if state.not_here else [])
        assert len(state.abandoned) == given_up
        answers.append("\n  ".join(said))
    assert_golden("measure/given-up.txt", "\n".join([*answers, ""]))
