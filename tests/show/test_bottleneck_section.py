"""Tables under the answer: what a query cost each part, and what percentiles rest on."""

import re
from typing import Any

from benchbook.core.artifacts.bottlenecks import Causes
from benchbook.core.artifacts.findings import Findings
from benchbook.show import bottleneck_section
from tests.found import findings

NAMES = {"arms": {"direct": "direct connections", "haproxy": "HAProxy"}, "workloads": {"w": "point selects"}}


def value(number: float) -> dict[str, Any]:
    return {"value": number, "n": 5}


def cell(arm: str, **server: float) -> dict[str, Any]:
    part = {"part": "server", "busy_cores": value(0.9), "a_query": {k: value(v) for k, v in server.items()}}
    return {
        "workload": "w", "threads": 8, "arm": arm, "qps": value(1e4), "latency_us": None, "parts": [part],
        "places": [{"parts": ["server"], "cores": 1, "used": value(0.963), "is_full": True}],
    }  # fmt: skip


def found(*cells: dict[str, Any], low: float = 0.2) -> Findings:
    qps = {"value": 0.3, "low": low, "high": 0.4, "n": 5}
    contrast = {
        "workload": "w", "threads": 8, "treatment": "haproxy", "quantity": None, "qps": qps,
        "full": {}, "cost": {"server": value(-0.3)}, "added_latency_us": None, "added_cpu_us": None,
        "sentence": None, "reason": "it is open",
    }  # fmt: skip
    known = {"level": 0.98, "cells": cells, "contrasts": [contrast], "physics": []}
    return findings(names=NAMES, baseline="direct", causes=known)


def test_instructions_have_columns_where_the_kernel_counted_them_and_nowhere_else():
    counted = cell("haproxy", cpu_us=28.0, instructions=41_000.0)
    (table,) = bottleneck_section.build_tables(
        found(cell("direct", cpu_us=40.0, instructions=52_000.0), counted)
    )
    # A core has 1,000,000 µs a second: 25,000 queries of 40 µs, 35,714 of 28 µs.
    assert table.rows[0][4:9:2] == ["40.0 → 28.0", "25,000 → 35,700", "52,000 → 41,000"]
    assert table.rows[0][7].startswith("96, saturated → ") and table.columns[8].label == "Instructions"
    (table,) = bottleneck_section.build_tables(
        found(cell("direct", cpu_us=40.0), cell("haproxy", cpu_us=28.0))
    )
    assert "Instructions" not in [column.label for column in table.columns]


def test_causes_beyond_four_are_folded_and_none_is_left_out():
    first = found(cell("direct", cpu_us=40.0), cell("haproxy", cpu_us=28.0))
    (one,) = first.causes.contrasts
    several = [
        one.model_copy(update={"threads": threads, "sentence": f"of {threads}", "reason": None})
        for threads in range(1, 8)
    ]
    told = first.causes.model_copy(update={"contrasts": tuple(several)})
    (why, *_) = bottleneck_section.render_section(first.model_copy(update={"causes": told}))
    seen, folded = why.text.split("<summary>3 more</summary>")
    assert (seen.count(": of "), folded.count(": of ")) == (4, 3)
    assert "HAProxy, point selects, 1\xa0thread: of 1." in seen
    alike = tuple(one.model_copy(update={"sentence": "it is full"}) for one in several[:3])
    told = first.causes.model_copy(update={"contrasts": alike})
    (why, *_) = bottleneck_section.render_section(first.model_copy(update={"causes": told}))
    assert "HAProxy, point selects, 1, 2 and 3\xa0threads: it is full." in why.text


def test_six_contrasts_of_a_workload_are_drawn_those_with_a_cause_first():
    """Eight levels; of the last two alone the cause is known: they stand beside the first four."""
    levels = range(1, 9)
    cells = [{**cell(arm, cpu_us=30.0), "threads": n} for n in levels for arm in ("direct", "haproxy")]
    (one,) = (first := found(*cells)).causes.contrasts
    several = [one.model_copy(update={"threads": n, "sentence": "full" if n > 6 else None}) for n in levels]
    causes = first.causes.model_copy(update={"contrasts": tuple(several)})
    (panel,) = bottleneck_section.costs_of_a_query(causes, first).panels
    drawn = [label.get_text() for label in panel.figure.axes[0].get_yticklabels()]
    assert [label.split(" · ")[1] for label in drawn[::2]] == ["1", "2", "3", "4", "7", "8"]


