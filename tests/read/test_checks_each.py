"""Of several clients and servers each is judged and named, and together they must have been one run."""

import pytest

from benchbook.read import validity
from benchbook.show import run_tables
from tests.read import corpus, synthetic


def failed(judged: validity.Judgement) -> dict[str, str]:
    return {check.id: check.detail for check in judged.checks if check.passed is False}


def of(changed=None, **kept) -> validity.Judgement:
    return validity.judge_run(synthetic.three(changed, **kept))


@pytest.mark.parametrize("servers", [3, 1])
def test_a_healthy_run_passes_every_check(servers):
    judged = of(servers=servers)
    assert judged.status == "valid", judged.reasons
    assert (judged.ledger, judged.warnings) == ("agrees", ())
    # 360 transactions a second of 20 statements.
    assert judged.qps == 7200


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
