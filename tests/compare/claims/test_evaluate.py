"""Claims of every kind put to a study: what is asked of its cells, and what comes out, by hand."""

import math
from typing import Any

import pandas as pd
import pytest

from benchbook.compare.claims import evaluate
from benchbook.compare.claims.evaluate import AssignedClaim
from benchbook.compare.claims.study_cells import StudyEvidence
from benchbook.compare.inference import findings
from benchbook.core.published.claim import ClaimSpec
from benchbook.core.study.params import Analysis
from tests.compare.cases import assert_cases, read_cases
from tests.found import runs as runs_of
from tests.goldens import assert_golden

# Five factors around one, so that there is a spread: their geometric mean is 1 within a hundred-thousandth.
NOISE = [1.01, 0.99, 1.005, 0.995, 1.0]
TOLD = {"claim": "It is so.", "stands": "Summary"}
DIRECT = {"arm": "direct"}
SIDES = {"baseline": DIRECT, "treatment": {"arm": "haproxy"}}


def _claim(kind, **fields):
    return ClaimSpec.model_validate({"kind": kind, "metric": "qps", **TOLD, **fields})


def _runs(values, **columns):
    """Build runs from {(arm, workload, threads): qps}, five blocks with noise that differs between cells."""
    rows = [
        {
            "run_id": f"{block}-{arm}-{workload}-{threads}", "block": block,
            "group": f"{block}-{workload}-{threads}", "arm": arm, "workload": workload, "threads": threads,
            "qps": qps * NOISE[(block + place) % 5], **columns,
        }
        for block in range(1, 6)
        for place, ((arm, workload, threads), qps) in enumerate(values.items())
    ]  # fmt: skip
    return runs_of(rows)


def _judge(study, claim, runs, is_judged=True, **evidence):
    asked = AssignedClaim("s/c", claim, is_judged)
    assert evaluate.assign_claims(study, {asked.id: claim}, {}).left == []
    return evaluate.answer_claim(StudyEvidence(study, runs, Analysis(), **evidence), asked)


SELECT = "oltp_point_select"


def round_value(value: float | None, digits: int) -> str:
    """A number without a sign of its last bit."""
    return "open" if value is None else f"{round(value, digits) + 0.0:.{digits}f}"


def describe(found: Any) -> list[str]:
    """Verdict of a claim, and each of its parts with value, band and what came out; no interval is said."""
    judged = "" if found.judged else ", not judged"
    lines = [f"{found.verdict}{judged}, {found.n} blocks, {found.level} {found.reason or ''}".rstrip()]
    for part in found.parts:
        band = " to ".join(round_value(end, 2) for end in part.band or ())
        value = f"{part.scale} {round_value(part.value, 3)}{' alone' * (part.low is None)} in {band}"
        lines.append(f"  {part.where}: {value}: {part.outcome} {part.reason or ''}".rstrip())
    return lines


def test_claims_of_each_kind_are_answered_by_cells_and_blocks(make_study):
    answers = []
    for title, group in read_cases("measured_claims").items():
        answers.append(f"\n{title}")
        for case in group["cases"]:
            table = {
                (*f"{place} {SELECT}".split()[:2], threads): qps
                for place, by_threads in case["qps"].items()
                for threads, qps in by_threads.items()
            }
            study = make_study(
                arms=group.get("arms", ("direct", "haproxy")),
                threads=sorted({threads for _, _, threads in table}),
                workloads=group.get("workloads"),
                settings={"max_connections": 2000},
            )
            runs = _runs(table)
            if "proxy_cores" in case:
                runs["cpu_proxy_cores"] = runs["threads"].map(case["proxy_cores"])
            claim = _claim(**group["claim"] | case.get("claim", {}))
            chosen = runs[runs["block"] <= case.get("blocks", 5)].assign(**case.get("columns", {}))
            evidence = {key: case[key] for key in ("facts", "loads") if key in case}
            found = describe(_judge(study, claim, chosen, case.get("is_judged", True), **evidence))
            answers.append("  - " + "\n    ".join(found))
    assert_golden("measured_claims.txt", "\n".join(answers).lstrip() + "\n")


def test_a_value_may_be_one_metric_over_another(make_study):
    """8 cores of TiDB for each core of the proxy lie in 5 to 12."""
    runs = _runs({("direct", SELECT, 4): 1000.0})
    runs = runs.assign(cpu_tidb_cores=8 * runs["qps"] / 1000, cpu_proxy_cores=1.0)
    claim = _claim("value", cells=DIRECT, band={"range": (5, 12)}, metric="cpu_tidb_pct / cpu_proxy_pct")
    found = _judge(make_study(), claim, runs)
    (part,) = found.parts
    assert part.value == pytest.approx(8.0, rel=0.001)
    # 2 % of the value around the ends: 4.9 to 12.24.
    assert part.band == pytest.approx([4.9, 12.24])
    assert (found.verdict, part.where.split(", ")) == ("confirmed", ["direct", SELECT, "4 threads"])


