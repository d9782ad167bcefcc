"""What goes on beside a run on hosts: connections from the first client's host, and a proxy's capture."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from benchbook.core.errors import SiteError
from benchbook.core.study_arm import Arm, Load
from benchbook.sites.arms import capture, loads
from benchbook.sites.hosts import archive
from benchbook.sites.hosts.arrange import Chain, Place, endpoints
from benchbook.sites.hosts.client import carried
from benchbook.sites.hosts.host import Host
from benchbook.sites.lab import SCHEMA, Lab

WAIT_S = 2.0


@contextlib.contextmanager
def of_arm(arm: Arm, chain: Chain, running: Any, lab: Lab) -> Iterator[dict[str, Any]]:
    """Keep up an arm's load and capture while the block runs; the record tells at its end how they went."""
    first, cpus = running.host(chain.client.where.host), chain.client.cpus
    proxy = running.part(chain.proxy) if chain.proxy is not None else None
    with (
        load(first, lab, arm.load, endpoints(chain)[0], cpus) as borne,
        capture.beside(proxy, arm.capture) as taken,
    ):
        yield ({"load": borne} if borne else {}) | ({"capture": taken} if taken else {})


@contextlib.contextmanager
def load(
    host: Host, lab: Lab, asked: Load | None, to: Place, cpus: tuple[int, ...] | None
) -> Iterator[dict[str, Any]]:
    """Hold and make connections from a host while the block runs; the record is of `loads.connections`."""
    record: dict[str, Any] = {}
    if asked is None:
        yield record
        return
    job = f"{loads.ROLE}.{uuid.uuid4().hex[:8]}"
    host.call("own", name=job)
    (account,) = carried(host, [str(lab.secret)])
    program = ["python3", f"{PurePosixPath(host.folder).parent}/{archive.name()}", "drive"]
    numbers = [str(asked.idle_connections), str(asked.new_connections_per_s)]
    argv = [*program, f"{to.address}:{to.port}", SCHEMA, account, *numbers]
    # It ends with the agent, and goes on while we are cut off.
    host.call("start", job=job, argv=argv, out=f"{job}/out", cpus=cpus)

    def said() -> str:
        return str(host.call("read", name=f"{job}/out") or "")

    def is_alive() -> bool:
        return host.job("wait", job, up_to_s=0.05).code is None

    try:
        record |= loads.begun(said, is_alive, asked)
        yield record
    finally:
        lines: list[dict[str, Any]] = []
        stayed, cpu_s = False, None
        with contextlib.suppress(SiteError):
            stayed = is_alive()
            known = host.job("stop", job, grace_s=loads.STOP_S)
            while known.code is None:
                known = host.job("wait", job, up_to_s=WAIT_S)
            lines, cpu_s = loads.told(said()), round(known.cpu_s, 3)
            host.call("remove", name=job)
        record |= loads.ended(lines, asked, record) | {"stayed": stayed, "cpu_s": cpu_s}
