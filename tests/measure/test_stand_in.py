"""A whole walk on a site in memory: what is kept, voided, repeated and said, down to the last key.

`test_scheduler.py` has the same on a real server; here every number is known beforehand.
"""

import re
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from benchbook.core.artifacts import run_folder
from benchbook.core.artifacts.artifact import Facts
from benchbook.core.artifacts.run_folder import RunFolder
from benchbook.core.study.study import StudySpec
from benchbook.core.util import files, paths
from benchbook.core.util.errors import BenchbookError
from benchbook.measure import dataset, scheduler, servers, statement_counters, warm_up
from benchbook.measure.data_plan import plan_data
from benchbook.plan import schedule
from benchbook.read import validity
from benchbook.sites.engines import dialect
from tests.goldens import assert_golden
from tests.measure import stand_in

Make = Callable[..., StudySpec]
SHORT = {"seed": 3, "blocks": 1, "discard_s": 1, "run_s": 2, "order": "runs"}


class Store:
    """A walk's runs, its folders, and what it says."""

    def __init__(self, study: StudySpec, base: Path) -> None:
        self.study, self.site = study, stand_in.Site(study)
        self.raw, self.void = base / "raw", base / "void"
        self.runs, self.said = schedule.plan_runs("test", study, {}), []
        dataset.load_data(self.site, plan_data(study))
        self.site.done.clear()

    def walk(self, judge: Any = validity.judge_run, stop: Any = None) -> scheduler.MatrixRunner:
        beside = (judge, {"steal_pct": 10.0}, self.said.append)
        state = scheduler.MatrixRunner(self.study, self.runs, self.site, self.raw, self.void, *beside)
        state.stop = stop
        return scheduler.run_missing(state)

    def assert_said(self, name: str) -> None:
        assert_golden(f"measure/{name}.txt", "\n".join([*self.said, ""]))

    def kept(self) -> set[str]:
        return {folder.name for folder in run_folder.list_folders(self.raw)}

    def voids(self) -> dict[str, tuple[str, list[str]]]:
        """Return status and reasons by voided folder."""
        notes = {note: files.read_json(note) for note in self.void.glob("*.void.json")}
        return {note.name[:-10]: (one["status"], one["reasons"]) for note, one in notes.items()}


@pytest.fixture
def store(make_study: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Store]:
    def make(**changes: Any) -> Store:
        made = Store(make_study(**{"plan": SHORT, **changes}), tmp_path)
        made.site.clock.install(monkeypatch)
        return made

    return make


def judged_bad(status: str, reason: str) -> Any:
    return stand_in.SimpleNamespace(status=status, reasons=[reason], qps=None)


def loaded(study: StudySpec) -> tuple[StudySpec, stand_in.Site, dict[str, Any]]:
    """Return a study, a site of it with its data, and what is known of these."""
    site = stand_in.Site(study)
    return study, site, dataset.load_data(site, plan_data(study))


THREE = {"one": {}, "pair": {"clients": 2}, "three": {"clients": 3, "servers": 3}}


def test_every_run_passes_every_check_and_its_record_is_what_happened(store):
    made = store()
    made.site.log.append("[ERROR] from before the run")
    state = made.walk()
    assert made.kept() == {run.run_id for run in made.runs}
    assert (state.done, state.abandoned, made.voids()) == (2, [], {})
    for folder in run_folder.list_folders(made.raw):
        judged = validity.judge_run(folder)
        assert judged.status == "valid", judged.reasons
        assert (judged.warnings, judged.ledger) == ((), "agrees")
        seen = folder.evidence()
        assert (seen["attempt"], seen["limits"], seen["exit_code"]) == (1, {"steal_pct": 10.0}, 0)
        # sysbench takes 3 s, and its process 0.25 s more.
        assert seen["ended_monotonic_s"] - seen["started_monotonic_s"] == seen["sysbench_s"] == 3.25
        assert seen["client"] == {
            "runqueue_wait_s": 0.125, "threads": 2, "cpu_s": pytest.approx(0.3 * 3), "allowance_cores": 2.0
        }  # fmt: skip
        assert (seen["clock_step_s"], seen["machine_cores"], seen["longest_pause_ms"]) == (0.01, 2, 12.0)
        assert (seen["steal_pct"], seen["oom_kills"], seen["server_log_errors"]) == (0.25, 0, [])
        assert (seen["foreign_sessions"], seen["server_answers"], seen["beside_s"]) == (0, True, 0.0)
        assert seen["tls"] == {"asked": "off", "cipher": ""}
        assert seen["started_utc"] < seen["ended_utc"] and seen["started_utc"].endswith("+00:00")
        assert seen["ledger"]["own_connections"] == 0
        assert seen["ledger"]["after"]["Connections"] - seen["ledger"]["before"]["Connections"] == 2
        assert "clients" not in seen and "servers" not in seen and "options" not in seen


