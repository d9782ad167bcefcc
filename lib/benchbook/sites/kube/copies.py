"""The prepared copy of the data in each server's pod: made once, given to the others, put back each block.

A copy lies beside the data in the volume of its pod and carries its label. What goes from pod to pod goes
through the API as one packed file with its digest: an embedded storage is a quarter GiB of zeros.
"""

from __future__ import annotations

from collections.abc import Sequence

from websocket import ABNF

from benchbook.core.errors import SiteError
from benchbook.sites.kube.api import LOST, OUT
from benchbook.sites.kube.layout import pod_of
from benchbook.sites.kube.server import SCRIPT, Server

COPY_S = 7200.0


def save(first: Server, others: Sequence[Server], label: str) -> None:
    """Shut a server down cleanly, keep a copy of its data, give it to the others, and start all that ran."""
    running = [server for server in (first, *others) if server.word is not None]
    first.ensure()
    if not first.stop():
        raise SiteError(
            f"{pod_of(first.part)}: the server did not shut down by itself, so its data cannot be copied; "
            "run the prepare stage again"
        )
    first.run(*SCRIPT, "save", first.marked(label))
    for other in others:
        if other in running:
            other.stop()
            give(first, other)
            other.run(*SCRIPT, "restore")
    for server in dict.fromkeys([first, *running]):
        server.ensure()


def find(servers: Sequence[Server], label: str | None) -> Server | None:
    """Return a server whose pod has a whole copy under a label (None: under any) made as ours would be."""
    for server in servers:
        marked = server.label()
        if marked and marked == server.marked(label if label is not None else marked.rpartition(" ")[0]):
            return server
    return None


def put_back(servers: Sequence[Server], label: str | None) -> None:
    """Put the prepared data back in every server's pod and start it: cold, the same bytes every time."""
    source = find(servers, label)
    if source is None:
        raise SiteError("the cluster holds no prepared data of this engine and data set; it is loaded again")
    marked = source.label()
    for server in servers:
        server.stop()
        if server.label() != marked:
            give(source, server)
        server.run(*SCRIPT, "restore")
        server.ensure()


def give(source: Server, target: Server) -> None:
    """Carry the prepared copy from one pod to another; its digest is the same at both ends."""
    digest, size = source.run(*SCRIPT, "pack").split()
    file = "/var/lib/benchbook/copy.tar.gz"
    cluster, namespace = source.space.cluster, source.space.namespace
    reading = cluster.open(namespace, pod_of(source.part), ["cat", file])
    writing = cluster.open(namespace, pod_of(target.part), [*SCRIPT, "unpack", digest, size], has_stdin=True)
    moved = 0
    try:
        while moved < int(size):
            # Frame by frame: the client library would first gather all that the other side can send.
            opcode, frame = reading.sock.recv_data_frame(True)
            if opcode == ABNF.OPCODE_CLOSE:
                break
            if opcode == ABNF.OPCODE_BINARY and frame.data[:1] == bytes([OUT]):
                writing.write_stdin(frame.data[1:])
                moved += len(frame.data) - 1
    except LOST:
        # What did not arrive is told below.
        pass
    writing.run_forever(timeout=COPY_S)
    reading.close()
    source.run("rm", "-f", file)
    if moved != int(size) or writing.returncode != 0:
        raise SiteError(
            f"{pod_of(source.part)}: its copy did not arrive in {pod_of(target.part)}: {moved} of {size} "
            "bytes; "
            "look at the space in its volume"
        )
