"""Design of a session: everything that changes the measurement, without names and repeats.

Sessions of one design are pooled. What they vary over (processor, kernel, load, hour) and how much was
measured (blocks, repeats, seeds) is no part of it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from benchbook.core.artifacts.artifact import Arms
from benchbook.core.study import descriptors, interleaving
from benchbook.core.study.model import compute_fingerprint
from benchbook.core.study.study import StudySpec
from benchbook.core.study.study_arm import UNMEASURED
from benchbook.core.util import numeric_equality

# Each way of arranging and measuring, with its revisions in words. Add one when a change of the code alters
# what is measured that way: what runs where, beside what, in which order, what is counted meanwhile. Sessions
# from before and after are then not pooled. A faster start, a new check or a moved function changes nothing.
_METHODS: dict[str, tuple[str, ...]] = {
    # MariaDB serves otherwise with `userstat`
    "turns": ("turns of 50 ms, statements counted by account", "turns of 50 ms", "turns of 20 ms or more"),
    "runs": ("whole runs",),
    "local": ("measured at normal priority", "measured at raised priority"),
    "pod": ("a pod's network",),
    "zones": ("zones",),
    "cold": ("tables counted, and so read into memory, before each block", "tables not read before a block"),
    "quota": ("quotas held in periods of 100 ms", "quotas held in periods of 10 ms"),
    "cluster": ("leaders at the store that was up first", "leaders spread over the stores"),
    "ssh": ("hosts",),
    "kubernetes": ("pods of a cluster",),
    "existing": ("clients at normal priority", "clients at raised priority"),
}
LATER = ("quota",)
"""Ways that had no number of their own in sessions recorded before they were changed."""
_ORDERS = ("turns", "runs")
METHODS = {name: len(revisions) for name, revisions in _METHODS.items()}
# What of a site only says where it is found, or how long to wait for it.
_PLACE = {
    "port": True,
    "inventory": True,
    "sysbench": True,
    "existing": True,
    "tiup": {"user", "login", "identity_file", "wait_s"},
    "kubernetes": {"context", "images", "outside", "nodes", "tolerations", "keep_data", "wait_s", "gke"},
}
_OF_PLAN = ("order", "turn_ms", "discard_s", "run_s")
_RATES = "workloads.rates"
# Keys of a design that readers know by other words, with the unit of their value.
_KNOWN_AS = {
    "plan.run_s": ("measured time of a run", " s"),
    "plan.discard_s": ("discard at the start of a run", " s"),
    "dataset.table_size": ("rows of a table", ""),
    "dataset.tables": ("number of tables", ""),
    "threads": ("thread levels", ""),
    _RATES: ("offered rates, of the slower arm's saturation", " %"),
}


def compute_digest(study: StudySpec, arms: Arms, methods: Mapping[str, int]) -> str:
    """The design's 12 hex digits."""
    return compute_fingerprint(describe_design(study, arms, methods), 12)


def describe_design(study: StudySpec, arms: Arms, methods: Mapping[str, int]) -> dict[str, Any]:
    """Settings that change the measurement, under the study file's keys: non-defaults of arms with facts."""
    there = [arm for arm in study.arms if arm in arms]
    # How a workload was measured, as asked or as pilots had it, stands in the methods.
    workloads = [
        {"script": study.script(name), **_explicit_values(workload, {"script", "order"})}
        for name, workload in study.workloads.items()
    ]
    engine = _explicit_values(study.engine, {"version", "binary"})
    plan = study.plan.model_dump(mode="json", exclude_defaults=True, include=set(_OF_PLAN))
    versions = list_versions(arms).items()
    return {
        "site": {"kind": study.site.kind} | _explicit_values(study.site, _PLACE),
        "engine": {"name": study.engine.name} | engine,
        "versions": {name: ", ".join(map(minor_version, several)) for name, several in versions},
        "arms": [_explicit_values(study.arms[arm], set(UNMEASURED)) for arm in there],
        "workloads": sorted(workloads, key=repr),
        "threads": sorted(study.threads),
        # A study file may leave them out since they have defaults; sessions from before then stated them.
        "dataset": {"tables": study.dataset.tables, "table_size": study.dataset.table_size},
        "plan": plan,
        "warm_up": _explicit_values(study.warm_up, set()),
        "methods": dict(sorted(methods.items())),
    }


def methods_used(study: StudySpec, orders: set[str]) -> list[str]:
    """Names of the methods that a study's sessions use; `orders` has those of its runs."""
    arms = study.arms.values()
    of_machine = arms if study.site.kind == "local" else ()
    prewarmed = [study.warm_up.prewarm, *(arm.data.prewarm for arm in arms if arm.data)]
    is_met = {
        "turns": interleaving.TURNS in orders,
        "runs": interleaving.RUNS in orders,
        "pod": any(arm.network == "pod" for arm in of_machine),
        "zones": any(arm.zones is not None for arm in arms),
        "quota": any(cpu.quota is not None for arm in of_machine for cpu in arm.cpu.values()),
        "cold": False in prewarmed,
        "cluster": study.engine.cluster is not None,
        study.site.kind: True,
    }
    return sorted(name for name, is_used in is_met.items() if is_used)


