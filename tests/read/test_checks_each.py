"""Of several clients and servers each is judged and named, and together they must have been one run."""

from __future__ import annotations

import pytest

from benchbook.core.study.params import Limits
from benchbook.read import validity
from benchbook.show import run_tables
from tests.read import corpus, synthetic


def failed(judged: validity.Judgement) -> dict[str, str]:
    return {check.id: check.detail for check in judged.checks if check.passed is False}


def of(changed=None, **kept) -> validity.Judgement:
    return validity.judge_run(synthetic.three(changed, **kept))


def clients(**changed) -> list[dict]:
    """Return what was seen of three clients, with something else of client 2."""
    known = synthetic.three().observed["clients"]
    return [*known[:2], known[2] | changed]


@pytest.mark.parametrize("servers", [3, 1])
def test_a_healthy_run_passes_every_check(servers):
    judged = of(servers=servers)
    assert judged.status == "valid", judged.reasons
    assert (judged.ledger, judged.warnings) == ("agrees", ())
    # 360 transactions a second of 20 statements.
    assert judged.qps == 7200


def test_the_client_that_was_killed_is_named_and_so_are_those_it_took_along():
    known = clients(exit_code=-9, ended_by="signal")
    known[0] |= {"exit_code": -15, "ended_by": "another client"}
    judged = of({"clients": known})
    assert judged.status == "invalid"
    assert failed(judged)["V1"] == (
        "client 0: exit code -15; client 0: ended by another client; client 2: exit code -9; "
        "client 2: ended by signal"
    )


def test_a_client_whose_log_is_cut_makes_the_run_invalid():
    run = synthetic.three()
    outs = (run.out, run.others[0][0], run.others[1][0][:1500])
    judged = validity.judge_run(synthetic.three(outs=(run.out, run.others[0][0], run.others[1][0])))
    assert judged.status == "valid"
    cut = synthetic.Evidence(run.plan, run.observed, outs[0], "", others=((outs[1], ""), (outs[2], "")))
    judged = validity.judge_run(cut)
    assert judged.status == "invalid" and judged.qps is None
    assert failed(judged)["V3"].startswith("client 2: ")


def test_a_client_without_a_log_is_missing_evidence_not_less_load():
    run = synthetic.three()
    judged = validity.judge_run(
        synthetic.Evidence(run.plan, run.observed, run.out, "", others=(run.others[0], ("", None)))
    )
    assert judged.status == "invalid"
    assert "V2 stderr: client 2: no file of stderr" in judged.reasons


def test_each_client_has_the_seed_and_the_threads_of_its_share():
    run = synthetic.three()
    swapped = synthetic.Evidence(
        run.plan, run.observed, run.others[0][0], "", others=((run.out, ""), run.others[1])
    )
    assert failed(validity.judge_run(swapped))["V5"].startswith("client 0: seed ")
    lone = synthetic.output(threads=3, tps=140, seed=1)
    found = failed(of(outs=(run.out, run.others[0][0], lone)))
    assert "client 2: threads 3, asked 2" in found["V5"]


def test_books_of_two_servers_that_were_swapped_agree_in_sum_and_fail_each():
    run = synthetic.three()
    one, two, three = run.observed["servers"]
    judged = of({"servers": [two, one, three]})
    assert "server 0: Com_select grew by 11760, sysbench says 9800" in failed(judged)["V10"]
    assert "server 2" not in failed(judged)["V10"]


def test_a_server_that_was_restarted_or_lost_rows_is_named():
    servers = synthetic.three().observed["servers"]
    servers[2] |= {"uptime_after_s": 2}
    servers[1] |= {"rows_after": servers[1]["rows_after"] | {"sbtest1": 9999}}
    found = failed(of({"servers": servers}))
    assert found["V12"].startswith("server 2: the server's uptime grew by -48 s")
    assert found["V13"] == "server 1: the run changed the number of rows by -1, 0 expected"


def test_a_server_that_is_gone_is_missing_evidence():
    servers = synthetic.three().observed["servers"]
    servers[2] |= {"ledger": servers[2]["ledger"] | {"after": None}, "uptime_after_s": None}
    judged = of({"servers": servers})
    assert judged.status == "indeterminate"
    assert any(
        reason.startswith("V10 ledger: server 2: evidence has no ledger.after") for reason in judged.reasons
    )


@pytest.mark.parametrize("lost", ["servers", "clients", "start_spread_ms"])
def test_evidence_of_each_that_is_missing_never_passes(lost):
    assert of({lost: "ABSENT"}).status == "indeterminate"


def test_clients_that_did_not_begin_together_are_no_run():
    assert failed(of({"start_spread_ms": 251.0})) == {"V22": "the clients began 251 ms apart, at most 250 ms"}
    assert (
        validity.judge_run(synthetic.three({"start_spread_ms": 251.0}), Limits(start_spread_ms=300)).status
        == "valid"
    )


def test_a_client_on_another_server_and_a_client_too_few_are_told():
    assert failed(of({"clients": clients(server=0)}))["V22"] == "client 2 used server 0, not 2"
    assert "2 clients ran, 3 asked" in failed(of({"clients": clients()[:2]}))["V22"]


def test_one_client_that_starved_is_found_although_the_others_did_not():
    # 2 threads in 7 s: 9.8 s are 0.7 of each second; 10 s of 6 threads are 0.24.
    found = failed(of({"clients": clients(runqueue_wait_s=9.8), "client": {"runqueue_wait_s": 10.0}}))
    assert found == {"V15": "client 2: threads waited 0.70 s for a core each second, at most 0.6 s"}


def test_a_folder_of_three_is_read_with_all_its_logs(tmp_path):
    folder = synthetic.folder_of_three(tmp_path)
    judged = validity.judge_run(folder)
    assert (judged.status, judged.qps) == ("valid", 7200), judged.reasons
    log = folder.path / "client-2" / "sysbench.out"
    log.write_text(log.read_text().replace("14.29", "14.30"))
    assert (
        failed(validity.judge_run(folder))["V19"]
        == "client-2/sysbench.out: its bytes are not those of the manifest"
    )
    log.unlink()
    assert validity.judge_run(folder).status == "invalid"


def test_a_file_of_options_that_sysbench_did_not_take_whole_is_told():
    setting = {"access": "direct", "options_by": "file"}
    plan = synthetic.planned(arm_setting=setting)
    seen = corpus.in_a_file(plan, taken={"rand-type": "special"})
    run = corpus.healthy(synthetic.output(), plan, "", seen)
    assert failed(validity.judge_run(run)) == {"V5": "the file says rand-type=uniform, sysbench took special"}
    lost = corpus.healthy(synthetic.output(), plan, "", seen | {"options": "ABSENT"})
    assert validity.judge_run(lost).status == "indeterminate", "nobody looked at what it did"


def test_every_check_says_what_it_means_to_pass():
    """The pages list the checks in their own words; one that is made for each client must not lose them."""
    rows = {row[0]: row[2] for row in run_tables.tabulate_checks(validity.CHECKS).rows}
    assert len(rows) == len(validity.CHECKS)
    assert [id for id, meaning in rows.items() if len(meaning.split()) < 3] == []
    assert rows["V1"] == "Sysbench ended by itself, with 0."


def test_each_server_s_share_of_the_threads_is_a_whole_number():
    """Six threads of three clients: two on each server, and never 2.0 in a message."""
    assert [repr(one.plan["threads"]) for one in synthetic.three().servers] == ["2", "2", "2"]
