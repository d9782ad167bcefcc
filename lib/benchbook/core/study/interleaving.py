"""Turns: all arms of a group connected at once, one of them running at a time.

What happens to the machine within a second meets every arm alike, so it cancels in their ratio. An arm's
speed is its queries over its active seconds, the sum of its own turns.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from benchbook.core.study import custom_scripts, descriptors, engines, registry, sysbench_workloads
from benchbook.core.study.model import PlannedRun, compute_fingerprint
from benchbook.core.study.study_kubernetes import Kubernetes

TURNS, RUNS = "turns", "runs"
DEFAULT_MS = 20
LADDER_MS = (20, 50, 100, 200, 500, 1000, 2000)
"""Lengths that are used: pilots that differ a little then ask for the same, and runs that exist are kept."""
RULES = 2
"""Number of the rules of orders and lengths, `rules` of `warm_up.json`; `plan/earlier_rules` lifts others."""
STATEMENTS = 10
"""Mean statements that a turn must hold at the least, beside a mean transaction: one on its way at the end of
a turn is answered in the pause before the next. Read-write transactions of 12 ms at 8 threads spread by 1 to
2 % a block in turns of 20 and 50 ms, by 1 to 4 % in turns of 200 (4 active seconds, one shared machine), and
the effect of a proxy was the same."""
EDGE_S, GUARD_S = 0.5, 0.2
"""Seconds on sysbench's clock beside discard and turns, unless the pilots showed that clients take longer to
start: all stand still at both ends of the window (`GUARD_S`), which begins when the last client has started
and ends when the first one's time is over."""
THREAD_MS = 1.5
"""Milliseconds of a turn for each thread of a client: to stand still and to go on takes a thread some 0.02 ms
of a core, and up to 0.07 ms on a busy machine (64 threads, two cores), so a twentieth of its turn at most."""
SWITCHING, SWITCHING_MS = 0.03, 2.0
"""Share of the turns' seconds that switching between arms may take, and milliseconds that it takes where
turns are shorter than `LONG_MS`."""
LONG_MS = 50
LONGEST_RUN_S = 300
"""Longer runs look for stalls and drift, which an arm that stands still half of the time doesn't show."""
MOST_THREADS = 200
"""A client stands still when its last thread does: 125 did in time, 250 used 7 ms of a core after it."""
LEAST_RUN_S = 2


def is_in_turns(plan: Mapping[str, Any]) -> bool:
    """True if a planned run, as in `plan.json`, is made in turns."""
    return plan.get("order", RUNS) == TURNS


def clock_seconds(planned: PlannedRun) -> tuple[int, int]:
    """Seconds of discard and of measuring on sysbench's own clock.

    In turns that clock goes on while the others run, so both are those of all arms together. A study in turns
    makes whole runs where the pilots' transactions were too long; sysbench counts those by the whole second.
    """
    discard_s, run_s = planned.discard_s, planned.run_s
    if planned.order != TURNS:
        return math.ceil(discard_s), math.ceil(run_s)
    arms, edge_s = len(planned.partners), planned.edge_s or EDGE_S
    switching = SWITCHING if planned.turn_ms >= LONG_MS else SWITCHING_MS / max(1, planned.turn_ms)
    return max(1, math.ceil(arms * discard_s)), math.ceil(arms * run_s * (1 + switching) + edge_s)


def round_seconds(planned: PlannedRun) -> float:
    """Seconds with one turn for each arm of a group: as long may a client wait for its own."""
    return len(planned.partners) * planned.turn_ms / 1000


def find_obstacles(study: Any, workload: str) -> list[str]:
    """Reasons against measuring a workload in turns, each as `path.to.key: reason`."""
    waits = [reason for reason, turn_ms in find_slow(study) if turn_ms is None]
    return [*_of_site(study), *waits, *_of_arms(study), *_of_workload(study, workload)]


def choose_order(study: Any, workload: str) -> str:
    """Order of a workload's runs: as `plan.order` says, else in turns if nothing is against it."""
    if study.plan.order is not None:
        return str(study.plan.order)
    return RUNS if find_obstacles(study, workload) else TURNS


def least_ms(study: Any) -> int:
    """Shortest turn that gives the results of whole runs, in ms; more if something must catch up."""
    return max([DEFAULT_MS, *(turn_ms for _, turn_ms in find_slow(study) if turn_ms is not None)])


def has_separate_twin(study: Any) -> bool:
    """True if in turns the baseline's twin needs a separate server, because arms can't share one."""
    engine = engines.engine_of(study, study.baseline).name
    return study.aa is not None and descriptors.find_engine(engine).has_own_work


