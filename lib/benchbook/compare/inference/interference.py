"""Interference by other work, by signals of the machine alone, and the arms that it can have favoured."""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pandas as pd

from benchbook.compare.inference.caveats import STEAL_PCT, caveats_from_template
from benchbook.compare.stats import tolerance
from benchbook.compare.text import sentences
from benchbook.core.artifacts.findings import DisplayNames, Interference, ValidityThreat
from benchbook.core.study import descriptors
from benchbook.core.study.interleaving import TURNS
from benchbook.core.study.study import StudySpec
from benchbook.core.util.plural import as_sentence

Facts = Mapping[str, Mapping[str, Any]]

# Programs that want a core for each core there is; above it, something waits before anything is measured.
BUSY = 1.0
# Share of the machine that others may use unseen, and by how much of it arms may differ.
OTHERS, OTHERS_APART = 0.10, 0.05
# At the fewest threads an arm's own work can't explain that tasks wait for a core so much of the time.
PRESSURE_PCT = 25.0
STEAL_APART_PCT = 1.0
# Results from this size on are paced noticeably by BBR, also on loopback.
LARGE_KIB = 16.0
PARTS = ["cpu_client_cores", "cpu_proxy_cores", "cpu_server_cores"]


def arms_with_side_load(study: StudySpec) -> list[str]:
    """Arms with programs of unmeasured processor time beside them: neighbours and loads."""
    return [name for name, arm in study.arms.items() if arm.neighbour is not None or arm.load is not None]


def measure_interference(
    runs: pd.DataFrame, facts: Facts, monitor: pd.DataFrame | None, unmeasured: Collection[str] = ()
) -> Interference:
    """Interference on the machine: values, and all of it in one line.

    `load_1min` is the highest when the arms were looked at, the others are means over runs. Beside arms in
    `unmeasured` (see `arms_with_side_load`) no other program can be told from theirs.
    """
    cores = _machine_cores(facts)
    interference = Interference(
        cores=cores,
        load_1min=max(_load_averages(facts), default=None),
        others_cores=_mean_of(_foreign_cores(runs, cores, unmeasured)),
        psi_cpu_pct=_mean_of(_cpu_pressure(runs, monitor)),
        steal_pct=_mean_of(runs.steal_pct.dropna()),
        line="",
    )
    parts = sentences.render_paragraphs("machine.j2", found=interference)
    line = as_sentence("; ".join(parts)) if parts else "Nothing was recorded about it."
    return interference.model_copy(update={"line": line})


def interference_caveats(
    runs: pd.DataFrame,
    facts: Facts,
    monitor: pd.DataFrame | None,
    names: DisplayNames,
    unmeasured: Collection[str] = (),
) -> list[ValidityThreat]:
    """Caveats on other work, the host and the kernel's pace, with the arms that they can favour."""
    usable = runs[runs.arm.isin(facts)] if facts else runs
    cores, load = _machine_cores(facts), max(_load_averages(facts), default=None)
    mean = _mean_of(_foreign_cores(runs, cores, unmeasured))
    # What was over before measuring is no doubt about it.
    is_over = mean is not None and tolerance.is_below(mean, sentences.NOTHING)
    foreign, whole = _foreign_cores(usable, cores, unmeasured), cores or 0
    used, least_used = _by_arm(foreign, usable, OTHERS * whole, OTHERS_APART * whole)
    stolen, least_stolen = _by_arm(usable.steal_pct, usable, STEAL_PCT, STEAL_APART_PCT)
    fewest = usable[usable.threads == usable.threads.min()]
    paced = [arm for arm, arm_facts in facts.items() if _is_paced(arm_facts)]
    sizes = pd.Series(dtype=float)
    if paced:
        sent = 1024 * _sent_rate(usable, monitor) / usable.qps.where(usable.qps > 0)
        sizes = sent.groupby(usable.workload).mean()
    simplest = _simplest_arms(facts)
    favours = {"Load": simplest, "Other programs": least_used, "CPU pressure": simplest}
    favours |= {"Steal": least_stolen, "BBR": _proxied_arms(facts, paced)}
    return caveats_from_template(
        "quiet.j2",
        favours=favours,
        names=names,
        cores=cores,
        load=None if is_over else _unless_below(load, BUSY * (cores or math.inf)),
        others=mean,
        used=used,
        threads=fewest.threads.min(),
        workloads=[names.workloads.get(name, name) for name in fewest.workload.unique()],
        waited=_unless_below(_mean_of(_cpu_pressure(fewest, monitor)), PRESSURE_PCT),
        stolen=stolen,
        large=sizes[sizes >= LARGE_KIB],
    )


