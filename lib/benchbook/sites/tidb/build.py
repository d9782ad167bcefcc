"""TiDB's server as a program: the one named, or one built from its Go module, once for each version.

The versions are the folders of `tools/tidb`: each a Go module of ours that pins everything; the folder
`cluster` in one of them has the other parts of a cluster, PD and the store. A program is kept outside the
clone, under a name made of all that decides what it is.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchbook.core.util import files, process_env
from benchbook.core.util.errors import SiteError
from benchbook.sites import workspace as labs
from benchbook.sites.agent import files as agent_files
from benchbook.sites.machine.supervised_process import read_tail
from benchbook.sites.processes import process
from benchbook.sites.settings import parse_version

VARIABLE = "BENCHBOOK_ENGINES"
RECIPES = Path(__file__).resolve().parents[4] / "tools" / "tidb"
SAID = re.compile(r"^Release Version: v?(\d+\.\d+\S*)", re.MULTILINE)
MODULE = re.compile(r"github\.com/pingcap/tidb v\S*?\.(\d{14})-([0-9a-f]{12})")
BUILD_S, SAY_EVERY_S = 3600.0, 20.0
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


class Recipe(NamedTuple):
    """Build of one program; `module` is the version text of the program or of its source."""

    version: str
    folder: Path
    package: str
    flags: tuple[str, ...]
    target: Path
    module: str


def list_versions() -> list[str]:
    """Versions that can be built, newest first."""
    results = [path.parent.name for path in RECIPES.glob("*/go.mod")]
    return sorted(results, key=parse_version, reverse=True)


def locate_engines() -> Path:
    """Folder of built programs: BENCHBOOK_ENGINES, else beside the labs."""
    if named := os.environ.get(VARIABLE):
        return Path(named).resolve()
    if named := os.environ.get("BENCHBOOK_LAB_DIR"):
        return Path(named).resolve() / ".engines"  # no study has such a name
    base = Path("/var/lib") if os.geteuid() == 0 else Path.home() / ".local" / "share"
    return base / "benchbook" / "engines"


def read_release(version: str) -> str:
    """Version name of a built server: the branch, then day and commit of its module."""
    match = MODULE.search((RECIPES / version / "go.mod").read_text(encoding="utf-8"))
    assert match is not None
    return f"v{version}.0-{match[1][:8]}-{match[2]}"


def make_recipe(version: str, name: str = SERVER) -> Recipe:
    """Build of a version's server, or of a part of its cluster (`PARTS`), with its target."""
    folder, flags = RECIPES / version, ["-mod=readonly", "-trimpath", "-buildvcs=false"]
    if name == SERVER:
        package, module = "github.com/pingcap/tidb/tidb-server", read_release(version)
        # The parser was a module of its own before 5.3.
        parsers = [f"github.com/pingcap/{parser}/mysql" for parser in ("tidb/parser", "parser")]
        message = " ".join(f"-X {parser}.TiDBReleaseVersion={module}" for parser in parsers)
        message += f" -X github.com/pingcap/tidb/util/versioninfo.TiDBGitHash={module.rpartition('-')[2]}"
    else:
        folder /= CLUSTER
        package, request = PARTS[name]
        message = request.format(version=version)
        pinned = "github.com/ngaut/unistore" if package.startswith(".") else package.partition("/cmd/")[0]
        text = (folder / "go.mod").read_text(encoding="utf-8")
        match = re.search(rf"^\s*{re.escape(pinned)} (\S+)", text, re.MULTILINE)
        assert match is not None
        module = f"{pinned} {match[1]}"
        # Without its dashboard PD needs no code for browsers.
        flags.append("-tags=without_dashboard")
    flags.append(f"-ldflags=-s -w {message}".rstrip())
    digest = hashlib.sha256(json.dumps(flags).encode())
    # A package of our own lies beside what pins everything.
    for source in (folder / "go.mod", folder / "go.sum", *sorted((folder / package).glob("*.go"))):
        digest.update(source.read_bytes())
    kept = "tidb" if name == SERVER else name
    target = locate_engines() / f"{kept}-{version}-{digest.hexdigest()[:12]}" / name
    return Recipe(version, folder, package, tuple(flags), target, module)


def cluster_versions() -> list[str]:
    """Versions of TiDB with a cluster that can be built."""
    return [version for version in list_versions() if (RECIPES / version / CLUSTER / "go.mod").is_file()]


def cluster_obstacle(version: str | None) -> str | None:
    """Reason if a cluster of a version is neither here nor buildable, else None; builds nothing."""
    if version not in cluster_versions():
        return f"engine.version: {version}: a cluster can be built of {' or '.join(cluster_versions())}"
    why = _lacks_go(version, [*PARTS], "the parts of a cluster are built from Go modules")
    return why or find_obstacle(version, None)


def _lacks_go(version: str, names: Sequence[str], what: str) -> str | None:
    if all(make_recipe(version, name).target.is_file() for name in names) or shutil.which("go") is not None:
        return None
    return f"{what} and there is no Go; `apt-get install golang`, or put go in the PATH"


def build_cluster(lab: labs.Lab, version: str) -> dict[str, Path]:
    """Programs of a cluster's parts by name, built now if they never were."""
    if (refused := cluster_obstacle(version)) is not None:
        raise SiteError(refused)
    return {name: _build_program(lab, make_recipe(version, name)) for name in (*PARTS, SERVER)}