def test_the_walk_says_how_far_it_is_and_begins_each_block_with_the_prepared_data_and_all_arms_anew(store):
    made = store(plan=SHORT | {"blocks": 2})
    state = made.walk()
    assert made.site.done == ["down", "restore", "up direct", "up proxy"] * 2
    table = state.table().iloc[0]
    assert (table["runs planned"], table["made now"], table["sysbench_s"]) == (4, 4, 13.0)
    assert table["wall_s"] == 13.0, "the clock in memory goes on with sysbench alone"
    assert (table["groups given up"], table["stopped early"]) == ("none", "no")
    assert made.walk().done == 0
    # 100 transactions of 20 statements a second.
    made.assert_said("complete")


def test_an_arm_without_any_other_is_a_group_by_itself(store):
    made = store(plan=SHORT | {"blocks": 2})
    # The other arm was skipped, so that there are no facts of it.
    made.site.in_the_way["proxy"] = "it is not installed"
    made.runs = schedule.plan_runs("test", made.study, {"direct": {"facts": "1", "data": "2"}})
    state = made.walk()
    assert (state.done, made.kept(), made.voids()) == (2, {run.run_id for run in made.runs}, {})


@pytest.mark.parametrize("status", ["invalid", "indeterminate"])
def test_a_group_with_a_run_that_is_not_valid_is_voided_whole_and_made_again(store, status):
    """The partner was measured beside something that went wrong: a pair is valid or none."""
    made, second = store(), []

    def judge(folder: RunFolder) -> Any:
        is_bad = folder.plan()["position"] == 1 and not second
        second.extend([folder] * (folder.plan()["position"] == 1))
        return judged_bad(status, "V16 machine: stolen") if is_bad else validity.judge_run(folder)

    state = made.walk(judge)
    first_id, second_id = (run.run_id for run in made.runs)
    assert made.kept() == {first_id, second_id}
    assert made.voids() == {
        f"{first_id}.a1": ("partner", [f"stands next to {second_id}"]),
        f"{second_id}.a1": (status, ["V16 machine: stolen"]),
    }
    assert [RunFolder(made.raw / one).manifest().attempt for one in (first_id, second_id)] == [2, 2]
    assert state.done == 4
    assert made.said.count("    V16 machine: stolen") == 1
    # After what went wrong the arms and the data are brought back before the group is repeated.
    assert made.site.done == ["down", "restore", "up direct", "up proxy"] * 2


@pytest.mark.parametrize("repeats", [0, 2])
def test_a_group_is_given_up_after_its_repeats_and_the_next_one_made(store, repeats):
    made = store(threads=(2, 4), plan=SHORT | {"max_repeats": repeats})
    bad = made.runs[0]

    def judge(folder: RunFolder) -> Any:
        is_bad = folder.plan()["run_id"] == bad.run_id
        return judged_bad("invalid", "V1") if is_bad else validity.judge_run(folder)

    state = made.walk(judge)
    assert state.abandoned == [bad.group]
    assert made.kept() == {run.run_id for run in made.runs if run.group != bad.group}
    # One attempt and its repeats, and the partner, which comes after it, was never made.
    assert set(made.voids()) == {f"{bad.run_id}.a{attempt}" for attempt in range(1, repeats + 2)}
    made.assert_said(f"given-up-after-{repeats}")
    assert state.table()["groups given up"][0] == bad.group