def test_seconds_of_a_run_are_put_together_first(make_study):
    """Bare metal has 100 a second; the slowest second of the other has 48, its fastest 92: −52 and −8 %."""
    runs = _runs({("direct", SELECT, 4): 1000.0, ("haproxy", SELECT, 4): 700.0})
    seconds = [
        {"run_id": run["run_id"], "is_discarded": second == 0, "tps": tps * NOISE[run["block"] % 5]}
        for run in runs.to_dict("records")
        for second, tps in enumerate((1.0, 100.0, 100.0) if run["arm"] == "direct" else (1.0, 48.0, 92.0))
    ]
    combined = {"across": "second", "by": "min", "baseline_by": "mean"}
    claim = _claim("effect", **SIDES, **combined, band={"point": "-52 %"}, metric="tps")
    # The same noise in both arms leaves no spread at all, which is no evidence; so the arms differ by place.
    jitter = pd.Series([1.001, 0.999, 1.0, 1.002, 0.998])
    table = pd.DataFrame(seconds)
    is_other = table["run_id"].str.contains("haproxy")
    blocks = table.loc[is_other, "run_id"].str[0].astype(int)
    table.loc[is_other, "tps"] *= blocks.map(lambda n: jitter[n - 1])
    found = _judge(make_study(), claim, runs, intervals=table)
    assert found.parts[0].value == pytest.approx(-0.52, abs=0.005)
    assert found.verdict == "confirmed"
    fastest = _judge(make_study(), claim.model_copy(update={"by": "max"}), runs, intervals=table)
    assert fastest.parts[0].value == pytest.approx(-0.08, abs=0.005)
    in_turns = _judge(make_study(), claim, runs.assign(order="turns"), intervals=table)
    assert in_turns.parts == [] and in_turns.reason is not None


def test_conditions_on_processor_time_choose_the_cells(make_study):
    """At 4 threads the proxy uses 0.5 of its 4 cores, at 16 3.0 of them: 12 % and 75 %."""
    arms = {"haproxy": {"access": "haproxy"}, "tiproxy": {"access": "tiproxy"}}
    runs = _runs({(arm, SELECT, threads): 1000.0 for arm in arms for threads in (4, 16)})
    runs = runs.assign(
        cpu_proxy_cores=runs["threads"].map({4: 0.5, 16: 3.0}),
        lowest_qps=runs["qps"] * runs["arm"].map({"haproxy": 1.0, "tiproxy": 0.9}),
    )
    sides = {"baseline": {"arm": "haproxy"}, "treatment": {"arm": "tiproxy"}}
    where = ({"metric": "cpu_proxy_pct", "above": 240.0, "below": 320.0, "whole": 400.0},)
    claim = _claim("effect", **sides, where=where, band={"point": "-10 %"}, metric="qps_min")
    facts = {arm: {"cpu": {"proxy": {"quota_cores": 4}}} for arm in arms}
    found = _judge(make_study(arms=arms, threads=(4, 16)), claim, runs, facts=facts)
    assert found.parts[0].value == pytest.approx(-0.1, abs=0.005)


def test_what_a_study_cannot_be_asked_is_said(make_study):
    def ask(case: dict[str, Any]) -> list[str]:
        put = evaluate.assign_claims(make_study(), {"s/c": ClaimSpec.model_validate(TOLD | case)}, {})
        assert (put.effects, put.asked) == ([], [])
        return put.left

    assert_cases("unanswered_claims", ask)


def test_an_effect_of_throughput_stays_a_finding(make_study):
    effect = _claim("effect", **SIDES, band={"point": "7 %"})
    judged = evaluate.assign_claims(make_study(), {"s/c": effect}, {})
    shown = evaluate.assign_claims(make_study(), {}, {"s/c": effect})
    assert (len(judged.effects), judged.asked, judged.left) == (1, [], [])
    assert shown == evaluate.ClaimAssignment([], [], [])


def test_findings_hold_them_and_count_their_verdicts(make_study, make_runs, no_voids, no_histograms):
    """The proxy has 0.70 at 4 threads and 0.90 at 16: its cost shrinks. Without a claim the key is absent."""
    ratios = {"haproxy": {4: [0.70, 0.71, 0.69, 0.70, 0.70], 16: [0.90, 0.91, 0.89, 0.90, 0.905]}}
    tidy = {"runs": make_runs(ratios), "voids": no_voids, "histograms": no_histograms}
    study, claim = make_study(threads=(4, 16)), _claim("trend", **SIDES, along="threads", direction="shrinks")
    asked = [AssignedClaim("s/c", claim, True)]
    made = findings.build_findings("s", study, tidy, Analysis(), assigned_claims=asked)
    (one,) = made.claims
    assert (one.verdict, made.verdicts.number) == ("confirmed", 1)
    # ln 0.9 − ln 0.7 is 0.2513, which is +28.6 %.
    assert one.parts[0].value == pytest.approx(math.exp(0.2513) - 1, abs=0.005)
    assert findings.build_findings("s", study, tidy, Analysis()).claims is None
