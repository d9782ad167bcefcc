"""Traffic capture of a proxy while an arm is measured: started before the run, ended after it, and recorded.

TiProxy captures since 1.3.0. What it writes is looked at for its size and removed: nothing replays it here.
"""

from __future__ import annotations

import contextlib
import functools
import json
import urllib.error
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchbook.core.errors import SiteError
from benchbook.sites.lab import LOOPBACK
from benchbook.sites.machine.contract import Request

MIB = 1024 * 1024
FORM = "application/x-www-form-urlencoded"
# Longer than any run; we end it ourselves.
LONGEST = "24h"
# What the program answers when asked to capture; a version without the interface does not hold the words.
MARK = b"capture started"
CHUNK = 1 << 24
Ask = Callable[[str, dict[str, str] | None], str]


@contextlib.contextmanager
def beside(proxy: Any, is_asked: bool) -> Iterator[dict[str, Any]]:
    """Capture all traffic through a proxy into a folder of its machine while the block runs, if asked to.

    Yields a record that has afterwards whether it went on to the end (`stayed`), the MiB written and what
    the proxy says went wrong; empty where nothing is captured. SiteError if it can't begin.
    """
    record: dict[str, Any] = {}
    if not is_asked or proxy is None:
        yield record
        return
    machine, port, name = proxy.machine, proxy.place.port + 1, f"{proxy.role}/capture"

    def ask(path: str, form: dict[str, str] | None) -> str:
        asked = Request(path)
        if form is not None:
            asked = Request(path, "POST", urllib.parse.urlencode(form), FORM)
        return str(machine.request(LOOPBACK, port, asked))

    machine.remove(name)
    try:
        with _recorded(ask, str(proxy.folder / "capture"), record):
            yield record
    finally:
        with contextlib.suppress(SiteError):
            record["written_mib"] = round(machine.usage(name) / MIB, 3)
            machine.remove(name)


@contextlib.contextmanager
def _recorded(ask: Ask, folder: str, record: dict[str, Any]) -> Iterator[None]:
    try:
        ask("/api/traffic/capture", {"output": folder, "duration": LONGEST})
    except (urllib.error.HTTPError, ConnectionError) as error:
        said = error.read().decode(errors="replace") if isinstance(error, urllib.error.HTTPError) else error
        raise SiteError(f"the proxy does not capture: {said}; TiProxy can since 1.3.0") from None
    record["stayed"] = False
    try:
        yield
    finally:
        with contextlib.suppress(OSError, ValueError):
            job = json.loads(ask("/api/traffic/show", None) or "[]")[-1]
            record |= {"stayed": job.get("status") == "running", "error": job.get("error", "")}
        with contextlib.suppress(OSError):
            ask("/api/traffic/cancel", {})


@functools.cache
def is_able(binary: Path) -> bool:
    """Say whether a proxy's program can capture, without starting it."""
    tail = b""
    with binary.open("rb") as file:
        while chunk := file.read(CHUNK):
            if MARK in tail + chunk:
                return True
            tail = chunk[-len(MARK) :]
    return False