def test_only_what_is_missing_is_made_on_the_way_back(store):
    made = store(plan=SHORT | {"blocks": 2})
    asked = []

    def stop(blocks: int) -> str | None:
        asked.append(blocks)
        return "all is decided" if blocks == 1 else None

    state = made.walk(stop=stop)
    assert (state.stopped, asked) == ("all is decided", [0, 1])
    assert made.kept() == {run.run_id for run in made.runs if run.block == 1}
    made.assert_said("stopped")
    assert state.table()["stopped early"].item() == "all is decided"
    resumed = made.walk(stop=stop)
    assert (resumed.done, asked) == (0, [0, 1, 1]), "it is asked before the first block that has runs to make"
    assert made.walk().done == 2
    assert made.kept() == {run.run_id for run in made.runs}


def test_a_server_that_is_gone_before_a_run_voids_what_began(store):
    made, second = store(), []

    def judge(folder: RunFolder) -> Any:
        if not second:
            second.append(folder)
            made.site.server(None).fails = gone
        return validity.judge_run(folder)

    def gone(statement: str) -> Exception | None:
        if "GLOBAL STATUS" in statement:
            made.site.server(None).fails = lambda statement: None
            return stand_in.absent(statement)
        return None

    state = made.walk(judge)
    assert made.kept() == {run.run_id for run in made.runs}
    reason = "the server went away before the run: it ended or was started again (OperationalError: gone)"
    first_id, second_id = (run.run_id for run in made.runs)
    assert made.voids()[f"{second_id}.a1"] == ("invalid", [reason])
    assert made.voids()[f"{first_id}.a1"][0] == "partner"
    assert any(reason in said for said in made.said)
    assert state.done == 3, "the pair is made again whole"


