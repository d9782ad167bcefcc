"""One run made of several clients and servers: the share of each.

Threads are split evenly, for a study whose threads can't be is refused. A rate is split to the transaction.
Each client has a seed of its own, since with one seed all would ask for the same rows at the same time.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from benchbook.core.study import descriptors, registry, sysbench_workloads

# Keys of an arm's setting.
CLIENTS, SERVERS, OPTIONS_BY = "clients", "servers", "options_by"
KEYS = (CLIENTS, SERVERS)
READING_ONLY = frozenset(sysbench_workloads.SCRIPTS) - sysbench_workloads.WRITING
SEEDS = 2**31 - 2
# Far from the steps of 1 by which the arms of a group differ; prime to SEEDS, so that no two are alike.
SEED_STEP = 1_640_531_527


def count_clients(setting: Mapping[str, Any] | None) -> int:
    """Number of clients in an arm's setting."""
    return int((setting or {}).get(CLIENTS, 1))


def count_servers(setting: Mapping[str, Any] | None) -> int:
    """Number of servers in an arm's setting."""
    return int((setting or {}).get(SERVERS, 1))


def has_file(setting: Mapping[str, Any] | None) -> bool:
    """True if an arm's setting has sysbench's options in a file."""
    return (setting or {}).get(OPTIONS_BY, "arguments") == "file"


def server_of(client: int, servers: int) -> int:
    """Number of the server that a client uses."""
    return client % servers


def split_plan(plan: Mapping[str, Any], number: int, clients: int) -> dict[str, Any]:
    """Threads, rate and seed of one client; all shares make the plan's numbers."""
    rate = int(plan.get("rate") or 0)
    return {
        "threads": plan["threads"] // clients,
        "rate": rate // clients + (number < rate % clients),
        "seed": 1 + (plan["seed"] - 1 + number * SEED_STEP) % SEEDS,
    }


def find_refusals(study: Any) -> Iterator[str]:
    """Parts of a study that do not go with several clients or servers."""
    threads: tuple[int, ...] = study.threads
    for name, arm in study.arms.items():
        place, count = f"arms.{name}", arm.clients
        is_standby = has_standby(arm.setting)
        if count % arm.servers and not is_standby:
            why = f"{count} clients can't be shared out evenly among them"
            yield f"{place}.{SERVERS}: {arm.servers}: {why}; write clients: {arm.servers} or a multiple"
        has_clients = f"arm {name} has {count} clients, and"
        if odd := [level for level in threads if level % count]:
            nearest = sorted({max(count, count * round(level / count)) for level in threads})
            remedy = f"write multiples of {count}, such as {nearest}"
            yield f"threads: {odd[0]}: {has_clients} each needs the same number of threads; {remedy}"
        for workload, settings in study.workloads.items():
            rate, why = settings.rate, f"{has_clients} one without a share would run as fast as it goes"
            if isinstance(rate, int) and 0 < rate < count:
                yield f"workloads.{workload}.rate: {rate}: {why}; write {count} or more"
        if is_standby:
            yield from _of_standby(name, study)
        elif arm.servers > 1:
            yield from _of_servers(place, arm)


def _of_standby(name: str, study: Any) -> Iterator[str]:
    """Sites and workloads that do not go with an arm's servers that stand by."""
    if study.site.kind == "kubernetes":
        why = "its proxies lead to one server"
        yield registry.format_refusal(f"arms.{name}.{SERVERS}", study.site.kind, ("local", "ssh"), why)
    for workload in study.workloads:
        if study.script(workload) not in READING_ONLY:
            why = f"writes, or may, and the servers of arm {name} don't replicate"
            yield f"workloads.{workload}: {why}; write one that only reads"


def has_standby(setting: Mapping[str, Any] | None) -> bool:
    """True if the servers after the first stand by behind a proxy that fails over, by the setting."""
    proxy = descriptors.load_proxies().get(str((setting or {}).get("access")))
    return count_servers(setting) > 1 and proxy is not None and proxy.fails_over


def _of_servers(place: str, arm: Any) -> Iterator[str]:
    """Keys between clients and servers that would serve one of several servers alone."""
    has_servers = f"and the arm has {arm.servers}"
    if arm.access != "direct":
        yield f"{place}.access: {arm.access}: leads to one server, {has_servers}; write direct, or servers: 1"
    for key in ("zones", "load"):
        if getattr(arm, key) is not None:
            yield f"{place}.{key}: is made for one server, {has_servers}; remove it"
