"""Every published claim has a study that answers or illustrates it, or says what one would take."""

import itertools
from collections.abc import Iterator
from functools import cache

import pandas as pd
import pytest

from benchbook.compare.claims import evaluate
from benchbook.compare.inference import findings, setup_notes
from benchbook.core.study import study_variants
from benchbook.core.study.params import Analysis
from benchbook.core.study.study import StudySpec
from benchbook.core.util import paths, source_files
from tests.found import runs as runs_of
from tests.house import tree

# What no study can show: the unit that the author meant, two figures of a setting or of a store's files, and
# the time of a load, which is measured once an arm.
WITHOUT = {
    "mysql-kubernetes/bare-metal-unit",
    "mysql-kubernetes/best-effort-is-why",
    "tidb-sysbench-howto/block-caches",
    "tidb-sysbench-howto/column-families",
}
FEWEST = 32
# Two cores of four: the busy share that claims about a proxy at 70 or 80 % CPU ask for is 72 %.
CORES = {"cpu_proxy_cores": 2.9, "cpu_tidb_cores": 24.0, "cpu_tikv_cores": 20.0, "cpu_server_cores": 30.0}
LATER = {"latency_avg_ms", "latency_p95_ms", "latency_p99_ms"}


@cache
def ids() -> list[str]:
    """Return the names of all published claims."""
    return [f"{name}/{claim}" for name in source_files.source_names() for claim in tree.document(name).claims]


@cache
def ways() -> dict[str, list[str]]:
    """Return for each claim the studies that are asked it: those that judge it first."""
    found: dict[str, list[str]] = {}
    for name in paths.list_studies():
        one = tree.study(name)
        for claim in dict.fromkeys((*one.claims, *setup_notes.illustrated_claims(one))):
            found.setdefault(claim, []).append(name)
    return {
        claim: sorted(names, key=lambda name: (claim not in tree.study(name).claims, name))
        for claim, names in found.items()
    }


def made_up(study: StudySpec) -> dict[str, pd.DataFrame]:
    """Return tidy tables of five blocks in which each arm after the first is 10 % slower, with some noise."""
    runs = runs_of(_rows(study))
    seconds = [
        {"run_id": run["run_id"], "is_discarded": False, "qps": run["qps"] * share, "tps": run["tps"] * share}
        for run in runs.to_dict("records")
        for share in (0.9, 1.0, 1.1)
    ]
    columns = ["run_id", "attempt", "block", "arm", "workload", "threads", "status", "reasons", "folder"]
    voids = pd.DataFrame(columns=columns)
    histograms = pd.DataFrame(columns=["run_id", "bucket", "value_ms", "count"])
    return {"runs": runs, "voids": voids, "histograms": histograms, "intervals": pd.DataFrame(seconds)}


def _rows(study: StudySpec) -> Iterator[dict[str, object]]:
    planned = itertools.product(range(1, 6), study.workloads, study.threads, enumerate(study.arms))
    for position, (block, workload, threads, (place, arm)) in enumerate(planned, start=1):
        noise = 1 + 0.004 * ((block * 7 + place * 3 + threads) % 5 - 2)
        qps = 1000.0 * threads**0.5 * 0.9**place * noise
        busy = 1 + 0.003 * ((block + place) % 4)
        yield {
            "run_id": f"r{position:05d}", "block": block, "position": position, "arm": arm,
            "group": f"{block}-{workload}-{threads}", "workload": workload, "threads": threads,
            "started_s": 10.0 * position, "sysbench_s": 10.0, "steal_pct": 0.1, "warnings": "",
            "order": "runs", "qps": qps, "tps": qps / 10, "lowest_qps": qps * 0.9,
            **dict.fromkeys(LATER, 1000 * threads / qps),
            **{name: cores * busy for name, cores in CORES.items()},
        }  # fmt: skip


@cache
def judged(name: str) -> dict[str, object]:
    """Really judge a study's claims by made-up tables, with its own claims as its notebook does."""
    one = tree.study(name)
    answered = tree.claims_of(tuple(one.claims))
    shown = tree.claims_of(tuple(setup_notes.illustrated_claims(one)))
    put = evaluate.assign_claims(one, answered, shown)
    assert put.left == [], name
    facts = {arm: {"cpu": {"proxy": {"quota_cores": 4.0}}} for arm in one.arms}
    loads = {arm: {"seconds": 10.0 + place} for place, arm in enumerate(one.arms)}
    given = {"facts": facts, "assigned_claims": put.asked, "loads": loads}
    made = findings.build_findings(name, one, made_up(one), Analysis(), put.effects, **given)
    return {"made": made, "study": one}


def outcome(claim: str, name: str) -> str | None:
    """Return what a study came to: a verdict, `illustrated` where there are numbers, or None."""
    made, one = judged(name)["made"], judged(name)["study"]
    for put in made.claims or ():
        if put.claim == claim and any(part.value is not None for part in put.parts):
            return put.verdict if put.judged else "illustrated"
    for found in made.findings:
        if found.claim == claim and found.effect is not None:
            return found.verdict
        if claim in one.arms[found.treatment].illustrates and found.effect is not None:
            return "illustrated"
    return None


def test_a_study_really_answers_or_illustrates_each():
    asked = {claim: ways()[claim][0] for claim in ids() if claim not in WITHOUT}
    outcomes = {(claim, name): outcome(claim, name) for claim, name in asked.items()}
    assert not [which for which, found in outcomes.items() if not found]


def test_that_is_true_of_most_claims_and_the_others_say_what_they_would_take():
    assert len(ids()) == 40
    assert len(ids()) - len(WITHOUT) >= FEWEST
    assert not WITHOUT & set(ways())
    for claim in WITHOUT:
        name, _, short = claim.partition("/")
        assert tree.document(name).claims[short].takes


def test_every_study_and_its_variants_can_be_asked_all_that_they_name():
    written = paths.list_studies()
    variants = (variant for study in written for variant in study_variants.variant_names(study))
    for name in (*written, *variants):
        one = tree.study(name)
        named, shown = map(tree.claims_of, (tuple(one.claims), tuple(setup_notes.illustrated_claims(one))))
        assert evaluate.assign_claims(one, named, shown).left == [], name


@pytest.mark.parametrize("name", paths.list_studies())
def test_an_arm_that_illustrates_a_claim_says_what_it_stands_in_for(name: str):
    silent = [arm for arm, one in tree.study(name).arms.items() if one.illustrates and not one.stands_in_for]
    assert silent == [], "the first page would show its effect beside the claim without that"


def test_a_trend_of_point_selects_is_shown_by_point_selects_alone():
    """The document has tables of point selects only; the study of a cluster on one machine updates, too."""
    name = "lab-cluster-zones"
    assert len(tree.study(name).workloads) == 2
    (put,) = [
        one for one in judged(name)["made"].claims if one.claim == "tidb-kubernetes/zones-with-concurrency"
    ]
    assert put.parts and {"oltp_point_select" in part.where for part in put.parts} == {True}


def test_the_table_of_the_load_balancer_is_another_one_and_gives_no_verdict():
    from benchbook.compare.claims.printed_cells import judge_claim
    from benchbook.read import published

    found = judge_claim(published.load_source("tidb-kubernetes"), "load-balancer")
    assert (found["verdict"], found["mean"]) == ("not derivable", None)
    assert "the table load-balancer is the table cos, number for number" in found["reason"]
    assert found["cells"] and all(cell["is_inside"] is None for cell in found["cells"])
