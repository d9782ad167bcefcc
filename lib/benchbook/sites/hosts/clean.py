"""Record of the hosts a lab has used, and the end of our parts there, also by a later process."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from benchbook.core.study.inventory import Target
from benchbook.core.util.errors import SiteError
from benchbook.core.util.files import write_text
from benchbook.sites.workspace import lab_id

if TYPE_CHECKING:
    from benchbook.sites.hosts.host import Host

FOLDER = "hosts"
RECORDS = ()


def note_host(run: Path, host: "Host", is_used: bool = True) -> None:
    """Record the access to a host, without a secret, as used or as holding only data of ours."""
    record = {"is_used": is_used, "target": TypeAdapter(Target).dump_python(host.target, mode="json")}
    write_text(run / FOLDER / f"{host.name}.json", json.dumps(record, indent=1) + "\n")


def load_targets(run: Path, idle_too: bool = False) -> list[Target]:
    """Hosts that a lab has used and not left; `idle_too` those with data only as well."""
    records = [json.loads(path.read_text("utf-8")) for path in sorted((run / FOLDER).glob("*.json"))]
    used = [record["target"] for record in records if record["is_used"] or idle_too]
    return TypeAdapter(list[Target]).validate_python(used)


def end_host(run: Path, host: "Host", purge: bool = False) -> dict[str, list[str]]:
    """End all that is ours on a host, with `purge` its data too; SiteError if something is left."""
    done = host.end(purge)
    if done["left"]:
        raise SiteError(f"{host.name}: still there: {', '.join(done['left'])}")
    if purge:
        (run / FOLDER / f"{host.name}.json").unlink(missing_ok=True)
    else:
        note_host(run, host, is_used=False)
    return done


def down(folder: Path, token: str | None, report: Any, purge: bool = False) -> None:
    """End all that a lab has on its hosts, and add it to a report; most labs have used none."""
    run = folder / "run"
    if token is None or not (run / FOLDER).is_dir():
        return
    # The libraries for SSH take half a second to load; who has no hosts need not wait for them.
    from benchbook.sites.hosts.host import Host

    for target in load_targets(run, idle_too=purge):
        host = Host(target, lab_id(token), token)
        try:
            done = end_host(run, host, purge)
            report.stopped += [f"on {host.name}: {name}" for name in done["stopped"]]
            report.removed += [f"on {host.name}: {name}" for name in done["removed"]]
        except SiteError as error:
            ends = f"what still runs there ends by itself {target.lease_s:g} s after it heard from us"
            report.left.append(f"{error}; {ends}")
        finally:
            host.close()
