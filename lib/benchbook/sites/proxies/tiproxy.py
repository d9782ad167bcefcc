"""TiProxy; it learns its servers over its own interface on loopback."""

import contextlib
import functools
import json
import mmap
import re
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchbook.core.util.errors import SiteError
from benchbook.sites.descriptors.tiproxy import TRAITS
from benchbook.sites.machine.contract import Request
from benchbook.sites.proxies.proxy import Proxy
from benchbook.sites.settings import Value
from benchbook.sites.tidb.config import render_toml
from benchbook.sites.workspace import LOOPBACK

COMMIT = re.compile(r"commit\s+(\S+)")
FORM = "application/x-www-form-urlencoded"
# Longer than any run; we end it ourselves.
LONGEST = "24h"
# What it answers when asked to capture; a version without the interface does not hold the words.
MARK = b"capture started"
ABLE = "TiProxy can since 1.3.0"


class TiProxy(Proxy):
    """One TiProxy; it probes each server every few seconds (`has_probes`)."""

    traits = TRAITS
    config_name = "tiproxy.toml"
    leftovers = ("work",)
    start_s = 30.0
    has_probes = True
    _has_servers = False

    def _start(self) -> None:
        """Start it and name its servers to it."""
        items: dict[str, Value] = {
            "workdir": f"{self.folder}/work",
            "proxy.addr": f"{self.place.address}:{self.place.port}",
            "proxy.pd-addrs": "",
            "proxy.require-backend-tls": False,
            "api.addr": f"{LOOPBACK}:{self.place.port + 1}",
            "log.level": "warn",
            "log.encoder": "tidb",
        }
        self._configure(render_toml({**items, **self.asked.settings}))
        self._has_servers = False
        env = {"GOMAXPROCS": str(self.threads), "HOME": str(self.folder)}
        self._begin([self.binary, "--config", str(self.config)], self._is_answering, env)

    def facts(self) -> dict[str, Any]:
        """Facts of the proxy: TiProxy does not tell its settings, so these are the ones it got."""
        commit = COMMIT.search(self.machine.says([self.binary, *self.traits.version_by]))
        return super().facts() | {"commit": commit[1] if commit else None}

    @classmethod
    def unable_to_capture(cls, program: Path) -> str | None:
        return None if _has_mark(program) else f"{program} can't capture traffic; {ABLE}"

    @contextlib.contextmanager
    def capturing(self, folder: str, record: dict[str, Any]) -> Iterator[None]:
        """Record all traffic into a folder while the block runs; `record` has `stayed` and `error` then."""
        try:
            self._traffic("capture", {"output": folder, "duration": LONGEST})
        except ConnectionError as error:
            raise SiteError(f"the proxy does not capture: {error}; {ABLE}") from None
        record["stayed"] = False
        try:
            yield
        finally:
            with contextlib.suppress(OSError, ValueError):
                job = json.loads(self._traffic("show") or "[]")[-1]
                record |= {"stayed": job.get("status") == "running", "error": job.get("error", "")}
            with contextlib.suppress(OSError):
                self._traffic("cancel", {})

    def _traffic(self, what: str, form: dict[str, str] | None = None) -> str:
        """Ask its interface about traffic; a `form` holds an order."""
        request = Request(f"/api/traffic/{what}")
        if form is not None:
            request = Request(request.path, "POST", urllib.parse.urlencode(form), FORM)
        return self.machine.request(LOOPBACK, self.place.port + 1, request)

    def _is_answering(self) -> bool:
        if not self._has_servers:
            backend = {"instances": list(self.servers), "selector-type": "random"}
            settings = json.dumps({"namespace": "default", "frontend": {}, "backend": backend})
            for method, path, body in (("PUT", "/default", settings), ("POST", "/commit", None)):
                request = Request(f"/api/admin/namespace{path}", method, body)
                self.machine.request(LOOPBACK, self.place.port + 1, request)
            self._has_servers = True
        return self.holds_port()


@functools.cache
def _has_mark(program: Path) -> bool:
    """True if a program can capture, without starting it."""
    with program.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return content.find(MARK) >= 0
