"""The agent without a network: what it starts, what outlives whom, and how its lease ends it all."""

import ast
import base64
import hashlib
import io
import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from importlib.util import MAGIC_NUMBER
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchbook.core.study import descriptors
from benchbook.core.util.errors import SiteError
from benchbook.sites import workspace as labs
from benchbook.sites.agent.facts import HostSnapshot
from benchbook.sites.agent.jobs import Jobs
from benchbook.sites.hosts import agent_zipapp
from benchbook.sites.hosts.host import Host
from benchbook.sites.hosts.machine import OnHost
from benchbook.sites.machine import supervised_process
from benchbook.sites.machine.contract import Machine, Request
from benchbook.sites.machine.local_machine import LocalMachine
from benchbook.sites.processes import process, procfs
from benchbook.sites.topology import clock
from tests import beside

PYTHON = shutil.which("python3", path="/usr/bin") or sys.executable
TOKEN = "0123456789abcdef"
LOOK = HostSnapshot({"cores": 1}, {}, {}, "nobody", "/", is_root=False, python="3", wall_s=0.0, open_files=-1)


class Asked(SimpleNamespace):
    """A host of which no more is here than what answers."""

    job = Host.job


class Agents:
    """The agent's file in a folder, run by the system's Python with no library in reach."""

    def __init__(self, base: Path) -> None:
        self.base, self.file = base, base / agent_zipapp.build_name()
        self.file.write_bytes(agent_zipapp.pack_agent())

    def command(self, command: str, folder: str = "mine", **order: Any) -> dict[str, Any]:
        """Run one of its commands and return what it printed."""
        argv, line = [PYTHON, "-I", "-S", str(self.file), command, str(self.base / folder)], json.dumps(order)
        done = subprocess.run(argv, input=f"{line}\n", capture_output=True, text=True, timeout=60)
        assert done.stdout, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    def serve(self, folder: str = "mine", lease_s: float = 60.0) -> dict[str, Any]:
        """Start an agent."""
        return self.command("serve", folder, token=TOKEN, lease_s=lease_s, owner=f"a test in {folder}")

    def ask(self, do: str, **arguments: Any) -> Any:
        """Ask over a connection of its own, as after a lost one."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(20)
            connection.connect(str(self.base / "mine" / "agent.sock"))
            connection.sendall(json.dumps({"id": "1", "do": do, **arguments}).encode() + b"\n")
            said = b""
            while not said.endswith(b"\n"):
                said += connection.recv(1 << 16)
        return json.loads(said)

    def ok(self, do: str, **arguments: Any) -> Any:
        """Ask, and raise what a host raises where the agent can't do what was asked."""
        answer = self.ask(do, **arguments)
        if "error" in answer:
            raise SiteError(answer["error"])
        return answer["ok"]

    def begin(self, job: str, *argv: str) -> dict[str, Any]:
        """Start a program."""
        return self.ok("start", job=job, argv=argv, out=f"{job}.out", err=f"{job}.err")


@pytest.fixture
def agents(tmp_path: Path) -> Iterator[Agents]:
    """A folder with the agent's file; nothing of it runs afterwards."""
    made = Agents(tmp_path)
    yield made
    for folder in ("mine", "other"):
        made.command("end", folder)


@pytest.fixture
def agent(agents: Agents) -> Agents:
    """That folder, with an agent that serves."""
    agents.serve()
    return agents


def gone(pid: int, within_s: float = 20) -> bool:
    return not beside.gone(lambda: procfs.is_alive(pid), within_s)


def test_the_same_modules_make_the_same_file():
    again = agent_zipapp.pack_agent.__wrapped__()
    assert hashlib.sha256(again).hexdigest() == agent_zipapp.hash_archive()


def test_another_python_than_ours_compiles_it_itself(agents: Agents):
    whole, ours = agent_zipapp.pack_agent(), MAGIC_NUMBER + agent_zipapp.UNCHECKED
    assert whole.count(ours) > 20
    agents.file.write_bytes(whole.replace(ours, b"1234" + agent_zipapp.UNCHECKED))
    look = agents.command("look", programs={}, required_programs=descriptors.required_programs())
    assert look["ok"]["python"]


