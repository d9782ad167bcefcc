"""Take down whatever is left of our labs, and nothing else.

A process is ours if its start was given our token or one of our lab folders (its environment, which the
kernel keeps), never because of its name or its port. What else a lab has, each kind of site ends by itself:
the module `clean` of its room, with `down(folder, token, report, purge)`, and `RECORDS`, the files of a lab
that alone tell of what it has elsewhere.

Labs that nothing is kept of, such as a gate's, lie in `.tmp` among the labs of their clone. The name of such
a folder ends with the id and the start of the process that made it: once that has gone, the folder is left.
"""

import contextlib
import itertools
import os
import re
import shutil
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchbook import sites
from benchbook.core.util.errors import SiteError
from benchbook.sites.processes import process, procfs
from benchbook.sites.workspace import read_record

OWNER_S = 15.0
SERVER_S = 60.0
# Short, since the paths of sockets below it may have 107 bytes.
TEMPORARY = ".tmp"
_NAME = re.compile(r".*?(\d+)-(\d+)-\d+")
_numbers = itertools.count(1)


@dataclass
class Report:
    """Parts stopped, removed, and still there after a second check, here or `elsewhere`."""

    stopped: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        """True if the second check found nothing."""
        return not self.left and not self.elsewhere

    def __str__(self) -> str:
        lines = [f"stopped {name}" for name in self.stopped] + [f"removed {path}" for path in self.removed]
        left = (*self.left, *self.elsewhere)
        lines += [f"still there: {name}; try again, or end it yourself" for name in left]
        return "\n".join(lines) or "nothing was left"


def tear_down(lab_root: Path, purge: bool = False) -> Report:
    """End what belongs to labs below a folder, commands at work first but this one; `purge`: data too."""
    lab_root = Path(os.path.abspath(lab_root))
    report, labs = Report(), find_labs(lab_root)
    for owner in _find_owners(lab_root, labs):
        _end_owner(owner, report)
    tokens = set(filter(None, map(_read_token, labs)))
    for child in find_processes(lab_root, tokens):
        name = f"pid {child.pid} ({procfs.read_command(child.pid)})"
        with contextlib.suppress(SiteError):
            process.stop_child(child, grace_s=SERVER_S)
            report.stopped.append(name)
    left = (*owners_at_work(lab_root), *map(_describe_process, find_processes(lab_root, tokens)))
    report.left = list(dict.fromkeys(left))
    for kind, folder in itertools.product(sites.rooms("clean"), labs):
        kind.down(folder, _read_token(folder), report, purge)
    if report.left:
        return report
    for folder in filter(Path.is_dir, labs):
        _remove_records(folder, report)
        if purge and not _has_records(folder):
            _remove_folder(folder, report)
    for folder in filter(_is_abandoned, list_temporary(lab_root)):
        _remove_folder(folder, report)
    return report


def owners_at_work(lab_root: Path) -> list[str]:
    """Commands of other processes that work in the labs below a folder now, each with its id."""
    owners = _find_owners(lab_root, find_labs(lab_root))
    return [_describe_process(owner) for owner in owners if owner.is_alive]


def after_kill(lab: Path) -> None:
    """Take down the remains of a lab after its process was killed; nothing if an owner works."""
    if not any(owner.is_alive for owner in _find_owners(lab, find_labs(lab))):
        tear_down(lab)


def sweep_labs(lab_root: Path) -> None:
    """Remove the remains of killed commands' temporary labs; living ones keep theirs."""
    for folder in filter(_is_abandoned, list_temporary(lab_root)):
        clear_folder(folder)


def clear_folder(folder: Path) -> None:
    """Take down the remains of a folder's labs, and remove it unless something is still there."""
    if tear_down(folder).is_clean:
        shutil.rmtree(folder, ignore_errors=True)


def find_labs(lab_root: Path) -> list[Path]:
    """Lab folders at or right below a folder: those that hold a `lab.json`, and temporary ones."""
    candidates = [lab_root, *sorted(lab_root.glob("*"))] if lab_root.is_dir() else []
    candidates += [path for folder in list_temporary(lab_root) for path in sorted(folder.glob("*"))]
    return [folder for folder in candidates if (folder / "lab.json").is_file()]


def find_processes(lab_root: Path, tokens: set[str]) -> list[process.Child]:
    """Living processes of these labs, last started first, so that clients end before servers."""

    def is_of_labs(environment: Mapping[str, str]) -> bool:
        token, folder = environment.get(process.TOKEN), environment.get(process.FOLDER)
        is_below = folder is not None and Path(folder).is_relative_to(lab_root)
        return token is not None and (token in tokens or is_below)

    return process.find_living(is_of_labs)[::-1]


def _find_owners(lab_root: Path, labs: list[Path]) -> list[process.Child]:
    """Processes that work in labs, except this one; only we can write to their records."""
    childs = [process.read_pidfile(folder / "run" / "owner.json") for folder in labs]
    childs += [_find_maker(folder) for folder in list_temporary(lab_root)]
    others = [child for child in childs if child is not None and child.pid != os.getpid()]
    return list({(other.pid, other.started): other for other in others}.values())


def _end_owner(owner: process.Child, report: Report) -> None:
    try:
        handle = os.pidfd_open(owner.pid)
    except OSError:
        return
    try:
        if procfs.is_alive(owner.pid, owner.started):
            name = f"pid {owner.pid} ({procfs.read_command(owner.pid)})"
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle, signal.SIGTERM)
            if procfs.any_ended([handle], OWNER_S):
                report.stopped.append(name)
    finally:
        os.close(handle)


def _describe_process(child: process.Child) -> str:
    return f"pid {child.pid}: {procfs.read_command(child.pid)}"


def _remove_records(folder: Path, report: Report) -> None:
    """Remove what tells of a lab's ended processes, and their sockets."""
    owners = {path: process.read_pidfile(path) for path in (folder / "run").glob("*.json")}
    pidfiles = [path for path, owner in owners.items() if owner is None or not owner.is_alive]
    sockets = [path for part in ("server", "proxy") for path in folder.glob(f"{part}*/*.sock")]
    for path in [*pidfiles, *sockets, *folder.glob("server*/*.pid")]:
        path.unlink(missing_ok=True)
        report.removed.append(str(path))


def _has_records(folder: Path) -> bool:
    """True if a lab may still have something elsewhere."""
    return any((folder / name).exists() for kind in sites.rooms("clean") for name in kind.RECORDS)


def _remove_folder(folder: Path, report: Report) -> None:
    shutil.rmtree(folder)
    report.removed.append(str(folder))


def _read_token(folder: Path) -> str | None:
    return read_record(folder / "lab.json").get("token")


def make_temporary(root: Path, prefix: str) -> Path:
    """Make a folder for a lab of this process among the labs of a clone; a server's own user may enter it."""
    me = process.identify_child("owner", os.getpid(), "")
    folder = root / TEMPORARY / f"{prefix}{me.pid}-{me.started}-{next(_numbers)}"
    folder.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
    folder.mkdir()
    folder.chmod(0o711)
    return folder


def list_temporary(root: Path) -> list[Path]:
    """Folders of temporary labs among the labs of a clone."""
    there = sorted((root / TEMPORARY).glob("*"))
    return [path for path in there if _NAME.fullmatch(path.name) and path.is_dir()]


def _find_maker(folder: Path) -> process.Child:
    """The process that made a folder, alive or gone."""
    pid, started = map(int, _NAME.fullmatch(folder.name).groups())  # type: ignore[union-attr]
    return process.Child("owner", pid, started, "")


def _is_abandoned(folder: Path) -> bool:
    return not _find_maker(folder).is_alive
