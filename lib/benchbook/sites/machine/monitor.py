"""Watch this machine while a run goes on, with the same code that an agent watches its host with."""

from __future__ import annotations

import resource
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchbook.sites import contract
from benchbook.sites.agent.watch import Watch
from benchbook.sites.processes import procfs
from benchbook.sites.processes.tcp_bytes import Hop

COLUMNS = (
    "second", "part", "cpu_cores", "rss_mib", "steal_pct", "psi_cpu_pct", "psi_io_pct",
    "psi_memory_pct", "received_mib_s", "sent_mib_s", "system_cores", "voluntary_per_s", "involuntary_per_s",
    "wait_cores", "read_kib_s", "written_kib_s", "major_faults_per_s", "threads",
)  # fmt: skip


class Monitor(contract.Watch):
    """Sample processes and machine once a second from threads of its own, between `start` and `stop`.

    `parts` maps a part to its process ids, `clients` are those of the load clients in their order, `hops` say
    what connections are counted for their bytes, `families` are processes whose children count with them.
    Stop it when the client has been waited for: only then does the kernel count its CPU seconds.
    """

    def __init__(
        self,
        parts: Mapping[str, Sequence[int]],
        path: Path,
        *clients: int,
        hops: Sequence[Hop] = (),
        families: Sequence[int] = (),
    ) -> None:
        self.parts = {part: [pid for pid in pids if procfs.is_alive(pid)] for part, pids in parts.items()}
        self.path, self.clients, self._hops = path, clients, list(hops)
        self._families = tuple(families)

    def start(self) -> None:
        self._cpu_before = _children_cpu_s()
        self._watch = Watch(
            *(self.parts, "machine", list(self.clients), self.path, self._hops, self._families),
            counts_s=self.counts_s,
        )

    def stop(self) -> None:
        seen = self._watch.stop()
        self.client_cpu_s = _children_cpu_s() - self._cpu_before
        self.runqueue_waits_s = [seen.runqueue_waits_s[client] for client in self.clients]
        for name in ("longest_pause_ms", "steal_pct", "oom_kills", "clock_step_s", "cores", "counted"):
            setattr(self, name, getattr(seen, name))
        self.strangers = {"machine": seen.strangers}
        rows = self.path.read_text(encoding="utf-8")
        self.path.write_text(",".join(COLUMNS) + "\n" + rows, encoding="utf-8")


def _children_cpu_s() -> float:
    """Return the CPU seconds of all children that have ended; servers go on, so the client's is left."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
