"""TiProxy between client and server, with one fixed server behind it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from benchbook.core.errors import SiteError
from benchbook.sites import lab as labs
from benchbook.sites import ports, process, settings
from benchbook.sites.mariadb_install import sha256, tail

VARIABLE = "BENCHBOOK_TIPROXY"
START_S = 30.0
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


class TiProxy:
    """One TiProxy, in the foreground under our supervision. Nothing is started until `ensure`.

    `server` is what it relays to, as ADDRESS:PORT. Every few seconds it opens a connection to the server and
    drops it before logging in; `has_probes` says so to whoever counts connections.
    """

    has_probes = True

    def __init__(self, lab: labs.Lab, place: labs.Place, server: str, keep: tuple[int, ...] = ()) -> None:
        self.lab, self.place, self.server, self.keep = lab, place, server, keep
        self.role = place.name
        self.child: process.Child | None = None
        found = find()
        if found is None:
            raise SiteError(f"tiproxy is not in the PATH; put it there, or its path into {VARIABLE}")
        self.binary = found
        self.user = labs.service_user(SERVICE_USER)
        self.folder = lab.own(self.role, self.user)
        self.config = self.folder / "tiproxy.toml"
        self.log = lab.run / f"{self.role}.log"

    @property
    def config_hash(self) -> str:
        """SHA-256 of the settings file as it is on disk now."""
        return settings.hash_config(self.config, self.folder)

    def ensure(self) -> None:
        """Start the proxy if it does not run, tell it its server, and prove that the port is its own."""
        if self.child is not None and self.child.is_alive:
            return
        port, api = self.place.port, self.place.port + 1
        for number in (port, api):
            ports.must_be_free(number, "the proxy")
        shutil.rmtree(self.folder / "work", ignore_errors=True)
        text = CONFIG.format(folder=self.folder, address=self.place.address, port=port, api=api)
        labs.write_private(self.config, text, self.user)
        cores = len(self.place.where.cpus or os.sched_getaffinity(0))
        self.child = process.start(
            self.role,
            [str(self.binary), "--config", str(self.config)],
            token=self.lab.token,
            folder=self.lab.folder,
            out=self.log,
            pidfile=self.lab.pidfile(self.role),
            user=self.user,
            where=self.place.where,
            keep=self.keep,
            cwd=self.folder,
            env={"GOMAXPROCS": str(cores), "HOME": str(self.folder)},
        )
        try:
            self._wait_ready()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> bool:
        """End the proxy and the connections through it."""
        if self.child is None:
            return True
        clean = process.stop(self.child, grace_s=5.0)
        self.child = None
        self.lab.pidfile(self.role).unlink(missing_ok=True)
        return clean

    def identity(self) -> dict[str, Any]:
        """Return what tells this very proxy from any other; makes no connection through it."""
        if self.child is None or not self.child.is_alive:
            raise SiteError(f"the proxy does not run; see {self.log}, then call site.up(arm) again")
        return {
            "proxy_pid": self.child.pid,
            "proxy_started": self.child.started,
            "proxy_config_hash": self.config_hash,
        }

    def facts(self) -> dict[str, Any]:
        """Return what the proxy is: TiProxy does not tell its settings, so these are what it was given."""
        said = subprocess.run([str(self.binary), "--version"], capture_output=True, text=True, timeout=20)
        version = re.search(r"version\s+(\S+?),?\s+commit\s+(.+)", said.stdout)
        return {
            "name": "tiproxy",
            "version": version[1] if version else None,
            "commit": version[2].strip() if version else None,
            "binary": str(self.binary),
            "binary_sha256": sha256(self.binary),
            "config_hash": self.config_hash,
        }

    def _wait_ready(self) -> None:
        deadline = time.monotonic() + START_S
        is_told = False
        while self.child is not None and self.child.is_alive:
            try:
                is_told = is_told or self._tell()
                if is_told and self.child.pid in ports.holders(self.place.port):
                    return
            except OSError:
                pass
            if time.monotonic() > deadline:
                raise SiteError(f"the proxy was not ready within {START_S:.0f} s; see {self.log}")
            time.sleep(0.05)
        raise SiteError(f"the proxy did not start; see {self.log}:\n  {tail(self.log)}")

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
