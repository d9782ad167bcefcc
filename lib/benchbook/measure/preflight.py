"""Problems that would make a study fail, found before its first run: what is, what is needed, what to do."""

import errno
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from benchbook.core.study import interleaving
from benchbook.core.study.study import StudySpec
from benchbook.core.util.errors import BenchbookError
from benchbook.measure import dataset
from benchbook.sites import kind
from benchbook.sites.engines import dialect
from benchbook.sites.machine import lock
from benchbook.sites.topology import feasibility
from benchbook.sites.workspace import find_nearest, free_bytes

OWN_SESSIONS = 10
OWN_FILES = 64
# oltp_read_write has nine statements a table, and BEGIN and COMMIT once.
STATEMENTS, OF_TRANSACTION = 9, 2
# Where 0 allows none at all; elsewhere it is no limit.
NONE_AT_0 = frozenset({"max_prepared_stmt_count"})
MIB = 1024 * 1024


def refuse_problems(problems: list[str]) -> None:
    """Raise BenchbookError with all problems, if there are any."""
    if problems:
        raise BenchbookError("this can't be measured: " + "; ".join(problems))


def refuse_before_loading(study: StudySpec, raw: Path, lab: Path, limits: dict[str, Any]) -> None:
    """Refuse what no row has to be loaded for: another measurement here, limits of machine and servers, which
    are asked where others run them; elsewhere none is up yet. LockHeld or BenchbookError."""
    refuse_problems(check_machine(study, {"raw logs": raw, "the lab": lab}, limits))
    if study.site.kind == "local":
        lock.acquire_lock(lab).release()
    elif study.site.kind == "existing":
        # Not by `open_site`, which takes passwords from what this process still starts.
        with kind(study)(study, lab) as site:
            feasibility.must_leave_a_pair(study, feasibility.of_site(site, study.arms))
            for arm in dataset.arm_of_each_copy(site):
                with site.admin(arm).connect() as connection:
                    refuse_problems([f"{arm}: {text}" for text in check_server(study, connection)])


def check_machine(study: StudySpec, folders: dict[str, Path], limits: dict[str, Any]) -> list[str]:
    """Problems of the A/A pair, this process's limits, and rights and space in output folders."""
    most = study.sessions
    machine = [*interleaving.find_misleading(study)]
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if allowed != resource.RLIM_INFINITY and allowed < most + OWN_FILES:
        fault = f"{allowed} open files are allowed, {most} connections need {most + OWN_FILES}"
        machine.append(f"{fault}; run `ulimit -n 65536` first, or measure fewer threads")
    for name, folder in folders.items():
        there = find_nearest(folder)
        if not os.access(there, os.W_OK | os.X_OK):
            machine.append(f"{folder}: {name} cannot be written; look at its owner, mode and mount")
            continue
        free = free_bytes(there) // MIB
        if free < limits["free_mib"]:
            machine.append(
                f"{folder}: {free} MiB are free for {name}, {limits['free_mib']} are needed "
                "(limits.free_mib); free some space"
            )
    return machine


def check_server(study: StudySpec, connection: Connection) -> list[str]:
    """Hold the server's limits against the needs of the highest thread level."""
    most, tables = study.sessions, study.dataset.tables
    needed = {"max_connections": most + OWN_SESSIONS, "max_user_connections": most}
    needed["max_prepared_stmt_count"] = most * (tables * STATEMENTS + OF_TRANSACTION)
    allowed = dialect.get_dialect(connection).limits(connection, list(needed))
    server = [
        f"{name} is {allowed[name]}, {most} sessions at once need {least}; set it under engine.settings, "
        "or measure fewer threads"
        for name, least in needed.items()
        # No limit at all is written 0 or -1.
        if (name in allowed and 0 < allowed[name] < least) or (name in NONE_AT_0 and allowed.get(name) == 0)
    ]
    if dialect.get_dialect(connection).is_read_only(connection):
        server.append("the server is read_only; set it OFF, or the run never ends")
    return server


@contextmanager
def explain_errors(raw: Path) -> Iterator[None]:
    """Explain errors of a full disk or of a lost server, with the results that are kept."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise BenchbookError(
            f"no space left on the disk of {raw} ({free_bytes(raw) // 1024} KiB free): the run that went on "
            "is lost, all before it are kept; free some space and run it again"
        ) from None
    except SQLAlchemyError as error:
        message = " ".join(str(getattr(error, "orig", None) or error).split())[:300]
        raise BenchbookError(
            "a server that is measured ended, was restarted or refused while no run was going on "
            f"({message}); the runs in {raw} are kept. See that no other program stops or starts it and that "
            "its disk has room, then run the stage again: it goes on where it stopped"
        ) from None
