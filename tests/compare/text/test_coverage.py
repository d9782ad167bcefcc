"""Sentences over several cells, recorded and drawn: each arm, level and session they cover is as they say."""

import random
import re

import pytest

from benchbook.compare.inference import findings as findings_module
from benchbook.compare.inference import ordered_arms
from benchbook.compare.meta import recorded_sessions
from benchbook.compare.meta.meta_analysis import pool_sessions
from benchbook.compare.text.labels import label_metric
from benchbook.compare.text.results_table import describe_contrast
from benchbook.core.artifacts import record
from benchbook.core.artifacts.findings import Best, DisplayNames, Rungs
from tests.compare.sessions import finding, part, session
from tests.found import changed, contrast
from tests.recorded_findings import recorded_findings

LABELS = ("higher", "lower", "no practical difference", "not shown", "no useful interval")
NUMBER = re.compile(r"[−+]?\d[\d,]*\.?\d*")


def numbers(text: str) -> list[float]:
    return [float(number.replace("−", "-").replace(",", "")) for number in NUMBER.findall(text)]


def drawn_rungs(draw: random.Random) -> Rungs:
    """Ordered arms with a label drawn for each pair."""
    arms = [f"arm-{letter}" for letter in "abcde"[: draw.randint(2, 5)]]
    metric = draw.choice(["qps", "latency_p95_ms"])
    pairs = []
    for at, base in enumerate(arms):
        for arm in arms[at + 1 :]:
            effect = draw.uniform(-0.5, 1.5)
            ends = {"low": effect - 0.07, "high": effect + 0.09, "n": draw.randint(5, 20)}
            names = {"baseline": base, "treatment": arm, "metric": metric, "label": draw.choice(LABELS)}
            pairs.append(contrast(effect=effect, **ends, **names))
    best = ordered_arms.find_best_arms(
        arms,
        {(pair.baseline, pair.treatment): pair.label for pair in pairs},
        "higher" if metric == "qps" else "lower",
    )
    whole = {"against_first": pairs[: len(arms) - 1], "against_neighbour": [], "pairs": pairs, "sentence": ""}
    marks = (
        None
        if draw.random() < 0.1
        else [Best(arm=arm, best=text) for arm, text in zip(arms, best, strict=True)]
    )
    return Rungs(workload="w", metric=metric, best=marks, **whole)


def all_rungs():
    draw = random.Random(53)
    for found in recorded_findings().values():
        for rungs in found.ladder.workloads if found.ladder else ():
            yield rungs, found.names
    for _ in range(300):
        yield drawn_rungs(draw), DisplayNames(arms={}, workloads={})


def test_the_sentence_on_ordered_arms_covers_each_arm_after_the_best_as_its_pair_is_labelled():
    kinds = {"shown to be worse": 0, "made no practical difference": 0, "is open": 0, "no later arm": 0}
    for rungs, names in all_rungs():
        arms = [rungs.pairs[0].baseline, *(pair.treatment for pair in rungs.against_first)]
        text = ordered_arms._render_sentence(rungs, arms, names)
        call = {arm: names.arms.get(arm, arm) for arm in arms}
        assert rungs.metric == "qps" or "p95 latency" in text.partition(";")[0], text
        if rungs.best is None:
            assert "nothing is decided" in text and call[arms[0]] in text and call[arms[-1]] in text
            continue
        head, *clauses = text.rstrip(".").split("; ")
        best = rungs.best[-1].best
        assert f": {call[best]}," in head
        if best != arms[0]:
            (pair,) = [one for one in rungs.pairs if (one.baseline, one.treatment) == (arms[0], best)]
            shown = numbers(head.partition(f": {call[best]},")[2].replace(call[arms[0]], ""))
            expected = [100 * pair.effect, 100 * pair.level, 100 * pair.low, 100 * pair.high, pair.n]
            assert shown == pytest.approx(expected, abs=0.051), text
        for pair in rungs.pairs:
            if pair.baseline == best:
                (clause,) = [
                    one for one in clauses if re.search(rf"\b{re.escape(call[pair.treatment])}\b", one)
                ]
                worse = "lower" if rungs.metric == "qps" else "higher"
                says = {worse: "shown to be worse", "no practical difference": "made no practical difference"}
                wanted = says.get(pair.label, "open")
                assert wanted in clause, text
        for kind in kinds:
            kinds[kind] += kind in text
    assert min(kinds.values()) > 10, kinds


