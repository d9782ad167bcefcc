"""TiDB's server as a program: the one named, or one built from its Go module, once for each version.

The versions are the folders of `tools/tidb`: each a Go module of ours that pins everything; the folder
`cluster` in one of them has the other parts of a cluster, PD and the store. A program is kept outside the
clone, under a name made of all that decides what it is.
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
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchbook.core.util import files, process_env
from benchbook.core.util.errors import SiteError
from benchbook.sites import workspace as labs
from benchbook.sites.agent import files as agent_files
from benchbook.sites.machine.supervised_process import tail
from benchbook.sites.processes import process
from benchbook.sites.settings import numbers

VARIABLE = "BENCHBOOK_ENGINES"
RECIPES = Path(__file__).resolve().parents[4] / "tools" / "tidb"
SAID = re.compile(r"^Release Version: v?(\d+\.\d+\S*)", re.MULTILINE)
MODULE = re.compile(r"github\.com/pingcap/tidb v\S*?\.(\d{14})-([0-9a-f]{12})")
BUILD_S = 3600.0
SAY_EVERY_S = 20.0
# Without C no compiler for it is needed, and the program is one file that runs anywhere.
PURE_GO = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "", "GOWORK": "off"}
FREE_BYTES = 3 << 30
SERVER, CLUSTER, CLUSTER_FLAG = "tidb-server", "cluster", "--cluster"
# Package and what the linker is told of each part; PD without a version lets no store join.
PARTS = {
    "pd-server": (
        "github.com/tikv/pd/cmd/pd-server",
        "-X github.com/tikv/pd/server/versioninfo.PDReleaseVersion=v{version}.0",
    ),
    "unistore-server": ("./store", ""),
}


@dataclass(frozen=True)
class Recipe:
    """How one program is made; `module` is what it says of itself, or of what it was made."""

    version: str
    folder: Path
    package: str
    flags: tuple[str, ...]
    target: Path
    module: str


def versions() -> list[str]:
    """Return the versions that can be built, newest first."""
    found = [path.parent.name for path in RECIPES.glob("*/go.mod")]
    return sorted(found, key=numbers, reverse=True)


def engines() -> Path:
    """Return where built programs are kept: BENCHBOOK_ENGINES, else beside the labs."""
    if named := os.environ.get(VARIABLE):
        return Path(named).resolve()
    if named := os.environ.get("BENCHBOOK_LAB_DIR"):
        return Path(named).resolve() / ".engines"  # no study has such a name
    base = Path("/var/lib") if os.geteuid() == 0 else Path.home() / ".local" / "share"
    return base / "benchbook" / "engines"


def release(version: str) -> str:
    """Return the name that a built server gives itself: the branch, then day and commit of its module."""
    match = MODULE.search((RECIPES / version / "go.mod").read_text(encoding="utf-8"))
    assert match is not None
    return f"v{version}.0-{match[1][:8]}-{match[2]}"


def recipe(version: str, name: str = SERVER) -> Recipe:
    """How a version's server, or a part of its cluster (`PARTS`), is built by any Go, and its place."""
    folder, flags = RECIPES / version, ["-mod=readonly", "-trimpath", "-buildvcs=false"]
    if name == SERVER:
        package, module = "github.com/pingcap/tidb/tidb-server", release(version)
        # The parser was a module of its own before 5.3.
        parsers = [f"github.com/pingcap/{parser}/mysql" for parser in ("tidb/parser", "parser")]
        told = " ".join(f"-X {parser}.TiDBReleaseVersion={module}" for parser in parsers)
        told += f" -X github.com/pingcap/tidb/util/versioninfo.TiDBGitHash={module.rpartition('-')[2]}"
    else:
        folder /= CLUSTER
        package, asked = PARTS[name]
        told = asked.format(version=version)
        pinned = "github.com/ngaut/unistore" if package.startswith(".") else package.partition("/cmd/")[0]
        text = (folder / "go.mod").read_text(encoding="utf-8")
        found = re.search(rf"^\s*{re.escape(pinned)} (\S+)", text, re.MULTILINE)
        assert found is not None
        module = f"{pinned} {found[1]}"
        # Without its dashboard PD needs no code for browsers.
        flags.append("-tags=without_dashboard")
    flags.append(f"-ldflags=-s -w {told}".rstrip())
    digest = hashlib.sha256(json.dumps(flags).encode())
    # A package of our own lies beside what pins everything.
    for source in (folder / "go.mod", folder / "go.sum", *sorted((folder / package).glob("*.go"))):
        digest.update(source.read_bytes())
    kept = "tidb" if name == SERVER else name
    target = engines() / f"{kept}-{version}-{digest.hexdigest()[:12]}" / name
    return Recipe(version, folder, package, tuple(flags), target, module)


def cluster_versions() -> list[str]:
    """Return the versions of TiDB whose cluster can be built."""
    return [version for version in versions() if (RECIPES / version / CLUSTER / "go.mod").is_file()]


def cluster_obstacle(version: str | None) -> str | None:
    """Return why there is no cluster of a version here and can't be, or None; nothing is built for it."""
    if version not in cluster_versions():
        return f"engine.version: {version}: a cluster can be built of {' or '.join(cluster_versions())}"
    return _lacks_go(version, [*PARTS], "the parts of a cluster are built from Go modules") or obstacle(
        version, None
    )


