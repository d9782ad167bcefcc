"""Which hosts a lab has used, and how what is ours there is ended, also by another process and later."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchbook.core.errors import SiteError
from benchbook.core.files import write_text
from benchbook.core.inventory import Target
from benchbook.sites.network import lab_id
from benchbook.sites.ssh.host import Host

FOLDER = "hosts"


def note(run: Path, host: Host) -> None:
    """Write down, in the lab's folder of pid files, that a host is used; where it is, but no secret."""
    known = {
        key: str(value) if isinstance(value, Path) else value for key, value in asdict(host.target).items()
    }
    write_text(run / FOLDER / f"{host.name}.json", json.dumps(known, indent=1) + "\n")


def noted(run: Path) -> list[Target]:
    """Return the hosts that a lab has used and not left."""
    found = []
    for path in sorted((run / FOLDER).glob("*.json")):
        known = json.loads(path.read_text(encoding="utf-8"))
        paths = {key: Path(known[key]) if known[key] else None for key in ("key_file", "known_hosts")}
        found.append(Target(**{**known, **paths, "roles": tuple(known["roles"])}))
    return found


def end(run: Path, host: Host, purge: bool = False) -> dict[str, list[str]]:
    """End what is ours on a host and look again; when nothing is left, the host is no longer noted."""
    done = host.end(purge)
    if done["left"]:
        raise SiteError(f"{host.name}: still there: {', '.join(done['left'])}")
    (run / FOLDER / f"{host.name}.json").unlink(missing_ok=True)
    return done


def down(run: Path, token: str, report: Any, purge: bool = False) -> None:
    """End what a lab has on its hosts, and put it into a report with `stopped`, `removed` and `left`."""
    for target in noted(run):
        host = Host(target, lab_id(token), token)
        try:
            done = end(run, host, purge)
            report.stopped += [f"on {host.name}: {name}" for name in done["stopped"]]
            report.removed += [f"on {host.name}: {name}" for name in done["removed"]]
        except SiteError as error:
            report.left.append(
                f"{error}; what still runs there ends by itself {target.lease_s:g} s after it heard from us"
            )
        finally:
            host.close()
