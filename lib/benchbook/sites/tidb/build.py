"""TiDB's server as a program: the one named, or one built from its Go module, once for each version.

The versions are the folders of `tools/tidb`: each a Go module of ours that pins everything. The program is
kept outside the clone, under a name made of all that decides what it is.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from benchbook.core import files, surroundings
from benchbook.core.errors import SiteError
from benchbook.sites import lab as labs
from benchbook.sites import process
from benchbook.sites.supervised import tail

VARIABLE = "BENCHBOOK_ENGINES"
INSTALL = "apt-get install golang"
RECIPES = Path(__file__).resolve().parents[4] / "tools" / "tidb"
PACKAGE = "github.com/pingcap/tidb/tidb-server"
MODULE = re.compile(r"github\.com/pingcap/tidb v\S*?\.(\d{14})-([0-9a-f]{12})")
BUILD_S = 3600.0
SAY_EVERY_S = 20.0
# Without C no compiler for it is needed, and the program is one file that runs anywhere.
PURE_GO = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "", "GOWORK": "off"}
FREE_BYTES = 3 << 30


def versions() -> list[str]:
    """Return the versions that can be built, newest first."""
    found = [path.parent.name for path in RECIPES.glob("*/go.mod")]
    return sorted(found, key=lambda name: [int(part) for part in name.split(".")], reverse=True)


def engines() -> Path:
    """Return where built programs are kept: BENCHBOOK_ENGINES, else beside the labs."""
    if named := os.environ.get(VARIABLE):
        return Path(named).resolve()
    if named := os.environ.get("BENCHBOOK_LAB_DIR"):
        return Path(named).resolve() / "engines"
    base = Path("/var/lib") if os.geteuid() == 0 else Path.home() / ".local" / "share"
    return base / "benchbook" / "engines"


def release(version: str) -> str:
    """Return the name that a built server gives itself: the branch, then day and commit of its module."""
    match = MODULE.search((RECIPES / version / "go.mod").read_text(encoding="utf-8"))
    assert match is not None
    return f"v{version}.0-{match[1][:8]}-{match[2]}"


def flags(version: str) -> list[str]:
    """Return the arguments of `go build` that are the same with every Go."""
    name = release(version)
    # The parser was a module of its own before 5.3.
    told = [f"github.com/pingcap/{parser}/mysql.TiDBReleaseVersion" for parser in ("tidb/parser", "parser")]
    names = " ".join(f"-X {variable}={name}" for variable in told)
    commit = f"-X github.com/pingcap/tidb/util/versioninfo.TiDBGitHash={name.rpartition('-')[2]}"
    return ["-mod=readonly", "-trimpath", "-buildvcs=false", f"-ldflags=-s -w {names} {commit}"]


def cached(version: str) -> Path:
    """Return where the program of a version is, or will be, kept."""
    digest = hashlib.sha256(json.dumps(flags(version)).encode())
    for name in ("go.mod", "go.sum"):
        digest.update((RECIPES / version / name).read_bytes())
    return engines() / f"tidb-{version}-{digest.hexdigest()[:12]}" / "tidb-server"


def obstacle(version: str | None, binary: str | None) -> str | None:
    """Return why there is no such server here and can't be, or None; nothing is built to find out."""
    if binary is not None:
        path = Path(binary).expanduser()
        is_there = os.access(path, os.X_OK) and path.is_file()
        return None if is_there else f"engine.binary: {binary}: no program there; write the path of one"
    known = versions()
    if version is not None and version not in known:
        return (
            f"engine.version: {version}: TiDB can be built as {' or '.join(known)}; write one of these, or "
            "name a program in engine.binary"
        )
    if cached(version or known[0]).is_file() or shutil.which("go") is not None:
        return None
    return (
        "TiDB is built from its Go module and there is no Go; `apt-get install golang`, or put go in the PATH"
    )


def program(lab: labs.Lab, version: str | None, binary: str | None, keep: tuple[int, ...] = ()) -> Path:
    """Return the server's program, built now if it was never built; SiteError with what the compiler said."""
    refused = obstacle(version, binary)
    if refused is not None:
        raise SiteError(refused)
    if binary is not None:
        return Path(binary).expanduser().resolve()
    version = version or versions()[0]
    target = cached(version)
    return target if target.is_file() else _build(lab, version, target, keep)