def all_contrasts():
    """Contrasts of several sessions: recorded ones, and drawn ones whose levels differ."""
    index, draw = record.read_index(), random.Random(53)
    several = [recorded_sessions.pool_study(index, name) for name in index.studies]
    assert any(several), "every study in the record was pooled to nothing"
    for pooled in filter(None, several):
        yield from pooled.contrasts
    for _ in range(60):
        centres = {threads: draw.choice([0.0, -0.2, 0.3]) for threads in (1, 8)}
        several = []
        for day in range(1, draw.randint(2, 6)):
            levels = {threads: part(draw.gauss(centre, 0.1), 0.02) for threads, centre in centres.items()}
            whole = part(sum(centres.values()) / 2, 0.02)
            own = finding(whole, levels, threads=[1, 8], headline=draw.random() < 0.5)
            several.append(session(own, measured=f"2026-11-{day:02d}T06:00", processor=f"Xeon {day}"))
        yield from pool_sessions("drawn", several).contrasts


def test_words_over_sessions_name_each_level_and_hold_each_session_that_they_cover():
    kinds = {"expected": 0, "seen": 0, "depends on the machine": 0, "one session": 0}
    for of in all_contrasts():
        text = describe_contrast(of).replace("\xa0", " ")
        body, count = re.fullmatch(r"(.*) \((\d+) sessions?\)", text).groups()
        assert int(count) == len(of.whole.sessions)
        for effect, clause in zip(of.shown, body.split("; "), strict=True):
            place, _, words = clause.rpartition(": ")
            assert numbers(place) == ([] if effect.threads is None else [effect.threads]), text
            sizes = [session.effect for session in effect.sessions if session.effect is not None]
            kind = next((kind for kind in kinds if kind in words), "")
            if not kind:
                assert words == effect.label and not NUMBER.search(words)
                continue
            kinds[kind] += 1
            values = [value / 100 for value in numbers(words)]
            room = 0.00051 if "." in (words.partition(f"{kind} ")[2] or words) else 0.0051
            if kind == "one session":
                assert not values or values == pytest.approx([effect.effect], abs=0.0051)
            elif kind == "expected":
                mean, low, high = values
                assert (low, high) == pytest.approx((effect.prediction_low, effect.prediction_high), abs=room)
                assert mean == pytest.approx(effect.effect, abs=0.0051)
            else:
                assert values[-2:] == pytest.approx([min(sizes), max(sizes)], abs=room), text
                assert len(values) == (2 if kind == "depends on the machine" else 3)
    assert min(kinds.values()) > 5, kinds


def test_caveats_on_blocks_and_equal_arms_have_the_numbers_of_their_fields(make_study):
    kinds = {"Blocks": 0, "A/A": 0, "Heavy tails": 0}
    draw = random.Random(53)
    for found in recorded_findings().values():
        disagrees = {"method": "ranks", "low": None, "high": None, "agrees": False}
        entries = [
            changed(one, second_opinion=disagrees) if draw.random() < 0.1 else one for one in found.findings
        ]
        heavy = [one.id for one in entries if one.second_opinion and one.second_opinion.agrees is False]
        blocks, aa = found.blocks, found.aa
        study = make_study(blocks=blocks.planned)
        threats = findings_module._collect_warnings(study, blocks.complete, 5, aa, entries, [])
        texts = {threat.title: threat.text.replace("\xa0", " ") for threat in threats}
        for title in texts:
            kinds[title] += 1
        if heavy:
            assert texts["Heavy tails"].rstrip(".").rpartition(": ")[2].split(", ") == heavy
        if blocks.complete < blocks.planned:
            assert blocks.complete < 5 or numbers(texts["Blocks"]) == [blocks.complete, blocks.planned]
        if aa and "A/A" in texts:
            place = f" on {aa.names.workload}" + (
                "" if aa.metric == "qps" else f", {label_metric(aa.metric)}"
            )
            assert place in texts["A/A"]
            figures = numbers(texts["A/A"].replace(place, "").replace("A/A", ""))
            says = {5: (aa.effect, aa.level, aa.low, aa.high, aa.n / 100), 2: (aa.low, aa.high), 1: (0.02,)}[
                len(figures)
            ]
            assert figures == pytest.approx([100 * number for number in says], abs=0.051)
    assert min(kinds.values()) > 2, kinds
