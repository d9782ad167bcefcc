"""`benchbook logs`: what a person sees, writes and pipes, and what bad input comes to."""

import io
import json
import os
import re
import subprocess
import sys
import types
from pathlib import Path

import pandas as pd
import pytest

import benchbook as bb
from benchbook.commands import cli
from benchbook.core.util.errors import NotThere
from benchbook.show import logs_page
from tests.goldens import assert_golden, assert_page
from tests.log_analysis.test_layout import fill, log, make

LOGS = Path(__file__).parents[1] / "data" / "logs"
NUMBERED = LOGS / "folder-numbered-results-with-description"


def call(capsys, *words) -> tuple[int, str, str]:
    code = cli.main(["logs", *map(str, words)])
    return code, *capsys.readouterr()


def test_the_table_of_numbered_folders(capsys, tmp_path):
    code, out, _ = call(capsys, NUMBERED, "--html", tmp_path / "page.html")
    assert code == 0
    assert_page("logs-numbered.txt", (tmp_path / "page.html").read_text().replace(str(LOGS), "logs"))
    changes = dict(re.findall(r"^ +(\d+) .*?([−+]\d+\.\d)\s%", out, re.M))
    assert changes == {"1": "−30.4", "4": "−6.0", "16": "−3.8", "64": "−4.0", "256": "−3.4"}
    assert out.count("one run: no interval") == 5


def test_two_processes_are_one_run_of_four_threads(capsys):
    document = json.loads(call(capsys, LOGS / "folder-two-processes-of-one-run", "--json")[1])
    assert [(run["threads"], round(run["qps"], 2), run["percentile_ms"]) for run in document["runs"]] == [
        (4, 28580.51, None)
    ]
    assert_golden("logs-processes.txt", document["caveats"][0]["text"].replace(str(LOGS), "logs") + "\n")


def test_what_is_no_run_is_named_with_what_it_says(capsys):
    names = ("cpu-test", "fileio-test", "memory-test", "mutex-one-event", "report-lines-only",
             "run-does-not-end", "cut-in-the-middle")  # fmt: skip
    code, out, err = call(capsys, *(LOGS / f"{name}.txt" for name in names))
    assert code == 1
    assert_golden("logs-refused.txt", f"{out}\n{err}".replace(str(LOGS), "logs"))


def test_everything_that_can_be_written(tmp_path, capsys):
    fill(tmp_path / "in", "{a}/run{r}_rw_{t}.log", a=["direct", "proxy"], r=[1, 2, 3], t=[1, 4, 16])
    words = ["--html", tmp_path / "page.html", "--csv", tmp_path / "csv", "--parquet", tmp_path / "parquet"]
    code, out, _ = call(capsys, tmp_path / "in", *words, "--markdown")
    assert code == 0 and out.count("\n| ") == 5
    page = (tmp_path / "page.html").read_text()
    assert_page("logs.txt", page)
    assert not re.search(r"""(?:src|href)=["']https?:""", page)
    for name, rows in (("runs", 18), ("intervals", 18 * 8), ("histograms", 18), ("effects", 6)):
        assert len(pd.read_csv(tmp_path / "csv" / f"{name}.csv")) == rows
        assert len(pd.read_parquet(tmp_path / "parquet" / f"{name}.parquet")) == rows


def test_the_same_as_objects():
    logs = bb.logs(NUMBERED)
    assert logs.arms[0].startswith("res13") and len(logs.runs) == 10
    assert logs.effects.effect.dropna().round(3).tolist() == [-0.304, -0.060, -0.038, -0.040, -0.034]
    assert "comparison" in logs._repr_html_() and "threads" in logs.plot()._repr_html_()
    assert logs.judge("res14/res13 = -4% at 64 threads").endswith("one run: no interval))")
    with pytest.raises(NotThere) as caught:
        bb.logs(LOGS / "cpu-test.txt")
    assert_golden("logs-not-there.txt", str(caught.value).replace(str(LOGS), "logs") + "\n")


@pytest.mark.parametrize(
    "claim, outcome",
    [
        ("proxy/direct = -10%", "holds"),
        ("proxy/direct = -25%", "does not hold"),
        ("≥ 2x at 8 threads", "does not hold"),
        ("proxy/direct < 0% at 8 threads", "holds"),
        ("proxy/direct = -10% at 99 threads", "can't be told"),
    ],
)
def test_claims(tmp_path, claim, outcome, capsys):
    for r, (first, second) in enumerate([(1000, 900), (1010, 905), (990, 895), (1005, 902)], 1):
        make(tmp_path, {f"direct/t8_run{r}.log": log(8, first), f"proxy/t8_run{r}.log": log(8, second)})
    assert f"Claim {claim}: {outcome}" in call(capsys, tmp_path, "--claim", claim)[1]


def test_a_claim_that_is_none_says_how_one_is_written(capsys):
    assert 'write "res14' in call(capsys, NUMBERED, "--claim", "faster")[2]


def test_the_draft_of_a_study_can_be_planned(tmp_path, capsys):
    from benchbook.core.study.load import study_file

    call(capsys, NUMBERED, "--study", tmp_path / "draft.yaml")
    text = (tmp_path / "draft.yaml").read_text()
    assert text.count("# FILL IN") >= 4 and "threads: [1, 4, 16, 64, 256]" in text
    assert study_file(tmp_path / "draft.yaml").threads


