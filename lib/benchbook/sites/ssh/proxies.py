"""Proxies on hosts, HAProxy and TiProxy, each with its arm's settings and in front of all servers."""

from __future__ import annotations

import json
import re
from typing import Any

from benchbook.core.errors import SiteError
from benchbook.core.study_hosts import HAPROXY, HostProxy
from benchbook.sites import haproxy, sql
from benchbook.sites.ssh import far
from benchbook.sites.ssh.parts import Remote
from benchbook.sites.tidb.config import toml

LOOPBACK = "127.0.0.1"


class Proxy(Remote):
    """A proxy on a proxy host. `asked` is what its arm says of it."""

    what = "the proxy"
    program = ""
    package = ""
    has_probes = False

    @property
    def asked(self) -> HostProxy:
        """What its arm asks of it."""
        return HostProxy.model_validate_json(self.part.variant or "{}")

    @property
    def binary(self) -> str:
        """Its program; SiteError if there is none, or another version than was asked for."""
        path, version = self.look["tools"][self.program], self.look["facts"][self.program]
        if path is None:
            raise SiteError(
                f"{self.host.name}: {self.program} is not there; {self.package}, or write its path under "
                "`programs` in the inventory"
            )
        if not sql.is_version(version or "", self.asked.version):
            raise SiteError(
                f"arms.{self.part.arm}.proxy.version: asked {self.asked.version}, {self.host.name} has "
                f"{version}; put that version there, or its path under `programs` in the inventory"
            )
        return str(path)

    @property
    def servers(self) -> list[str]:
        """What it relays to, as ADDRESS:PORT."""
        assert self.part.to is not None
        return [f"{place.address}:{place.port}" for place in self.part.to.reached_at]

    @property
    def threads(self) -> int:
        """The cores that it may use."""
        return len(self.part.cpus or ()) or int(self.look["facts"]["cores"])

    def identity(self) -> dict[str, Any]:
        """Return what tells this very proxy from any other; makes no connection through it."""
        self.running()
        return {
            "proxy_host": self.host.name,
            "proxy_pid": self.pid,
            "proxy_started": self.started,
            "proxy_config_hash": self.config_hash,
        }

    def facts(self) -> dict[str, Any]:
        """Return what the proxy is and is set to."""
        self.running()
        return {
            "name": self.program,
            "version": self.look["facts"][self.program],
            "binary": self.binary,
            "binary_sha256": self.host.call("sha256", path=self.binary),
            "settings": dict(self.asked.settings),
            "servers": len(self.servers),
            "config_hash": self.config_hash,
        }


class HAProxy(Proxy):
    """HAProxy as a plain TCP relay."""

    program, package = "haproxy", f"`{haproxy.INSTALL}`"
    config_name = "haproxy.cfg"

    def ensure(self) -> None:
        """Start the proxy if it does not run, and see that the port is its own without connecting."""
        if self.is_up:
            return
        path = self.binary
        self.must_be_free()
        self.configure(self.text())
        self.host.call("remove", name=f"{self.role}/p.sock")
        self.begin([path, "-db", "-f", f"{self.folder}/{self.config_name}"], self.holds_port)

    def text(self) -> str:
        """Return its settings file: ours, with what the arm asks for in place of it."""
        text = haproxy.CONFIG.format(
            maxconn=haproxy.most_connections(self.part.connections, self.look["open_files"]),
            threads=self.threads,
            socket=f"{self.folder}/p.sock",
            address=self.part.address,
            port=self.part.port,
            servers=haproxy.server_lines(self.servers),
        )
        for word, value in self.asked.settings.items():
            line, known = f"    {word} {value}", re.compile(rf"^    {re.escape(word)} .*$", re.MULTILINE)
            if known.search(text):
                text = known.sub(line, text)
            else:
                text = re.sub(
                    rf"^{HAPROXY[word]}$", lambda at, line=line: f"{at[0]}\n{line}", text, flags=re.M
                )
        return text

    def facts(self) -> dict[str, Any]:
        """Return what the proxy is and is set to."""
        return super().facts() | {
            **({"cores_of_threads": self.mapped()} if "cpu-map" in self.asked.settings else {}),
            **haproxy.read_back(haproxy.parsed(self.ask(haproxy.INFO)), self.ask(haproxy.BACKEND)),
        }

    def identity(self) -> dict[str, Any]:
        """Return what tells this very proxy from any other, and what was set over its socket since it was
        started; makes no connection through it."""
        info = haproxy.parsed(self.ask(haproxy.INFO))
        return super().identity() | haproxy.in_force(info, self.ask(haproxy.SERVERS))

    def ask(self, command: str) -> str:
        """Return what the proxy answers over its socket on its host; SiteError if it does not."""
        try:
            return far.ask(self.host, f"{self.folder}/p.sock", command)
        except OSError as error:
            raise SiteError(f"{self.what} on {self.host.name} does not answer: {error}") from None

    def mapped(self) -> list[list[int]]:
        """Return the cores that each of its threads may use; SiteError if its map changed nothing, since
        HAProxy passes over some without a word."""
        found: list[list[int]] = self.host.call("affinity", pid=self.pid)
        if int(self.look["facts"]["cores"]) > 1 and all(len(cores) >= self.threads for cores in found):
            raise SiteError(
                f"arms.{self.part.arm}.proxy.settings.cpu-map: {self.asked.settings.get('cpu-map')}: HAProxy "
                f"did not take it, its threads may use {found}; write one such as auto:1/1-4 0-3"
            )
        return found


class TiProxy(Proxy):
    """TiProxy, told of its servers over its own interface on the host's loopback.

    Every few seconds it opens a connection to each server and drops it before logging in.
    """

    program, package = "tiproxy", "put it into the PATH"
    config_name = "tiproxy.toml"
    start_s = 30.0
    has_probes = True
    _is_told = False

    def ensure(self) -> None:
        """Start the proxy if it does not run, tell it its servers, and see that the port is its own."""
        if self.is_up:
            return
        path = self.binary
        self.must_be_free()
        api = self.part.port + 1
        items = {
            **{"workdir": f"{self.folder}/work", "proxy.addr": f"{self.part.address}:{self.part.port}"},
            **{"proxy.pd-addrs": "", "proxy.require-backend-tls": False, "api.addr": f"{LOOPBACK}:{api}"},
            **{"log.level": "warn", "log.encoder": "tidb"},
        }
        self.configure(toml({**items, **self.asked.settings}))
        self.host.call("remove", name=f"{self.role}/work")
        self._is_told = False
        env = {"GOMAXPROCS": str(self.threads), "HOME": self.folder}
        self.begin([path, "--config", f"{self.folder}/{self.config_name}"], self._is_answering, env)

    def _is_answering(self) -> bool:
        try:
            self._is_told = self._is_told or self._tell()
        except OSError:
            return False
        return self.holds_port()

    def _tell(self) -> bool:
        """Name the servers to the proxy."""
        backend = {"instances": self.servers, "selector-type": "random"}
        told = json.dumps({"namespace": "default", "frontend": {}, "backend": backend})
        for method, path, body in (("PUT", "/default", told), ("POST", "/commit", None)):
            base = "/api/admin/namespace"
            far.request(self.host, LOOPBACK, self.part.port + 1, method, base + path, body)
        return True


KINDS = {"haproxy": (HAProxy, "haproxy"), "tiproxy": (TiProxy, "nobody")}
