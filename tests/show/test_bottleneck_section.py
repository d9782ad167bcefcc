"""Tables under the answer: what a query cost each part, and what percentiles rest on."""

import re
from collections.abc import Sequence
from typing import Any

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


BOTH = cell("direct", cpu_us=40.0), cell("haproxy", cpu_us=28.0)


def found(*contrasts: dict[str, Any], cells: Sequence[dict[str, Any]] = BOTH) -> Findings:
    """Findings with contrasts of HAProxy that differ from one without a known cause as given."""
    plain = {
        "workload": "w", "threads": 8, "treatment": "haproxy", "quantity": None,
        "qps": {"value": 0.3, "low": 0.2, "high": 0.4, "n": 5},
        "full": {}, "cost": {"server": value(-0.3)}, "added_latency_us": None, "added_cpu_us": None,
        "sentence": None, "reason": "it is open",
    }  # fmt: skip
    known = {
        "level": 0.98,
        "cells": cells,
        "physics": [],
        "contrasts": [plain | one for one in contrasts or [{}]],
    }
    return findings(names=NAMES, baseline="direct", causes=known)


def because(sentence: str, change: float = 0.3, half: float | None = None, **more: Any) -> dict[str, Any]:
    """Changes of a contrast whose cause is known; its effect is decided where it has half a width."""
    ends = {} if half is None else {"low": change - half, "high": change + half}
    return {"sentence": sentence, "short": sentence, "reason": None, "qps": value(change) | ends, **more}


def why(*given: Any) -> str:
    first, *_ = bottleneck_section.render_section(*given)
    return first.text.replace("\xa0", " ")


def test_instructions_have_columns_where_the_kernel_counted_them_and_nowhere_else():
    counted = [
        cell("direct", cpu_us=40.0, instructions=52_000.0),
        cell("haproxy", cpu_us=28.0, instructions=41_000.0),
    ]
    (table,) = bottleneck_section.build_tables(found(cells=counted))
    # A core has 1,000,000 µs a second: 25,000 queries of 40 µs, 35,714 of 28 µs.
    assert table.rows[0][4:9:2] == ["40.0 → 28.0", "25,000 → 35,700", "52,000 → 41,000"]
    assert table.rows[0][7].startswith("96, saturated → ") and table.columns[8].label == "Instructions"
    (table,) = bottleneck_section.build_tables(found())
    assert "Instructions" not in [column.label for column in table.columns]


def test_causes_beyond_four_are_folded_and_none_is_left_out():
    seen, folded = why(found(*(because(f"of {n}", threads=n) for n in range(1, 8)))).split(
        "<summary>3 more</summary>"
    )
    assert (seen.count(": of "), folded.count(": of ")) == (4, 3)
    assert "HAProxy, point selects, 1 thread: of 1." in seen
    alike = why(found(*(because("it is full", threads=n) for n in (1, 2, 3))))
    assert "HAProxy, point selects, 1, 2 and 3 threads: it is full." in alike


def test_six_contrasts_of_a_workload_are_drawn_those_with_a_cause_first():
    """Eight levels; of the last two alone the cause is known: they stand beside the first four."""
    levels = range(1, 9)
    cells = [{**cell(arm, cpu_us=30.0), "threads": n} for n in levels for arm in ("direct", "haproxy")]
    several = found(*({"threads": n, "sentence": "full" if n > 6 else None} for n in levels), cells=cells)
    (panel,) = bottleneck_section.costs_of_a_query(several.causes, several).panels
    drawn = [label.get_text() for label in panel.figure.axes[0].get_yticklabels()]
    assert [label.split(" · ")[1] for label in drawn[::2]] == ["1", "2", "3", "4", "7", "8"]


def test_an_earlier_session_tells_why_where_the_newest_does_not_and_says_which_it_is():
    told = found({"sentence": "server CPU-bound", "reason": None})
    assert "<p>It is open.</p>" in why(found())
    unseen = found({"qps": {"value": 0.3, "low": -0.1, "high": 0.4, "n": 5}})
    assert "<p>No difference in queries a second was shown.</p>" in why(unseen)
    text = why(found(), [("EPYC Zen 3", "2026-11-23", told), ("older", "2026-11-22", told)])
    assert ": server CPU-bound (EPYC Zen 3, 2026-11-23)." in text and "older" not in text
    assert bottleneck_section.render_section(findings()) == []


def test_an_effect_that_turns_between_processors_is_named_once_with_its_cause_on_each():
    slower = [("Xeon", "2026-11-22", found(because("proxy CPU-bound", -0.2)))]
    text = why(found(because("server CPU-bound")), slower, "EPYC")
    assert "<p>HAProxy, point selects, 8 threads, depends on the bottleneck" in text
    lines = re.findall("<li>(.*)</li>", text)
    assert lines == ["−20.0 % on Xeon: proxy CPU-bound.", "+30.0 % on EPYC: server CPU-bound."]


def test_an_effect_that_turns_between_machines_is_explained_on_each_the_newest_of_a_machine():
    earlier = [
        ("Xeon", "2026-11-25", found(because("server full; 29 % less", 0.4, 0.05))),
        ("Xeon", "2026-11-24", found(because("not told", 0.1, 0.05))),
        ("Zen 3", "2026-11-23", found(because("server full; 14 % less", 0.18, 0.05))),
    ]
    text = why(found(because("client and proxy full", -0.25, 0.05)), earlier, "Zen 5")
    assert re.findall(r"<li>(.*?)</li>", text) == [
        "−25.0 % on Zen 5: client and proxy full.",
        "+18.0 % on Zen 3: server full; 14 % less.",
        "+40.0 % on Xeon: server full; 29 % less.",
    ]
    assert bottleneck_section.of_both_signs([("Zen 3", earlier[2][2]), ("Xeon", earlier[0][2])]) == {}