def test_it_is_written_for_the_oldest_python_that_hosts_may_have():
    """Its grammar is that of 3.9, and it uses nothing that came later, as far as names tell.

    So does the clock of turns, which pods are given too.
    """
    later = {"match_case", "TryStar", "TypeAlias"}
    with zipfile.ZipFile(io.BytesIO(agent_zipapp.pack_agent())) as packed:
        texts = {name: packed.read(name).decode() for name in packed.namelist() if name.endswith(".py")}
    texts["clock.py"] = Path(clock.__file__).read_text(encoding="utf-8")
    for name, text in texts.items():
        tree = ast.parse(text, name, feature_version=(3, 9))
        for node in ast.walk(tree):
            assert type(node).__name__ not in later, name
            if isinstance(node, ast.Call):
                called = getattr(node.func, "id", getattr(node.func, "attr", ""))
                given = {keyword.arg for keyword in node.keywords}
                assert not (called == "zip" and "strict" in given), f"{name}:{node.lineno}"
                assert not (called == "dataclass" and {"slots", "kw_only"} & given), f"{name}:{node.lineno}"
            if isinstance(node, ast.ImportFrom) and node.module == "datetime":
                assert "UTC" not in {alias.name for alias in node.names}, name
        bars = [node for node in ast.walk(tree) if isinstance(getattr(node, "op", None), ast.BitOr)]
        # A union in an annotation is only text there if this is said.
        assert not bars or "from __future__ import annotations" in text, name


def test_python_alone_is_enough_for_it(agents: Agents):
    found = agents.command("look", programs={}, required_programs=descriptors.required_programs())["ok"]
    assert found["facts"]["cores"] == len(os.sched_getaffinity(0))
    assert found["facts"]["kernel"] == os.uname().release
    assert found["user"] and found["home"]
    servers = ["mariadbd", "mariadb-install-db", "mysqld", "postgres", "tidb-server"]
    proxies = ["haproxy", "pgbouncer", "proxysql", "tiproxy"]
    assert set(found["tools"]) == {"sysbench", "tiup", *servers, *proxies}
    assert not (agents.base / "mine").exists(), "a look makes nothing"


def test_a_program_outlives_whoever_asked_for_it_and_its_output_is_hashed(agent: Agents):
    agent.begin("run", PYTHON, "-c", "import time; time.sleep(0.5); print('done'); raise SystemExit(3)")
    known = agent.ok("wait", job="run", up_to_s=20)
    assert known["code"] == 3
    assert known["files"]["out"] == {"bytes": 5, "sha256": hashlib.sha256(b"done\n").hexdigest()}
    assert 0.5 <= known["age_s"] < 20 and 0 < known["cpu_s"] < 5


def test_asking_twice_starts_once_and_what_does_not_end_when_asked_is_ended_by_force(agent: Agents):
    first, second = agent.begin("gentle", "sleep", "60"), agent.begin("gentle", "sleep", "60")
    assert first["pid"] == second["pid"] and agent.ok("stop", job="gentle")
    assert agent.ok("wait", job="gentle", up_to_s=20)["code"] == -signal.SIGTERM
    stubborn = "import signal,time; signal.signal(15, signal.SIG_IGN); print(1, flush=True); time.sleep(60)"
    agent.begin("run", PYTHON, "-c", stubborn)
    while not (agent.base / "mine" / "run.out").read_text():
        time.sleep(0.02)
    agent.ok("stop", job="run", grace_s=0.3)
    known = agent.ok("wait", job="run", up_to_s=20)
    assert (known["code"], known["was_killed"]) == (-signal.SIGKILL, True)


def test_when_nobody_comes_back_all_ends_with_the_lease(agents: Agents):
    book = agents.serve(lease_s=1.5)["ok"]
    pid = agents.begin("run", "sleep", "60")["pid"]
    time.sleep(0.8)
    agents.ok("hello")  # renews it
    time.sleep(1.0)
    assert procfs.is_alive(pid), "the lease was renewed"
    assert gone(pid, 20) and gone(book["pid"], 20)
    assert not (agents.base / "mine" / "agent.sock").exists()
    assert "the lease is over" in (agents.base / "mine" / "agent.log").read_text()


def test_nothing_outlives_the_agent_itself(agents: Agents):
    book = agents.serve()["ok"]
    pid = agents.begin("run", "sleep", "60")["pid"]
    os.kill(book["pid"], signal.SIGKILL)
    assert gone(pid, 20)


def test_end_finds_its_own_by_their_environment_and_leaves_others_alone(agent: Agents):
    mine = agent.begin("run", "sleep", "60")["pid"]
    with subprocess.Popen(["sleep", "60"], env={process.TOKEN: TOKEN, process.FOLDER: "/elsewhere"}) as other:
        done = agent.command("end")["ok"]
        assert other.poll() is None, "another folder's process is not ours to end"
        other.kill()
    assert not procfs.is_alive(mine) and done["left"] == []
    assert any("agent" in name for name in done["stopped"])
    assert agent.command("end")["ok"]["stopped"] == [], "twice is fine"


def test_one_measurement_at_a_time_on_a_host(agent: Agents):
    refused = agent.serve("other")
    assert "by a test in mine" in refused["error"]


