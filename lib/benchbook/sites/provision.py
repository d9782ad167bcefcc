"""Bring every arm up once and write down its facts."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from benchbook.core.artifacts import applied_config
from benchbook.core.artifacts.artifact import Facts
from benchbook.core.artifacts.design import METHODS
from benchbook.core.study.engines import engine_of
from benchbook.core.study.study import StudySpec
from benchbook.core.util import files, numeric_equality, paths
from benchbook.core.util.errors import BenchbookError
from benchbook.sites import open_site, sql
from benchbook.sites.contract import Site
from benchbook.sites.topology import feasibility
from benchbook.sites.workspace import lab_folder


def write_facts(name: str, study: StudySpec, path: Path) -> Facts:
    """Start each arm of a study, collect its facts, write `facts.json` and return it.

    It has `study`, `machine`, what `site.machines` says, `methods`, the numbers of how arms are measured,
    `arms`, what `site.facts` says of each, and `skipped`, those that can't be made, with the reason. Beside
    it, in `applied`, is what they were started with. SettingsDiffer if a setting was not taken.
    """
    with open_site(study, lab_folder(paths.find_root(), name)) as site:
        arms, skipped, texts = {}, find_skipped(site, study), list[tuple[str, str]]()
        # Before any server is up, so that nothing else is measured with it.
        machines = site.machines()
        for arm in study.arms:
            if arm in skipped:
                print(f"{arm}: skipped: {skipped[arm]}")
                continue
            endpoint = site.up(arm)
            print(f"{arm}: up at {endpoint.place}")
            arms[arm] = site.facts(arm)
            must_have_sysbench(study, arm, arms[arm])
            texts += site.applied(arm)
        site.look()
    applied_config.write_texts(path.with_name(paths.APPLIED), texts)
    facts: dict[str, Any] = {"study": name, "machine": machines, "methods": METHODS, "arms": arms}
    files.write_json(path, facts | ({"skipped": skipped} if skipped else {}))
    return Facts.read(path)


def must_have_sysbench(study: StudySpec, arm: str, facts: Mapping[str, Any]) -> None:
    """Raise BenchbookError unless an arm's client has the version of sysbench that the study asks for."""
    wanted, result = study.site.sysbench, (facts.get("machine") or {}).get("sysbench")
    # Some programs print more behind their version: "1.0.20 (using system LuaJIT 2.1.0)".
    number = re.search(r"[0-9]+(\.[0-9A-Za-z]+)*", str(result or ""))
    if not sql.is_version(number[0] if number else "", wanted):
        raise BenchbookError(
            f"site.sysbench: {wanted} was asked for, and arm {arm} has {result or 'one without a version'}; "
            "put that version there, or write fewer numbers to accept others"
        )


def find_skipped(site: Site, study: StudySpec) -> dict[str, str]:
    """Arms that this machine can't make, with the reason, before anything is started."""
    skipped = feasibility.of_site(site, study.arms)
    feasibility.must_leave_a_pair(study, skipped)
    return skipped


def verify_facts(site: Site, facts: Facts) -> None:
    """Start each arm and hold it against the recorded facts; BenchbookError names every fact that changed."""
    changed = []
    for arm in facts.arms:
        site.up(arm)
        before, now = _select_lasting(facts.arms[arm]), _select_lasting(site.facts(arm))
        keys = sorted(key for key in {*before, *now} if str(before.get(key)) != str(now.get(key)))
        changed += [f"{arm}: {key} was {before.get(key)}, is {now.get(key)}" for key in keys]
    if changed:
        raise BenchbookError(
            f"the arms are not what provision recorded: {'; '.join(changed[:8])}. To measure them as they "
            f"are now, run `dvc repro -f provision@{facts.study}`, then `make repro`"
        )


def tabulate_arms(study: StudySpec) -> pd.DataFrame:
    """The study's arms as a table, one row an arm."""
    rows = {}
    for name, arm in study.arms.items():
        engine = engine_of(study, name)
        program = {"engine": f"{engine.name} {engine.version or ''}".strip()}
        rows[name] = {**arm.setting, **program, **(arm.engine.settings if arm.engine is not None else {})}
    return pd.DataFrame.from_dict(rows, orient="index").fillna("").rename_axis("arm").reset_index()


def tabulate_facts(facts: Facts) -> pd.DataFrame:
    """The main facts as a table: a row a fact, a column an arm."""
    shown = (
        "engine.version", "proxy.version", "network", "service.made_by", "zones.latency_ms",
        "cpu.server.quota_cores", "cpu.server.shares", "site.cpus.server", "site.cpus.client",
        "cluster.version", "qos_class", "site.client", "node.machine_type", "node.zone",
        "machine.cpu_model", "machine.cores", "machine.memory_mib", "machine.kernel",
        "machine.sysbench",
    )  # fmt: skip
    columns = {arm: _select_lasting(values) for arm, values in facts.arms.items()}
    return pd.DataFrame(
        {arm: [values.get(key) for key in shown] for arm, values in columns.items()}, index=list(shown)
    ).dropna(how="all")


def tabulate_differences(facts: Facts) -> pd.DataFrame:
    """Every fact that is not the same in all arms: a row a fact, a column an arm."""
    columns = {arm: _select_lasting(values) for arm, values in facts.arms.items()}
    keys = sorted({key for values in columns.values() for key in values} - {"arm"})
    rows = {key: [str(values.get(key)) for values in columns.values()] for key in keys}
    rows = {key: row for key, row in rows.items() if len({*row}) > 1}
    return pd.DataFrame.from_dict(rows, orient="index", columns=list(columns))


def _select_lasting(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Facts by dotted name, without those that change by the hour and Python's version."""
    flat = numeric_equality.flatten_mapping({**facts, "moment": None})
    return {key: item for key, item in flat.items() if item is not None and key != "machine.python"}


def tabulate_chains(facts: Facts) -> pd.DataFrame:
    """Path of queries: arm, row, place and label, one row a part, the client first."""
    rows = []
    for row, (arm, program) in enumerate(facts.arms.items()):
        engine, proxy = program.get("engine") or {}, program.get("proxy") or {}
        parts = [f"{arm}:\nsysbench{_describe_cores(program, 'client')}"]
        if program.get("service"):
            parts.append("service,\na rule of the kernel")
        if proxy:
            parts.append(f"{_format_version(proxy)}{_describe_cores(program, 'proxy')}")
        inside = "\nin a pod" if program.get("network") == "pod" else ""
        away = (program.get("zones") or {}).get("latency_ms")
        far = f"\n{away:g} ms away" if away else ""
        parts.append(f"{_format_version(engine)}{_describe_cores(program, 'server')}{inside}{far}")
        rows += [(arm, row, place, label) for place, label in enumerate(parts)]
    return pd.DataFrame(rows, columns=["arm", "row", "place", "label"])


def _format_version(part: dict[str, Any]) -> str:
    return f"{part.get('name', 'server')} {str(part.get('version') or '').partition('-')[0]}".strip()


def _describe_cores(program: dict[str, Any], part: str) -> str:
    """Cores of an arm's part, and the share of them that it may use, as text."""
    limits = (program.get("cpu") or {}).get(part) or {}
    cores, quota = limits.get("cores"), limits.get("quota_cores")
    where = f"\ncore{'s' if len(cores) > 1 else ''} {', '.join(map(str, cores))}" if cores else ""
    return where + (f"\nat most {quota:g} of a core" if quota else "")
