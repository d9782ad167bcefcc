"""TiProxy between client and server, with one fixed server behind it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

from benchbook.core import files
from benchbook.core.errors import SiteError
from benchbook.sites import lab as labs
from benchbook.sites.supervised import Supervised

VARIABLE = "BENCHBOOK_TIPROXY"
SERVICE_USER = "nobody"

CONFIG = """workdir = "{folder}/work"

[proxy]
addr = "{address}:{port}"
pd-addrs = ""
require-backend-tls = false

[api]
addr = "127.0.0.1:{api}"

[log]
level = "warn"
encoder = "tidb"
"""


def find() -> Path | None:
    """Return the program: the path in BENCHBOOK_TIPROXY, else `tiproxy` in the PATH, or None."""
    named = os.environ.get(VARIABLE)
    found = named if named and os.access(named, os.X_OK) else shutil.which("tiproxy")
    return Path(found).resolve() if found else None


class TiProxy(Supervised):
    """One TiProxy, in the foreground under our supervision. Nothing is started until `ensure`.

    `server` is what it relays to, as ADDRESS:PORT. Every few seconds it opens a connection to the server and
    drops it before logging in; `has_probes` says so to whoever counts connections.
    """

    what = "the proxy"
    start_s = 30.0
    has_probes = True

    def __init__(self, lab: labs.Lab, place: labs.Place, server: str, keep: tuple[int, ...] = ()) -> None:
        found = find()
        if found is None:
            raise SiteError(f"tiproxy is not in the PATH; put it there, or its path into {VARIABLE}")
        super().__init__(lab, place, keep, labs.service_user(SERVICE_USER))
        self.server, self.binary = server, found
        self.config = self.folder / "tiproxy.toml"
        self._is_told = False

    def ensure(self) -> None:
        """Start the proxy if it does not run, tell it its server, and prove that the port is its own."""
        if self.is_up:
            return
        port, api = self.place.port, self.place.port + 1
        self._must_have_ports(port, api)
        shutil.rmtree(self.folder / "work", ignore_errors=True)
        text = CONFIG.format(folder=self.folder, address=self.place.address, port=port, api=api)
        labs.write_private(self.config, text, self.user)
        cores = len(self.place.where.cpus or os.sched_getaffinity(0))
        self._is_told = False
        env = {"GOMAXPROCS": str(cores), "HOME": str(self.folder)}
        self._begin([str(self.binary), "--config", str(self.config)], self._is_answering, env)

    def identity(self) -> dict[str, Any]:
        """Return what tells this very proxy from any other; makes no connection through it."""
        child = self.running()
        return {"proxy_pid": child.pid, "proxy_started": child.started, "proxy_config_hash": self.config_hash}

    def facts(self) -> dict[str, Any]:
        """Return what the proxy is: TiProxy does not tell its settings, so these are what it was given."""
        said = subprocess.run([str(self.binary), "--version"], capture_output=True, text=True, timeout=20)
        version = re.search(r"version\s+(\S+?),?\s+commit\s+(.+)", said.stdout)
        return {
            "name": "tiproxy",
            "version": version[1] if version else None,
            "commit": version[2].strip() if version else None,
            "binary": str(self.binary),
            "binary_sha256": files.sha256(self.binary),
            "config_hash": self.config_hash,
        }

    def _is_answering(self) -> bool:
        self._is_told = self._is_told or self._tell()
        return self._holds_port()

    def _tell(self) -> bool:
        """Name the server to the proxy, over its own interface on loopback."""
        backend = {"instances": [self.server], "selector-type": "random"}
        told = json.dumps({"namespace": "default", "frontend": {}, "backend": backend}).encode()
        base = f"http://127.0.0.1:{self.place.port + 1}/api/admin/namespace"
        for method, path, body in (("PUT", "/default", told), ("POST", "/commit", None)):
            request = urllib.request.Request(base + path, data=body, method=method)
            request.add_header("Content-Type", "application/json")
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=5):
                pass
        return True
