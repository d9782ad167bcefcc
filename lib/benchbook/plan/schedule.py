"""A study as the list of its runs, in order."""

import itertools
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

import pandas as pd

from benchbook.core.study import custom_scripts, descriptors, sysbench_workloads
from benchbook.core.study import interleaving as words
from benchbook.core.study.engines import engine_of
from benchbook.core.study.model import PlannedRun, compute_fingerprint
from benchbook.core.study.params import Analysis
from benchbook.core.study.study import StudySpec
from benchbook.core.study.study_sections import Rate
from benchbook.core.util.errors import BenchbookError
from benchbook.core.util.plural import count
from benchbook.plan import order, pilot_parameters

PERCENTILE = 99
COLUMNS = ("position", "run_id", "block", "group", "arm", "workload", "threads", "seed", "discard_s", "run_s",
           "order", "turn_ms")  # fmt: skip

# What makes a run another run, apart from its own settings.
LASTING = (
    "access", "engine.version", "engine.binary_sha256", "engine.variables_sha256", "site.cpus",
    "proxy.version", "proxy.binary_sha256", "proxy.config_hash",
    "machine.cpu_model", "machine.cores", "machine.memory_mib", "machine.kernel", "machine.sysbench",
    # Of a cluster, and of hosts.
    "cluster.version", "node.machine_type", "node.image", "node.zone", "qos_class", "resources",
    "encryption", "cluster.topology_sha256",
)  # fmt: skip

STOPS = {"all": "", "decided": " at most, fewer once all is decided at a look"}

PRIORITY: dict[str | None, str] = {
    "raised": "raised, before other programs (nice −10); set site.priority: ordinary for normal priority",
    "ordinary": "an ordinary program's, as site.priority says; what others do is measured, too",
}

# Without a session's own; what is sketched with it is never made.
SKETCHED = 1

# Seconds around a run, and those between blocks, in which data are put back and servers start, for the
# estimate that is shown before anything starts; as measured, by engine. A cluster elects leaders first.
RUN_OVERHEAD_S = 0.5
CLUSTER_OVERHEAD_S = 17.0


