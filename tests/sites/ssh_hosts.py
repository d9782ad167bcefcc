"""Hosts for the tests: each a real sshd with an address, a network, processes and host keys of its own.

All are on this machine: a network namespace behind a virtual cable, with a process namespace in it, so that a
host can lose its cable and its power. They share the disk; each has its own folder on it.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from benchbook.sites.processes import procfs
from tests import rooms

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin")
PRIVILEGES = Path("/run/sshd")
NAMESPACES, LINKS = Path("/run/netns"), Path("/sys/class/net")
CONFIG = """Port 22
ListenAddress {address}
HostKey {key}
AuthorizedKeysFile {authorized}
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
MaxSessions 10
Subsystem sftp internal-sftp
SetEnv HOME={home}
"""


@functools.cache
def unable() -> str | None:
    """Return why this machine can't have such hosts, or None; tried once for all files that have some."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if SSHD is None:
        return "no sshd; apt-get install --no-install-recommends openssh-server"
    try:
        with _privileges():
            run("ip", "netns", "add", f"bbprobe{os.getpid()}")
            run("ip", "netns", "del", f"bbprobe{os.getpid()}")
    except subprocess.CalledProcessError as error:
        return f"no network namespaces: {error.stderr.strip()}"
    return None


def run(*argv: str) -> str:
    """Run a command and return what it printed."""
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


class _privileges:
    """sshd wants this folder, which a service's start would have made, as long as it runs.

    The tests of other processes have hosts meanwhile: who leaves last takes away what the first one made.
    """

    def __enter__(self) -> None:
        self.users = contextlib.ExitStack()
        with rooms.opened("sshd-door") as door:
            fcntl.flock(door, fcntl.LOCK_EX)
            self.file = self.users.enter_context(rooms.opened("sshd"))
            fcntl.flock(self.file, fcntl.LOCK_SH)
            if not PRIVILEGES.exists():
                os.pwrite(self.file, b"made", 0)
                PRIVILEGES.mkdir(mode=0o755)

    def __exit__(self, *error: object) -> None:
        with self.users, rooms.opened("sshd-door") as door, contextlib.suppress(BlockingIOError):
            fcntl.flock(door, fcntl.LOCK_EX)
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.pread(self.file, 4, 0) == b"made":
                os.ftruncate(self.file, 0)
                PRIVILEGES.rmdir()


@dataclass
class Machine:
    """One host: its name, its address, and the process whose end is its loss of power."""

    name: str
    address: str
    namespace: str
    cable: str
    folder: Path
    power: subprocess.Popen[bytes] | None = None

    def unplug(self) -> None:
        """Take its cable out."""
        run("ip", "link", "set", self.cable, "down")

    def plug(self) -> None:
        """Put its cable back."""
        run("ip", "link", "set", self.cable, "up")

    def kill(self) -> None:
        """Take its power away: every process in it ends at once."""
        if self.power is not None:
            self.power.kill()
            self.power.wait()
            self.power = None

    def processes(self) -> list[int]:
        """Return the ids, as this machine has them, of all that runs in its network.

        It is what `ip netns pids` prints; tests that look every moment would start it hundreds of times.
        """
        its = (NAMESPACES / self.namespace).stat().st_ino
        return [pid for pid in procfs.list_pids() if _network(pid) == its]

    def commands(self) -> dict[int, str]:
        """Return the command lines of all that runs in its network."""
        found = {}
        for pid in self.processes():
            try:
                raw = Path(f"/proc/{pid}/cmdline").read_bytes()
            except OSError:
                continue
            found[pid] = raw.replace(b"\0", b" ").decode("utf-8", "replace").strip()
        return found

    def listening(self) -> set[str]:
        """Return ADDRESS:PORT of everything that listens in its network but sshd."""
        lines = run("ip", "netns", "exec", self.namespace, "ss", "-Hltn").splitlines()
        return {line.split()[3] for line in lines} - {f"{self.address}:22"}


def _network(pid: int) -> int | None:
    """Return the number of a process's network; None if the process has ended."""
    try:
        return os.stat(f"/proc/{pid}/ns/net").st_ino
    except OSError:
        return None


_standing: set[int] = set()