def test_bad_input_is_a_line_each_and_the_rest_goes_on(tmp_path, capsys, monkeypatch):
    make(tmp_path, {"good.log": log(8, 100), "cut.log": log(8, 110)[:900], "notes.txt": "nothing\n"})
    (tmp_path / "blob.log").write_bytes(b"sysbench" + bytes(range(256)) * 50 + bytes(5000))
    (tmp_path / os.fsdecode(b"\xff\xfe.log")).write_text(log(8, 120))
    os.mkfifo(tmp_path / "pipe.log")
    with open(tmp_path / "huge.log", "wb") as file:
        file.truncate(10 << 30)
    walk = os.walk

    def refusing(path, onerror=None):
        if onerror is not None:
            onerror(PermissionError(13, "Permission denied", f"{path}/secret"))
        return walk(path)

    monkeypatch.setattr(os, "walk", refusing)
    code, out, _ = call(capsys, tmp_path, tmp_path / "absent")
    assert code == 0 and "2 runs of sysbench 1.0.20" in out
    assert_golden("logs-left-out.txt", out[out.index("Left out") :].replace(str(tmp_path), "logs"))


def test_standard_input_globs_and_any_folder(tmp_path, capsys, monkeypatch):
    fill(tmp_path, "a{a}_t{t}.log", a=["x", "y"], t=[1, 4])
    command = [sys.executable, "-m", "benchbook.commands.cli", "logs"]
    done = subprocess.run(
        [*command, "-"], input=log(8, 100), cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "1 run of sysbench" in done.stdout
    monkeypatch.chdir(tmp_path)
    assert "2 runs of sysbench" in call(capsys, "a*_t4.log")[1]


def test_threads_that_leave_are_what_the_person_looks_for(capsys):
    out = call(capsys, LOGS / "threads-leave.txt")[1]
    assert_golden("logs-threads-leave.txt", out.replace(str(LOGS), "logs"))


def test_what_could_be_wrong_is_found(tmp_path, capsys):
    usual = "100.00 qps: 2000.00 (r/w/o: 1400.00/400.00/200.00)"
    slow, fast = (
        "5.00 qps: 100.00 (r/w/o: 70.00/20.00/10.00)",
        "195.00 qps: 3900.00 (r/w/o: 2730.00/780.00/390.00)",
    )
    stalled = log(8, 100)
    for second, rates in ((4, slow), (5, fast)):
        stalled = stalled.replace(
            f"[ {second}s ] thds: 8 tps: {usual}", f"[ {second}s ] thds: 8 tps: {rates}"
        )
    make(tmp_path, {"a/t8.log": f"$ sysbench oltp_read_write --time=6 --threads=8 run\n{stalled}",
                    "b/t8.log": log(8, 110).replace("1.0.20", "1.0.17"),
                    "b/t16.log": log(16, 120)})  # fmt: skip
    out = call(capsys, tmp_path)[1]
    assert_golden("logs-wrong.txt", out[out.index("What could be wrong") :].replace(str(tmp_path), "logs"))


def test_arms_that_were_not_interleaved_are_named(tmp_path, capsys):
    fill(tmp_path, "{a}/t{t}.log", a=["x", "y"], t=[1, 4, 8])
    for place, path in enumerate(sorted(tmp_path.rglob("*.log"))):
        os.utime(path, (1e9 + 100 * place, 1e9 + 100 * place))
    assert_golden("logs-not-interleaved.txt", call(capsys, tmp_path)[1].replace(str(tmp_path), "logs"))
    for place, path in enumerate(sorted(tmp_path.rglob("*.log"), key=lambda path: path.name)):
        os.utime(path, (1e9 + 100 * place, 1e9 + 100 * place))
    assert "not interleaved" not in call(capsys, tmp_path)[1]


def test_no_password_of_a_command_line_is_kept(tmp_path, capsys):
    command = f"$ sysbench oltp_read_only --mysql-password={'hunter2'} --mysql-host=db1 --tables=4 run\n"
    make(tmp_path, {"a.log": command + log(8, 100)})
    out = call(capsys, tmp_path, "--json")[1]
    assert "hunter2" not in out and '"option_tables": "4"' in out


@pytest.fixture(autouse=True)
def _plain_stdin(monkeypatch):
    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO()))


@pytest.mark.parametrize(("runs", "is_drawn"), [(0, False), (1, True), (40, True), (41, False)])
def test_seconds_of_more_runs_than_a_reader_can_tell_apart_are_not_drawn(runs, is_drawn, monkeypatch):
    table = pd.DataFrame({"run_id": range(runs), "workload": "read_only", "qps": 1.0})
    for name in ("runs_table", "intervals_table"):
        monkeypatch.setattr(logs_page.tables, name, lambda logs: table)
    monkeypatch.setattr(logs_page.figures, "draw_seconds", lambda *_: "drawn")
    assert logs_page.seconds_picture(types.SimpleNamespace(arms={})) == ("drawn" if is_drawn else None)