def find_misleading(study: Any) -> Iterator[str]:
    """Reasons that a study's A/A pair would show a false difference, with the remedy.

    A twin that has a server of its own serves less than the baseline's where it takes part in some groups
    only. After that the twin's server is faster: by 1.5 to 11 %, where TiDB was measured so.
    """
    if not has_separate_twin(study) or all(choose_order(study, name) == RUNS for name in study.workloads):
        return
    if all(study.has_twin(name, level) for name in study.workloads for level in study.threads):
        return
    why = "in turns the baseline's twin has a server of its own, and gets faster than the baseline's where it"
    for key in ("workloads", "threads"):
        if (part := getattr(study.aa, key)) is not None:
            yield f"aa.{key}: {list(part)}: {why} serves fewer groups; write aa: {{}}, or plan.order: runs"


def find_mistakes(study: Any) -> Iterator[str]:
    """Reasons against turns in a study that asks for them, and keys that only turns allow."""
    plan = study.plan
    if any(choose_order(study, name) == RUNS for name in study.workloads):
        yield from _of_whole_runs(plan)
    shortest_ms = least_ms(study)
    if plan.turn_ms is not None and max(plan.turn_ms, DEFAULT_MS) < shortest_ms:
        why = max(find_slow(study), key=lambda item: item[1] or 0)[0]
        yield f"plan.turn_ms: {plan.turn_ms}: {why}; write {shortest_ms} or more, or leave it out"
    if plan.order != TURNS:
        return
    for reason in dict.fromkeys(reason for name in study.workloads for reason in find_obstacles(study, name)):
        yield f"plan.order: turns: {reason}; write order: runs, or leave it out"


def _of_whole_runs(plan: Any) -> Iterator[str]:
    for key in ("discard_s", "run_s"):
        if (length := getattr(plan, key)) != int(length):
            yield f"plan.{key}: {length}: sysbench counts whole seconds; write a whole number"
    if plan.run_s < LEAST_RUN_S:
        yield f"plan.run_s: {plan.run_s}: too short for a whole run; write {LEAST_RUN_S} or more"


def _of_site(study: Any) -> Iterator[str]:
    kind = study.site.kind
    if kind == "kubernetes":
        yield from _of_cluster(study)
    elif kind == "existing":
        # Nobody stops a server that others run: it would go on in the turns of others.
        for name in _engines_with("has_own_work", study):
            yield f"engine.name: {name}: its own work goes on after it has answered"
        for name in _writing_workloads(study):
            yield f"workloads.{name}: what a server flushes and purges late falls into the turns of others"
    elif kind != "local":
        yield f"site.kind: {kind}: turns are taken by clients on this machine or in the load pod of a cluster"
    if study.plan.run_s > LONGEST_RUN_S:
        yield f"plan.run_s: {study.plan.run_s}: more than {LONGEST_RUN_S} s look for stalls, not for a mean"
    if max(study.threads) > MOST_THREADS:
        yield f"threads: {max(study.threads)}: more than {MOST_THREADS} don't stand still within a turn"
    if study.plan.discard_s == 0 and study.plan.order is None:
        yield "plan.discard_s: 0: the first turns are never counted"


def _of_cluster(study: Any) -> Iterator[str]:
    here = study.site.kubernetes or Kubernetes()
    unstopped = "a server in a pod is not stopped with its client"
    if study.plan.order is None:
        where = "turns have been measured in clusters of one machine only"
        yield f"site.kind: kubernetes: {where}; write plan.order: turns for such a one"
    if here.client_in == "server":
        yield "site.kubernetes.client_in: server: one clock can't reach the clients in several containers"
    if here.client.cpu is not None:
        yield "site.kubernetes.client.cpu: what one arm's client uses of this limit, the next one lacks"
    if descriptors.find_engine(study.engine.name).has_own_work:
        why = f"{unstopped}, so its own work would go on in the turns of others"
        yield f"engine.name: {study.engine.name}: {why}"
    yield from _of_clients(study.arms)
    late = "so what one arm's server flushes and purges late would be paid for in the turns of others"
    for name in _writing_workloads(study) if _has_separate_servers(study) else ():
        yield f"workloads.{name}: {unstopped}, {late}"


def _of_clients(arms: Mapping[str, Any]) -> Iterator[str]:
    places = {name: arm.placement and arm.placement.nodes.get("client") for name, arm in arms.items()}
    for name, place in places.items():
        if arms[name].access == descriptors.LOAD_BALANCER:
            yield f"arms.{name}.access: load_balancer: its client is outside the cluster, and others are not"
        if place != next(iter(places.values())):
            yield f"arms.{name}.placement.nodes.client: one clock can't reach clients on several nodes"