def test_a_new_agent_for_the_same_folder_takes_the_place_of_the_old(agents: Agents):
    first = agents.serve()["ok"]
    pid = agents.begin("run", "sleep", "60")["pid"]
    second = agents.serve()["ok"]
    assert first["pid"] != second["pid"] and not procfs.is_alive(first["pid"]) and not procfs.is_alive(pid)


def test_what_was_written_down_is_done_once_when_the_agent_ends_and_again_only_by_purge(agent: Agents):
    """A cluster's services are no children of the agent: these commands end and remove it."""
    record = agent.base / "record"
    line = "print({!r}, file=open({!r}, 'a'))"
    how = {key: [PYTHON, "-c", line.format(key, str(record))] for key in ("end", "purge")}
    agent.ok("at_end", name="cluster", **how, env={})
    assert "cluster: stopped" not in agent.command("end")["ok"]["stopped"], "the agent did it"
    assert record.read_text() == "end\n"
    agent.command("end")
    assert record.read_text() == "end\n", "once is enough"
    assert "cluster: removed" in agent.command("purge")["ok"]["removed"]
    assert record.read_text() == "end\npurge\n"


def test_a_program_begins_at_its_moment_and_says_when_it_did(agent: Agents):
    at = agent.ok("hello")["monotonic_s"] + 1.0
    argv = [PYTHON, "-c", "import time; print(time.monotonic())"]
    agent.ok("start", job="late", argv=argv, out="late.out", begin_at=at, note="late.begun")
    assert agent.ok("wait", job="late", up_to_s=20)["code"] == 0
    begun, seen = (float((agent.base / "mine" / name).read_text()) for name in ("late.begun", "late.out"))
    assert at <= begun < at + 0.5 and begun < seen, "it waited, and was one process with what it became"


def test_files_outside_its_folder_and_all_kernel_settings_but_a_few_are_refused(agent: Agents):
    requests = ({"do": "write", "text": "x"}, {"do": "read"}, {"do": "remove"})
    for name, request in itertools.product(("../out", "/etc/hostname", "a/../../b", "."), requests):
        assert "not below" in agent.ask(**request, name=name)["error"]
    assert "not a setting" in agent.ask("sysctl", name="kernel/core_pattern", value=1)["error"]
    assert "not known here" in agent.ask("_inside", name="x")["error"]


def test_what_is_held_stands_still_until_it_is_let_go_and_says_when_that_was(agent: Agents):
    started = agent.ok("start", job="j", argv=["true"], out="out", held=True, note="begun")
    assert beside.until(lambda: procfs.read_stat(started["pid"]).state == "T")
    let_go = time.monotonic()
    agent.ok("signal", job="j", signum=int(signal.SIGCONT))
    assert agent.ok("wait", job="j", up_to_s=10)["code"] == 0
    assert float(agent.ok("read", name="begun")) >= let_go


def test_a_connection_takes_each_byte_once_and_keeps_what_was_not_received(agent: Agents):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        agent.ok("connect", stream="s", target=["127.0.0.1", listener.getsockname()[1]])
        far, _ = listener.accept()
    with far:
        data = base64.b64encode(b"hello").decode()
        assert agent.ok("send", stream="s", at=0, data=data) == 5
        assert agent.ok("send", stream="s", at=0, data=data) == 5, "the same again after a lost answer"
        threading.Timer(0.3, far.sendall, [b"world!"]).start()
        first = agent.ok("receive", stream="s", at=0, up_to_s=10)
        assert base64.b64decode(first["data"]) == b"world!"
        again = agent.ok("receive", stream="s", at=5, up_to_s=10)
        assert base64.b64decode(again["data"]) == b"!", "asked anew from where we had got to"
        far.shutdown(socket.SHUT_WR)
        assert agent.ok("receive", stream="s", at=6, up_to_s=10)["is_over"]
        assert far.recv(100) == b"hello"


LISTEN = "import socket, sys, time; s = socket.create_server(('127.0.0.1', int(sys.argv[1]))); time.sleep(60)"


class Listening(supervised_process.Supervised):
    """A program that listens on its port, started through the agent as servers and proxies on hosts are."""

    start_s = 15.0

    def ensure(self) -> None:
        self._begin([PYTHON, "-c", LISTEN, str(self.place.port)], self.ready)

    def ready(self) -> bool:
        return self.holds_port()


@pytest.fixture
def listening(agents: Agents) -> Listening:
    """Such a program on a free port below those that the kernel gives to connections."""
    agents.serve()
    with socket.create_server(("127.0.0.1", 0)) as free:
        number = 20000 + free.getsockname()[1] % 9000
    host: Any = Asked(name="here", folder=str(agents.base / "mine"), call=agents.ok)
    place = labs.PartLocation("server", "127.0.0.1", number)
    return Listening(OnHost(host, LOOK, labs.Lab(agents.base, "token")), place)


