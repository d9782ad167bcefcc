"""`dvc repro`, with the holes around it closed.

Before: locks that a killed DVC left are explained, and outputs that git tracks are named before hours of
measuring instead of after. Afterwards: a cache that could not take what was made is noticed, since DVC may
end with 0 all the same (dvc 3.67 does, when the cache's disk is full).
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchbook.core import load, paths, yamlfile
from benchbook.core.errors import BenchbookError, InputErrors
from benchbook.sites import process, procfs

LOW_BYTES = 500 << 20


def run(arguments: Sequence[str]) -> int:
    """Look, run `dvc repro` with these arguments, look again; return an exit code that means something."""
    root = paths.root()
    load.params()
    wrong = [*locks(root), *tracked(root)]
    if wrong:
        raise InputErrors(wrong)
    code = _dvc(root, ["repro", *arguments])
    missing = [] if _is_asking(arguments) else absent(root)
    if missing:
        raise BenchbookError(
            f"DVC could not keep {', '.join(missing)} in its cache ({cache_space(root)}); free some space, "
            "then run `dvc commit -f`: nothing has to be measured again"
        )
    return code


def locks(root: Path) -> list[str]:
    """Explain what a killed DVC left in its lock of readers and writers, with the remedy."""
    file = root / ".dvc" / "tmp" / "rwlock"
    name = file.relative_to(root)
    try:
        entries = _holders(json.loads(file.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return []
    except (ValueError, AttributeError, TypeError, KeyError):
        return [
            f"{name}: empty or cut, left by a DVC that was killed; no command of DVC works until it is gone; "
            f"if no DVC runs in this clone, `rm {name}`"
        ]
    written = file.stat().st_mtime
    reused = sorted({pid for pid in entries if procfs.is_alive(pid) and _started(pid) > written})
    return [
        f"{name}: held by process {pid}, which is gone; its number is now {procfs.command(pid)[:60]!r}, and "
        f"DVC would wait for that; if no DVC runs in this clone, `rm {name}`"
        for pid in reused
    ]


def _holders(held: dict[str, Any]) -> list[int]:
    """Return the processes named in the lock: one writer and any number of readers for each path."""
    writers = list(held.get("write", {}).values())
    readers = [one for several in held.get("read", {}).values() for one in several]
    return [int(one["pid"]) for one in (*writers, *readers)]


def _started(pid: int) -> float:
    """Return when a process began, in seconds of the wall clock; 0 if it is gone."""
    found = procfs.stat(pid)
    if found is None:
        return 0.0
    lines = Path("/proc/stat").read_text(encoding="ascii").splitlines()
    boot = next(int(line.split()[1]) for line in lines if line.startswith("btime"))
    return boot + int(found["started"]) / os.sysconf("SC_CLK_TCK")


def tracked(root: Path) -> list[str]:
    """Name outputs of the pipeline that git tracks: DVC would refuse them, but only after the stage ran."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", "data", "reports"], cwd=root, capture_output=True, check=False
    ).stdout.decode("utf-8", "replace")
    names = [name for name in listed.split("\0") if name]
    found = []
    for out in outs(root):
        inside = [name for name in names if name == out or name.startswith(f"{out}/")]
        if inside:
            found.append(
                f"{out}: {len(inside)} files are tracked by git, and DVC refuses them, but after the stage "
                f"has run; `git rm -r -q --cached {out}`, then commit"
            )
    return found


def outs(root: Path) -> list[str]:
    """Return what DVC keeps of every stage, with the names of studies and sources put in."""
    stages = yamlfile.read(root / "dvc.yaml").data["stages"]
    lists = yamlfile.read(root / "params.yaml").data
    found: list[str] = []
    for stage in stages.values():
        items = lists.get(str(stage.get("foreach", "")).strip("${}"), [None])
        body = stage.get("do", stage)
        for out in [*body.get("outs", []), *body.get("metrics", []), *body.get("plots", [])]:
            name, flags = next(iter(out.items())) if isinstance(out, dict) else (out, {})
            if flags.get("cache", True):
                found += [str(name).replace("${item}", str(item)) for item in items]
    return found


def absent(root: Path) -> list[str]:
    """Return what DVC has recorded and does not have in its cache."""
    asked = [sys.executable, "-m", "dvc", "status", "--json"]
    said = subprocess.run(asked, cwd=root, capture_output=True, text=True, check=False)
    try:
        status = json.loads(said.stdout)
    except ValueError:
        raise BenchbookError(
            f"`dvc status` failed: {said.stderr.strip()[-300:]}; run it to see why"
        ) from None
    changes = [change for stage in status.values() for change in stage if isinstance(change, dict)]
    return sorted(
        out
        for change in changes
        for out, how in (change.get("changed outs") or {}).items()
        if how == "not in cache"
    )


def cache_space(root: Path) -> str:
    """Say how much space is free where DVC's cache is."""
    asked = [sys.executable, "-m", "dvc", "cache", "dir"]
    said = subprocess.run(asked, cwd=root, capture_output=True, text=True, check=False).stdout.strip()
    folder = Path(root, said or ".dvc/cache")
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    return f"{free >> 10} KiB are free on the disk of {folder}" + (": it is full" if free < LOW_BYTES else "")


def _is_asking(arguments: Sequence[str]) -> bool:
    return bool({"--dry", "-n", "--help", "-h", "--no-commit"} & set(arguments))


def _dvc(root: Path, arguments: list[str]) -> int:
    """Run DVC in our own process group; it dies with us, and signals that reach only us are passed on."""
    child = subprocess.Popen(
        [sys.executable, "-m", "dvc", *arguments], cwd=root, preexec_fn=process.dies_with(os.getpid())
    )
    wanted = [signal.SIGTERM, signal.SIGHUP, signal.SIGINT]
    before = {number: signal.signal(number, lambda number, _: child.send_signal(number)) for number in wanted}
    if sys.stdin is not None and sys.stdin.isatty():
        # The terminal tells the whole group of Ctrl-C; a second word would cut short what DVC does then.
        signal.signal(signal.SIGINT, lambda number, _: None)
    try:
        code = child.wait()
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)
    return code if code >= 0 else 128 - code
