"""The agent as one file: a zip archive of modules of the house that need nothing but Python itself."""

import contextlib
import hashlib
import io
import marshal
import zipfile
from functools import cache
from importlib.util import MAGIC_NUMBER, source_hash
from pathlib import Path
from typing import Any

import benchbook
from benchbook.core.util.errors import SiteError

PACKAGE = Path(benchbook.__file__).parent
# Imported by the agent; the package's own beginnings are left empty there, as they import more.
NEEDED = (
    "core/util/errors.py", "sites/workspace.py", "sites/processes/spawn.py",
    "sites/processes/cgroup_limits.py", "sites/processes/firewall.py", "sites/processes/process.py",
    "sites/processes/procfs.py", "sites/processes/tcp_bytes.py", "sites/processes/taskstats.py",
)  # fmt: skip
EMPTY = tuple(f"{room}__init__.py" for room in ("", "core/", "core/util/", "sites/", "sites/processes/"))
MAIN = "from benchbook.sites.agent.main import main\n\nmain()\n"
# The oldest date that the format knows: the same modules give the same bytes.
DATE = (1980, 1, 1, 0, 0, 0)
# How a compiled module says that it belongs to the text beside it, whatever the times of both (PEP 552).
UNCHECKED = (1).to_bytes(4, "little")


@cache
def pack_agent() -> bytes:
    """The archive; the same modules and the same Python give the same bytes everywhere."""
    files = [*map(PACKAGE.joinpath, NEEDED), *sorted((PACKAGE / "sites" / "agent").glob("*.py"))]
    texts = {f"benchbook/{name}": "" for name in EMPTY}
    texts |= {f"benchbook/{path.relative_to(PACKAGE).as_posix()}": path.read_text("utf-8") for path in files}
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
        for name, text in {"__main__.py": MAIN, **texts}.items():
            # In the second of marshal's formats: later ones depend on what else refers to a word just now.
            code = marshal.dumps(compile(text, name, "exec", dont_inherit=True), 2)
            compiled = MAGIC_NUMBER + UNCHECKED + source_hash(text.encode()) + code
            archive.writestr(zipfile.ZipInfo(name, DATE), text)
            archive.writestr(zipfile.ZipInfo(f"{name}c", DATE), compiled)
    return packed.getvalue()


def hash_archive() -> str:
    """Hash of the archive, part of its name on a host."""
    return hashlib.sha256(pack_agent()).hexdigest()


def build_name() -> str:
    """Name of the archive on a host."""
    return f"agent-{hash_archive()[:12]}.pyz"


def install_archive(sftp: Any, base: str, host: str) -> None:
    """Put the archive into a folder of a host if it is not there, and hold its bytes against ours."""
    path = f"{base}/{build_name()}"
    for parent in reversed(Path(path).parents[:-1]):
        try:
            sftp.stat(str(parent))
        except FileNotFoundError:
            sftp.mkdir(str(parent), 0o711 if str(parent) == base else 0o755)
    for _ in range(2):
        there = io.BytesIO()
        with contextlib.suppress(FileNotFoundError):
            sftp.getfo(path, there)
        if hashlib.sha256(there.getvalue()).hexdigest() == hash_archive():
            return
        sftp.putfo(io.BytesIO(pack_agent()), f"{path}.part", confirm=True)
        sftp.chmod(f"{path}.part", 0o600)
        sftp.posix_rename(f"{path}.part", path)
    raise SiteError(f"{host}: {path} does not hold what was written; look at the host's disk")
