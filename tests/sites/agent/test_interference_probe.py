"""What a stranger does to a process or to its packets is in what a watch tells of the run."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import benchbook
from benchbook.sites.agent.interference_probe import InterferenceProbe
from benchbook.sites.processes import procfs
from tests import strangers


@pytest.fixture
def child() -> Iterator[int]:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as popen:
        yield popen.pid
        popen.kill()


def test_nothing_is_seen_where_nobody_does_anything(child: int):
    seen = InterferenceProbe({"server": [child], "client": [os.getpid()]})
    seen.look()
    told = seen.end()
    (network,) = told.pop("networks")
    limits = {part: procfs.cgroup_limits.describe_limits(os.getpid()) for part in ("", "server", "client")}
    assert told == {
        "traced": {}, "looks": 3, "stopped": {}, "continued": [], "counting": told["counting"],
        "limits": limits, "held_back": told["held_back"],
    }  # fmt: skip
    assert network["parts"] == ["client", "server"] and network["is_shared"]
    assert network["sent"] >= network["again"] >= 0
    assert (network["rules"] is None) == (network["dropped"] is None)


def test_a_tracer_is_named_whichever_thread_it_has(child: int):
    seen = InterferenceProbe({"server": [child]})
    with strangers.running(strangers.SEIZE.format(pid=child)) as is_able:
        if not is_able:
            pytest.skip("this account may trace no process")
        seen.look()
        assert procfs.describe_placement(child)["traced"].startswith("python")
    told = seen.end()
    assert told["traced"]["server"].startswith("python")
    assert procfs.describe_placement(child)["traced"] == ""


def test_a_stop_that_is_over_is_told_once_and_one_that_lasts_at_each_look(child: int):
    seen = InterferenceProbe({"server": [child]})
    with strangers.stopping(child):
        time.sleep(0.25)
    assert seen.end()["continued"] == ["server"]
    again = InterferenceProbe({"server": [child]})
    assert again.end()["continued"] == []
    os.kill(child, 19)
    while not procfs.is_stopped(child):
        time.sleep(0.01)
    still = InterferenceProbe({"server": [child]})
    assert still.end()["stopped"] == {"server": 2}


def test_who_counts_events_is_named(child: int):
    was = InterferenceProbe({"server": [child]}).end()["counting"]
    with strangers.running(strangers.COUNT) as is_able:
        if not is_able:
            pytest.skip("this kernel lets nobody count events")
        now = InterferenceProbe({"server": [child]}).end()["counting"]
    assert [name for name in now if name not in was] or any("python" in name for name in was)


def test_a_look_takes_a_few_milliseconds(child: int):
    taken = []
    seen = InterferenceProbe({"server": [child], "client": [os.getpid()]})
    for _ in range(20):
        begun = time.process_time()
        seen.look()
        taken.append(time.process_time() - begun)
    assert min(taken) < 0.003


IN_A_NETWORK = """
import json, os, socket, subprocess, sys
from benchbook.sites.agent.interference_probe import InterferenceProbe
from benchbook.sites.processes import procfs
def seen(): return procfs.describe_placement(os.getpid())["firewall"]
def rule(tool, *words): subprocess.run([tool, *words], check=True, stdout=2)
def knock():
    for _ in range(20):
        with socket.socket() as one:
            one.settimeout(0.01)
            try: one.connect(("127.0.0.1", 4321))
            except OSError: pass
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
said = [seen()]
rule("iptables", "-t", "nat", "-A", "OUTPUT", "-m", "comment", "--comment", "benchbook 1a2b service")
said += [seen()]
tool = sys.argv[1]
rule(tool, "-N", "other")
rule(tool, "-A", "INPUT", "-p", "tcp", "--dport", "4321", "-j", "DROP")
said += [seen()]
strangers = InterferenceProbe({"server": [os.getpid()]})
knock()
told = strangers.end()["networks"][0]
rule(tool, "-A", "other", "-p", "tcp", "--dport", "4321", "-j", "ACCEPT")
print(json.dumps({"said": said + [seen()], "told": told}))
"""


@pytest.mark.parametrize("tool", ["iptables-nft", "iptables-legacy"])
def test_rules_are_counted_and_so_is_what_they_drop_and_ours_are_none_of_them(tool: str):
    if os.geteuid() != 0 or not all(map(shutil.which, ("iptables", tool, "unshare"))):
        pytest.skip("needs root and iptables")
    lib = str(Path(benchbook.__file__).parents[1])
    asked = ["unshare", "--net", sys.executable, "-c", IN_A_NETWORK, tool]
    done = subprocess.run(asked, env={**os.environ, "PYTHONPATH": lib}, capture_output=True, text=True)
    if "legacy" in tool and "can't initialize" in done.stderr:
        pytest.skip("this kernel has no tables of older iptables")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    first, ours, one, two = found["said"]
    assert first == ours == "no rules"
    assert one.startswith("1 rules ") and two.startswith("2 rules ")
    assert found["told"]["rules"] == 1
    assert found["told"]["dropped"] == 20
