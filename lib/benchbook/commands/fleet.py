"""`benchbook fleet`: a whole session of studies on each of many machines, brought back, recorded, pooled."""

from __future__ import annotations

import contextlib
import json
import queue
import re
import secrets
import shlex
import shutil
import socket
import subprocess
import tarfile
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import fabric
import paramiko

from benchbook.commands import fleet_kubernetes, fleet_sessions, rebuild_record
from benchbook.commands import record as recording
from benchbook.commands.fleet_sessions import FetchedSessions
from benchbook.compare.text.results_table import build_pooled_results
from benchbook.core.artifacts import record
from benchbook.core.study import inventory, load
from benchbook.core.study.inventory import Target
from benchbook.core.study.validation_errors import validate_document
from benchbook.core.util import paths, yaml_file
from benchbook.core.util.errors import BenchbookError, InputErrors, SiteError
from benchbook.core.util.plural import count
from benchbook.evidence.sessions import format_minute
from benchbook.show import results_view
from benchbook.sites.hosts.host import close_connection, open_connection

LOST = (OSError, EOFError, paramiko.SSHException)
AGAIN_S = 5.0
MOST = 1000
# How long a session waits for another fleet's on the same host.
WAIT_S = 7200
BASE = (
    'b={folder}; [ -n "$b" ] || b=$([ "$(id -u)" = 0 ] && echo /var/lib/benchbook || echo "$HOME/.benchbook")'
)
PROCESSOR = r"sed -nE 's/^(vendor_id|cpu family|model|model name|stepping)\s*: //p;/^$/q' /proc/cpuinfo"
# What lets a clone leave out what it does not check out.
SERVING = "git -c uploadpack.allowFilter=true -c uploadpack.allowAnySHA1InWant=true upload-pack"
SCRIPT = Path(__file__).with_name("fleet.sh").read_text(encoding="utf-8")


def run_fleet(
    study: Sequence[str], on: Path, sessions: int | None, setup: str, anyway: bool, resume: str | None
) -> int:
    """Measure on all hosts at once and record the sessions that come back; return an exit code."""
    place = _read_cluster(on)
    targets = inventory.read_hosts(on, str(on)) if place is None else {}
    due = sessions or len(targets) or 1
    of_studies = chain.from_iterable(map(_list_obstacles, study))
    if wrong := [*of_studies, *_list_misfits(on, len(targets), due, resume)]:
        raise InputErrors(wrong)
    most_bytes = max(map(recording.archive_bytes, study), default=0)
    if why := recording.capacity_problem(most_bytes, due * len(study)):
        raise InputErrors([f"fleet: {why}; or ask for fewer sessions"])
    token = resume or secrets.token_hex(4)
    print(f"fleet {token}: whatever ends it, `--resume {token}` with the same words goes on")
    request = (tuple(study), token, setup, "--anyway" if anyway else "")
    with tempfile.TemporaryDirectory(prefix="benchbook-fleet-") as folder:
        tree = pack_clone(Path(folder) / "tree.tar.gz")
        if place is not None:
            taken = fleet_kubernetes.InCluster(
                place, *request, tree=tree, folder=fleet_sessions.make_arrivals(token)
            ).measure(due)
        else:
            taken = HostFleet(*request, tree=tree, targets=[*targets.values()]).measure(due)
    with contextlib.suppress(OSError):
        fleet_sessions.make_arrivals(token).rmdir()
    print(f"{taken} of {count(due * len(study), 'session')} are recorded; {recording.COMMIT}")
    if taken:
        _print_pooled(study)
    return int(taken < due * len(study))


def _list_misfits(on: Path, hosts: int, due: int, resume: str | None) -> Iterator[str]:
    """Reasons against so many sessions on these hosts, or in a cluster (0), and against a fleet's word."""
    if not 1 <= due <= (most := hosts or MOST):
        reason = "a second session in the same hours is no occasion of its own"
        yield f"--sessions: {due}: {on} has {count(most, 'host')}, and {reason}; write 1 to {most}"
    if resume is not None and not re.fullmatch(r"[0-9a-f]{8}", resume):
        yield f"--resume: {resume}: no fleet's; write the word that the fleet printed first"


