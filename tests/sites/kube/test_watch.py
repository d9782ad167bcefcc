"""What is seen from inside pods, and the agent that starts load there: real processes, no cluster."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from benchbook.sites.kube import agent, client, facts, watch
from benchbook.sites.processes import start_at

SAMPLE = Path(watch.__file__).with_name("pod") / "sample.sh"
AGENT = Path(agent.__file__)


def sample(*words: str) -> str:
    done = subprocess.run(["sh", str(SAMPLE), *words], capture_output=True, text=True, check=True, timeout=20)
    return done.stdout


@pytest.fixture
def agent(tmp_path: Path):
    """Run the agent as it is run in a pod; its jobs are in a folder of the test."""

    def run(*words: str, line: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [sys.executable, str(AGENT), *words],
            input=line,
            capture_output=True,
            timeout=30,
            env={**os.environ, "BENCHBOOK_JOBS": str(tmp_path)},
        )

    return run


def job(name: str, *argv: str, **files: str) -> bytes:
    coded = {key: base64.b64encode(text.encode()).decode() for key, text in files.items()}
    return json.dumps({"job": name, "argv": argv, "files": coded}).encode() + b"\n"


def test_a_busy_process_is_seen_to_be_busy_and_its_machine_too():
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    name, began = f"test-{os.getpid()}", time.monotonic()
    try:
        sample("begin", name, str(busy.pid))
        time.sleep(2.4)
        said = sample("end", name)
        had = sum(psutil.Process(busy.pid).cpu_times()[:2]) / (time.monotonic() - began)
    finally:
        busy.kill()
        busy.wait()
    samples = [watch.parse(line) for line in said.splitlines()]
    assert len(samples) >= 3 and None not in samples
    rows = watch.rows("server", samples, 0.5)
    cores = [row["cpu_cores"] for row in rows if row["part"] == "server"]
    # A loop takes a core, or its share of a machine that others use too: the kernel says how much it had.
    assert 0.7 * had < max(cores) < 1.2
    machine = [row for row in rows if row["part"] == "machine"]
    assert all(row["cpu_cores"] >= 0.3 and row["rss_mib"] > 100 for row in machine)
    seconds = [row["second"] for row in rows]
    assert seconds == sorted(seconds) and seconds[0] > 0.5


def test_what_a_pod_does_not_show_is_empty_and_no_nought():
    cut = "12.0|S 1 2"
    first, second = "12.0|||cpu 1 2 3 4 5 6 7 8 0 0||||||", "13.0|||cpu 2 2 3 5 5 6 7 9 0 0||||||"
    assert watch.parse(cut) is None
    # The process is gone, memory and pressure are not shown; the machine's ticks are there.
    one, two = watch.parse(first), watch.parse(second)
    assert one is not None and two is not None
    assert one["cpu_s"] is None and one["kills"] is None
    rows = watch.rows("server", [one, two], 0.0)
    assert [row["part"] for row in rows] == ["machine"]
    assert "rss_mib" not in rows[0] and rows[0]["psi_cpu_pct"] == ""


def test_a_job_outlives_the_agent_that_started_it(agent, tmp_path: Path):
    started = agent(
        "start", line=job("a", "sh", "{JOB}/script", script="sleep 0.5; echo out; echo err >&2; exit 3")
    )
    assert started.returncode == 0 and int(started.stdout) > 1
    record = json.loads(agent("wait", "a").stdout)
    assert record["exit_code"] == 3
    out = agent("fetch", "a", "out").stdout
    assert out == b"out\n" and hashlib.sha256(out).hexdigest() == record["sha256"]["out"]
    assert agent("fetch", "a", "err").stdout == b"err\n"
    assert 0.4 < record["lasted_s"] < 10
    assert agent("remove", "a").returncode == 0 and not (tmp_path / "a").exists()


def test_the_agent_counts_the_processor_time_of_its_job(agent):
    spin = "import time\nwhile time.process_time() < 1.3: pass"
    agent("start", line=job("b", sys.executable, "-c", spin))
    record = json.loads(agent("wait", "b").stdout)
    assert record["cpu_s"] >= 1.2
    # All of a core, or its share of a machine that others use too.
    assert max(row[1] for row in record["rows"]) > 0.5 * record["cpu_s"] / record["lasted_s"]
    assert record["oom_kills"] == 0 and abs(record["clock_step_s"]) < 1


def test_a_job_can_be_ended_and_a_program_that_is_not_there_is_told(agent):
    agent("start", line=job("c", "sleep", "60"))
    assert agent("signal", "c", str(int(signal.SIGKILL))).returncode == 0
    assert json.loads(agent("wait", "c").stdout)["exit_code"] == -signal.SIGKILL
    missing = agent("start", line=job("d", "no-such-program"))
    assert missing.returncode != 0 and b"no-such-program" in missing.stderr


@pytest.mark.parametrize(("said", "cores"), [("2", 2.0), ("500m", 0.5), ("15890m", 15.89)])
def test_processor_quantities_are_read_in_cores(said: str, cores: float):
    assert facts.cores(said) == cores


def test_the_kubelets_settings_are_those_that_change_what_a_pod_gets():
    said = json.dumps({"kubeletconfig": {"cpuManagerPolicy": "static", "maxPods": 110, "address": "0.0.0.0"}})
    assert facts.kubelet(said) == {"cpuManagerPolicy": "static", "maxPods": 110}
    assert "not available" in facts.kubelet(None)


def seen(rows: list[list[object]], began: float = 100.0, begun: float | None = None) -> dict[str, object]:
    return {"rows": rows, "began_s": began, "begun_s": begun}


def test_what_several_clients_use_is_added_second_by_second_from_when_they_began():
    # The first waited 2 s for the moment, the second 1 s: second 3 of one is second 2 of the other.
    one = seen([[1.0, 9.0, 9.0, {}], [3.0, 0.25, 10.0, {"server": [0.5, 4.0]}]], begun=102.0)
    two = seen([[2.0, 0.5, 20.0, {"server": [0.25, 2.0]}], [3.0, 0.75, 21.0, {}]], begun=101.0)
    rows = watch.together([watch.client_rows(one), watch.client_rows(two)])
    # What was used while waiting is not the run's, and a second that only one has seen is no sum.
    assert [(row["second"], row["cpu_cores"], row["rss_mib"]) for row in rows] == [(1.0, 0.75, 30.0)]
    server = [
        {"second": 1.2, "part": "server", "cpu_cores": 1.0, "rss_mib": 1.0},
        {"second": 2.2, "part": "server"},
    ]
    carried = [watch.bytes_by_second(one), watch.bytes_by_second(two)]
    first, second = watch.with_bytes(server, carried)
    assert (first["received_mib_s"], first["sent_mib_s"]) == (0.75, 6.0)
    assert "received_mib_s" not in second


def test_the_parts_of_a_cluster_are_seen_apart_and_together_are_the_server():
    """Two TiDB of 1 and 2 cores and a TiKV of 4: TiDB 3, TiKV 4, and 7 of the server."""
    used = {"tidb-0": ("tidb", 1.0), "tidb-1": ("tidb", 2.0), "tikv-0": ("tikv", 4.0)}
    sources = []
    for kind, cores in used.values():
        found = [{"second": 1.0, "part": kind, "cpu_cores": cores, "rss_mib": 10 * cores}]
        sources += [found, watch.as_server(found)]
    rows = {row["part"]: row for row in watch.together(sources)}
    assert {part: row["cpu_cores"] for part, row in rows.items()} == {"tidb": 3.0, "tikv": 4.0, "server": 7.0}
    assert rows["server"]["rss_mib"] == 70.0


def test_options_in_a_file_go_with_the_job_and_the_account_does_not(tmp_path: Path):
    """What the client connects to stands in the file then, and its bytes are counted all the same."""
    (tmp_path / "secrets").mkdir()
    account, options = tmp_path / "secrets" / "sysbench.cnf", tmp_path / "options"
    account.write_text('mysql-password="secret"\n')
    options.write_text("mysql-host=10.0.0.7\nmysql-port=23060\nthreads=2\n")
    argv = ["sysbench", f"--config-file={options}", f"--config-file={account}", "oltp_point_select", "run"]
    assert client.hop(argv, "server") == [("server", "10.0.0.7", 23060)]
    job = client.Job.__new__(client.Job)
    job.name, job.hops = "a", []
    told = json.loads(job._described(argv))
    assert told["argv"][1:3] == [
        "--config-file={JOB}/options",
        "--config-file=/run/benchbook/account/sysbench.cnf",
    ]
    assert list(told["files"]) == ["options"] and "secret" not in str(told["files"])
    assert base64.b64decode(told["files"]["options"]).decode() == options.read_text()


def test_a_client_begins_at_its_moment_and_says_when(agent):
    at = time.monotonic() + 1.0
    waiting = ["python3", "-I", "-S", "-c", start_at.WAIT, repr(at), "{JOB}/begun", "true"]
    assert agent("start", line=job("e", *waiting)).returncode == 0
    record = json.loads(agent("wait", "e").stdout)
    assert record["exit_code"] == 0 and 0 <= record["begun_s"] - at < 2
    assert record["lasted_s"] > 0.5
    asked = agent("clock", line=b"\n\n").stdout.split()
    assert len(asked) == 2 and at < float(asked[0]) <= float(asked[1]) <= time.monotonic()


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def until(what, seconds: float = 15.0) -> bool:
    deadline = time.monotonic() + seconds
    while not what() and time.monotonic() < deadline:
        time.sleep(0.02)
    return what()


def held(name: str, *argv: str, **more: object) -> bytes:
    return json.dumps({"job": name, "argv": argv, "files": {}, "held": True, **more}).encode() + b"\n"


def test_a_held_client_stands_still_until_it_is_let_go_and_says_when_that_was(agent):
    pid = int(agent("start", line=held("f", "true")).stdout)
    assert until(lambda: state_of(pid) == "T")
    let_go = time.monotonic()
    agent("signal", "f", str(int(signal.SIGCONT)))
    record = json.loads(agent("wait", "f").stdout)
    assert record["exit_code"] == 0 and record["begun_s"] >= let_go


def test_what_a_killed_clock_had_stopped_goes_on(agent):
    """The clock is ended by KILL, which it can't answer; its watcher lets the client go on."""
    client = int(agent("start", line=held("g", "sleep", "60")).stdout)
    assert until(lambda: state_of(client) == "T")
    asked = {"job": "h", "argv": ["sleep", "60"], "files": {}, "continues": [client]}
    agent("start", line=json.dumps(asked).encode() + b"\n")
    agent("signal", "h", str(int(signal.SIGKILL)))
    assert json.loads(agent("wait", "h").stdout)["exit_code"] == -signal.SIGKILL
    try:
        assert until(lambda: state_of(client) == "S")
    finally:
        agent("signal", "g", str(int(signal.SIGKILL)))


def test_a_client_that_nobody_lets_go_is_ended(tmp_path: Path):
    """The owner and the clock are gone: nothing stays stopped in the pod."""
    code = f"import sys; sys.path.insert(0, {str(AGENT.parents[3])!r}); sys.argv[0] = {str(AGENT)!r}; "
    code += "from benchbook.sites.kube import agent; agent.STILL_S = 0.5; agent.main()"
    run = lambda *words, line=b"": subprocess.run(  # noqa: E731
        [sys.executable, "-c", code, *words], input=line, capture_output=True, timeout=30,
        env={**os.environ, "BENCHBOOK_JOBS": str(tmp_path)},
    )  # fmt: skip
    run("start", line=held("i", "sleep", "60"))
    assert json.loads(run("wait", "i").stdout)["exit_code"] == -signal.SIGKILL
