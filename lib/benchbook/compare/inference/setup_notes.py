"""Notes on the arrangement of each arm, for the report, and on the arms that were skipped."""

from collections.abc import Mapping
from typing import Any

from benchbook.compare.inference import caveats
from benchbook.compare.text import labels, sentences
from benchbook.core.artifacts.artifact import Facts
from benchbook.core.artifacts.findings import ValidityThreat
from benchbook.core.published.claim import ClaimSpec
from benchbook.core.study.study import StudySpec


def illustrated_claims(study: StudySpec) -> list[str]:
    """Claims that arms of a study show without judging them, each once."""
    return list(dict.fromkeys(claim for arm in study.arms.values() for claim in arm.illustrates))


def title_arms(study: StudySpec, facts: Facts) -> dict[str, str]:
    """Title of each arm, skipped ones included, which keeps its key: `Arm MySQL (mysql)`."""
    titles = {name: f"Arm {name}" for name in (*study.arms, *facts.skipped)}
    named = {name: labels.strip_article(arm.name) for name, arm in study.arms.items() if arm.name is not None}
    return titles | {name: f"Arm {title} ({name})" for name, title in named.items()}


def describe_skipped_arms(study: StudySpec, facts: Facts) -> dict[str, str]:
    """Reason that an arm was skipped, by arm: `Arm MySQL (mysql) was skipped on this machine: ...`."""
    titles = title_arms(study, facts)
    return {name: f"{titles[name]} was skipped on this machine: {why}" for name, why in facts.skipped.items()}


def setup_caveats(study: StudySpec, facts: Facts, claims: Mapping[str, ClaimSpec]) -> list[ValidityThreat]:
    """Doubt for each skipped arm, for each thing that stands in for another, and for cores kept apart.

    `claims` are the illustrated ones by name.
    """
    results: dict[str, list[str]] = {}
    for name, arm in study.arms.items():
        if name in facts.skipped:
            continue
        for text in sentences.render_paragraphs("arm.j2", arm=arm, facts=facts.arms.get(name, {})):
            results.setdefault(text, []).append(name)
    by_role = (of_arm.get("hosts") or {} for of_arm in facts.arms.values())
    hosts = {(role, host.get("name")): host for roles in by_role for role, host in roles.items()}
    site: Mapping[str, Any] = next((arm["site"] for arm in facts.arms.values() if "site" in arm), {})
    cpus = site.get("cpus") or {}
    return caveats.caveats_from_template(
        "arrangements.j2",
        study=study,
        titles=title_arms(study, facts),
        skipped=describe_skipped_arms(study, facts),
        claims=claims,
        made=results,
        hosts=sorted(hosts.items()),
        share_a_host=len({name for _, name in hosts}) < len(hosts),
        cores=cpus if cpus.get("server") and cpus.get("client") else None,
    )
