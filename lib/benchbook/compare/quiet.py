"""How quiet the machine was, and which arm other work on it can have favoured.

Everything here looks at signals of the machine, never at what was measured.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import pandas as pd

from benchbook.compare import edges, turns
from benchbook.compare.doubts import STEAL_PCT, doubt
from benchbook.compare.sentences import ends, listing
from benchbook.core import traits
from benchbook.core.findings import Doubt, Finding, Named, Quiet
from benchbook.core.study import Study
from benchbook.core.wording import count

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


def accompanied(study: Study) -> list[str]:
    """Return the arms that have programs of unmeasured processor time with them: neighbours and loads."""
    return [name for name, arm in study.arms.items() if arm.neighbour is not None or arm.load is not None]


def seen(
    runs: pd.DataFrame,
    facts: Facts,
    monitor: pd.DataFrame | None,
    aa: Finding | None,
    unmeasured: Collection[str] = (),
) -> Quiet:
    """Return what is known of the machine's quiet: values, and all of it in one line.

    `load_1min` is the highest when the arms were looked at, the others are means over runs. Beside arms in
    `unmeasured` (see `accompanied`) no other program can be told from theirs.
    """
    cores = _cores(facts)
    others = _others(runs, cores, unmeasured)
    pressure = _pressure(runs, monitor)
    steal = runs.steal_pct.dropna() if "steal_pct" in runs else pd.Series(dtype=float)
    found = Quiet(
        cores=cores,
        load_1min=max(_loads(facts), default=None),
        others_cores=None if others is None else float(others.mean()),
        psi_cpu_pct=None if pressure is None else float(pressure.mean()),
        steal_pct=float(steal.mean()) if len(steal) else None,
        line="",
    )
    return found.model_copy(update={"line": _line(found, aa)})


def doubts(
    runs: pd.DataFrame,
    facts: Facts,
    monitor: pd.DataFrame | None,
    names: Named,
    unmeasured: Collection[str] = (),
) -> list[Doubt]:
    """Return what other work, the host or the kernel's pace can have done, with the arms it can favour."""
    own = runs[runs.arm.isin(facts)] if facts else runs
    arms = names.arms
    return [
        *_load(facts, arms),
        *_other_work(own, facts, arms, unmeasured),
        *_waiting(own, facts, monitor, arms),
        *_steal(own, arms),
        *_paced(own, facts, monitor, names),
    ]


def _line(found: Quiet, aa: Finding | None) -> str:
    cores = "" if found.cores is None else f" on {count(found.cores, 'core')}"
    parts = []
    if found.load_1min is not None:
        parts.append(f"load {found.load_1min:.1f}{cores} before measuring")
    if found.others_cores is not None:
        parts.append(f"other programs used {found.others_cores:.2f} cores during runs")
    if found.psi_cpu_pct is not None:
        parts.append(f"some task waited for a core {found.psi_cpu_pct:.0f}\N{NO-BREAK SPACE}% of the time")
    if found.steal_pct is not None:
        parts.append(f"the host took {found.steal_pct:.1f}\N{NO-BREAK SPACE}% of the time for others (steal)")
    if aa is not None and aa.low is not None:
        parts.append(f"equal arms (A/A) came out within {ends(aa.low, aa.high)} of each other")
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}." if text else "Nothing was recorded about it."


def _load(facts: Facts, arms: Mapping[str, str]) -> Iterator[Doubt]:
    worst, cores = max(_loads(facts), default=None), _cores(facts)
    if worst is None or cores is None or edges.is_below(worst, BUSY * cores):
        return
    favoured = _simplest(facts)
    yield doubt(
        "Load",
        f"The load was {worst:.1f} on {count(cores, 'core')} before measuring began, so other programs "
        f"wanted the same cores. {_favour(favoured, arms, 'fewer programs take part in a query there')}",
        favoured,
    )


def _other_work(
    runs: pd.DataFrame, facts: Facts, arms: Mapping[str, str], unmeasured: Collection[str]
) -> Iterator[Doubt]:
    cores = _cores(facts)
    others = _others(runs, cores, unmeasured)
    if others is None or cores is None:
        return
    told = _by_arm(others, runs, (OTHERS * cores, OTHERS_APART * cores), "{:.2f} cores beside {}", arms)
    for sentence, favoured in told:
        yield doubt(
            "Other programs",
            f"Programs that are no part of an arm used {sentence}, of {cores}. "
            f"{_favour(favoured, arms, 'less of it ran there')}",
            favoured,
        )


def _by_arm(
    values: pd.Series, runs: pd.DataFrame, bounds: tuple[float, float], text: str, arms: Mapping[str, str]
) -> Iterator[tuple[str, list[str]]]:
    """Yield values by arm in words, with the arm that has least where they are far apart.

    Nothing where their mean and what they are apart are below the two bounds.
    """
    by_arm = values.groupby(runs.arm).mean().dropna()
    apart = by_arm.max() - by_arm.min()
    if len(by_arm) and not (edges.is_below(values.mean(), bounds[0]) and edges.is_below(apart, bounds[1])):
        sentence = listing([text.format(value, arms.get(arm, arm)) for arm, value in by_arm.items()])
        yield sentence, [by_arm.idxmin()] if edges.is_above(apart, bounds[1]) else []


