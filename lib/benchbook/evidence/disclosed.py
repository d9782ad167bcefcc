"""What an archive brings along that this clone has otherwise, and what nothing in it can prove."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchbook.core import paths, yamlfile
from benchbook.core.canonical import short, unlike
from benchbook.core.explain import validate
from benchbook.core.params import Params
from benchbook.core.runfolder import Strangers
from benchbook.core.study import Study
from benchbook.evidence import archive
from benchbook.evidence.unpacked import Unpacked, jsonable
from benchbook.measure import store
from benchbook.plan import binding
from benchbook.plan.schedule import at
from benchbook.read import validity
from benchbook.read.binding import STARTED

# What of an arm its runs show nothing of.
TRACELESS = ("data.index", "data.analyze", "engine.cluster.zones_ms", "kernel")


def beside_ours(held: Unpacked, ours: Path) -> Iterator[str]:
    """Yield what the archive brings along and this clone has otherwise, and the checks that were not made."""
    here = validate(yamlfile.read(ours / "params.yaml", "params.yaml"), Params)
    for section in ("limits", "analysis"):
        own, theirs = dict(getattr(here, section)), dict(getattr(held.params, section))
        for name, (due, said) in unlike(own, theirs).items():
            yield f"params.yaml: {section}.{name} is {said} in the archive, {due} here"
    limits = jsonable(held.params.limits.model_dump())
    for name, folder in ((folder.name, folder) for folder in held.folders):
        at_run = folder.evidence().get("limits") or {}
        other = {key: value for key, value in at_run.items() if limits.get(key) != value}
        if other:
            yield f"raw/{name}: measured under other limits than params.yaml has now: {short(other)}"
            break
    for folder in held.pilots:
        judged = validity.judge(folder, held.params.limits)
        if judged.status != "valid":
            yield f"pilots/{folder.name}: {judged.status}: {'; '.join(judged.reasons)}"
    texts = {held.root / archive.README: archive.ABOUT.format(study=held.name)}
    texts |= {held.where.void / "README.txt": store.ABOUT}
    for file, due in texts.items():
        if file.is_file() and file.read_text(encoding="utf-8", errors="replace") != due:
            yield f"{file.relative_to(held.root)}: not the text that is written here"
    yield from _of_study_here(held, ours)
    for file in sorted((held.root / "data" / "published").rglob("*")):
        place = file.relative_to(held.root)
        kept = ours / place
        if file.is_file() and not (kept.is_file() and kept.read_bytes() == file.read_bytes()):
            yield f"{place}: not as this clone has it; claims and bands are the archive's"
    checks = [check for judged in held.judged.values() for check in judged.checks]
    excused = Counter(str(check) for check in checks if check.is_excused)
    yield from (
        f"{count} of {len(held.folders)} runs: not checked: {what}" for what, count in excused.items()
    )


def _of_study_here(held: Unpacked, ours: Path) -> Iterator[str]:
    here = paths.StudyPaths(held.name, ours)
    if not here.file.is_file():
        yield f"{here.shown}: this clone has no such study to hold it against"
        return
    own = validate(yamlfile.read(here.file, here.shown), Study).model_dump(mode="json")
    theirs = held.study.model_dump(mode="json")
    differing = [key for key in own if repr(own[key]) != repr(theirs[key])]
    if differing:
        yield f"{here.shown}: {', '.join(differing)}: not as this clone has it"


def known() -> dict[str, Any]:
    """Return what nothing holds: sentences that are `always` said, and in `open` fields by file, with why."""
    return yamlfile.read(Path(__file__).with_name("fields.yaml")).data


def unproven(held: Unpacked) -> Iterator[str]:
    """Yield a line for each part of an archive that no proof covers."""
    told = known()
    yield from told["always"]
    for one in told["open"]:
        for file, names in one.items():
            if file != "says" and (file != "session.json" or held.session):
                yield f"{file}: {one['says']} ({', '.join(names)})"
    runs = [folder.evidence() for folder in held.folders]
    if blind := [seen for seen in runs if not seen.get("strangers")]:
        yield (
            f"{len(blind)} of {len(runs)} runs: not looked for: who traced or stopped the arm's processes "
            "and dropped its packets, and what was made on its server before the first run"
        )
    elif any(
        network.rules is None
        for seen in runs
        for machine in seen["strangers"].values()
        for network in Strangers.of(machine).each
    ):
        yield "evidence.json: rules of the firewall, which the kernel did not tell this account"
    loose = binding.unbound_facts(held.facts.arms, list(_in_identities(held)))
    yield f"facts.json: what no run's id covers: {', '.join(loose)}"
    if held.facts.methods:
        yield "facts.json: methods, the numbers of how arms are arranged and measured, as the code had them"
    if held.facts.skipped:
        yield f"facts.json: why arms were skipped: {', '.join(held.facts.skipped)}"
    if beside := binding.unbound_facts(
        {"": {"machine": held.facts.machine or {}, **(held.facts.model_extra or {})}}
    ):
        yield f"facts.json: what no arm has of its own: {', '.join(beside)}"
    yield f"studies/{held.name}.yaml: what no plan follows from: {', '.join(binding.UNBOUND_KEYS)}"
    settings = {arm: one.setting for arm, one in held.study.arms.items()}
    if same := [key for key in TRACELESS if len({repr(at(one, key)) for one in settings.values()}) > 1]:
        yield f"studies/{held.name}.yaml: which arm a run is of, by what leaves no trace: {', '.join(same)}"
    kept = set(held.settings_files.values())
    absent = [where for digest, places in held.applied.items() if digest not in kept for where in places]
    if absent:
        yield f"applied/: settings of which only the digest is there, and no file: {', '.join(absent)}"
    if held.voids:
        yield "void: attempts that were killed, damaged or made under earlier settings, and all reasons"


def _in_identities(held: Unpacked) -> Iterator[str]:
    """Yield the facts that the runs' own looks at server and proxy repeat."""
    looks = [folder.evidence().get("identity_before") or {} for folder in held.folders]
    for part, prefix in (("engine", ""), ("proxy", "proxy_")):
        for name in STARTED:
            if any(look.get(f"{prefix}{name}") for look in looks):
                yield f"{part}.{name}"
