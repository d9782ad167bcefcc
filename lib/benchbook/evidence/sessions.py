"""What a session is, told by its own raw files: its id, its design, its machine, its methods."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchbook.core import design, files, runfolder
from benchbook.core.document import Facts
from benchbook.core.errors import BenchbookError
from benchbook.core.record import Machine
from benchbook.evidence import archive
from benchbook.evidence.unpacked import Unpacked

_NUMBERED = re.compile(
    r"^(?P<name>.*?) \(family (?P<family>\d+), model (?P<model>\d+), stepping (?P<stepping>\d+)\)$"
)


def runs_of(manifest: archive.Manifest) -> dict[str, str]:
    """Return the SHA-256 of the manifest of each raw run that an archive's own manifest lists, by run id."""
    begin, end = f"data/{manifest.study}/raw/", f"/{runfolder.MANIFEST}"
    listed = {name: one.sha256 for name, one in manifest.files.items()}
    return {
        name.removeprefix(begin).removesuffix(end): digest
        for name, digest in sorted(listed.items())
        if name.startswith(begin) and name.endswith(end) and name.count("/") == 4
    }


def runs_in(file: Path) -> dict[str, str]:
    """Return the same for an archive that is not unpacked: its first member lists them."""
    return runs_of(archive.manifest(file))


def begun(held: Unpacked) -> str:
    """Return when the first run of a session started, by its evidence; BenchbookError without a run."""
    moments = [folder.times().started_utc for folder in held.folders]
    if not moments:
        raise BenchbookError(f"{held.name}: no raw run, and so no session")
    return min(moments)


def minute(moment: str) -> str:
    """Return the minute of a moment as the index writes it, such as 2026-11-23T02:29Z."""
    return f"{moment[:16]}Z"


def session_id(held: Unpacked) -> str:
    """Return a session's id: the UTC minute of its first run, and 4 hex digits over all runs' manifests.

    It follows from the raw runs alone, so it stays what it is under any name of a file.
    """
    runs = {one.name: files.sha256(one.path / runfolder.MANIFEST) for one in held.folders}
    stamp = minute(begun(held)).replace("-", "").replace(":", "")
    return f"{stamp}-{digits(runs)}"


def digits(runs: Mapping[str, str]) -> str:
    """Return the digits of a session's id, which follow from the hashes of its runs' manifests by run."""
    lines = sorted(f"{name} {digest}\n" for name, digest in runs.items())
    return hashlib.sha256("".join(lines).encode()).hexdigest()[:4]


def methods(held: Unpacked) -> dict[str, int]:
    """Return the methods that a session used: as provision wrote them, else by what its runs show.

    Sessions from before methods were written show them: a ledger by account is turns of the first kind, and
    programs without precedence are placed as first.
    """
    orders = {str(plan.get("order", "runs")) for plan in held.plans.values()}
    used = design.used(held.study, orders)
    written = held.facts.methods
    if written is not None:
        return {name: int(written[name]) for name in used}
    first = min(held.folders, key=lambda one: one.times().started_utc).evidence()
    ledger = (first.get("ledger") or {}).get("after") or {}
    nice = ((first.get("identity_before") or {}).get("place") or {}).get("nice", "")
    shown = {
        "turns": 1 if "Account_other" in ledger else 2,
        "local": 2 if str(nice).startswith("-") else 1,
        "cluster": 2 if (first.get("arrangement") or {}) else 1,
    }
    return {name: shown.get(name, 1) for name in used}


def seed_of(held: Unpacked) -> int:
    """Return the seed of a session: the one it drew, or that of the study file."""
    seed = held.session.get("seed", held.study.plan.seed)
    if seed is None:
        raise BenchbookError(f"{held.name}: session.json: missing, and the study file has no plan.seed")
    return int(seed)


def design_of(held: Unpacked) -> str:
    """Return the id of a session's design."""
    return design.of(held.study, held.facts.arms, methods(held))


def described(held: Unpacked) -> dict[str, Any]:
    """Return a session's design in its parts, for `design.differing`."""
    return design.described(held.study, held.facts.arms, methods(held))


def machine_of(facts: Facts) -> Machine:
    """Return the machine under the servers, from the facts of the first arm, with all versions seen."""
    arm = next(iter(facts.arms.values()))
    hosts = arm.get("hosts") or {}
    seen: Mapping[str, Any] = arm.get("machine") or hosts.get("server") or next(iter(hosts.values()), {})
    told = str(seen.get("cpu_model") or "not known")
    probes: Mapping[str, Any] = facts.probes or {}
    known = _NUMBERED.match(told)
    numbers = {key: int(known[key]) for key in ("family", "model", "stepping")} if known else {}
    return Machine(
        processor=known["name"] if known else told,
        cores=float(seen.get("cores") or 1),
        memory_mib=seen.get("memory_mib"),
        kernel=seen.get("kernel"),
        system=seen.get("system") or (arm.get("node") or {}).get("image"),
        site=str((arm.get("site") or {}).get("kind", "not known")),
        versions={name: ", ".join(versions) for name, versions in design.versions(facts.arms).items()},
        probes={name: value for name, value in probes.items() if value is not None},
        **numbers,
    )


def facts_in(file: Path) -> Facts:
    """Return the facts in an archive that is not unpacked; BenchbookError where it has none."""
    with archive.opened(file) as (members, _):
        for member in members:
            if member.name.count("/") == 3 and member.name.endswith("/facts.json"):
                return Facts.parse(files.parse_json(b"".join(member.read())), file)
    raise BenchbookError(f"{file.name}: there is no facts.json in it")