def _waiting(
    runs: pd.DataFrame, facts: Facts, monitor: pd.DataFrame | None, arms: Mapping[str, str]
) -> Iterator[Doubt]:
    fewest = runs[runs.threads == runs.threads.min()] if len(runs) else runs
    pressure = _pressure(fewest, monitor)
    if pressure is None or edges.is_below(pressure.mean(), PRESSURE_PCT):
        return
    favoured = _simplest(facts)
    threads = count(int(fewest.threads.iloc[0]), "thread")
    yield doubt(
        "CPU pressure",
        f"At {threads} some task waited for a core {pressure.mean():.0f} % of the time, more than the arms' "
        f"own work explains. {_favour(favoured, arms, 'fewer programs take part in a query there')}",
        favoured,
    )


def _steal(runs: pd.DataFrame, arms: Mapping[str, str]) -> Iterator[Doubt]:
    if "steal_pct" not in runs or runs.empty:
        return
    bounds = STEAL_PCT, STEAL_APART_PCT
    for sentence, favoured in _by_arm(runs.steal_pct, runs, bounds, "{:.1f} % in runs of {}", arms):
        yield doubt(
            "Steal",
            f"The machine's host took part of its time: {sentence}. "
            f"{_favour(favoured, arms, 'less was taken there')}",
            favoured,
        )


def _paced(runs: pd.DataFrame, facts: Facts, monitor: pd.DataFrame | None, names: Named) -> Iterator[Doubt]:
    paced = [
        arm
        for arm, found in facts.items()
        if any(one.get("congestion_control") == "bbr" for one in _machines(found))
    ]
    sent = _sent(runs, monitor)
    if not paced or sent is None:
        return
    sizes = (1024 * sent / runs.qps.where(runs.qps > 0)).groupby(runs.workload).mean()
    large = sizes[sizes >= LARGE_KIB]
    if large.empty:
        return
    sentence = listing(
        [f"{size:.0f} KiB a query on {names.workloads.get(on, on)}" for on, size in large.items()]
    )
    favoured = [
        arm for arm in paced if facts[arm].get("proxy") or facts[arm].get("access") in traits.proxies()
    ]
    yield doubt(
        "BBR",
        f"TCP is paced by BBR (congestion_control: bbr), on loopback too, and results are large: {sentence}. "
        "Large results came at half the speed when this project measured it, and a proxy changes the pace. "
        f"{_favour(favoured, names.arms, 'results cross a second connection there')}",
        favoured,
    )


def _favour(favoured: list[str], arms: Mapping[str, str], why: str) -> str:
    if not favoured:
        return "It met all arms alike."
    return f"This can favour {listing([arms.get(arm, arm) for arm in favoured])}, because {why}."


def _simplest(facts: Facts) -> list[str]:
    """Return the arms without a proxy, if others have one: fewer programs have to get a core for a query."""
    plain = [arm for arm, found in facts.items() if not found.get("proxy")]
    return plain if 0 < len(plain) < len(facts) else []


def _machines(found: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    machines = [found.get("machine"), *(found.get("hosts") or {}).values()]
    return [one for one in machines if isinstance(one, Mapping)]


def _cores(facts: Facts) -> int | None:
    """Return the cores of the one machine that all is on; of several hosts none is the machine."""
    cores = {(found.get("machine") or {}).get("cores") for found in facts.values() if not found.get("hosts")}
    only = next(iter(cores)) if len(cores) == 1 else None
    return None if only is None else int(only)


def _loads(facts: Facts) -> list[float]:
    loads = ((found.get("moment") or {}).get("load_1min") for found in facts.values())
    return [load for load in loads if load is not None]


def _others(runs: pd.DataFrame, cores: int | None, unmeasured: Collection[str]) -> pd.Series | None:
    """Return the cores that programs of no arm used in each run; None where that is not known."""
    if cores is None or "cpu_machine_pct" not in runs or not set(PARTS) <= set(runs):
        return None
    used = runs[PARTS].fillna(0.0).sum(axis=1)
    is_turns = turns.orders(runs) == turns.TURNS
    if is_turns.any():
        # The machine was watched while all arms of a group took turns, so its use is that of their mean.
        used = used.where(~is_turns, used.groupby([runs.block, runs.group]).transform("mean"))
    others = runs.cpu_machine_pct * cores / 100 - used
    is_known = runs.cpu_server_cores.notna() & ~runs.arm.isin(list(unmeasured))
    known = others.where(is_known).clip(lower=0.0)
    return known if known.notna().any() else None


def _sent(runs: pd.DataFrame, monitor: pd.DataFrame | None) -> pd.Series | None:
    """Return MiB/s that the server sent in each run; of turns what the monitor saw, for all arms together."""
    if "sent_server_mib_s" not in runs:
        return None
    if monitor is None or runs.sent_server_mib_s.notna().all() or "sent_mib_s" not in monitor:
        return runs.sent_server_mib_s
    seen = monitor[monitor.part == "server"].groupby("run_id")["sent_mib_s"].mean()
    return runs.sent_server_mib_s.fillna(runs.run_id.map(seen))


def _pressure(runs: pd.DataFrame, monitor: pd.DataFrame | None) -> pd.Series | None:
    if monitor is None or "psi_cpu_pct" not in monitor:
        return None
    own = monitor[(monitor.part == "machine") & monitor.run_id.isin(runs.run_id)]
    known = own.psi_cpu_pct.dropna()
    return known if len(known) else None
