"""The drawing of all claims: published band, recomputed cells, measured interval, each also in words."""

from __future__ import annotations

import base64

import pytest

from benchbook.show import figures
from tests.show.figures.edge import inked_edges

CLAIM = {
    "id": "doc/host-network", "is_share": True, "band": [0.05, 0.09], "mean": 0.061, "low": 0.039,
    "high": 0.077, "verdict": "holds", "published": "about +7 %", "claim": "Host is faster.",
}  # fmt: skip
OTHERS = [
    {**CLAIM, "id": "doc/cpu", "is_share": False},
    {**CLAIM, "id": "doc/open", "band": None},
    {**CLAIM, "id": "doc/nothing", "mean": None},
]
FOUND = {"effect": 0.031, "low": 0.012, "high": 0.048, "verdict": "contradicted"}


def draw(claims: list, answered: bool = True):
    audit = {"source": "doc", "document": {"title": "A document"}, "claims": claims}

    def answers(claim: str) -> list:
        return [("mine", FOUND, True), ("lab", FOUND, False)] if answered and claim == CLAIM["id"] else []

    return figures.claims([audit], answers)


def test_published_recomputed_and_measured_stand_side_by_side_in_words_too():
    picture = draw([CLAIM, *OTHERS])
    (panel,) = picture.panels
    told = panel.alt.replace("\xa0", " ")
    assert "Host is faster. (about +7 %); its own tables: +6.1 %, holds, cells +3.9 to +7.7 %." in told
    assert "Host is faster. (about +7 %); mine: +3.1 %, contradicted, interval +1.2 to +4.8 %." in told
    assert "Host is faster. (about +7 %); lab (illustrates): +3.1 %, interval +1.2 to +4.8 %." in told
    assert picture.caption.replace("\xa0", " ").startswith("1 of 4 claims")


def test_a_claim_without_a_share_a_band_or_a_number_is_not_drawn():
    picture = draw(OTHERS)
    assert not picture.panels and "Nothing was recorded" in picture._repr_html_()


def test_what_was_measured_changes_the_drawing_and_is_byte_stable():
    with_answer, without = (draw([CLAIM], answered).panels[0].image().text for answered in (True, False))
    assert with_answer != without
    assert with_answer == draw([CLAIM]).panels[0].image().text


def test_a_bound_runs_to_the_edge_and_a_single_cell_has_no_range():
    bound = {**CLAIM, "band": [None, -0.02], "mean": -0.4, "low": -0.4, "high": -0.4}
    (panel,) = draw([bound], answered=False).panels
    assert "cells" not in panel.alt
    assert b"<svg" in base64.b64decode(panel.image().text.split("base64,")[1].split('"')[0])


LONG = {
    **CLAIM,
    "claim": "From outside through the load balancer, QPS is about 5 % lower than through the Service.",
    "verdict": "not derivable",
    "mean": -0.0512,
}
BY_LEVEL = {
    "headline": False, "label": "depends on threads", "effect": 0.01, "low": -0.1, "high": 0.1,
    "workload": "oltp_update_non_index", "verdict": None,
    "levels": [{"threads": threads, "effect": 0.123, "low": 0.1, "high": 0.15} for threads in (1, 1024)],
}  # fmt: skip


@pytest.mark.parametrize("is_answer", [True, False])
def test_no_label_is_cut_however_long_it_is(is_answer):
    title = "TiDB in Kubernetes, sysbench performance test on Google Kubernetes Engine"
    audit = {"source": "doc", "document": {"title": title}, "claims": [LONG]}
    whole = {**FOUND, "workload": "oltp_update_non_index", "verdict": "inconclusive"}
    found = [("tidb-kubernetes-network-full", one, is_answer) for one in (whole, BY_LEVEL)]
    (panel,) = figures.claims([audit], lambda _: found).panels
    assert inked_edges(panel.figure) == []


def test_an_effect_that_depends_on_threads_is_drawn_level_by_level():
    audit = {"source": "doc", "document": {"title": "A document"}, "claims": [CLAIM]}
    (panel,) = figures.claims([audit], lambda _: [("lab", BY_LEVEL, False)]).panels
    told = panel.alt.replace("\xa0", " ")
    assert "lab (illustrates): depends on threads." in told
    assert "at 1 thread (illustrates): +12.3 %, interval +10.0 to +15.0 %." in told