QUOTA_MS, WEIGHT_MS, SESSIONS_MS = 500, 200, 100
"""Milliseconds of a slow turn: fifty periods of a quota (`sites.local.cgroups`), for one may be had twice (in
turns of 200 ms arms used 1 to 6 % more than their quota, the smaller one more); some dozen slices in which a
weight is paid back; for the processes of some dozen sessions to stand still."""
LEAST_QUOTA = 0.1
"""Cores below which a quota has longer periods: the kernel takes none of less than a millisecond."""
DELAYS = 100
"""Times that a turn is longer than the way there and back: a request on its way comes nearer meanwhile."""


def find_slow(study: Any) -> list[tuple[str, int | None]]:
    """Work that goes on by the clock in an arm's pause, and the ms of a turn of which it is less than a per
    cent; None where no turn is long enough."""
    slow: list[tuple[str, int | None]] = []
    for name, arm in study.arms.items():
        for part, cpu in arm.cpu.items():
            if cpu.quota is not None:
                why = f"arms.{name}.cpu.{part}.quota: a quota refills while the arm stands still"
                slow.append((why, QUOTA_MS if cpu.quota >= LEAST_QUOTA else None))
        if arm.qos != "none":
            why = f"arms.{name}.qos: a control group's weight is paid back after the arm has stood still"
            slow.append((why, WEIGHT_MS))
        if arm.neighbour is not None:
            slow.append((f"arms.{name}.neighbour: it stands still with its arm", WEIGHT_MS))
        if arm.zones is not None:
            why = "distance is waiting for a clock, which goes on while the arm stands still"
            length = max(SESSIONS_MS, math.ceil(2 * DELAYS * arm.zones.latency_ms))
            slow.append((f"arms.{name}.zones: {why}", length if length <= LADDER_MS[-1] else None))
    if study.site.kind != "existing" and _has_separate_servers(study):
        why = "it begins a process for each session, and all must stand still"
        forking = _engines_with("has_backends", study)
        slow += [(f"engine.name: {name}: {why}", SESSIONS_MS) for name in forking]
    is_here = study.site.kind == "local" and not _engines_with("has_own_work", study)
    return slow if is_here else [(text, None) for text, _ in slow]


def _of_arms(study: Any) -> Iterator[str]:
    for name, arm in study.arms.items():
        if (proxy := descriptors.find_intermediary(arm.access)) is not None and proxy.has_children:
            yield f"arms.{name}.access: {arm.access}: processes that it starts go on in the turns of others"
        setting = arm.setting
        yield from (f"arms.{name}.{key}: {why}" for key, why in _REFUSED.items() if key in setting)
    if study.engine.cluster is not None:
        yield "engine.cluster: its parts wait by a clock that goes on while the arm stands still"
    for name in _engines_with("has_own_work", study) if _is_sharing_possible(study) else ():
        yield f"engine.name: {name}: arms share it, and its own work would go on in the turns of others"


_REFUSED = {
    "clients": "several clients begin together as one run, which turns don't arrange",
    "servers": "several servers begin together as one run, which turns don't arrange",
    "event": "what is ended and started again takes its second of the others, too",
    "load": "its connections go on while the arm stands still",
    "capture": "the proxy writes on while the arm stands still",
}


def _of_workload(study: Any, workload: str) -> Iterator[str]:
    if study.workloads[workload].order == RUNS:
        yield f"workloads.{workload}.order: runs"
    if study.workloads[workload].rate:
        yield f"workloads.{workload}.rate: transactions come in while the arm stands still"
    if study.aa is None and not _is_sharing_possible(study):
        return
    if custom_scripts.is_own(study.script(workload)):
        yield f"workloads.{workload}.script: it may change the number of rows in tables that arms share"
    if study.script(workload) in sysbench_workloads.GROWING:
        yield f"workloads.{workload}: it changes the number of rows in tables that arms share"


def _engines_with(trait: str, study: Any) -> list[str]:
    """Engines of a study that say a trait of themselves, by a key of their descriptors."""
    names = sorted(registry.engine_names(study))
    return [name for name in names if getattr(descriptors.find_engine(name), trait)]


def _writing_workloads(study: Any) -> list[str]:
    return [name for name in study.workloads if study.script(name) in sysbench_workloads.WRITING]


def _is_sharing_possible(study: Any) -> bool:
    """True if two arms may have one server: those that differ in access alone do."""
    return len(_list_variants(study)) < len(study.arms)


def _has_separate_servers(study: Any) -> bool:
    """True if arms have separate servers."""
    return len(_list_variants(study)) > 1


def _list_variants(study: Any) -> set[str]:
    """Marks that set the servers of arms apart, each once."""
    keys = {"engine", "data", "network", "kernel", "zones", "qos", "cpu", "servers", "placement", "parts"}
    return {compute_fingerprint(arm.model_dump(mode="json", include=keys)) for arm in study.arms.values()}
