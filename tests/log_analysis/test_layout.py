"""Who is who, in folders as people have them: each layout is somebody's, with made-up runs in it."""

from itertools import product
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from benchbook.core.util.errors import BenchbookError
from benchbook.log_analysis.comparison import read_logs
from benchbook.log_analysis.text import page_rows
from tests.goldens import assert_golden
from tests.read import synthetic


def log(threads: int, tps: int) -> str:
    return synthetic.output(threads, discard_s=0, tps=tps, run_s=8)


def make(folder, names: dict[str, str]) -> None:
    for name, text in names.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def fill(folder, pattern: str, **values) -> None:
    """Write a log for each combination of values, each with another throughput."""
    keys = [*values]
    combinations = [*product(*values.values())]
    names = {
        pattern.format(**dict(zip(keys, chosen, strict=True))): log(chosen[keys.index("t")], 100 + 7 * number)
        for number, chosen in enumerate(combinations)
    }
    make(folder, names)


LAYOUTS = YAML(typ="safe").load(Path(__file__).parents[1] / "data" / "layouts.yaml")


@pytest.mark.parametrize("name", LAYOUTS)
def test_each_layout_is_understood_and_its_reading_can_be_pasted_back(tmp_path, name):
    arms, workloads, levels, n = LAYOUTS[name]["answer"]
    fill(tmp_path, LAYOUTS[name]["files"], **LAYOUTS[name]["values"])
    logs = read_logs([tmp_path])
    assert [*logs.arms] == arms
    assert sorted({workload for workload, _ in logs.rows}) == workloads
    assert sorted({level for _, level in logs.rows}) == levels
    assert {cell.n for cell in logs.cells} == {n}
    again = read_logs([tmp_path], by=logs.layout.patterns[0], baseline=logs.arms[0])
    assert [(c.level, c.n, c.mean("qps")) for c in again.cells] == [
        (c.level, c.n, c.mean("qps")) for c in logs.cells
    ]


def test_1_numbered_folders_with_a_description(tmp_path):
    fill(tmp_path, "res{a}/sysbench.ro.{t}.res", a=[13, 14], t=[1, 64])
    make(tmp_path, {"DESC": "13 ... MariaDB-5.5.24\n14 ... Percona\n", "res13/iostat.ro.64.res": "tps %\n"})
    logs = read_logs([tmp_path])
    assert logs.arms == ("res13 (MariaDB-5.5.24)", "res14 (Percona)")
    assert logs.silent_files == 2


def test_folders_of_several_people_have_threads_in_places_of_their_own(tmp_path):
    fill(tmp_path, "numbered/res{a}/sysbench.ro.{t}.res", a=[13, 14], t=[1, 16, 64])
    fill(tmp_path, "{a}-notes.txt", a=["proxy", "direct"], t=[8])
    logs = read_logs([tmp_path])
    assert {run.workload for run in logs.runs if run.path.endswith(".res")} == {"read_only"}
    headings, rows = page_rows(logs)
    # Few arms have runs at a level, so each has a row, and none is empty.
    assert [name for _, name in headings][:3] == ["workload", "threads", "arm"] and len(rows) == 8
    assert not any(row[3] == "–" for row in rows)


def test_6_a_file_of_parameters_names_the_arm(tmp_path):
    fill(tmp_path, "res-oltp-host-2021-01-0{a}/io100.threads{t}/results.txt", a=[1, 2], t=[8, 16])
    for a, size in ((1, "5G"), (2, "25G")):
        for t in (8, 16):
            make(
                tmp_path,
                {f"res-oltp-host-2021-01-0{a}/io100.threads{t}/params.txt": f"BP={size}\nthreads={t}\n"},
            )
    assert read_logs([tmp_path]).arms == ("BP=5G", "BP=25G")


def test_10_one_file_with_a_sweep(tmp_path):
    parts = [
        f"######----- Mon Jan {t} 2024 -----######\nThread = {t}\n\n{log(t, 10 * t)}" for t in (8, 16, 32)
    ]
    make(tmp_path, {"sweep.log": "\n".join(parts)})
    logs = read_logs([tmp_path / "sweep.log"])
    assert (logs.arms, [level for _, level in logs.rows]) == (("sweep",), [8, 16, 32])


def test_11_and_13_runs_that_follow_each_other_in_a_file_are_repetitions(tmp_path):
    for arm, first in (("disabled-thp", 100), ("enabled-thp", 120)):
        behind = "\n Performance counter stats for 'sysbench':\n\n   99  dTLB-loads\n\n"
        failed = log(128, 90).split("Threads started!")[0] + "FATAL: unable to connect to MySQL server\n"
        make(tmp_path, {f"{arm}/tps-128": failed + behind.join(log(128, first + n) for n in range(3))})
    logs = read_logs([tmp_path])
    assert logs.arms == ("disabled-thp", "enabled-thp")
    assert [cell.n for cell in logs.cells] == [3, 3]
    assert len(logs.left_out) == 2 and "failed: line" in logs.left_out[0].reason
    change = logs.cells[1].change
    assert change.method == "Welch" and change.low < 120 / 100 - 1 < change.high


def test_12_processes_of_one_run_are_added_up_and_passes_are_pairs(tmp_path):
    names = {}
    for number, arm in product(range(1, 7), ("base", "new")):
        for process in range(1, 5):
            tps = 100 + 10 * number + process + 5 * (arm == "new")
            names[f"b-{number:02}-{arm}-1024.p{process}.log"] = log(256, tps)
    make(tmp_path, names)
    logs = read_logs([tmp_path])
    assert logs.arms == ("base", "new")
    assert [(cell.level, cell.n, cell.runs[0].processes) for cell in logs.cells] == [(1024, 6, 4)] * 2
    assert logs.cells[0].runs[0].qps == pytest.approx(20 * (4 * 110 + 10))
    assert logs.cells[1].change.method == "pairs"


def test_14_arms_are_headings_of_an_issue(tmp_path):
    text = "".join(
        f"## {arm}, 8 threads\n\n```\n{log(8, tps)}```\n\n" for arm, tps in (("direct", 100), ("proxy", 90))
    )
    make(tmp_path, {"issue.md": text})
    logs = read_logs([tmp_path / "issue.md"])
    assert logs.arms == ("direct", "proxy")
    assert logs.cells[1].change.effect == pytest.approx(-0.1)


def test_what_the_user_says_goes_before_every_guess(tmp_path):
    fill(tmp_path, "{a}/x{t}-{r}.log", a=["one", "two"], t=[4, 8], r=[1, 2])
    logs = read_logs([tmp_path], arm_globs=[("old", "*/two/*"), ("new", "*/one/*")], baseline="old")
    assert logs.arms == ("old", "new")
    refusals = []
    for options in ({"by": "{arm}.{workload}.csv"}, {"by": "{arm}{thread}.log"}, {"baseline": "three"}):
        with pytest.raises(BenchbookError) as caught:
            read_logs([tmp_path], **options)
        refusals.append(f"{caught.value}\n")
    assert_golden("logs-options.txt", "".join(refusals))


def test_a_copy_is_no_repetition(tmp_path):
    make(tmp_path, {"a/t8.log": log(8, 100), "b/t8.log": log(8, 100)})
    logs = read_logs([tmp_path])
    assert len(logs.runs) == 1
    assert "a copy of" in logs.left_out[0].reason