def _print_pooled(names: Sequence[str]) -> None:
    for name in names:
        if (pooled := rebuild_record.rebuild_study(name)) is not None:
            lines = results_view.render_text(build_pooled_results(pooled))
            print("\n".join([f"{name}, over {count(len(pooled.sessions), 'session')}:", *lines]))


def _list_obstacles(name: str) -> list[str]:
    """Reasons against sending a study out."""
    study = load.load_for_measuring(name)
    if study.site.kind != "local":
        kind = f"{paths.study_paths(name).shown}: site.kind: {study.site.kind}"
        remedy = f"name a study of kind local, or run this one with `make repro STUDY={name}`"
        return [f"{kind}: each host of a fleet measures on itself; {remedy}"]
    return [f"{name}: {reason}" for reason in recording.find_edits(name)]


def _read_cluster(file: Path) -> fleet_kubernetes.ClusterPlace | None:
    """The cluster that a file describes; None if it is an inventory of hosts."""
    document = yaml_file.read_mapping(file, str(file))
    return validate_document(document, fleet_kubernetes.ClusterPlace) if "image" in document.data else None


@dataclass
class HostFleet:
    """A fleet's sessions on hosts; `tree` is this clone's commit, packed."""

    studies: Sequence[str]
    token: str
    setup: str
    words: str
    tree: Path
    targets: Sequence[Target]
    free: queue.SimpleQueue[Target] = field(default_factory=queue.SimpleQueue)
    open: dict[str, fabric.Connection] = field(default_factory=dict)
    is_over: bool = False

    def measure(self, sessions: int) -> int:
        """Measure so many sessions, fetch them all, and record them; return the number recorded."""
        with ThreadPoolExecutor(len(self.targets)) as threads:
            models = [*threads.map(_read_processor, self.targets)]
        print(fleet_sessions.describe_occasions(sessions, models, "processor model"))
        for target in self.targets:
            self.free.put(target)
        # What an earlier part of this fleet fetched and did not record.
        left = sorted(fleet_sessions.make_arrivals(self.token).glob("*.tar.xz"))
        brought = FetchedSessions(left)
        with ThreadPoolExecutor(sessions) as threads:
            due = [threads.submit(self._session) for _ in range(sessions)]
            try:
                for done in as_completed(due):
                    try:
                        fetched = done.result()
                    except BenchbookError as error:
                        print(error)
                        continue
                    brought.archives += fetched.archives
                    brought.lost += fetched.lost
                    brought.recorded += fetched.recorded
            finally:
                # A session that still runs ends with its connection.
                self.is_over = True
                for connection in [*self.open.values()]:
                    close_connection(connection)
        return fleet_sessions.take_brought(brought, self.studies)

    def _session(self) -> FetchedSessions:
        """Measure one session on a free host, once more if it is lost: on another if one is free."""
        target = self.free.get()
        try:
            return self._on(target)
        except LOST as error:
            if self.is_over:
                raise SiteError(f"{target.name}: stopped") from None
            print(f"{target.name}: lost: {error or type(error).__name__}; once more")
        time.sleep(AGAIN_S)
        again = target if self.free.empty() else self.free.get()
        try:
            return self._on(again)
        except LOST as error:
            reason = error or type(error).__name__
            raise SiteError(f"{again.name}: its session is lost, at the second attempt: {reason}") from None

    def _on(self, target: Target) -> FetchedSessions:
        if self.is_over:
            raise SiteError(f"{target.name}: stopped")
        connection = open_connection(target)
        self.open[target.name] = connection
        endpoint = connection.transport.sock
        if isinstance(endpoint, socket.socket):
            # A host that answers no keepalive for so long is lost.
            patience_ms = round(1000 * target.patience_s)
            endpoint.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, patience_ms)
        try:
            request = f'{BASE.format(folder=shlex.quote(target.folder or ""))}; mkdir -p "$b" && echo "$b"'
            base = connection.run(request, hide=True, in_stream=False).stdout.strip()
            connection.put(str(self.tree), f"{base}/fleet-{self.token}.tar.gz")
            named = {"token": self.token, "setup": self.setup, "words": self.words, "wait": WAIT_S}
            named |= {"studies": shlex.join(self.studies), "lease": round(target.lease_s)}
            self._run(connection, target, SCRIPT.format(base=shlex.quote(base), **named))
            return self._fetch(connection, target, base)
        finally:
            self.open.pop(target.name, None)
            close_connection(connection)

    def _fetch(self, connection: fabric.Connection, target: Target, base: str) -> FetchedSessions:
        """Fetch a host's archives, and those other fleets left there; it forgets all that has arrived."""
        brought, recorded = FetchedSessions(), record.read_index().studies
        kept, folders = f"{base}/kept", {f"{base}/fleet/data/record/{study}": study for study in self.studies}
        with connection.sftp() as sftp:
            for folder in (kept, *folders):
                listed = list[str]()
                with contextlib.suppress(FileNotFoundError):
                    listed = sorted(sftp.listdir(folder))
                for name in listed:
                    if name.endswith(".tar.xz"):
                        file = fleet_sessions.make_arrivals(self.token) / f"{target.name}-{name}"
                        sftp.get(f"{folder}/{name}", str(file))
                        sftp.posix_rename(f"{folder}/{name}", f"{folder}/{name}.taken")
                        brought.archives.append(file)
                    elif name.endswith(".tar.xz.taken"):
                        of_study = recorded.get(folders.get(folder, ""))
                        if of_study is not None and name.partition(".")[0] in of_study.sessions:
                            brought.recorded += 1
                    elif folder == kept and name.endswith(".json"):
                        with sftp.open(f"{folder}/{name}") as note:
                            begun = format_minute(str(json.load(note)["begun_utc"]))
                        study = name.partition(".")[0]
                        why = f"its fleet was gone before it was whole ({target.name})"
                        missed = record.NotRecorded(begun=begun, processor=_read_processor(target), why=why)
                        brought.lost.append((study, missed))
                        sftp.remove(f"{folder}/{name}")
        return brought

    def _run(self, connection: fabric.Connection, target: Target, script: str) -> None:
        """Run the session to its end and pass on its output; EOFError if its host is lost."""
        channel, last = connection.transport.open_session(), ""
        channel.set_combine_stderr(True)
        channel.exec_command(f"sh -c {shlex.quote(script)}")
        words = threading.Thread(target=_keep_lease, args=(channel, target.lease_s / 3), daemon=True)
        words.start()
        with channel.makefile("r") as lines:
            for line in lines:
                if line.strip():
                    last = line.rstrip()
                    print(f"{target.name}: {last}")
        code = channel.recv_exit_status()
        if code == -1:
            raise EOFError("the connection was closed")
        if code:
            raise SiteError(f"{target.name}: no session; it ended with {code}: {last}")


