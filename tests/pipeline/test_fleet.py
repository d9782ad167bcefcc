"""A fleet of hosts: each measures its own session, a lost host costs its own alone, Ctrl-C ends them all."""

import json
import re
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests import beside
from tests.pipeline import clone as clones
from tests.sites.ssh_hosts import Machine, Rack, unable

UNABLE = unable()
HAS_HOSTS = pytest.mark.skipif(UNABLE is not None, reason=str(UNABLE))
pytestmark = [pytest.mark.server, pytest.mark.slow, HAS_HOSTS]
# These hosts share a machine: each has a lab and a lock of its own, and this checkout's environment.
SETUP = f"""ln -sfn {Path(sys.prefix)} .venv
export BENCHBOOK_LAB_DIR="$PWD/../servers" BENCHBOOK_LOCK="$PWD/../machine.lock" """


def runs(host: Machine) -> list[Path]:
    return [one for one in host.folder.glob("lab/fleet/data/tiny/raw/*") if one.suffix != ".part"]


def idle(host: Machine) -> bool:
    return all("sshd" in text for text in host.commands().values())


@pytest.fixture(scope="module")
def rack() -> Iterator[tuple[clones.Clone, Rack, list[str]]]:
    with clones.with_rack("server1", "server2", "server3") as (clone, rack):
        clone.study(blocks=2, discard_s=0.3, run_s=1)
        clone.commit()
        asked = ["benchbook", "fleet", "tiny", "--anyway", "--setup", SETUP]
        yield clone, rack, [*asked, "--on", str(rack.inventory(timeout_s=5))]


def test_a_lost_host_costs_its_own_session_and_one_that_comes_back_goes_on(rack):
    clone, hosts, asked = rack
    process = clone.start(*asked)
    watched = {name: hosts.hosts[name] for name in ("server2", "server3")}

    def lose(name: str) -> None:
        if beside.until(lambda: len(runs(watched[name])) >= 3 or process.poll() is not None, 300):
            watched[name].kill()
            if name == "server2":
                hosts.switch_on(watched[name])

    with ThreadPoolExecutor() as losing:
        losing.map(lose, watched)
        said, _ = process.communicate(timeout=900)
    assert process.returncode == 1, said
    index = json.loads((clone.path / "data/record/tiny/index.json").read_text())
    assert len(index["sessions"]) == 2, said
    assert "server2: tiny: goes on" in said and "server3: lost: " in said
    assert re.search(r"server3: .*second attempt", said)
    assert "2 of 3 sessions are recorded" in said and "tiny, over 2 sessions:" in said
    for host in ("server1", "server2"):
        assert beside.until(lambda: idle(hosts.hosts[host]), 60), hosts.hosts[host].commands()  # noqa: B023


def test_ctrl_c_ends_what_runs_on_the_hosts(rack):
    clone, hosts, asked = rack
    process, host = clone.start(*asked, "--sessions", "1"), hosts.hosts["server1"]
    assert beside.until(lambda: any("mariadbd" in one for one in host.commands().values()), 300)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert beside.until(lambda: idle(host), 60), host.commands()


def test_what_a_killed_fleet_began_goes_on_with_its_word_or_is_counted(rack):
    clone, hosts, asked = rack
    host = hosts.hosts["server1"]
    for resumed in (True, False):
        lost, before = not_recorded(clone), fleet_of(host)
        process = clone.start(*asked, "--sessions", "1")
        # The runs of the fleet before lie there until this one's script has begun.
        assert beside.until(lambda: fleet_of(host) != before and len(runs(host)) >= 2, 300)  # noqa: B023
        process.kill()
        token = fleet_of(host)
        assert beside.until(lambda: idle(host), 30), host.commands()
        words = ["--resume", token] if resumed else []
        code, said = clone.run(*asked, "--sessions", "1", *words, timeout_s=600)
        assert code == 0 and "1 of 1 session are recorded" in said.replace("sessions", "session"), said
        assert ("server1: tiny: goes on" in said) == resumed
        if resumed:
            # Once more, when all is recorded: nothing is measured, and nothing is missing.
            code, said = clone.run(*asked, "--sessions", "1", *words, timeout_s=600)
            assert code == 0 and "1 of 1 session are recorded" in said.replace("sessions", "session"), said
            assert "[1/6]" not in said
        else:
            assert "it was whole (server1)" in said
            assert not_recorded(clone) == lost + 1


def fleet_of(host: Machine) -> str:
    """The word of the fleet whose session a host has; empty before any."""
    note = host.folder / "lab/fleet/.fleet"
    return note.read_text().strip() if note.exists() else ""


def not_recorded(clone: clones.Clone) -> int:
    """Sessions that were begun and are not in the record; the test before leaves one where it had runs."""
    index = clone.path / "data/record/tiny/index.json"
    return len(json.loads(index.read_text())["not_recorded"]) if index.exists() else 0


def test_more_sessions_than_hosts_are_refused_in_words(rack):
    clone, _, asked = rack
    code, said = clone.run(*asked, "--sessions", "4")
    assert code == 2 and "has 3 hosts" in said and "no occasion" in said