def run_conditions(arms: Mapping[str, dict[str, Any]], data: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Digests of facts and of the data for each arm; the latter is in `dataset.json`."""
    conditions = {}
    for arm, facts in arms.items():
        # Listed, so that a fact that a later version records asks for nothing to be measured again.
        lasting = {name: value for name in LASTING if (value := _value_at(facts, name)) is not None}
        conditions[arm] = {"facts": compute_fingerprint(lasting), "data": data["fingerprint"]}
    return conditions


def _value_at(tree: Any, name: str) -> Any:
    """Value under a dotted name, or None."""
    for key in name.split("."):
        tree = tree.get(key) if isinstance(tree, Mapping) else None
    return tree


def plan_runs(
    name: str,
    study: StudySpec,
    conditions: dict[str, dict[str, Any]],
    warm_up: Mapping[str, Any] | None = None,
    seed: int | None = None,
) -> list[PlannedRun]:
    """Every run of a study in the order it is to be made.

    `conditions` holds what each arm was found to be and its data, which is part of each run's id; arms that
    it lacks were skipped, and without any none was. `warm_up` is what pilots settled (without it loops are
    closed), `seed` what the session drew.
    """
    settled = pilot_parameters.settled_rates(study, warm_up) if warm_up is not None else {}
    pilots = warm_up or {}
    scripts = pilot_parameters.carried_scripts(pilots)
    lengths, edges = (pilot_parameters.by_cell(pilots.get("turns", ()), key) for key in ("turn_ms", "edge_s"))
    drawn = study.plan.seed if study.plan.seed is not None else seed
    if drawn is None:
        raise BenchbookError("plan.seed: none, and no session drew one; the session comes first")
    runs: list[PlannedRun] = []
    every = [*itertools.product(study.workloads, study.threads)]
    for block in range(1, study.plan.blocks + 1):
        cells = order.shuffle_items(every, drawn, "cells", block)
        sizes = Counter(len(_group_arms(study, *cell, conditions)) for cell in cells)
        counts: Counter[int] = Counter()
        for workload, threads in cells:
            arms = _group_arms(study, workload, threads, conditions)
            size = len(arms)
            ordered = order.arm_order(arms, drawn, block, counts[size], sizes[size])
            group: dict[str, Any] = {
                "block": block, "group": f"b{block:02d}-{workload}-t{threads:04d}",
                "discard_s": study.plan.discard_s, "run_s": study.plan.run_s,
                "own": scripts.get(workload, {}),
                **_turn_settings(study, workload, threads, arms, lengths, edges),
            }  # fmt: skip
            for arm in ordered:
                cell = group | _cell_settings(name, study, arm, workload, threads, settled)
                place = _seed_place(study, workload, arm)
                cell["seed"] = order.run_seed(drawn, block, workload, threads, place)
                of_arm = conditions.get(study.deployed(arm), {})
                runs.append(PlannedRun(**cell, position=len(runs), conditions=of_arm))
            counts[size] += 1
    return runs


def sketch_runs(
    name: str, study: StudySpec, conditions: dict[str, dict[str, Any]] | None = None, seed: int | None = None
) -> list[PlannedRun]:
    """Runs as far as they are known before a session has drawn its seed: not in their order."""
    return plan_runs(name, study, conditions or {}, seed=seed or SKETCHED)


def pilot_runs(name: str, study: StudySpec, arms: Collection[str] | None = None) -> list[PlannedRun]:
    """Pilots, block 0 without discard: each arm and workload at the lowest and highest threads.

    `arms` are those that can be made; None: all. Where a rate is a share of saturation they run in a closed
    loop, at all levels, once for workloads that differ in their rate only.
    """
    workloads = dict.fromkeys(pilot_parameters.pilot_workload_of(study, each) for each in study.workloads)
    cells = [
        (arm, workload, threads)
        for workload in workloads
        for threads in pilot_parameters.pilot_levels(study, workload)
        for arm in study.arms
        if arms is None or arm in arms
    ]
    beside: dict[str, Any] = {"block": 0, "group": "pilot", "discard_s": 0, "run_s": study.warm_up.pilot_s}
    return [
        PlannedRun(
            **_cell_settings(name, study, *cell, {}),
            **beside,
            position=position,
            seed=order.run_seed(study.dataset.seed, 0, *cell[1:]),
        )
        for position, cell in enumerate(cells)
    ]


def schedule_table(runs: list[PlannedRun]) -> pd.DataFrame:
    """Schedule as a table with the columns of `schedule.csv`, one row a run."""
    return pd.DataFrame([[getattr(run, column) for column in COLUMNS] for run in runs], columns=list(COLUMNS))


def estimate_seconds(study: StudySpec, runs: list[PlannedRun]) -> float:
    """Estimated duration of run-matrix, in seconds, without repeats."""
    each = (sum(words.clock_seconds(run)) / max(1, len(run.partners)) for run in runs)
    # Beside its runs a block takes what the slowest of its engines does.
    engines = [engine_of(study, arm) for arm in study.arms]
    beside_s = max(
        descriptors.find_engine(each.name).block_overhead_s if each.cluster is None else CLUSTER_OVERHEAD_S
        for each in engines
    )
    return sum(value + RUN_OVERHEAD_S for value in each) + study.plan.blocks * beside_s


def describe_orders(study: StudySpec) -> list[str]:
    """Sentences on the order of a study's workloads, with the reason for whole runs or slow turns."""
    workloads: dict[str, list[str]] = {}
    for name in study.workloads:
        if words.choose_order(study, name) == words.TURNS:
            text = _turns_text(study)
        elif study.plan.order == words.RUNS:
            text = "whole runs, as plan.order says"
        else:
            text = f"whole runs, because turns can't be had: {words.find_obstacles(study, name)[0]}"
        workloads.setdefault(text, []).append(name)
    if len(workloads) == 1:
        return list(workloads)
    return [f"{', '.join(names)}: {text}" for text, names in workloads.items()]


def _turns_text(study: StudySpec) -> str:
    least_ms, rest = words.least_ms(study), "the arms are connected at once and run one at a time"
    if study.plan.turn_ms:
        return f"turns of {study.plan.turn_ms} ms: {rest}"
    waits = max(words.find_slow(study), key=lambda item: item[1] or 0, default=None)
    if waits is None:
        return f"turns of {least_ms} ms or more: {rest}"
    return f"slow turns of {least_ms} ms or more: {rest}; {waits[0]}"


def orders_of_levels(study: StudySpec, warm_up: Mapping[str, Any]) -> list[str]:
    """Sentences on the thread levels of workloads in turns that pilots gave another order or slower turns."""
    lengths = pilot_parameters.by_cell(warm_up.get("turns", ()), "turn_ms")
    times = pilot_parameters.by_cell(warm_up.get("turns", ()), "transaction_ms")
    of_levels, least_ms = [], words.least_ms(study)
    for name in study.workloads:
        if words.choose_order(study, name) != words.TURNS:
            continue
        for threads in study.threads:
            length = pilot_parameters.length_ms(study, name, threads, lengths)
            # Pilots of an earlier plan may lack a level that was added since.
            took_ms = times.get(name, {}).get(threads)
            took = "" if took_ms is None else f"a transaction took {took_ms:g} ms"
            if length is None:
                of_levels.append(f"{name}, {count(threads, 'thread')}: whole runs, not turns: {took}")
            elif length > least_ms and took:
                of_levels.append(f"{name}, {count(threads, 'thread')}: turns of {length} ms: {took}")
    return of_levels


def pilot_seconds(study: StudySpec) -> float:
    """Estimated duration of the pilots of warm-up, in seconds."""
    if study.warm_up.pilot_s == 0:
        return 0.0
    return sum(run.run_s + RUN_OVERHEAD_S for run in pilot_runs("", study))


def describe_duration(name: str, study: StudySpec) -> str:
    """Duration of the runs of a study in words, without repeats, pilots and loading."""
    return _format_duration(estimate_seconds(study, sketch_runs(name, study)))


def describe_plan(
    name: str, study: StudySpec, conditions: dict[str, dict[str, Any]] | None = None, seed: int | None = None
) -> str:
    """Plan of a study and its duration in a few lines; `conditions` lacks skipped arms."""
    runs, plan = sketch_runs(name, study, conditions, seed), study.plan
    seed = plan.seed or seed
    drawn = "by each session" if seed is None else f"from seed {seed}"
    twin = sum(run.arm == study.twin for run in runs)
    rows = [
        ("arms", f"{', '.join(_name_arms(study))}; baseline: {study.baseline}"),
        ("skipped", ", ".join(arm for arm in study.arms if conditions and arm not in conditions)),
        ("workloads", ", ".join(study.workloads)),
        ("threads", ", ".join(map(str, study.threads))),
        ("blocks", f"{plan.blocks}{STOPS[plan.stop]}, order drawn {drawn}"),
        ("runs", f"{len(runs)}, of them {twin} of the A/A pair; each discards {plan.discard_s} s and "
                 f"measures {plan.run_s} s"),
        *(("order", line) for line in describe_orders(study)),
        ("priority", PRIORITY.get(study.site.precedence)),
        ("measuring", _describe_times(study, estimate_seconds(study, runs))),
        ("data", f"{count(study.dataset.tables, 'table')} of {study.dataset.table_size:,} rows"),
        ("clients", _describe_clients(study)),
        ("rates", _describe_rates(study)),
    ]  # fmt: skip
    return "\n".join([name, *(f"  {label:<11} {text}" for label, text in rows if text)])


def _name_arms(study: StudySpec) -> list[str]:
    return [arm if setting.name is None else f"{arm} ({setting.name})" for arm, setting in study.arms.items()]


def _describe_times(study: StudySpec, measuring_s: float) -> str:
    share = min(Analysis().looks) / study.plan.blocks if study.plan.stop == "decided" else 1
    first = f"{_format_duration(measuring_s * share)} to the first look and at most " if share < 1 else ""
    trials = f"after trial runs (pilots) of about {_format_duration(pilot_seconds(study))}"
    return f"about {first}{_format_duration(measuring_s)}, {trials}"


def _describe_clients(study: StudySpec) -> str:
    several = [f"{arm}: {setting.clients} on {count(setting.servers, 'server')}"
               for arm, setting in study.arms.items() if setting.clients > 1]  # fmt: skip
    return "; ".join([*several, "they share the threads"]) if several else ""


def _describe_rates(study: StudySpec) -> str:
    shares = [f"{100 * workload.rate.share:g} % of saturation in {name}"
              for name, workload in study.workloads.items() if isinstance(workload.rate, Rate)]  # fmt: skip
    return f"{', '.join(shares)}; the pilots settle them" if shares else ""


def _format_duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _group_arms(study: StudySpec, workload: str, threads: int, there: Collection[str]) -> list[str]:
    twin = [study.twin] if study.twin and study.has_twin(workload, threads) else []
    arms = [study.baseline, *twin, *study.treatments]
    return [arm for arm in arms if not there or study.deployed(arm) in there]


def _turn_settings(
    study: StudySpec,
    workload: str,
    threads: int,
    arms: list[str],
    lengths: pilot_parameters.Lengths,
    edges: pilot_parameters.Lengths,
) -> dict[str, Any]:
    """Settings of a planned run for turns, as pilots settled them; nothing for whole runs."""
    length = pilot_parameters.length_ms(study, workload, threads, lengths)
    if not length or len(arms) < 2 or words.choose_order(study, workload) != words.TURNS:
        return {}
    edge_s = edges.get(workload, {}).get(threads)
    in_turns = {"order": words.TURNS, "turn_ms": length, "partners": tuple(arms)}
    return in_turns | ({"edge_s": edge_s} if edge_s else {})


def _seed_place(study: StudySpec, workload: str, arm: str) -> int:
    script = study.script(workload)
    if script not in sysbench_workloads.WRITING and not custom_scripts.is_own(script):
        return 0
    # Counted so that an arm added at the end, or the A/A pair, leaves the other arms' seeds as they were.
    return -1 if arm == study.twin else list(study.arms).index(arm)


def _cell_settings(
    name: str, study: StudySpec, arm: str, workload: str, threads: int, settled: pilot_parameters.Rates
) -> dict[str, Any]:
    script = study.script(workload)
    options = study.workloads[workload].model_dump(mode="json", exclude={"script", "order"})
    request = options.pop("rate")
    rate = request if isinstance(request, int) else settled.get(workload, {}).get(threads, 0)
    if not custom_scripts.is_own(script):
        options.pop("options")
    driver = descriptors.find_engine(engine_of(study, study.deployed(arm)).name).driver
    if driver != descriptors.MYSQL:
        options.pop("ignore_errors")
        options["driver"] = driver
    return {
        "study": name, "arm": arm, "arm_setting": study.arms[study.deployed(arm)].setting,
        "workload": workload, "script": script, "options": options, "threads": threads,
        "percentile": PERCENTILE, "rate": rate, "tables": study.dataset.tables,
        "table_size": study.dataset.table_size,
    }  # fmt: skip