def _keep_lease(channel: paramiko.Channel, every_s: float) -> None:
    """Say a word to a host's session now and then, until it or its connection has ended."""
    with contextlib.suppress(*LOST):
        while not channel.exit_status_ready():
            channel.sendall(b".")
            channel.status_event.wait(every_s)


def _read_processor(target: Target) -> str:
    """Model of a host's processor as sessions tell models apart; empty if the host is not reached."""
    try:
        connection = open_connection(target)
    except (*LOST, BenchbookError):
        return ""
    try:
        stdout = connection.run(PROCESSOR, hide=True, in_stream=False, warn=True).stdout
        return " ".join(stdout.split()) or "not known"
    finally:
        close_connection(connection)


def pack_clone(file: Path) -> Path:
    """Pack this clone's commit with its git, without history and without recorded archives; the file."""
    tree = file.with_name("tree")
    # Of what is left out git keeps the names, so that the tree is not an edited one.
    filtered = ("--depth=1", "--no-checkout", "--filter=blob:none", "-u", SERVING)
    sparse = ("sparse-checkout", "set", "--no-cone", "/*", "!/data/record/", "!/tests/", "!/docs/")
    for words in (
        ("clone", "-q", *filtered, f"file://{paths.find_root()}", str(tree)),
        ("-C", str(tree), *sparse),
        ("-C", str(tree), "checkout", "-q"),
    ):
        subprocess.run(["git", *words], check=True, capture_output=True)
    with tarfile.open(file, "w:gz", compresslevel=6) as tar:
        tar.add(tree, ".")
    shutil.rmtree(tree)
    return file
