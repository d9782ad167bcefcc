"""Put a measured study into the record: its evidence as an archive in git, and an entry in the index.

What is no evidence is refused. What weakens evidence is refused too, unless it is recorded with its doubts.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from ruamel.yaml import YAML

from benchbook.commands import answer, archive, history, made_again, stage, verify
from benchbook.core import files, git, load, paths, record, sizes
from benchbook.core.errors import BenchbookError, InputErrors
from benchbook.core.study import Study

# What the evidence is made with; params.yaml is compared without the lists of what to run.
MADE_WITH = ("lib", "notebooks", "tools", "data/published", "dvc.yaml", "requirements.lock", "pyproject.toml")
LISTS = ("studies", "sources")
# Load and CPU pressure are no refusal by themselves: the study before leaves a load, and arms make pressure.
NOISE = ("Other programs", "Steal")
MOST_BYTES = 10_000_000
REMEDY = "make record STUDY={study} ARGS=--with-doubts records it with that beside it"


def add(name: str, with_doubts: bool = False) -> str:
    """Record a measured study; return what was done in a few lines.

    InputErrors with every reason against it: an edited tree, an unfinished study, findings that do not follow
    from the raw files; without `with_doubts` also a failed check, no pre-registration, a machine not quiet.
    """
    study, where = load.study(name), paths.study(name)
    if wrong := [*edited(name), *unfinished(name, study)]:
        raise InputErrors([f"{name}: not recorded: {reason}" for reason in wrong])
    found, runs = files.read_json(where.findings), pd.read_parquet(where.tidy / "runs.parquet")
    registered = _registered(name, runs)
    doubts = list(against(found, registered))
    if doubts and not with_doubts:
        told = [f"{name}: not recorded: {reason}" for reason in doubts]
        raise InputErrors([*told, f"Measure it again where that is better, or `{REMEDY.format(study=name)}`"])
    folder = paths.record()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".new-", dir=folder) as made:
        packed = archive.pack(name, Path(made) / f"{name}.tar.xz", stage.commit_of_evidence(name))
        checked = verify.verify(packed)
        if not checked.is_same:
            raise BenchbookError(f"{name}: not recorded, because its archive can't be verified:\n{checked}")
        index = record.read()
        entry = _entry(name, found, runs, packed, registered, doubts)
        others = sum(one.bytes for other, one in index.studies.items() if other != name)
        must_fit(name, others + entry.bytes, "record a shorter study, or take one out")
        packed.replace(folder / f"{name}.tar.xz")
    record.write(record.Index(studies={**index.studies, name: entry}))
    series = history.keep(name, where.data)
    lines = [f"data/record/{name}.tar.xz: {entry.bytes / 1e3:.0f} kB, {entry.runs} runs; {entry.answer}"]
    lines += [f"  recorded with a doubt: {doubt}" for doubt in doubts]
    lines.append(series)
    return "\n".join(
        [*lines, "`git add data/record data/history` and commit; `make pages` shows it on the first page"]
    )


def edited(name: str) -> Iterator[str]:
    """Yield what differs from the commit among the files that the evidence is made with."""
    whole = sizes.origin(name) or name
    asked = [*MADE_WITH, *dict.fromkeys(paths.study(one).shown for one in (whole, name))]
    listed = git.says("status", "--porcelain", "--untracked-files=all", "--", *asked)
    committed = git.says("show", "HEAD:params.yaml")
    if listed is None or committed is None:
        yield "git can't say which commit the code is; record from a clone"
        return
    changed = [line[3:] for line in listed.splitlines()]
    if _is_size(name):
        changed = [one for one in changed if one != paths.study(name).shown]
    if _settings(committed) != _settings(paths.params().read_text(encoding="utf-8")):
        changed.append("params.yaml (beside its lists of studies and sources)")
    if changed:
        more = f" and {len(changed) - 5} more" if len(changed) > 5 else ""
        yield f"the tree is edited: {', '.join(changed[:5])}{more}; commit, measure with that, then record"


def _is_size(name: str) -> bool:
    """Tell whether a study file is what a study of the tree stands for at a size, not one of its own."""
    whole, file = sizes.origin(name), paths.study(name).file
    return whole is not None and file.read_text(encoding="utf-8") == sizes.text(name, whole)


def unfinished(name: str, study: Study) -> Iterator[str]:
    """Yield what keeps a study from being whole and valid."""
    where = paths.study(name)
    if not where.findings.is_file() or not (where.tidy / "runs.parquet").is_file():
        yield f"it has no findings; run `make repro STUDY={name}`"
        return
    found = files.read_json(where.findings)
    kept, planned = answer.progress(name)
    is_decided = study.plan.stop == "decided" and found["blocks"]["complete"] == found["look"]["n"]
    if not planned or (kept != planned and not (is_decided and found["look"]["n"])):
        yield f"{kept} of {planned} runs are there; run `make repro STUDY={name}` again, it goes on"
    blocks, look = found["blocks"], found["look"]
    # Fewer by the plan itself is a doubt: such a study describes its runs and decides nothing.
    if not look["n"] and blocks["planned"] >= look["next"]:
        complete = blocks["complete"]
        yield f"{complete} complete blocks are fewer than the first look needs, so nothing is decided"
    if not found["findings"]:
        yield "no finding could be computed; its page says why"


def against(found: Mapping[str, Any], registered: str) -> Iterator[str]:
    """Yield what speaks against whole findings: not pre-registered, or not quiet by their own signs."""
    from benchbook.compare import doubts
    from benchbook.show import numbers, registration

    if not registered.startswith(registration.HELD):
        yield f"pre-registration: {registered}"
    if not found["look"]["n"]:
        yield f"nothing is decided: it plans fewer blocks than the first look needs ({found['look']['next']})"
    aa = found.get("aa")
    if aa is None:
        yield "there is no A/A pair (aa), so how far apart equal arms come out on this machine is not known"
    elif aa["low"] is None:
        yield "the A/A pair has no interval"
    elif aa["label"] in ("higher", "lower"):
        yield f"the A/A pair shows a difference where there is none: {numbers.span(aa['low'], aa['high'])}"
    elif aa["label"] == "depends on threads":
        yield "the A/A pair depends on threads, though its arms are equal at each of them"
    yield from (f"too wide: {text}" for text in doubts.wide(found["findings"]))
    for check in found["checks"]:
        if check["passed"] is False:
            yield f"the check “{check['check']}” fails: {check['detail']}"
    for warning in found["warnings"]:
        if isinstance(warning, Mapping) and warning["title"] in NOISE:
            yield f"{warning['title'].lower()}: {warning['text']}"


def _registered(name: str, runs: pd.DataFrame) -> str:
    from benchbook.show import registration

    return registration.doubt(name, runs).text


def _entry(
    name: str, found: Mapping[str, Any], runs: pd.DataFrame, packed: Path, registered: str, doubts: list[str]
) -> record.Entry:
    where = paths.study(name)
    return record.Entry(
        title=found["title"],
        answer=answer.headline(found),
        measured=min(runs["started_utc"])[:10],
        machine=history.machine(files.read_json(where.facts)["arms"]),
        commit=stage.commit_of_evidence(name) or "not known",
        runs=len(runs),
        blocks=found["blocks"]["complete"],
        minutes=round(float(found["machine_minutes"]), 1),
        registered=registered,
        doubts=tuple(doubts),
        bytes=packed.stat().st_size,
        sha256=files.sha256(packed),
        made=made_again.made(where.data),
    )


def must_fit(name: str, size: int, remedy: str) -> None:
    """Raise BenchbookError if the record would have more bytes with something than a clone carries."""
    if size > MOST_BYTES:
        raise BenchbookError(
            f"{name}: not recorded: the record would have {size / 1e6:.1f} MB, and a clone carries "
            f"{MOST_BYTES / 1e6:.0f} MB at most; {remedy}"
        )


def _settings(text: str) -> dict[str, Any]:
    read = YAML(typ="safe").load(text) or {}
    return {key: value for key, value in read.items() if key not in LISTS}
