"""Of several clients and servers each is judged and named, and together they must have been one run."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchbook.read import validity
from benchbook.show import run_tables
from tests.goldens import assert_golden
from tests.read import corpus, synthetic


def of(changed=None, **kept) -> validity.Judgement:
    return validity.judge_run(synthetic.three(changed, **kept))


@pytest.mark.parametrize("servers", [3, 1])
def test_a_healthy_run_passes_every_check(servers):
    judged = of(servers=servers)
    assert judged.status == "valid", judged.reasons
    assert (judged.ledger, judged.warnings) == ("agrees", ())
    # 360 transactions a second of 20 statements.
    assert judged.qps == 7200


def damaged_runs(folder: Path) -> Iterator[tuple[str, validity.Judgement]]:
    """Runs of three clients, and one with its options in a file, each with one damage that it names."""
    run = synthetic.three()
    first, second, third = run.out, run.others[0][0], run.others[1][0]
    logs = {
        "client 2 has a log that was cut": (first, second, third[:1500]),
        "client 2 left no log and no stderr": (first, second, None),
        "clients 0 and 1 have each other's seed": (second, first, third),
        "client 2 has a thread too many": (first, second, synthetic.output(threads=3, tps=140, seed=1)),
    }
    for title, (out, *others) in logs.items():
        pairs = tuple(("", None) if other is None else (other, "") for other in others)
        yield title, validity.judge_run(synthetic.Evidence(run.plan, run.observed, out, "", others=pairs))
    one, two, three = run.observed["servers"]
    yield "books of servers 0 and 1 were swapped and agree in sum", of({"servers": [two, one, three]})
    written = synthetic.folder_of_three(folder)
    judged = validity.judge_run(written)
    assert (judged.status, judged.qps) == ("valid", 7200), judged.reasons
    log = written.path / "client-2" / "sysbench.out"
    log.write_text(log.read_text().replace("14.29", "14.30"))
    yield "client 2's log was edited", validity.judge_run(written)
    log.unlink()
    yield "client 2's log is gone", validity.judge_run(written)
    plan = synthetic.planned(arm_setting={"access": "direct", "options_by": "file"})
    seen = corpus.in_a_file(plan, taken={"rand-type": "special"})
    for title, changed in (("not taken whole", seen), ("not looked at", seen | {"options": "ABSENT"})):
        run = corpus.healthy(synthetic.output(), plan, "", changed)
        yield f"a file of options was {title}", validity.judge_run(run)


def test_damage_is_told_of_the_client_or_server_that_has_it(tmp_path: Path):
    lines = []
    for title, judged in damaged_runs(tmp_path):
        lines += [f"{title}: {judged.status}\n", *(f"  {reason}\n" for reason in judged.reasons)]
        assert judged.status != "valid"
    assert_golden("damaged_parts.txt", "".join(lines))


def test_a_run_of_which_a_client_has_no_whole_log_has_no_throughput():
    run = synthetic.three()
    cut = run.others[1][0][:1500]
    others = (run.others[0], (cut, ""))
    judged = validity.judge_run(synthetic.Evidence(run.plan, run.observed, run.out, "", others=others))
    assert judged.qps is None


def test_every_check_says_what_it_means_to_pass():
    """The pages list the checks in their own words; one that is made for each client must not lose them."""
    rows = {row[0]: row[2] for row in run_tables.tabulate_checks(validity.CHECKS).rows}
    assert len(rows) == len(validity.CHECKS)
    assert [id for id, meaning in rows.items() if len(meaning.split()) < 3] == []
    # The first line of what a check's docstring says, without its number.
    assert rows["V1"].startswith("Sysbench ended by itself")


def test_each_server_s_share_of_the_threads_is_a_whole_number():
    """Six threads of three clients: two on each server, and never 2.0 in a message."""
    assert [repr(one.plan["threads"]) for one in synthetic.three().servers] == ["2", "2", "2"]
