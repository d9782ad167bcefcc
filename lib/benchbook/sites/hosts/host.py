"""One host: its agent is put there, started, asked, and found again after the connection was lost."""

import contextlib
import hashlib
import io
import itertools
import json
import os
import shlex
import threading
import time
from collections import deque
from typing import Any, Self

import fabric
import paramiko

from benchbook.core.study import descriptors
from benchbook.core.study.inventory import Target
from benchbook.core.util.errors import SiteError
from benchbook.sites.agent.facts import HostSnapshot
from benchbook.sites.agent.jobs import JobStatus
from benchbook.sites.hosts import agent_zipapp
from benchbook.sites.workspace import SOCKET_BYTES

COMMAND_S = 120.0
# A cluster takes its time to end.
LAST_S = 700.0
PIECE = 1 << 20
AGAIN_S = 0.5
# How many renewals of a lease may be lost before it is over.
RENEWALS = 6
LONGEST_SOCKET = "/server-99/m.sock"


class Unreachable(SiteError):
    """The host could not be reached for as long as the inventory allows."""


class AgentGone(SiteError):
    """The agent has ended, and all it had started with it."""


class Host:
    """One host of the inventory, used after `begin` or `look`. `lab` names all that is ours there."""

    is_whole = True

    def __init__(self, target: Target, lab: str, token: str) -> None:
        self.target, self.name, self.lab = target, target.name, lab
        # Another than our own lab's: what is ended there is never taken for what is to be ended here.
        self.token = f"{token}.{target.name}"
        self.outages: list[dict[str, float]] = []
        # Connections to be closed at the next request: closing may come from anywhere, even within a request.
        self.closing: deque[str] = deque()
        self.has_begun = self.is_gone = self._is_given_up = False
        self._connection: fabric.Connection | None = None
        self._channel: paramiko.Channel | None = None
        self._heard = b""
        self._numbers = itertools.count(1)
        self._lock = threading.RLock()
        self._base: str | None = target.folder

    @property
    def folder(self) -> str:
        """The agent's folder on the host."""
        if self._base is None:
            home = self._retry_after_outage(lambda: self._open().sftp().normalize("."))
            self._base = "/var/lib/benchbook" if self.target.user == "root" else f"{home}/.benchbook"
        path = f"{self._base}/{self.lab}-{self.name}"
        if len(path + LONGEST_SOCKET) > SOCKET_BYTES:
            raise SiteError(f"{self.name}: {self._base}: too long for a socket's path; name a shorter folder")
        return path

    def begin(self, owner: str) -> None:
        """Put the agent on the host and start it; whatever ran there for the same lab is ended first."""
        self._hang_up()
        self.command("serve", {"token": self.token, "lease_s": self.target.lease_s, "owner": owner})
        self.has_begun, self.is_gone = True, False

    def look(self) -> HostSnapshot:
        """Facts of the host; nothing but the agent's file is left there."""
        return HostSnapshot(**self.command("look", self._order()))

    def look_again(self) -> HostSnapshot:
        return HostSnapshot(**self.call("look", **self._order()))

    def _order(self) -> dict[str, Any]:
        return {"programs": dict(self.target.programs), "required_programs": descriptors.required_programs()}

    def job(self, do: str, name: str, **arguments: Any) -> JobStatus:
        """Send the agent a request about a program, and return the program's state then."""
        return JobStatus(**self.call(do, job=name, **arguments))

    def end(self, purge: bool = False) -> dict[str, list[str]]:
        """End all that is ours on the host; in words: stopped, removed and left."""
        self.has_begun = False
        return self.command("purge" if purge else "end")

    def keep(self, over: threading.Event) -> None:
        """Renew the lease until all is over; it need not be renewed while the host is not reached."""
        while not over.wait(self.target.lease_s / RENEWALS) and not self.is_gone:
            with contextlib.suppress(SiteError):
                self.call("hello")

    def close(self) -> None:
        with self._lock:
            self._hang_up()

    def call(self, do: str, **arguments: Any) -> Any:
        """Ask the agent, again when it was lost; Unreachable after `patience_s`, AgentGone if ended."""
        # Other threads take from it too.
        with contextlib.suppress(IndexError):
            while True:
                self._request("close", {"stream": self.closing.popleft()})
        return self._request(do, arguments)

    def _request(self, do: str, arguments: dict[str, Any]) -> Any:
        number = str(next(self._numbers))
        line = json.dumps({"id": number, "do": do, **arguments}).encode() + b"\n"
        answer_s = float(arguments.get("up_to_s", 0)) + self.target.timeout_s
        return self._unpacked(self._retry_after_outage(lambda: self._ask(number, line, answer_s)))

    def command(self, command: str, order: dict[str, Any] | None = None) -> Any:
        """Run one command of the agent's file and return its output."""
        statement = self._retry_after_outage(lambda: self._run(command, order))
        try:
            answer = json.loads(statement.splitlines()[-1])
        except (ValueError, IndexError):
            raise SiteError(
                f"{self.name}: the agent can't run there: {statement.strip()[-300:] or 'it said nothing'}; "
                "install Python 3.9 or newer as `python3`"
            ) from None
        return self._unpacked(answer)

    def fetch(self, name: str, listing: dict[str, Any]) -> bytes:
        """File of the agent's folder over SFTP, its bytes held against the hash known."""
        for _ in range(3):
            data = self._retry_after_outage(lambda: self._get(f"{self.folder}/{name}"))
            if hashlib.sha256(data).hexdigest() == listing["sha256"]:
                return data
        raise SiteError(f"{self.name}: {name}: not the bytes that were written there; look at its disk")

    def send(self, name: str, other: Self) -> None:
        """Send a file of the agent's folder to that of another host, through us."""
        with (
            self._open().sftp().open(f"{self.folder}/{name}", "rb") as source,
            other._open().sftp().open(f"{other.folder}/{name}", "wb") as target,
        ):
            source.prefetch()
            target.set_pipelined(True)
            for piece in iter(lambda: source.read(PIECE), b""):
                target.write(piece)

    def _unpacked(self, answer: dict[str, Any]) -> Any:
        if "error" in answer:
            raise SiteError(f"{self.name}: {answer['error']}")
        return answer["ok"]

    def _retry_after_outage(self, ask: Any) -> Any:
        """Ask, and again after a lost connection, as long as patience lasts; write each outage down."""
        with self._lock:
            lost: float | None = None
            while True:
                try:
                    answer = ask()
                    break
                except (FileNotFoundError, PermissionError) as error:
                    raise SiteError(
                        f"{self.name}: {self.target.user} can't read or write there: {error}; name another "
                        "folder in the inventory, or another user"
                    ) from None
                except (OSError, EOFError, paramiko.SSHException) as error:
                    now = time.monotonic()
                    lost = now if lost is None else lost
                    self._hang_up()
                    # Before the first success there is nothing to be lost, and twice is too long to wait.
                    is_worth_it = self.has_begun and not self._is_given_up
                    if now - lost > (self.target.patience_s if is_worth_it else self.target.timeout_s):
                        self._is_given_up = True
                        raise Unreachable(self._lost(error, now - lost)) from None
                    time.sleep(AGAIN_S)
            self._is_given_up = False
            if lost is not None:
                self.outages.append({"at_s": time.time(), "lost_s": round(time.monotonic() - lost, 3)})
            return answer

    def _lost(self, error: Exception, seconds: float) -> str:
        lease = f"; what was started there ends {self.target.lease_s:g} s after we were last heard there"
        return (
            f"{self.name} ({self.target.host}): not reached for {seconds:.0f} s: "
            f"{error or type(error).__name__}; see that it is up and that port {self.target.port} is open"
            f"{lease if self.has_begun else ''}"
        )

    def _ask(self, number: str, line: bytes, answer_s: float) -> dict[str, Any]:
        channel = self._talk()
        channel.settimeout(self.target.timeout_s)
        channel.sendall(line)
        deadline = time.monotonic() + answer_s
        while True:
            while b"\n" in self._heard:
                heard, _, self._heard = self._heard.partition(b"\n")
                try:
                    answer = json.loads(heard)
                except ValueError:
                    # Some accounts greet whoever logs in, even where nobody reads it.
                    continue
                if "id" not in answer:
                    self.is_gone, why = True, answer["error"]
                    raise AgentGone(f"{self.name}: the agent has ended, and what it started: {why}")
                if answer["id"] == number:
                    return answer
            channel.settimeout(max(0.01, deadline - time.monotonic()))
            data = channel.recv(1 << 20)
            if not data:
                raise EOFError("the connection was closed")
            self._heard += data

    def _talk(self) -> paramiko.Channel:
        if self._channel is None:
            channel = self._open().transport.open_session(timeout=self.target.timeout_s)
            channel.exec_command(self._line("talk"))
            self._channel, self._heard = channel, b""
        return self._channel

    def _run(self, command: str, order: dict[str, Any] | None) -> str:
        agent_zipapp.install_archive(self._open().sftp(), self.folder.rpartition("/")[0], self.name)
        with self._open().transport.open_session(timeout=self.target.timeout_s) as channel:
            channel.settimeout(LAST_S if command in ("end", "purge", "serve") else COMMAND_S)
            channel.set_combine_stderr(True)
            channel.exec_command(self._line(command))
            channel.sendall(json.dumps(order or {}).encode() + b"\n")
            channel.shutdown_write()
            return b"".join(iter(lambda: channel.recv(1 << 16), b"")).decode("utf-8", "replace")

    def _line(self, command: str) -> str:
        """Command line: two paths of ours and a word; all else goes over stdin."""
        path = f"{self.folder.rpartition('/')[0]}/{agent_zipapp.build_name()}"
        return f"exec python3 {shlex.quote(path)} {command} {shlex.quote(self.folder)}"

    def _get(self, path: str) -> bytes:
        data = io.BytesIO()
        self._open().sftp().getfo(path, data)
        return data.getvalue()

    def _open(self) -> fabric.Connection:
        if self._connection is None:
            self._connection = open_connection(self.target)
        return self._connection

    def _hang_up(self) -> None:
        if self._connection is not None:
            close_connection(self._connection)
        self._connection = self._channel = None
        self._heard = b""


