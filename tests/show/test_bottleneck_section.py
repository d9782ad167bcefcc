"""Causes under the answer, and what a query cost each part: in the words of each session, none left out."""

from collections.abc import Sequence
from typing import Any

from benchbook.core.artifacts.findings import Findings
from benchbook.show import bottleneck_section
from tests.found import findings
from tests.goldens import assert_golden, assert_page

NAMES = {"arms": {"direct": "direct connections", "haproxy": "HAProxy"}, "workloads": {"w": "point selects"}}
OPEN = {
    "workload": "w", "threads": 8, "treatment": "haproxy", "quantity": None,
    "qps": {"value": 0.3, "low": 0.2, "high": 0.4, "n": 5},
    "full": {}, "cost": {"server": {"value": -0.3, "n": 5}}, "added_latency_us": None, "added_cpu_us": None,
    "sentence": None, "reason": "it is open",
}  # fmt: skip


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
    known = {"cells": cells, "physics": [], "contrasts": [OPEN | one for one in contrasts or [{}]]}
    return findings(names=NAMES, baseline="direct", causes={"level": 0.98, **known})


def because(sentence: str, change: float = 0.3, half: float | None = None, **more: Any) -> dict[str, Any]:
    """Changes of a contrast whose cause is known; its effect is decided where it has half a width."""
    ends = {} if half is None else {"low": change - half, "high": change + half}
    return {"sentence": sentence, "short": sentence, "reason": None, "qps": value(change) | ends, **more}


def test_causes_are_told_once_for_all_they_explain_with_the_session_that_tells_them():
    told = found(because("server CPU-bound"))
    alike = (because("it is full", threads=n) for n in (1, 2, 3))
    slower = [("Xeon", "2026-11-22", found(because("proxy CPU-bound", -0.2)))]
    # The newest of a machine counts.
    earlier = [
        ("Xeon", "2026-11-25", found(because("server full; 29 % less", 0.4, 0.05))),
        ("Xeon", "2026-11-24", found(because("not told", 0.1, 0.05))),
        ("Zen 3", "2026-11-23", found(because("server full; 14 % less", 0.18, 0.05))),
    ]
    cases = {
        "it is open": [found()],
        "no difference was shown": [found({"qps": {"value": 0.3, "low": -0.1, "high": 0.4, "n": 5}})],
        "beyond four they are folded": [found(*(because(f"of {n}", threads=n) for n in range(1, 8)))],
        "one sentence for three levels": [found(*alike)],
        "two earlier sessions tell": [found(), [("EPYC", "2026-11-23", told), ("older", "2026-11-22", told)]],
        "it turns between processors": [told, slower, "EPYC"],
        "on each machine": [found(because("client and proxy full", -0.25, 0.05)), earlier, "Zen 5"],
    }
    shown = [(f"<h1>{title}</h1>", bottleneck_section.render_section(*of)[0]) for title, of in cases.items()]
    assert_page("causes.txt", *(part for parts in shown for part in parts))
    assert bottleneck_section.render_section(findings()) == []
    assert bottleneck_section.of_both_signs([("Zen 3", earlier[2][2]), ("Xeon", earlier[0][2])]) == {}


def test_instructions_have_columns_where_the_kernel_counted_them_and_nowhere_else():
    parts = ("direct", 40.0, 52e3), ("haproxy", 28.0, 41e3)
    counted = [cell(arm, cpu_us=us, instructions=many) for arm, us, many in parts]
    # A core has 1,000,000 µs a second: 25,000 queries of 40 µs, 35,714 of 28 µs.
    several = found(cells=counted), found()
    assert_page("costs.txt", *(table for one in several for table in bottleneck_section.build_tables(one)))


def test_six_contrasts_of_a_workload_are_drawn_those_with_a_cause_first():
    """Eight levels; of the last two alone the cause is known: they stand beside the first four."""
    levels = range(1, 9)
    cells = [{**cell(arm, cpu_us=30.0), "threads": n} for n in levels for arm in ("direct", "haproxy")]
    several = found(*({"threads": n, "sentence": "full" if n > 6 else None} for n in levels), cells=cells)
    (picture,) = bottleneck_section.draw_query_costs(several)
    (panel,) = picture.panels
    drawn = [label.get_text() for label in panel.figure.axes[0].get_yticklabels()]
    assert [label.split(" · ")[1] for label in drawn[::2]] == ["1", "2", "3", "4", "7", "8"]
    assert_golden("cost-of-a-query.txt", panel.alt.replace("\xa0", " ") + "\n")
