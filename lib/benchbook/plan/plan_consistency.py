"""What facts, data, schedule and plans of a study contradict, each a sentence that names file or run."""

import csv
import io
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from benchbook.core.artifacts.artifact import Arms
from benchbook.core.study import descriptors
from benchbook.core.study.engines import engine_of
from benchbook.core.study.model import PlannedRun, compute_fingerprint, run_id_of
from benchbook.core.study.study import StudySpec
from benchbook.core.util import numeric_equality
from benchbook.plan import schedule

# What dataset.json says beside what was loaded.
BESIDE_DATA = ("fingerprint", "loads", "events")
FILES = {"facts": "facts.json", "data": "dataset.json"}
Plans = Mapping[str, Mapping[str, Any]]


def check_dataset(data: Mapping[str, Any], study: StudySpec) -> Iterator[str]:
    """Errors of dataset.json against its own fingerprint and against the study."""
    fingerprint = compute_fingerprint({name: data[name] for name in data if name not in BESIDE_DATA})
    if fingerprint != data["fingerprint"]:
        yield f"dataset.json: its content has the fingerprint {fingerprint}, it says {data['fingerprint']}"
    for name in ("tables", "table_size", "seed"):
        if data[name] != getattr(study.dataset, name):
            yield f"dataset.json: {name} is {data[name]}, the study has {getattr(study.dataset, name)}"
    for name, rows in data["rows"].items():
        if rows != study.dataset.table_size:
            yield f"dataset.json: {name} has {rows} rows, the study has {study.dataset.table_size}"


def check_conditions(arms: Arms, data: Mapping[str, Any], study: StudySpec, plans: Plans) -> Iterator[str]:
    """Files with another digest than the one in each run's conditions."""
    for arm, run_condition in schedule.run_conditions(arms, data).items():
        arm_plans = {name: plan for name, plan in plans.items() if study.deployed(plan["arm"]) == arm}
        for key, digest in run_condition.items():
            others = [name for name, plan in arm_plans.items() if plan["conditions"].get(key) != digest]
            if others:
                under = f"{_format_runs(others)} made under {plans[others[0]]['conditions'].get(key)}"
                yield f"{FILES.get(key, key)}: for arm {arm} its digest is {digest}, and {under}"


def check_settings(arms: Arms, study: StudySpec) -> Iterator[str]:
    """Yield settings of a server that the study asks for and the facts do not show, and the reverse."""
    for arm, arm_facts in arms.items():
        settings = arm_facts.get("engine", {}).get("settings")
        # Existing servers do not say of each setting what was asked for and by whom.
        if arm not in study.arms or not isinstance(settings, Mapping):
            continue
        engine, values = engine_of(study, arm), settings.values()
        is_told = all(isinstance(setting, Mapping) and {"asked", "from"} <= {*setting} for setting in values)
        if not is_told or not descriptors.find_engine(engine.name).tells_settings:
            continue
        shown = {name: setting["asked"] for name, setting in settings.items() if setting["from"] == "study"}
        words = {True: "ON", False: "OFF"}
        requests = {
            name: words[value] if isinstance(value, bool) else str(value)
            for name, value in engine.settings.items()
        }
        for name, (due, was) in numeric_equality.diff_mappings(requests, shown).items():
            wrong = f"the study asks for {name} = {due}, the server was asked for {was}"
            yield f"facts.json: arms.{arm}: {wrong}"


def check_schedule(runs: Sequence[PlannedRun], text: str) -> Iterator[str]:
    """Yield the rows of schedule.csv that are not those that study, facts and data give."""
    due_text = schedule.schedule_table(list(runs)).to_csv(index=False, lineterminator="\n")
    requests, results = (list(csv.DictReader(io.StringIO(item))) for item in (due_text, text))
    if len(results) != len(requests):
        yield f"schedule.csv: {len(results)} runs, the study gives {len(requests)}"
    for line, (row, due) in enumerate(zip(results, requests, strict=False), start=2):
        if wrong := [
            f"{key} is {row.get(key)}, due is {due[key]}" for key in due if row.get(key) != due[key]
        ]:
            yield f"schedule.csv:{line}: {'; '.join(wrong)}"


def check_plans(runs: Sequence[PlannedRun], plans: Plans) -> Iterator[str]:
    """Run folders with a plan other than that of study, facts and data; `position` is free."""
    due_plans = {run.run_id: json.loads(json.dumps(run.to_dict())) for run in runs}
    for name, plan in plans.items():
        if name not in due_plans:
            yield f"raw/{name}: no run that the study, the facts and the data ask for"
            continue
        wrong = [
            f"{key} is {json.dumps(has)}, due is {json.dumps(due)}"
            for key, (has, due) in numeric_equality.diff_mappings(plan, due_plans[name]).items()
            if key != "position"
        ]
        if wrong:
            yield f"raw/{name}: plan.json: {'; '.join(wrong)}"


def check_name(name: str, plan: Mapping[str, Any], place: str) -> Iterator[str]:
    """Error if a folder's name is not the hash of the plan in it."""
    run_id = run_id_of(plan)
    if not plan.get("run_id") == run_id == name:
        yield f"{place}/{name}: plan.json gives the name {run_id}"


def check_missing(
    runs: Sequence[PlannedRun], there: Collection[str], given_up: Collection[str], first_stop: int | None
) -> Iterator[str]:
    """Yield the groups of the schedule that are not there for no reason that the archive shows.

    `given_up` are the groups that void shows to have been tried too often. `first_stop` is the number of
    blocks after which the study may stop by its own rule and leave out the rest; None where it may not.
    """
    last = max((run.block for run in runs if run.run_id in there), default=0)
    absent: dict[str, list[str]] = {}
    for run in runs:
        is_left_out = first_stop is not None and run.block > last >= first_stop
        if run.run_id not in there and run.group not in given_up and not is_left_out:
            absent.setdefault(run.group, []).append(run.run_id)
    for group, names in absent.items():
        yield f"{group}: {_format_runs(names)} due and not there, and void does not say why"


def _format_runs(names: Sequence[str]) -> str:
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"{names[0]}{more} {'was' if len(names) == 1 else 'were'}"
