"""What the arrangement of each arm is and is not, in sentences for the report, and which arms were skipped.

On one machine every factor is made of what that has. The sentences say what it is made of, so that no reader
takes a share of this processor's time for another processor.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from benchbook.compare import words
from benchbook.core.claim import Claim
from benchbook.core.document import Facts
from benchbook.core.study import Study
from benchbook.core.study_arm import Arm
from benchbook.core.wording import count


def illustrated(study: Study) -> list[str]:
    """Return the claims that arms of a study show without judging them, each once."""
    return list(dict.fromkeys(claim for arm in study.arms.values() for claim in arm.illustrates))


def notes(study: Study, facts: Facts, claims: Mapping[str, Claim]) -> list[str]:
    """Return a sentence for each skipped arm and for each thing that stands in for another.

    `claims` are the illustrated ones by name.
    """
    skipped = facts.skipped
    found = [f"{_arm(study, arm)} was skipped on this machine: {why}." for arm, why in skipped.items()]
    made: dict[str, list[str]] = {}
    for name, arm in study.arms.items():
        if name in skipped:
            continue
        if arm.stands_in_for is not None:
            found.append(f"{_arm(study, name)} stands in for {arm.stands_in_for.rstrip('.')}.")
        found += [
            f"{_arm(study, name)} illustrates {claim} and doesn't judge it: “{claims[claim].claim}”"
            for claim in arm.illustrates
        ]
        for text in _made_of(arm, facts.arms.get(name, {})):
            made.setdefault(text, []).append(name)
    found += [f"{_named(study, names)}: {text}." for text, names in made.items()]
    return found + _cores(facts.arms)


def title(note: str) -> str:
    """Say in a few words what such a sentence is about.

    >>> title("Arm pod stands in for TiDB: one MariaDB."), title("Claim a/b is not answered: it is a text.")
    ('Stand-in', 'Claim left open')
    """
    kinds = {
        "Claim ": "Claim left open",
        " was skipped ": "Skipped arm",
        " stands in for ": "Stand-in",
        " illustrates ": "Illustrated claim",
        "Client and server ": "One machine",
        "On hosts of their own": "Hosts",
    }
    return next((kind for sign, kind in kinds.items() if sign in note), "Set-up")


def _cores(arms: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Say where server and client ran, if they were kept apart."""
    hosts = {
        (role, host.get("name")): host
        for facts in arms.values()
        for role, host in (facts.get("hosts") or {}).items()
    }
    if hosts:
        # What lies between hosts is part of what was measured.
        named = ", ".join(
            f"{role} {name} ({host.get('cpu_model')})" for (role, name), host in sorted(hosts.items())
        )
        shared = len({name for _, name in hosts}) < len(hosts)
        together = "; parts that share a host compete for it" if shared else ""
        return [f"On hosts of their own, with the network between them: {named}{together}."]
    sites = (facts["site"] for facts in arms.values() if "site" in facts)
    none: Mapping[str, Any] = {}
    cpus: Mapping[str, Any] = next(sites, none).get("cpus") or none
    if not cpus.get("server") or not cpus.get("client"):
        return []
    server, client = (", ".join(map(str, cpus[part])) for part in ("server", "client"))
    return [
        f"Client and server are on one machine, on cores of their own (server {server}; client {client}, and "
        "a proxy with it), unless an arm says otherwise."
    ]


def _named(study: Study, names: list[str]) -> str:
    if len(names) == 1:
        return _arm(study, names[0])
    return f"Arms {', '.join(words.label(study.arms[name].name or name) for name in names)}"


def _arm(study: Study, name: str) -> str:
    """Begin a sentence on an arm with what it is called, beside its key if that is another."""
    arm = study.arms.get(name)
    return f"Arm {name}" if arm is None or arm.name is None else f"Arm {words.label(arm.name)} ({name})"


def _made_of(arm: Arm, facts: Mapping[str, Any]) -> Iterator[str]:
    """Yield what an arrangement is made of, as far as it differs from a server on loopback."""
    site = facts.get("site") or {}
    is_cluster = site.get("kind") == "kubernetes"
    if "embedded" in facts.get("engine", {}).get("storage", ""):
        yield (
            "TiDB here is one process with its embedded storage, which TiDB's own tests use: SQL layer and "
            "transactions are real, but there is no TiKV, no replication, and no write waits for the disk"
        )
    if is_cluster and site.get("client") == "on the server's node":
        yield (
            "client and server are on one node of the cluster: they share its cores, and between them is no "
            "wire and no second machine"
        )
    if arm.servers > 1 and site.get("kind") == "local":
        yield (
            f"{arm.servers} servers, each with data of its own, share the cores that one server has in other "
            "arms; what a machine for each would add is not shown"
        )
    if arm.clients > 1:
        yield (
            f"{arm.clients} clients with a share of the threads each began at one moment; their counts are "
            "added, and percentiles are those of their merged histograms"
        )
    if arm.network == "pod" and not is_cluster:
        yield (
            "a pod here is a network namespace of this machine behind a virtual cable and a bridge; there is "
            "no wire, no second machine and no network plugin of a cluster"
        )
    if arm.access in ("service", "load_balancer") and not is_cluster:
        yield (
            "a service here is one DNAT rule as kube-proxy writes it, without the other rules of a cluster "
            "that a packet would have to pass"
        )
    if arm.access == "load_balancer" and not is_cluster:
        yield "the load balancer is HAProxy on the client's cores, not a machine of a cloud's"
    for part, room in arm.cpu.items():
        if room.quota is not None:
            yield (
                f"the {part} has {room.quota:g} cores' worth of time; that is a share of this processor in "
                "periods of 0.1 s, not another processor"
            )
    yield from _beside(arm, facts)


def _beside(arm: Arm, facts: Mapping[str, Any]) -> Iterator[str]:
    """Yield what goes on beside an arm's own parts, or between them."""
    if arm.neighbour is not None:
        busy = count(arm.neighbour.processes, "thread")
        yield (
            f"the neighbour computes in {busy} on the server's cores while the arm is measured; one that "
            "burdens disk, memory or network is another matter"
        )
    if arm.load is not None and arm.load.idle_connections:
        yield (
            f"{arm.load.idle_connections:,} idle connections are held by one program on the client's cores; "
            "they were opened just before each run, and they were never used"
        )
    if arm.load is not None and arm.load.new_connections_per_s:
        yield (
            f"{arm.load.new_connections_per_s:,} short connections a second log in and leave without a "
            "question, from one program on the client's cores"
        )
    if arm.capture:
        yield "what the proxy captures goes to this machine's disk; nothing is replayed"
    if arm.kernel is not None and arm.network == "host" and not facts.get("hosts"):
        yield "kernel settings hold for the whole machine, the client included"
    if arm.zones is not None:
        if "netem" in (facts.get("zones") or {}).get("made_by", ""):
            yield f"the distance of {arm.zones.latency_ms:g} ms each way is made by netem on the pod's cable"
            return
        ping = facts.get("moment", {}).get("ping_ms") or {}
        pings = ", ".join(f"{value:.2f} ms {name}" for name, value in ping.items())
        yield (
            f"the distance of {arm.zones.latency_ms:g} ms each way is made by a relay of our own, which all "
            f"arms have and which takes time itself"
            f"{f' (an empty command took {pings})' if pings else ''}"
        )