def find_obstacle(version: str | None, binary: str | None) -> str | None:
    """Reason if a server is neither here nor can be built, else None; builds nothing."""
    if binary is not None:
        path = Path(binary).expanduser()
        is_there = os.access(path, os.X_OK) and path.is_file()
        return None if is_there else f"engine.binary: {binary}: no program there; write the path of one"
    versions = list_versions()
    if version is not None and version not in versions:
        return (
            f"engine.version: {version}: TiDB can be built as {' or '.join(versions)}; write one of these, "
            "or name a program in engine.binary"
        )
    return _lacks_go(version or versions[0], [SERVER], "TiDB is built from its Go module")


def ensure_program(lab: labs.Lab, version: str | None, binary: str | None) -> Path:
    """The server's program, built now if it never was; SiteError with the compiler's output."""
    refused = find_obstacle(version, binary)
    if refused is not None:
        raise SiteError(refused)
    if binary is not None:
        return Path(binary).expanduser().resolve()
    return _build_program(lab, make_recipe(version or list_versions()[0]))


def describe_builds() -> str:
    """Versions that are built here, and those that are built at an arm's first use, as text."""
    there = [version for version in list_versions() if make_recipe(version).target.is_file()]
    missing = [version for version in list_versions() if version not in there]
    messages = [f"{' and '.join(there)} built"] if there else []
    messages += [f"{' and '.join(missing)} built when an arm first needs it, in minutes"] if missing else []
    return f"{'; '.join(messages)}; kept in {locate_engines()}"


def said_version(binary: str | Path) -> str:
    """Version that a program says it is, such as 6.6.0-20230103-3ccff46aa3bc."""
    output = agent_files.read_output([str(binary), "-V"])
    if (match := SAID.search(output)) is None:
        statement = output.strip()[:80]
        raise SiteError(f"{binary} is not a TiDB server (it says {statement!r}); correct engine.binary")
    return match[1]


def read_build(binary: Path) -> dict[str, str]:
    """`go` and `module` that a program was built with; empty if it was not built here."""
    record = binary.with_name("built.json")
    built = files.read_json(record) if record.is_file() else {}
    return {key: built[key] for key in ("go", "module") if key in built}


def _build_program(lab: labs.Lab, recipe: Recipe) -> Path:
    target, what = recipe.target, f"{recipe.target.name} {recipe.version}"
    if target.is_file():
        return target
    folder = target.parent
    folder.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    if labs.free_bytes(folder.parent) < FREE_BYTES:
        remedy = f"free some, or set {VARIABLE} to another disk"
        raise SiteError(f"{folder.parent}: building TiDB takes 3 GiB; {remedy}")
    folder.mkdir(mode=0o755, exist_ok=True)
    # Its owner's start must not be met half-written by somebody else who builds the same.
    part, log = folder / f"{target.name}.{os.getpid()}", lab.run / "build.log"
    scratch = lab.private_folder("run/build", None)
    print(f"building {what} from its Go module, once; about 2 minutes on 2 cores", flush=True)
    begun = time.monotonic()
    go = subprocess.run(["go", "env", "GOVERSION"], capture_output=True, text=True, timeout=60).stdout.strip()
    argv = ["go", "build", *_adapt_flags(list(recipe.flags), go), "-o", str(part), recipe.package]
    env = {**os.environ, **PURE_GO, "GOTMPDIR": str(scratch)}
    child = lab.start("build", argv, append=False, cwd=recipe.folder, env=env)
    try:
        code = _wait_for_compiler(child, what, begun)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if code != 0:
        part.unlink(missing_ok=True)
        raise SiteError(f"{what} could not be built; see {log}:\n  {read_tail(log)}")
    part.chmod(0o755)
    record = {"go": go, "module": recipe.module, "seconds": round(time.monotonic() - begun)}
    files.write_json(folder / "built.json", record)
    part.rename(target)
    print(f"built {what} in {record['seconds']} s, kept in {folder}", flush=True)
    return target


def _adapt_flags(inputs: list[str], go: str) -> list[str]:
    """Arguments for one Go; since 1.23 the linker must be told to let old packages into Go's own."""
    match = re.match(r"go1\.(\d+)", go)
    is_strict = match is None or int(match[1]) >= 23
    return [text.replace("-ldflags=", "-ldflags=-checklinkname=0 ") if is_strict else text for text in inputs]


def _wait_for_compiler(child: process.Child, what: str, begun: float) -> int:
    assert child.popen is not None
    try:
        while time.monotonic() - begun < BUILD_S:
            try:
                return child.popen.wait(timeout=SAY_EVERY_S)
            except subprocess.TimeoutExpired:
                print(f"building {what}: {time.monotonic() - begun:.0f} s", flush=True)
    finally:
        if child.popen.poll() is None:
            process.stop_child(child, grace_s=5.0)
    raise SiteError(f"{what} was not built within {BUILD_S / 60:.0f} minutes")


def main() -> None:
    """Build the versions given, or all, as `make tidb` does; with `--cluster` the parts of a cluster too."""
    process_env.restrict_umask()
    process_env.drop_passwords()
    requests = [word for word in sys.argv[1:] if word != CLUSTER_FLAG]
    try:
        folder = locate_engines()
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        lab = labs.open_lab(folder / "building")
        is_cluster = CLUSTER_FLAG in sys.argv
        for version in requests or (cluster_versions() if is_cluster else list_versions()):
            of_server = {} if is_cluster else {SERVER: ensure_program(lab, version, None)}
            for name, path in (build_cluster(lab, version) if is_cluster else of_server).items():
                print(f"{name} {version}: {path}")
    except SiteError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