def mixed_methods(plans: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Methods of thread levels that were measured in whole runs while others of the workload took turns."""
    orders: dict[tuple[str, int], str] = {
        (plan["workload"], plan["threads"]): str(plan.get("order", interleaving.RUNS)) for plan in plans
    }
    in_turns = {workload for (workload, _), order in orders.items() if order == interleaving.TURNS}
    return {
        f"whole runs of {workload} at {threads} threads": 1
        for (workload, threads), order in sorted(orders.items())
        if order == interleaving.RUNS and workload in in_turns
    }


def describe_differences(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[str]:
    """Differences of two designs by `describe_design`, in words; empty if they are one."""
    before, after = (_join_rates(dict(_flatten_tree(each))) for each in (first, second))
    orders = [_format_orders(values) for values in (before, after)]
    differences = [" against ".join(orders)] if orders[0] != orders[1] else []
    pairs = numeric_equality.diff_mappings(before, after).items()
    return [*differences, *filter(None, (_describe_difference(key, pair) for key, pair in pairs))]


def _describe_difference(key: str, pair: tuple[Any, Any]) -> str:
    """Both values of a key in words; empty for orders, and for methods that only one of the designs has."""
    section, _, name = key.partition(".")
    if section == "methods":
        return _describe_methods(name, pair)
    unit = _KNOWN_AS.get(key, ("", ""))[1]
    absent = "none" if section == "versions" else "default"
    values = [absent if value is None else _format_value(value) + unit for value in pair]
    return f"{_name_key(key)}: {' against '.join(values)}"


def _describe_methods(name: str, pair: tuple[Any, Any]) -> str:
    if name not in _METHODS:
        return f"{name}: {' against '.join('yes' if value else 'no' for value in pair)}"
    if name in _ORDERS or (None in pair and name not in LATER):
        return ""
    return " against ".join(_METHODS[name][(value or 1) - 1] for value in pair)


def _format_orders(design: Mapping[str, Any]) -> str:
    used = [(name, design[f"methods.{name}"]) for name in _ORDERS if f"methods.{name}" in design]
    return " and ".join(_METHODS[name][number - 1] for name, number in used)


def list_versions(arms: Arms) -> dict[str, list[str]]:
    """Versions of each engine and proxy that facts name, each once."""
    versions: dict[str, set[str]] = {}
    for arm in arms.values():
        for part in filter(None, (arm.get("engine"), arm.get("proxy"))):
            versions.setdefault(str(part.get("name")), set()).add(str(part.get("version")))
    return {name: sorted(versions[name]) for name in sorted(versions)}


def minor_version(version: str) -> str:
    """First two numbers of a version, such as 10.11; all of it if there are none."""
    match = re.search(r"\d+\.\d+", version)
    return match[0] if match else version


def _explicit_values(section: Any, without: Any) -> dict[str, Any]:
    return dict(section.model_dump(mode="json", exclude_defaults=True, exclude=without))


def _flatten_tree(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    if place and (not isinstance(value, Mapping | list) or not value or place == "threads"):
        yield place, value
        return
    items: Any = value.items() if isinstance(value, Mapping) else enumerate(value, 1)
    for key, item in items:
        yield from _flatten_tree(item, f"{place}.{key}" if place else str(key))


def _join_rates(design: Mapping[str, Any]) -> dict[str, Any]:
    """Values of a design by key, the rates in one: which workload has which is no difference."""
    is_rate = re.compile(r"workloads\.\d+\.rate\.share").fullmatch
    rates = [f"{100 * value:g}" for key, value in design.items() if is_rate(key)]
    others = {key: value for key, value in design.items() if not is_rate(key)}
    return others | ({_RATES: rates} if rates else {})


def _name_key(key: str) -> str:
    """Key in words.

    >>> _name_key("plan.run_s"), _name_key("arms.3.network"), _name_key("versions.tiproxy")
    ('measured time of a run', 'network of arm 3', 'version of TiProxy')
    >>> _name_key("engine.settings.max_connections"), _name_key("site.cpus")
    ("the engine's setting max_connections", 'cpus of the site')
    """
    if key in _KNOWN_AS:
        return _KNOWN_AS[key][0]
    if key.startswith("engine.settings."):
        return f"the engine's setting {key.removeprefix('engine.settings.')}"
    section, _, rest = key.partition(".")
    if section == "versions":
        return f"version of {descriptors.product_name(rest)}"
    number, _, setting = rest.partition(".")
    if number.isdigit():
        return f"{setting or 'all'} of {section.removesuffix('s')} {number}"
    return f"{rest} of the {section}" if rest else section


def _format_value(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value)