def _mean_of(values: pd.Series | None) -> float | None:
    return None if values is None or values.empty else float(values.mean())


def _unless_below(value: float | None, least: float) -> float | None:
    return None if value is None or tolerance.is_below(value, least) else value


def _simplest_arms(facts: Facts) -> list[str]:
    """Arms without a proxy beside some with one: fewer programs have to get a core for a query."""
    plain = [arm for arm, arm_facts in facts.items() if not arm_facts.get("proxy")]
    return plain if len(plain) < len(facts) else []


def _proxied_arms(facts: Facts, arms: Sequence[str]) -> list[str]:
    proxies = descriptors.load_proxies()
    return [arm for arm in arms if facts[arm].get("proxy") or facts[arm].get("access") in proxies]


def _by_arm(
    values: pd.Series | None, runs: pd.DataFrame, least: float, apart: float
) -> tuple[dict[str, float], list[str]]:
    """Values by arm unless below both bounds, and the arm with the least if they are far apart."""
    if values is None or values.empty:
        return {}, []
    by_arm = values.groupby(runs.arm).mean().dropna()
    spread = by_arm.max() - by_arm.min()
    if by_arm.empty or (tolerance.is_below(values.mean(), least) and tolerance.is_below(spread, apart)):
        return {}, []
    return by_arm.to_dict(), [by_arm.idxmin()] if tolerance.is_above(spread, apart) else []


def _is_paced(arm_facts: Mapping[str, Any]) -> bool:
    machines = [arm_facts.get("machine"), *(arm_facts.get("hosts") or {}).values()]
    return any(isinstance(each, Mapping) and each.get("congestion_control") == "bbr" for each in machines)


def _machine_cores(facts: Facts) -> int | None:
    """Cores of the one machine that all is on; of several hosts none is the machine."""
    machines = (arm_facts.get("machine") for arm_facts in facts.values() if not arm_facts.get("hosts"))
    cores = {(machine or {}).get("cores") for machine in machines}
    only = cores.pop() if len(cores) == 1 else None
    return None if only is None else int(only)


def _load_averages(facts: Facts) -> list[float]:
    loads = ((arm_facts.get("moment") or {}).get("load_1min") for arm_facts in facts.values())
    return [load for load in loads if load is not None]


def _foreign_cores(runs: pd.DataFrame, cores: int | None, unmeasured: Collection[str]) -> pd.Series | None:
    """Cores used by programs of no arm in each run; None if that is not known."""
    if cores is None:
        return None
    used = runs[PARTS].fillna(0.0).sum(axis=1)
    is_turns = runs.order == TURNS
    if is_turns.any():
        # The machine was watched while all arms of a group took turns, so its use is that of their mean.
        used = used.where(~is_turns, used.groupby([runs.block, runs.group]).transform("mean"))
    others = runs.cpu_machine_pct * cores / 100 - used
    is_known = runs.cpu_server_cores.notna() & ~runs.arm.isin(list(unmeasured))
    others = others.where(is_known).clip(lower=0.0)
    return others if others.notna().any() else None


def _sent_rate(runs: pd.DataFrame, monitor: pd.DataFrame | None) -> pd.Series:
    """MiB/s that the server sent in each run; of turns the monitor's rate, for all arms together."""
    if monitor is None or runs.sent_server_mib_s.notna().all():
        return runs.sent_server_mib_s
    observed = monitor[monitor.part == "server"].groupby("run_id")["sent_mib_s"].mean()
    return runs.sent_server_mib_s.fillna(runs.run_id.map(observed))


def _cpu_pressure(runs: pd.DataFrame, monitor: pd.DataFrame | None) -> pd.Series | None:
    if monitor is None:
        return None
    machine = monitor[(monitor.part == "machine") & monitor.run_id.isin(runs.run_id)]
    return machine.psi_cpu_pct.dropna()