KEEPALIVE_S = 5


class AccessRefused(SiteError):
    """The host can't be trusted, or it does not let us in: trying again would not help."""


def open_connection(target: Target) -> fabric.Connection:
    """Open a connection; its key stands in `known_hosts`. Refused by key or account, else OSError."""
    jump = open_connection(target.gateway) if target.gateway is not None else None
    try:
        return _open_verified(target, jump)
    except BaseException:
        if jump is not None:
            jump.close()
        raise


def close_connection(connection: fabric.Connection) -> None:
    """Close a connection, and that to its jump host."""
    connection.close()
    if isinstance(connection.gateway, fabric.Connection):
        connection.gateway.close()


def _open_verified(target: Target, jump: fabric.Connection | None) -> fabric.Connection:
    client, credentials = _prepare_login(target)
    # Neither Fabric's nor SSH's own settings files: the inventory says it all.
    config = fabric.Config(lazy=True, overrides={"load_ssh_configs": False})
    options = {"connect_timeout": round(target.timeout_s), "gateway": jump, "connect_kwargs": credentials}
    connection = fabric.Connection(target.host, target.user, target.port, config, **options)
    connection.client = client
    keys_path, where = target.known_hosts, f"{target.name} ({target.host}, port {target.port})"
    shown = target.host if target.port == 22 else f"[{target.host}]:{target.port}"
    try:
        connection.open()
    except paramiko.BadHostKeyException as error:
        raise AccessRefused(
            f"{where}: its key is not the one in {keys_path} (it shows {error.key.get_name()} "
            f"{error.key.fingerprint}); if the host was made anew, compare the fingerprint there, then "
            f"`ssh-keygen -f {keys_path} -R '{shown}'` and add the new key"
        ) from None
    except (paramiko.PasswordRequiredException, paramiko.AuthenticationException) as error:
        statement = str(error).rstrip(".")
        how = f"the key {target.key_file}" if target.key_file else "the keys of your SSH agent and ~/.ssh"
        raise AccessRefused(
            f"{where}: {target.user} is not let in with {how}: {statement}; add the public key to "
            "its authorized_keys, or name another user or key_file in the inventory"
        ) from None
    except paramiko.ChannelException as error:
        # An OSError would be taken for a loss on our side; so is this, but it says who could not get on.
        statement = f"{target.gateway.name} gets no connection to it" if target.gateway else "no connection"
        raise ConnectionError(f"{statement}: {error}") from None
    except paramiko.SSHException as error:
        if "not found in known_hosts" in str(error):
            raise AccessRefused(
                f"{where}: its key is not in {keys_path}; compare the fingerprint on the host, then add the "
                f"line that `ssh-keyscan -p {target.port} {target.host}` prints"
            ) from None
        raise ConnectionError(str(error)) from None
    except EOFError:
        raise ConnectionError("it closed the connection") from None
    connection.transport.set_keepalive(KEEPALIVE_S)
    return connection


def _prepare_login(target: Target) -> tuple[paramiko.SSHClient, dict[str, Any]]:
    """Client and login options: one key file, or the keys of the user's agent and folder; no password."""
    options: dict[str, Any] = dict.fromkeys(("allow_agent", "look_for_keys"), target.key_file is None)
    options |= dict.fromkeys(("banner_timeout", "auth_timeout", "channel_timeout"), target.timeout_s)
    if target.key_file is not None:
        options["key_filename"] = [str(target.key_file)]
        if not os.access(target.key_file, os.R_OK):
            raise AccessRefused(
                f"{target.name}: {target.key_file}: the key can't be read; correct key_file in the inventory"
            )
    client = paramiko.SSHClient()
    try:
        client.load_system_host_keys(str(target.known_hosts))
    except OSError as error:
        raise AccessRefused(
            f"{target.name}: {target.known_hosts}: {error.strerror}; host keys must be known beforehand: "
            "compare the fingerprint on the host, then add the line that "
            f"`ssh-keyscan -p {target.port} {target.host}` prints to this file"
        ) from None
    client.set_missing_host_key_policy(paramiko.RejectPolicy())
    return client, options