@pytest.mark.parametrize("arm, clients, servers", [("pair", 2, 1), ("three", 3, 3)])
def test_several_clients_and_servers_are_one_run(store, arm, clients, servers):
    made = store(arms=THREE, threads=(6,))
    made.walk()
    folder = next(one for one in run_folder.list_folders(made.raw) if one.plan()["arm"] == arm)
    judged, seen = validity.judge_run(folder), folder.evidence()
    assert judged.status == "valid", judged.reasons
    assert judged.qps == clients * 2000
    assert [one["number"] for one in seen["clients"]] == list(range(clients))
    assert [one["server"] for one in seen["clients"]] == [number % servers for number in range(clients)]
    ended = {(one["exit_code"], one["ended_by"], one["threads"]) for one in seen["clients"]}
    assert ended == {(0, "itself", 6 // clients)}
    assert {one["runqueue_wait_s"] for one in seen["clients"]} == {0.125}
    # They begin when all are ready, 0.25 s after they are started.
    assert {one["begun_monotonic_s"] for one in seen["clients"]} == {seen["started_monotonic_s"]}
    assert seen["start_spread_ms"] == 0
    assert all(one["ended_monotonic_s"] >= seen["started_monotonic_s"] + 3 for one in seen["clients"])
    assert len(seen.get("servers", [1])) == servers
    grown = seen["ledger"]["after"]["Com_select"] - seen["ledger"]["before"]["Com_select"]
    # 14 selects in each of 300 transactions of each client.
    assert grown == clients * 300 * 14


def test_a_client_that_fails_voids_the_run_of_all(store):
    made, failed = store(arms={"one": {}, "pair": {"clients": 2}}, threads=(2,)), []

    def spoil(client: Any, out: str) -> tuple[int, str] | None:
        if "client-1" in str(client.out) and not failed:
            failed.append(client)
            return 1, "FATAL: error 2013\n"
        return None

    made.site.spoil = spoil
    made.walk()
    assert made.kept() == {run.run_id for run in made.runs}
    (reasons,) = [reasons for status, reasons in made.voids().values() if status == "invalid"]
    assert reasons[0].startswith("V1 ") and reasons[0].endswith("client 1: exit code 1")
    folder = RunFolder(next(path for path in made.void.glob("*-pair-*.a1") if path.is_dir()))
    assert (folder.evidence()["exit_code"], folder.evidence()["ended_by"]) == (1, "itself")


@pytest.mark.parametrize("when", ["before", "after"])
def test_sessions_of_others_are_seen_on_both_sides_of_a_run(store, when):
    made = store()
    server, connection = made.site.server(None), made.site.admin().connect()
    was = statement_counters.record_before(connection, 2)
    assert was["foreign_sessions"] == 0
    server.sessions.extend(["someone", "another"])
    if when == "before":
        was = statement_counters.record_before(connection, 2)
        assert was["foreign_sessions"] == 2
        server.sessions.clear()
    begun = made.site.clock.now
    now = statement_counters.record_after(connection, was, 2, {})
    assert now["foreign_sessions"] == 2
    # Sessions of sysbench's that are about to close are waited for, up to 5 s.
    assert made.site.clock.now - begun == pytest.approx(5.0 if when == "after" else 0.0, abs=0.02)


def test_a_session_of_somebody_makes_the_run_invalid(store):
    made = store(plan=SHORT | {"max_repeats": 0})
    made.site.server(None).sessions.append("someone")
    state = made.walk()
    assert state.abandoned == [made.runs[0].group]
    made.assert_said("foreign-sessions")


def test_a_server_that_is_silent_after_a_run_is_missing_evidence(store):
    made = store(plan=SHORT | {"max_repeats": 0})

    def spoil(client: Any, out: str) -> None:
        made.site.server(None).fails = stand_in.absent

    made.site.spoil = spoil
    made.walk(lambda folder: judged_bad("invalid", "it is gone"))
    seen = RunFolder(next(path for path in made.void.glob("*.a1") if path.is_dir())).evidence()
    assert (seen["server_answers"], seen["uptime_after_s"], seen["rows_after"]) == (False, None, None)
    assert_golden("measure/silent.txt", f"{seen['ledger']['reason']}\n")
    assert seen["ledger"]["available"] is True and seen["ledger"]["after"] is None
    assert seen["rows_before"] == {"sbtest1": 200, "sbtest2": 200}


def test_connections_that_are_not_sysbenchs_are_counted_apart(store):
    """Probes of a proxy, and the load beside a run."""
    made = store()
    connection, server = made.site.admin().connect(), made.site.server(None)
    was = statement_counters.record_before(connection, 2)
    server.counters["Aborted_connects"] += 5
    both = {"has_probes": True, "load": {"connections": 30}}
    rows = (({}, 0), ({"has_probes": True}, 5), (both, 35), ({"load": {"connections": None}}, 0))
    for arrangement, own in rows:
        now = statement_counters.record_after(connection, was, 2, arrangement)
        assert now["ledger"]["own_connections"] == own, arrangement


def test_several_servers_are_summed_and_kept():
    each = [
        {
            "ledger": {
                "available": number < 2, "reason": None if number else "no right", "own_connections": number,
                "before": {"Com_select": 10, "Questions": 1}, "after": {"Com_select": 30 + number},
                **({"absent": {"Rows_sent": "not counted"}} if number else {}),
            },
            "foreign_sessions": number, "server_answers": True, "uptime_after_s": number,
        }
        for number in range(2)
    ]  # fmt: skip
    whole = statement_counters.merge_records(each)
    assert whole["ledger"] == {
        "available": True, "reason": "server 0: no right", "own_connections": 1,
        "before": {"Com_select": 20, "Questions": 2}, "after": {"Com_select": 61},
        "absent": {"Rows_sent": "not counted"},
    }  # fmt: skip
    assert (whole["foreign_sessions"], whole["server_answers"], whole["servers"]) == (1, True, each)
    each[1]["ledger"] |= {"available": False, "after": None}
    assert statement_counters.merge_records(each)["ledger"]["after"] is None
    assert statement_counters.merge_records(each)["ledger"]["available"] is False
    assert statement_counters.merge_records(each[:1]) is each[0]


def test_the_ledger_takes_the_counters_it_knows_and_the_uptime(store):
    made = store()
    server = made.site.server(None)
    server.counters.update(Com_select=7, Slow_launch_threads=9)
    made.site.clock.now += 12
    counters, uptime_s = statement_counters.read_counters(made.site.admin().connect())
    assert set(counters) == {*dialect.COUNTERS, "Statements"} and counters["Com_select"] == 7
    assert uptime_s == 62
    own = stand_in.Connection(server, {"books": lambda: ({"Com_select": 3}, 4.5)})
    assert statement_counters.read_counters(own) == ({"Com_select": 3}, 4.5)


def test_sessions_of_the_server_and_of_others_accounts_are_not_foreign(store):
    made = store()
    server = made.site.server(None)
    server.sessions.extend(["event_scheduler", "app", "sb"])
    for info, others in (({}, 2), ({"only_user": "sb"}, 1), ({"session": 11}, 2)):
        connection = stand_in.Connection(server, info)
        assert dialect.get_dialect(connection).foreign_sessions(connection) == others
    assert dialect.get_dialect(server_side := stand_in.Connection(server)).connected(server_side) == 4


def test_each_server_of_an_arm_has_one_session_that_arms_share(store):
    made = store(arms=THREE, threads=(6,))
    with servers.open_sessions(made.site, made.study, made.study.arms) as opened:
        assert [len(opened[arm]) for arm in THREE] == [1, 1, 3]
        assert opened["one"][0] is opened["pair"][0]
        assert len({id(connection.server) for connection in opened["three"]}) == 3


def test_loaded_data_is_what_the_study_asks_for_and_is_kept(make_study):
    study, site, state = loaded(make_study())
    assert (state["rows"], state["loads"]) == ({"sbtest1": 200, "sbtest2": 200}, {})
    assert state["indexes"] == {"sbtest1": ["PRIMARY", "k_1"], "sbtest2": ["PRIMARY", "k_2"]}
    assert state["checksums"] == {"sbtest1": 1200, "sbtest2": 1200}
    assert site.done == ["up direct", "snapshot direct"]
    assert list(site.kept) == [plan_data(study).label]
    before = dict(site.server(None).tables)
    site.server(None).tables["sbtest9"] = 5
    dataset.load_data(site, plan_data(study))
    assert site.server(None).tables == before, "tables of another study are dropped"


def test_a_copy_that_is_no_longer_what_it_was_is_loaded_again(make_study):
    study, site, known = loaded(make_study())
    (copy,) = site.kept.values()
    for tables, _ in copy.values():
        del tables["sbtest1"]
    found = dataset.ensure_data(site, plan_data(study), known)
    assert_golden("measure/copy-without-a-table.txt", "\n".join([*found["events"], ""]))
    assert found["rows"] == {"sbtest1": 200, "sbtest2": 200}


@pytest.mark.parametrize(
    ("tables", "said", "fault", "count"),
    [
        ("25", (1, ""), "sysbench ended with exit code 1", 2),
        ("2", (0, "x\nFATAL: no right\n"), "FATAL: no right", 1),
        # The first three are named.
        ("12345", (1, ""), "sysbench ended with exit code 1", 3),
    ],
)
def test_loaders_that_fail_fail_the_stage(make_study, tables, said, fault, count):
    study = make_study(dataset={"tables": 5, "table_size": 200})
    site = stand_in.Site(study)
    failing = {f"--table-number={number}" for number in tables}
    site.spoil = lambda client, out: said if failing & {*client.argv} else None
    with pytest.raises(BenchbookError, match=f"prepare failed: {fault}") as error:
        dataset.load_data(site, plan_data(study))
    assert str(error.value).count(fault) == count and not site.kept


def test_arms_that_differ_in_their_data_have_a_copy_each_and_the_order_of_loading_is_theirs(make_study):
    study = make_study(arms={"direct": {}, "again": {}, "before": {"data": {"index": "before"}}})
    site, started = stand_in.Site(study), []
    site.spoil = lambda client, out: started.append(client.argv)
    assert dataset.arm_of_each_copy(site) == ["direct", "before"]
    state = dataset.load_data(site, plan_data(study))
    assert ["--index-first=on" in argv for argv in started] == [False, False, True, True]
    assert {arm: load["index"] for arm, load in state["loads"].items()} == {
        "direct": "after the rows", "again": "after the rows", "before": "before the rows"
    }  # fmt: skip
    text = {"character set": "utf8mb4", "order of text": "utf8mb4_bin"}
    assert all(load["text"] == text for load in state["loads"].values())
    assert [word for word in site.done if "snapshot" in word] == ["snapshot direct", "snapshot before"]
    site.in_the_way["direct"] = "no room"
    assert dataset.arm_of_each_copy(site) == ["again", "before"], "the first that can be stands for others"
    site.data_groups = lambda: [("again", "before")]
    assert dataset.arm_of_each_copy(site) == ["again"], "a site may know better which arms share their data"


def test_a_run_brings_the_site_up_only_if_something_is_missing(store, monkeypatch, tmp_path, capsys):
    made = store()
    opened, proven = [], []

    @contextmanager
    def open_site(study: StudySpec, lab: Path) -> Any:
        opened.append((study, lab))
        yield made.site

    monkeypatch.setattr(scheduler, "open_site", open_site)
    monkeypatch.setattr(scheduler.provision, "verify_facts", lambda *asked: proven.append(asked))
    known = dataset.describe_data(made.site.admin().connect(), plan_data(made.study))
    facts = Facts(study="test", arms={"direct": {}})
    where = paths.StudyPaths("test", tmp_path)
    asked = ("test", made.study, made.runs, facts, known, where, validity.judge_run)
    with pytest.raises(BenchbookError) as refused:
        scheduler.complete_schedule(*asked, {"free_mib": 10**9})
    assert re.findall(r" for ([\w ]+), (\d+)", str(refused.value)) == [
        ("raw logs", "1000000000"), ("the lab", "1000000000")
    ]  # fmt: skip
    assert not opened
    state = scheduler.complete_schedule(*asked, {"free_mib": 1})
    assert (state.done, len(opened), proven) == (2, 1, [(made.site, facts)])
    assert {folder.name for folder in run_folder.list_folders(where.raw)} == {run.run_id for run in made.runs}
    scheduler.complete_schedule(*asked, {"free_mib": 10**9})
    assert len(opened) == 1
    assert capsys.readouterr().out.endswith("all 2 runs are there already\n")


def test_a_checksum_that_all_engines_make_where_another_takes_part(make_study):
    study = make_study(arms={"direct": {}, "other": {"engine": {"name": "tidb", "version": "6.6"}}})
    site = stand_in.Site(study)
    site.server(None).tables["sbtest1"] = site.server(None).tables["sbtest2"] = 200
    state = dataset.describe_data(site.admin().connect(), plan_data(study))
    assert state["checksums"] == {"sbtest1": 2200, "sbtest2": 2200}


def test_warming_analyzes_keeps_and_prewarms(make_study):
    study, site, _ = loaded(make_study())
    site.done.clear()
    answers = warm_up.warm_up_data(site, study)
    assert [answer["Table"] for answer in answers] == ["sbtest1", "sbtest2"]
    assert all("arm" not in answer for answer in answers), "the baseline needs no name"
    assert site.done == ["restore", "snapshot direct"]
    statements = "\n".join(site.server(None).statements)
    assert re.findall(r"SELECT COUNT\((\w+)\) FROM (\w+) FORCE INDEX \(`(\w+)`\)", statements) == [
        ("pad", "sbtest1", "PRIMARY"), ("k", "sbtest1", "k_1"),
        ("pad", "sbtest2", "PRIMARY"), ("k", "sbtest2", "k_2"),
    ]  # fmt: skip


def test_pilots_are_whole_runs_without_discard(make_study, tmp_path, monkeypatch):
    study = make_study(threads=(2, 4, 8), warm_up={"pilot_s": 2})
    site = stand_in.Site(study)
    site.clock.install(monkeypatch)
    dataset.load_data(site, plan_data(study))
    said: list[str] = []
    folders = warm_up.run_pilots("test", study, site, tmp_path / "pilots", {}, said.append)
    # Two arms at the lowest and the highest level.
    assert [(one.plan()["threads"], one.plan()["arm"]) for one in folders] == [
        (2, "direct"), (2, "proxy"), (8, "direct"), (8, "proxy"),
    ]  # fmt: skip
    assert_golden("measure/pilots.txt", "\n".join([*said, ""]))
    assert all(validity.judge_run(folder).status == "valid" for folder in folders)
    assert site.done[-1] == "restore"


def test_a_copy_that_a_cluster_lost_is_made_again_with_its_statistics(make_study):
    study = make_study()
    site = stand_in.Site(study)
    servers.put_back(site, plan_data(study), analyzed=True)
    assert site.done == ["up direct", "snapshot direct", "snapshot direct", "restore"]
    assert "ANALYZE TABLE sbtest1" in site.server(None).statements
    site.server(None).statements.clear()
    servers.put_back(site, plan_data(study), analyzed=True)
    assert "ANALYZE TABLE sbtest1" not in site.server(None).statements