def _lacks_go(version: str, names: Sequence[str], what: str) -> str | None:
    if all(recipe(version, name).target.is_file() for name in names) or shutil.which("go") is not None:
        return None
    return f"{what} and there is no Go; `apt-get install golang`, or put go in the PATH"


def cluster(lab: labs.Lab, version: str) -> dict[str, Path]:
    """Return the programs of a cluster's parts by name, built now if they never were."""
    if (refused := cluster_obstacle(version)) is not None:
        raise SiteError(refused)
    return {name: _build(lab, recipe(version, name)) for name in (*PARTS, SERVER)}


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
    return _lacks_go(version or known[0], [SERVER], "TiDB is built from its Go module")


def program(lab: labs.Lab, version: str | None, binary: str | None) -> Path:
    """Return the server's program, built now if it was never built; SiteError with what the compiler said."""
    refused = obstacle(version, binary)
    if refused is not None:
        raise SiteError(refused)
    if binary is not None:
        return Path(binary).expanduser().resolve()
    return _build(lab, recipe(version or versions()[0]))


def standing() -> str:
    """Say which versions are built here, and which are when an arm first needs them."""
    there = [version for version in versions() if recipe(version).target.is_file()]
    missing = [version for version in versions() if version not in there]
    told = [f"{' and '.join(there)} built"] if there else []
    told += [f"{' and '.join(missing)} built when an arm first needs it, in minutes"] if missing else []
    return f"{'; '.join(told)}; kept in {engines()}"


def said_version(binary: str | Path) -> str:
    """Return the version that a program says it is, such as 6.6.0-20230103-3ccff46aa3bc."""
    said = agent_files.says([str(binary), "-V"])
    if (match := SAID.search(said)) is None:
        raise SiteError(
            f"{binary} is not a TiDB server (it says {said.strip()[:80]!r}); correct engine.binary"
        )
    return match[1]


def built(binary: Path) -> dict[str, str] | None:
    """Return how a program was built: `go` and `module`; None if it was not built here."""
    record = binary.with_name("built.json")
    return files.read_json(record) if record.is_file() else None


def _build(lab: labs.Lab, recipe: Recipe) -> Path:
    target, what = recipe.target, f"{recipe.target.name} {recipe.version}"
    if target.is_file():
        return target
    folder = target.parent
    folder.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    if labs.free_bytes(folder.parent) < FREE_BYTES:
        raise SiteError(
            f"{folder.parent}: building TiDB takes 3 GiB; free some, or set {VARIABLE} to another disk"
        )
    folder.mkdir(mode=0o755, exist_ok=True)
    # Its owner's start must not be met half-written by somebody else who builds the same.
    part, log = folder / f"{target.name}.{os.getpid()}", lab.run / "build.log"
    scratch = lab.private_folder("run/build", None)
    print(f"building {what} from its Go module, once; about 2 minutes on 2 cores", flush=True)
    begun = time.monotonic()
    go = subprocess.run(["go", "env", "GOVERSION"], capture_output=True, text=True, timeout=60).stdout.strip()
    argv = ["go", "build", *_linked(list(recipe.flags), go), "-o", str(part), recipe.package]
    env = {**os.environ, **PURE_GO, "GOTMPDIR": str(scratch)}
    child = lab.start("build", argv, append=False, cwd=recipe.folder, env=env)
    try:
        code = _wait(child, what, begun)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if code != 0:
        part.unlink(missing_ok=True)
        raise SiteError(f"{what} could not be built; see {log}:\n  {tail(log)}")
    part.chmod(0o755)
    record = {"go": go, "module": recipe.module, "seconds": round(time.monotonic() - begun)}
    files.write_json(folder / "built.json", record)
    part.rename(target)
    print(f"built {what} in {record['seconds']} s, kept in {folder}", flush=True)
    return target


def _linked(given: list[str], go: str) -> list[str]:
    """Return the arguments for one Go, whose linker since 1.23 must let old packages reach into Go's own."""
    match = re.match(r"go1\.(\d+)", go)
    is_strict = match is None or int(match[1]) >= 23
    return [text.replace("-ldflags=", "-ldflags=-checklinkname=0 ") if is_strict else text for text in given]


def _wait(child: process.Child, what: str, begun: float) -> int:
    assert child.popen is not None
    try:
        while time.monotonic() - begun < BUILD_S:
            try:
                return child.popen.wait(timeout=SAY_EVERY_S)
            except subprocess.TimeoutExpired:
                print(f"building {what}: {time.monotonic() - begun:.0f} s", flush=True)
    finally:
        if child.popen.poll() is None:
            process.stop(child, grace_s=5.0)
    raise SiteError(f"{what} was not built within {BUILD_S / 60:.0f} minutes")


def main() -> None:
    """Build the versions given, or all, as `make tidb` does; with `--cluster` the parts of a cluster too."""
    process_env.close()
    process_env.hide()
    asked = [word for word in sys.argv[1:] if word != CLUSTER_FLAG]
    try:
        folder = engines()
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        lab = labs.open_lab(folder / "building")
        is_cluster = CLUSTER_FLAG in sys.argv
        for version in asked or (cluster_versions() if is_cluster else versions()):
            made = cluster(lab, version) if is_cluster else {SERVER: program(lab, version, None)}
            for name, path in made.items():
                print(f"{name} {version}: {path}")
    except SiteError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