def said_version(binary: Path) -> str:
    """Return the version that a program says it is, such as 6.6.0-20230103-3ccff46aa3bc."""
    try:
        said = subprocess.run([str(binary), "-V"], capture_output=True, text=True, timeout=60).stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SiteError(f"{binary} cannot be run: {error}; check engine.binary") from None
    version = version_in(said)
    if version is None:
        raise SiteError(
            f"{binary} is not a TiDB server (it says {said.strip()[:80]!r}); correct engine.binary"
        )
    return version


def version_in(said: str) -> str | None:
    """Return the version in what a server's program prints with `-V`."""
    match = re.search(r"^Release Version: v?(\d+\.\d+\S*)", said, re.MULTILINE)
    return match[1] if match else None


def built(binary: Path) -> dict[str, str] | None:
    """Return how a program was built: `go` and `module`; None if it was not built here."""
    record = binary.with_name("built.json")
    return files.read_json(record) if record.is_file() else None


def _build(lab: labs.Lab, version: str, target: Path, keep: tuple[int, ...]) -> Path:
    folder = target.parent
    folder.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    if labs.free_bytes(folder.parent) < FREE_BYTES:
        raise SiteError(
            f"{folder.parent}: building TiDB takes 3 GiB; free some, or set {VARIABLE} to another disk"
        )
    folder.mkdir(mode=0o755, exist_ok=True)
    # Its owner's start must not be met half-written by somebody else who builds the same.
    part, log = folder / f"tidb-server.{os.getpid()}", lab.run / "build.log"
    scratch = lab.own("run/build", None)
    print(f"building tidb-server {version} from its Go module, once; about 2 minutes on 2 cores", flush=True)
    begun = time.monotonic()
    go = subprocess.run(["go", "env", "GOVERSION"], capture_output=True, text=True, timeout=60).stdout.strip()
    child = process.start(
        "build",
        ["go", "build", *_linked(flags(version), go), "-o", str(part), PACKAGE],
        token=lab.token,
        folder=lab.folder,
        out=log,
        keep=keep,
        append=False,
        cwd=RECIPES / version,
        env={**os.environ, **PURE_GO, "GOTMPDIR": str(scratch)},
    )
    try:
        code = _wait(child, version, begun)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if code != 0:
        part.unlink(missing_ok=True)
        raise SiteError(f"tidb-server {version} could not be built; see {log}:\n  {tail(log)}")
    part.chmod(0o755)
    record = {"go": go, "module": release(version), "seconds": round(time.monotonic() - begun)}
    files.write_json(folder / "built.json", record)
    part.rename(target)
    print(f"built tidb-server {version} in {record['seconds']} s, kept in {folder}", flush=True)
    return target


def _linked(given: list[str], go: str) -> list[str]:
    """Return the arguments for one version of Go: since 1.23 its linker must be told to let old packages
    reach into Go's own, and before it did not know the words."""
    match = re.match(r"go1\.(\d+)", go)
    is_strict = match is None or int(match[1]) >= 23
    return [text.replace("-ldflags=", "-ldflags=-checklinkname=0 ") if is_strict else text for text in given]


def _wait(child: process.Child, version: str, begun: float) -> int:
    """Wait for the compiler, saying now and then that it is still at work."""
    assert child.popen is not None
    try:
        while time.monotonic() - begun < BUILD_S:
            try:
                return child.popen.wait(timeout=SAY_EVERY_S)
            except subprocess.TimeoutExpired:
                print(f"building tidb-server {version}: {time.monotonic() - begun:.0f} s", flush=True)
    finally:
        if child.popen.poll() is None:
            process.stop(child, grace_s=5.0)
    raise SiteError(f"tidb-server {version} was not built within {BUILD_S / 60:.0f} minutes")


def main() -> None:
    """Build the versions given as arguments, or all there are, as `make tidb` does."""
    surroundings.close()
    surroundings.hide()
    try:
        folder = engines()
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        lab = labs.open_lab(folder / "building")
        for version in sys.argv[1:] or versions():
            print(f"tidb-server {version}: {program(lab, version, None)}")
    except SiteError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
