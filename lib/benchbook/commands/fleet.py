"""`benchbook fleet`: a whole session of a study on each of many machines, brought back, recorded and pooled.

Each host gets this clone's commit, sets itself up, and measures by `benchbook session` as it would by hand.
"""

from __future__ import annotations

import queue
import secrets
import shlex
import shutil
import socket
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path

import fabric
import paramiko

from benchbook.commands import fleet_kubernetes, rebuild_record
from benchbook.commands import record as recording
from benchbook.core.study import inventory, load
from benchbook.core.study.inventory import Target
from benchbook.core.study.validation_errors import validate
from benchbook.core.util import paths, yaml_file
from benchbook.core.util.errors import BenchbookError, InputErrors, SiteError
from benchbook.core.util.plural import count
from benchbook.sites.hosts.host import close, connect

LOST = (OSError, EOFError, paramiko.SSHException)
AGAIN_S = 5.0
MOST = 1000
# How long a session waits for another fleet's on the same host.
WAIT_S = 7200
BASE = (
    'b={folder}; [ -n "$b" ] || b=$([ "$(id -u)" = 0 ] && echo /var/lib/benchbook || echo "$HOME/.benchbook")'
)
SCRIPT = Path(__file__).with_name("fleet.sh").read_text(encoding="utf-8")


def run(study: str, on: Path, sessions: int | None, setup: str, anyway: bool) -> int:
    """Measure on all hosts at once and record what comes back; return an exit code."""
    load.to_measure(study)
    place = _cluster(on)
    targets = inventory.read(on, str(on)) if place is None else {}
    most = len(targets) if place is None else MOST
    due = sessions or (most if place is None else 1)
    wrong = [f"{study}: {reason}" for reason in recording.edited(study)]
    if not 1 <= due <= most:
        wrong.append(
            f"--sessions: {due}: {on} has {count(most, 'host')}, and a second session in the "
            f"same hours is no occasion of its own; write 1 to {most}"
        )
    if wrong:
        raise InputErrors(wrong)
    with tempfile.TemporaryDirectory(prefix="benchbook-fleet-") as folder:
        tree, token = pack(Path(folder) / "tree.tar.gz"), secrets.token_hex(4)
        asked = (study, token, tree, setup, "--anyway" if anyway else "")
        if place is not None:
            taken = fleet_kubernetes.InCluster(place, *asked).measure(due)
        else:
            taken = OnHosts(*asked, targets=[*targets.values()]).measure(due)
    print(f"{taken} of {count(due, 'session')} are recorded; {recording.COMMIT}")
    if taken and (pooled := rebuild_record.study(study)) is not None:
        told = [one.headline for contrast in pooled.contrasts for one in contrast.told]
        print("\n".join([f"{study}, over {count(len(pooled.sessions), 'session')}:", *told]))
    return int(taken < due)


def _cluster(file: Path) -> fleet_kubernetes.Place | None:
    """Return the cluster that a file describes; None where it is an inventory of hosts."""
    document = yaml_file.read(file, str(file))
    return validate(document, fleet_kubernetes.Place) if "image" in document.data else None


@dataclass
class OnHosts:
    """A fleet's sessions on hosts; `tree` is this clone's commit, packed, and archives come beside it."""

    study: str
    token: str
    tree: Path
    setup: str
    words: str
    targets: Sequence[Target]
    free: queue.SimpleQueue[Target] = field(default_factory=queue.SimpleQueue)
    open: dict[str, fabric.Connection] = field(default_factory=dict)
    is_over: bool = False

    def measure(self, sessions: int) -> int:
        """Measure so many sessions and take them into the record as they come; return how many were."""
        for target in self.targets:
            self.free.put(target)
        taken = 0
        with ThreadPoolExecutor(sessions) as threads:
            due = [threads.submit(self._session) for _ in range(sessions)]
            try:
                for done in as_completed(due):
                    try:
                        print(recording.take(done.result()))
                        taken += 1
                    except BenchbookError as error:
                        print(error)
            finally:
                # A session that still runs ends with its connection.
                self.is_over = True
                for connection in [*self.open.values()]:
                    close(connection)
        return taken

    def _session(self) -> Path:
        """Measure one session on a free host, once more where the host is lost: on another if one is free."""
        target = self.free.get()
        try:
            return self._on(target)
        except LOST as error:
            if self.is_over:
                raise SiteError(f"{target.name}: stopped") from None
            _say(target, f"lost: {error or type(error).__name__}; once more")
        time.sleep(AGAIN_S)
        again = target if self.free.empty() else self.free.get()
        try:
            return self._on(again)
        except LOST as error:
            told = error or type(error).__name__
            raise SiteError(f"{again.name}: its session is lost, at the second attempt: {told}") from None

    def _on(self, target: Target) -> Path:
        if self.is_over:
            raise SiteError(f"{target.name}: stopped")
        connection = connect(target)
        self.open[target.name] = connection
        own = connection.transport.sock
        if isinstance(own, socket.socket):
            # A host that answers no keepalive for so long is lost.
            patience_ms = round(1000 * target.patience_s)
            own.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, patience_ms)
        try:
            asked = BASE.format(folder=shlex.quote(target.folder or ""))
            base = connection.run(f'{asked}; mkdir -p "$b" && echo "$b"', hide=True, in_stream=False).stdout
            base = base.strip()
            connection.put(str(self.tree), f"{base}/fleet-{self.token}.tar.gz")
            named = {"token": self.token, "study": self.study, "setup": self.setup, "words": self.words}
            self._run(connection, target, SCRIPT.format(base=shlex.quote(base), wait=WAIT_S, **named))
            recorded = f"{base}/fleet/data/record/{self.study}"
            with connection.sftp() as sftp:
                (name,) = [one for one in sftp.listdir(recorded) if one.endswith(".tar.xz")]
                file = self.tree.with_name(f"{target.name}-{name}")
                sftp.get(f"{recorded}/{name}", str(file))
            return file
        finally:
            self.open.pop(target.name, None)
            close(connection)

    def _run(self, connection: fabric.Connection, target: Target, script: str) -> None:
        """Run the session to its end and pass on what it says; EOFError where its host is lost."""
        channel, last = connection.transport.open_session(), ""
        channel.set_combine_stderr(True)
        channel.exec_command(f"sh -c {shlex.quote(script)}")
        with channel.makefile("r") as lines:
            for line in lines:
                if line.strip():
                    last = line.rstrip()
                    _say(target, last)
        code = channel.recv_exit_status()
        if code == -1:
            raise EOFError("the connection was closed")
        if code:
            raise SiteError(f"{target.name}: no session; it ended with {code}: {last}")


def pack(file: Path) -> Path:
    """Pack this clone's commit with its git, without history and recorded archives; return the file."""
    tree = file.with_name("tree")
    subprocess.run(
        ["git", "clone", "-q", "--depth", "1", f"file://{paths.root()}", str(tree)],
        check=True, capture_output=True,
    )  # fmt: skip
    shutil.rmtree(tree / "data" / "record", ignore_errors=True)
    with tarfile.open(file, "w:gz", compresslevel=1) as tar:
        tar.add(tree, ".")
    shutil.rmtree(tree)
    return file


def _say(target: Target, text: str) -> None:
    print(f"{target.name}: {text}")
