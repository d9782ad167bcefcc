"""A part that can't have its port for a moment tries again; one whose port somebody serves does not."""

import contextlib
import os
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchbook.core.study import load
from benchbook.core.util.errors import SiteError
from benchbook.sites import workspace as labs
from benchbook.sites.machine import supervised_process
from benchbook.sites.machine.local_machine import LocalMachine

STUDIES = Path(__file__).parents[3] / "studies"
LISTEN = """
import socket, sys, time
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
time.sleep(60)
"""


class Part(supervised_process.Supervised):
    def ensure(self) -> None:
        self._begin([sys.executable, "-c", LISTEN, str(self.place.port)], self.holds_port)


@pytest.fixture
def port() -> int:
    """A port that the kernel has nothing on: neither a server nor the last minute of a connection."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.fixture
def part(tmp_path: Path, port: int) -> Iterator[Part]:
    part = Part(LocalMachine(labs.Lab(tmp_path, "token")), labs.PartLocation("part", "127.0.0.1", port))
    part.machine.private_folder("run", None)
    yield part
    part.stop()


@contextlib.contextmanager
def going_out_from(port: int) -> Iterator[socket.socket]:
    """A connection to somewhere else that the kernel happened to give this port."""
    with socket.create_server(("127.0.0.1", 0)) as there, socket.socket() as client:
        client.bind(("127.0.0.1", port))
        client.connect(there.getsockname())
        accepted, _ = there.accept()
        with accepted:
            yield client


OPEN = """
import socket, sys, time
family = socket.AF_INET6 if ":" in sys.argv[2] else socket.AF_INET
server = socket.create_server((sys.argv[2], int(sys.argv[1])), family=family)
time.sleep(60)
"""


class Opened(supervised_process.Supervised):
    """A part that listens everywhere, in a network namespace where there is nothing to reach."""

    address = "0.0.0.0"

    def ensure(self) -> None:
        argv = ["unshare", "-n", sys.executable, "-c", OPEN, str(self.place.port), self.address]
        self._begin(argv, lambda: bool(self.machine.listening(self.running().pid)))


@pytest.mark.skipif(os.geteuid() != 0, reason="a network namespace needs root")
@pytest.mark.parametrize("address", ["0.0.0.0", "::"])
def test_a_part_that_listens_off_loopback_is_named_and_stopped(tmp_path, port, address) -> None:
    part = Opened(LocalMachine(labs.Lab(tmp_path, "token")), labs.PartLocation("part", "127.0.0.1", port))
    part.machine.private_folder("run", None)
    part.address = address
    with pytest.raises(SiteError, match=rf"listens on {address}:{port}, .* 127\.0\.0\.1 "):
        part.ensure()
    assert not part.is_up


def test_a_port_that_a_connection_goes_out_from_is_tried_again(part: Part) -> None:
    with going_out_from(part.place.port) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        timer = threading.Timer(0.6, client.close)
        timer.start()
        part.ensure()
        timer.join()
    assert part.is_up
    assert "already in use" in part.log.read_text()


def test_a_port_that_a_connection_keeps_is_told_of_with_the_remedy(part: Part, monkeypatch) -> None:
    monkeypatch.setattr(supervised_process, "TRY_AGAIN_S", 0.01)
    with going_out_from(part.place.port):
        remedy = rf"goes out from port {part.place.port}, .* set a site.port below \d+ in the study"
        with pytest.raises(SiteError, match=remedy):
            part.ensure()
        assert not part.is_up and not part.machine.lab.pidfile("part").exists()


@pytest.mark.parametrize("study", sorted(STUDIES.glob("*.yaml")), ids=lambda path: path.stem)
def test_no_study_asks_for_a_port_that_the_kernel_gives_to_connections(study: Path) -> None:
    """Linux gives 32768 and up, as it comes."""
    assert load.load_study(study.stem).site.port < 32768


def test_somebody_elses_server_on_the_port_is_left_alone_and_told_of(part: Part, monkeypatch) -> None:
    monkeypatch.setattr(supervised_process, "TRY_AGAIN_S", 60.0)
    with socket.create_server(("127.0.0.1", part.place.port)):
        with pytest.raises(SiteError, match="did not start"):
            part.ensure()
        assert not part.is_up and not part.machine.lab.pidfile("part").exists()


def test_one_that_ends_at_once_is_told_with_its_last_words(part: Part) -> None:
    with pytest.raises(SiteError, match=rf"see {part.log}:\n  no such thing"):
        part._begin([sys.executable, "-c", "raise SystemExit('no such thing')"], part.holds_port)
    assert part.stop() and part.log_since(0) == ["no such thing"]
