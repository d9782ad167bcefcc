"""Traffic capture of a proxy while an arm is measured: started before the run, ended after it, and recorded.

TiProxy captures since 1.3.0. What it writes is looked at for its size and removed: nothing replays it here.
"""

from __future__ import annotations

import contextlib
import functools
import json
import shutil
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchbook.core.errors import SiteError
from benchbook.sites.layout import Chain
from benchbook.sites.parts import Parts

MIB = 1024 * 1024
ANSWER_S = 30.0
# Longer than any run; we end it ourselves.
LONGEST = "24h"
# What the program answers when asked to capture; a version without the interface does not hold the words.
MARK = b"capture started"
CHUNK = 1 << 24
Ask = Callable[[str, dict[str, str] | None], str]


@contextlib.contextmanager
def beside(parts: Parts, chain: Chain) -> Iterator[dict[str, Any]]:
    """Capture all traffic through an arm's proxy while the block runs, if the arm asks for it.

    Yields a record that has afterwards whether it went on to the end (`stayed`), the MiB written and what
    the proxy says went wrong; empty where nothing is captured. SiteError if it can't begin.
    """
    record: dict[str, Any] = {}
    if not chain.captures or chain.proxy is None:
        yield record
        return
    proxy = parts.get(chain.proxy)
    base = f"http://127.0.0.1:{chain.proxy.port + 1}"
    folder = proxy.folder / "capture"
    shutil.rmtree(folder, ignore_errors=True)
    try:
        with recorded(lambda path, form: _ask(base + path, form), str(folder), record):
            yield record
    finally:
        written = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        record["written_mib"] = round(written / MIB, 3)
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def recorded(ask: Ask, folder: str, record: dict[str, Any]) -> Iterator[None]:
    """Let a proxy capture into a folder of its machine while the block runs; tell in `record` how it went.

    `ask` puts a question to the proxy's own interface: a path, and a form to post or None.
    """
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


def _ask(url: str, form: dict[str, str] | None = None) -> str:
    """Ask the proxy over its own interface on loopback; with a form as a POST."""
    body = None if form is None else urllib.parse.urlencode(form).encode()
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(urllib.request.Request(url, data=body), timeout=ANSWER_S) as answer:
        return answer.read().decode(errors="replace")