def test_whatever_goes_wrong_while_a_host_starts_a_program_it_is_ended(listening: Listening):
    """Else a server that nothing knows of would keep the port until the host's lease is over."""
    started: list[int] = []

    def ready() -> bool:
        started.append(listening.child.pid)
        raise KeyboardInterrupt

    listening.ready = ready  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        listening.ensure()
    assert gone(started[0], 20) and listening.child is None


def test_a_program_on_a_host_that_ends_before_the_answer_is_written_went_by_itself(tmp_path: Path):
    class Slow(Jobs):
        def signal(self, name: str, signum: int) -> None:
            super().signal(name, signum)
            gone(self.get(name).pid, 20)

    mine = Slow(tmp_path, TOKEN)
    job = mine.start("run", ["sleep", "60"], tmp_path / "out")

    def call(do: str, job: str, grace_s: float, signum: int) -> dict[str, Any]:
        assert do == "stop"
        return mine.stop(job, grace_s, signum).info

    host: Any = Asked(name="here", folder=str(tmp_path), call=call)
    machine = OnHost(host, LOOK, labs.Lab(tmp_path / "lab", "token"))
    assert machine.stop(job, 5.0)  # type: ignore[arg-type]
    assert machine.stop(job, 5.0), "asked for again after a lost connection"  # type: ignore[arg-type]
    other = mine.start("other", ["true"], tmp_path / "out")
    assert gone(other.pid, 20)
    assert not machine.stop(other, 5.0), "it had ended before"  # type: ignore[arg-type]


def asked_of(machine: Machine) -> dict[str, Any]:
    """What a server or a proxy asks of its machine, and what it is told."""
    machine.private_folder("server")
    seen: dict[str, Any] = {"written": machine.write("server/config", "port=1\nname=ä\n")}
    seen["read"] = [machine.read("server/config"), machine.read("server/config", 7), machine.read("none")]
    seen["mode"] = os.stat(machine.folder / "server" / "config").st_mode
    seen["sizes"] = [machine.size("server/config"), machine.size("none"), machine.usage("server")]
    machine.rename("server/config", "server/other")
    machine.remove("server/none")
    seen["renamed"] = [machine.size("server/config"), machine.size("server/other")]
    seen["hash"] = [machine.sha256(str(machine.folder / "server" / "other")), machine.sha256("/none")]
    seen["says"] = [machine.says(["/bin/echo", "1.2"]), machine.says(["/none"])]
    seen["kernel"] = machine.kernel_setting("net/ipv4/ip_local_port_range")
    folder = f"{machine.folder}/server"
    machine.run_to_end(["cp", f"{folder}/other", f"{folder}/copy"], "wrong", 10.0)
    seen["worked"] = machine.read("server/copy")
    with pytest.raises(SiteError, match="no copy was made"):
        machine.run_to_end(["cp", "/none/at/all", "/none"], "no copy was made", 10.0)
    with pytest.raises(SiteError, match="not below"):
        machine.read("../outside")
    with socket.create_server(("127.0.0.1", 0)) as free:
        number = free.getsockname()[1]
        seen["listeners"] = [(one["pid"], one["address"]) for one in machine.listeners(number)]
    part = Listening(machine, labs.PartLocation("server", "127.0.0.1", number))
    part.ensure()
    try:
        seen["holds"] = part.holds_port() and part.is_up and part.seen().keys() - {"host"}
        seen["listens"] = machine.listening(part.child.pid) == [("127.0.0.1", number)]
        seen["strays"] = machine.strays(part.child.pid, "127.0.0.1")
        with pytest.raises(OSError):
            machine.ask("server/none.sock", "show info")
        with pytest.raises(OSError):
            machine.request("127.0.0.1", 1, Request("/"))
    finally:
        seen["clean"] = part.stop()
    seen["log"] = part.log_since(0)
    return seen


def test_a_host_answers_its_parts_as_this_machine_does(agent: Agents, tmp_path: Path):
    host: Any = Asked(name="here", folder=str(agent.base / "mine"), call=agent.ok)
    lab = labs.Lab(tmp_path / "lab", "token")
    lab.private_folder("run", None)
    there = asked_of(OnHost(host, LOOK, lab))
    assert there == asked_of(LocalMachine(lab))
    # "port=1\nname=ä\n" is 15 bytes, 14 characters; the eighth byte begins the second line.
    assert there["sizes"] == [15, None, 15] and there["read"][1:] == ["name=ä\n", None]
    assert there["holds"] and there["listens"] and there["clean"] and there["strays"] == []