def test_an_earlier_session_tells_why_where_the_newest_does_not_and_says_which_it_is():
    both = cell("direct", cpu_us=40.0), cell("haproxy", cpu_us=28.0)
    first = found(*both)
    (one, *rest) = first.causes.contrasts
    one = one.model_copy(update={"sentence": "server CPU-bound", "reason": None})
    told = first.model_copy(update={"causes": first.causes.model_copy(update={"contrasts": (one, *rest)})})
    (why, _) = bottleneck_section.render_section(found(*both))
    assert "<p>It is open.</p>" in why.text
    (why, _) = bottleneck_section.render_section(found(*both, low=-0.1))
    assert "<p>No difference in queries a second was shown.</p>" in why.text
    (why, _) = bottleneck_section.render_section(
        found(*both), [("EPYC Zen 3", "2026-11-23", told), ("older", "2026-11-22", told)]
    )
    assert ": server CPU-bound (EPYC Zen 3, 2026-11-23)." in why.text
    assert "older" not in why.text
    assert bottleneck_section.render_section(findings()) == []


def test_an_effect_that_turns_between_processors_is_named_once_with_its_cause_on_each():
    first = found(cell("direct", cpu_us=40.0), cell("haproxy", cpu_us=28.0))

    def of(effect: float, short: str) -> Findings:
        causes = first.causes.model_dump()
        (contrast,) = causes["contrasts"]
        contrasts = [{**contrast, "sentence": short, "short": short, "qps": value(effect)}]
        return first.model_copy(update={"causes": Causes(**{**causes, "contrasts": contrasts})})

    slower = [("Xeon", "2026-11-22", of(-0.2, "proxy CPU-bound"))]
    (why, _) = bottleneck_section.render_section(of(0.3, "server CPU-bound"), slower, "EPYC")
    text = why.text.replace("\xa0", " ")
    assert "<p>HAProxy, point selects, 8 threads, depends on the bottleneck" in text
    lines = re.findall("<li>(.*)</li>", text)
    assert lines == ["−20.0 % on Xeon: proxy CPU-bound.", "+30.0 % on EPYC: server CPU-bound."]


def at_eight(change: float, short: str) -> Findings:
    """Return findings of a session in which HAProxy's effect is decided and explained."""
    first = found(cell("direct", cpu_us=40.0), cell("haproxy", cpu_us=28.0))
    (one,) = first.causes.contrasts
    qps = {"value": change, "low": change - 0.05, "high": change + 0.05, "n": 5}
    told = {**one.model_dump(), "qps": qps, "sentence": short, "short": short, "reason": None}
    return first.model_copy(
        update={"causes": Causes.model_validate({**first.causes.model_dump(), "contrasts": [told]})}
    )


def test_an_effect_that_turns_between_machines_is_explained_on_each_the_newest_of_a_machine():
    newest = at_eight(-0.25, "client and proxy full")
    earlier = [
        ("Xeon", "2026-11-25", at_eight(0.4, "server full; 29 % less")),
        ("Xeon", "2026-11-24", at_eight(0.1, "not told")),
        ("Zen 3", "2026-11-23", at_eight(0.18, "server full; 14 % less")),
    ]
    (why, _) = bottleneck_section.render_section(newest, earlier, "Zen 5")
    lines = re.findall(r"<li>(.*?)</li>", why.text)
    assert lines == [
        "−25.0\xa0% on Zen 5: client and proxy full.",
        "+18.0\xa0% on Zen 3: server full; 14 % less.",
        "+40.0\xa0% on Xeon: server full; 29 % less.",
    ]
    assert bottleneck_section.of_both_signs([("Zen 3", earlier[2][2]), ("Xeon", earlier[0][2])]) == {}
