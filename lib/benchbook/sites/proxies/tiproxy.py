"""TiProxy, which is given its servers over its own interface on loopback."""

from __future__ import annotations

import json
import re
from typing import Any

from benchbook.sites.lab import LOOPBACK
from benchbook.sites.machine.contract import Request
from benchbook.sites.proxies.proxy import Proxy
from benchbook.sites.settings import Value
from benchbook.sites.tidb.config import toml
from benchbook.sites.traits.tiproxy import TRAITS

COMMIT = re.compile(r"commit\s+(\S+)")


class TiProxy(Proxy):
    """One TiProxy, which probes each server every few seconds (`has_probes`)."""

    traits = TRAITS
    config_name = "tiproxy.toml"
    leftovers = ("work",)
    start_s = 30.0
    has_probes = True
    _has_servers = False

    def ensure(self) -> None:
        """Start the proxy if it does not run, name its servers to it, and see that the port is its own."""
        if self.is_up:
            return
        self.version()
        port, api = self.place.port, self.place.port + 1
        self._must_have_ports(port, api)
        items: dict[str, Value] = {
            "workdir": f"{self.folder}/work",
            "proxy.addr": f"{self.place.address}:{port}",
            "proxy.pd-addrs": "",
            "proxy.require-backend-tls": False,
            "api.addr": f"{LOOPBACK}:{api}",
            "log.level": "warn",
            "log.encoder": "tidb",
        }
        self._configure(toml({**items, **self.asked.settings}))
        self._has_servers = False
        env = {"GOMAXPROCS": str(self.threads), "HOME": str(self.folder)}
        self._begin([self.binary, "--config", str(self.config)], self._is_answering, env)

    def facts(self) -> dict[str, Any]:
        """Return what the proxy is: TiProxy does not give its settings, so these are what it was given."""
        commit = COMMIT.search(self.machine.says([self.binary, *self.traits.version_by]))
        return super().facts() | {"commit": commit[1] if commit else None}

    def _is_answering(self) -> bool:
        if not self._has_servers:
            self._name_servers()
            self._has_servers = True
        return self.holds_port()

    def _name_servers(self) -> None:
        backend = {"instances": list(self.servers), "selector-type": "random"}
        settings = json.dumps({"namespace": "default", "frontend": {}, "backend": backend})
        for method, path, body in (("PUT", "/default", settings), ("POST", "/commit", None)):
            asked = Request(f"/api/admin/namespace{path}", method, body)
            self.machine.request(LOOPBACK, self.place.port + 1, asked)