@dataclass
class Rack:
    """Some hosts on one bridge; a context manager that leaves nothing.

    The number is this process's own (`tests/rooms.py`), so that what carries it already is left over from a
    process that was killed.
    """

    folder: Path
    number: int
    hosts: dict[str, Machine] = field(default_factory=dict)

    @property
    def bridge(self) -> str:
        """Name of the bridge."""
        return f"bbr{self.number}"

    @property
    def key(self) -> Path:
        """The private key of whoever measures."""
        return self.folder / "key"

    @property
    def known_hosts(self) -> Path:
        """The hosts' keys."""
        return self.folder / "known_hosts"

    def __enter__(self) -> Rack:
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.key))
        self.known_hosts.touch()
        self._privileges = _privileges()
        self._privileges.__enter__()
        assert self.number not in _standing, "another rack of this process has this number"
        self._clear()
        _standing.add(self.number)
        run("ip", "link", "add", self.bridge, "type", "bridge")
        run("ip", "addr", "add", f"10.97.{self.number}.1/24", "dev", self.bridge)
        run("ip", "link", "set", self.bridge, "up")
        return self

    def __exit__(self, *error: object) -> None:
        for host in self.hosts.values():
            host.kill()
            for pid in host.processes():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            run("ip", "netns", "del", host.namespace)
        run("ip", "link", "del", self.bridge)
        _standing.discard(self.number)
        self._privileges.__exit__()

    def _clear(self) -> None:
        """Take away what a killed process left under this number."""
        for left in NAMESPACES.glob(f"bbn{self.number}-*"):
            for pid in run("ip", "netns", "pids", left.name).split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            run("ip", "netns", "del", left.name)
        for link in (self.bridge, *(path.name for path in LINKS.glob(f"bbc{self.number}-*"))):
            # A cable goes with its namespace, but only a moment after the last process there.
            subprocess.run(["ip", "link", "del", link], capture_output=True, check=False)

    def add(self, name: str) -> Machine:
        """Plug a new host in and switch it on."""
        rank = len(self.hosts) + 2
        address, cable = f"10.97.{self.number}.{rank}", f"bbc{self.number}-{rank}"
        host = Machine(name, address, f"bbn{self.number}-{rank}", cable, self.folder / name)
        self.hosts[name] = host
        host.folder.mkdir()
        host.folder.chmod(0o711)
        run("ip", "netns", "add", host.namespace)
        run("ip", "link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", host.namespace)
        run("ip", "link", "set", cable, "master", self.bridge, "up")
        for words in (f"addr add {address}/24 dev eth0", "link set eth0 up", "link set lo up"):
            run("ip", "-n", host.namespace, *words.split())
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(host.folder / "host_key"))
        self.trust(host)
        self.switch_on(host)
        return host

    def trust(self, host: Machine) -> None:
        """Write the host's key, as it is now, into the file of known hosts."""
        run("ssh-keygen", "-R", host.address, "-f", str(self.known_hosts))
        kind, key, *_ = (host.folder / "host_key.pub").read_text().split()
        with self.known_hosts.open("a") as file:
            file.write(f"{host.address} {kind} {key}\n")

    def switch_on(self, host: Machine) -> None:
        """Start the host: its first process is sshd's parent, and ends all others with it."""
        config = host.folder / "sshd_config"
        key = self.folder / "key.pub"
        words = {"key": host.folder / "host_key", "home": host.folder, "authorized": key}
        config.write_text(CONFIG.format(address=host.address, **words))
        alone = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
        with (host.folder / "sshd.log").open("ab") as log:
            host.power = subprocess.Popen(
                ["ip", "netns", "exec", host.namespace, *alone, str(SSHD), "-D", "-e", "-f", str(config)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + 10
        while f"{host.address}:22" not in run("ip", "netns", "exec", host.namespace, "ss", "-Hltn"):
            assert time.monotonic() < deadline, (host.folder / "sshd.log").read_text()
            time.sleep(0.05)

    def inventory(
        self,
        also: dict[str, list[str]] | None = None,
        programs: dict[str, str] | None = None,
        through: Machine | None = None,
        **changes: object,
    ) -> Path:
        """Write an inventory of these hosts, whose names begin with their role, and return its file.

        `also` gives hosts more roles, `programs` are paths on all of them, `through` is a jump host to all
        others; hosts whose names begin with jump are nothing else.
        """
        common = [f"user: root, key_file: {self.key}, known_hosts: {self.known_hosts}"]
        if programs:
            paths = ", ".join(f"{key}: {path}" for key, path in programs.items())
            common.append(f"programs: {{{paths}}}")
        common += ["gateway: jump"] * (through is not None)
        lines = [f"defaults: {{{', '.join(common)}}}", *[f"{key}: {value}" for key, value in changes.items()]]
        if through is not None:
            lines.append(f"gateways: {{jump: {{host: {through.address}, {common[0]}}}}}")
        lines.append("hosts:")
        for name, host in self.hosts.items():
            if name.startswith("jump"):
                continue
            roles = ", ".join([name.rstrip("0123456789"), *(also or {}).get(name, [])])
            lines.append(f"  {name}: {{host: {host.address}, roles: [{roles}], folder: {host.folder}/lab}}")
        path = self.folder / "rack.yaml"
        path.write_text("\n".join(lines) + "\n")
        return path


@contextlib.contextmanager
def racked(number: int, *names: str) -> Iterator[Rack]:
    """Hosts of these names on a bridge; nothing of them stays."""
    with tempfile.TemporaryDirectory(prefix="bb-", dir=rooms.folder()) as folder:
        Path(folder).chmod(0o711)
        with Rack(Path(folder), number) as made:
            for name in names:
                made.add(name)
            yield made


def leftovers(rack: Rack) -> list[str]:
    """Return the command lines of what runs on the hosts beside sshd."""
    found = [text for host in rack.hosts.values() for text in host.commands().values()]
    return [text for text in found if "sshd" not in text]
