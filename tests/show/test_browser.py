"""The page in a real browser: no request, no error, nothing wider than the window, and it sorts."""

from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from benchbook.compare.text.labels import WORKLOADS
from tests.browser import opened, started
from tests.found import changed
from tests.show import conftest, synthetic
from tests.show.test_bottleneck_section import OPEN, because, cell

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def browser() -> Iterator:
    with started() as running:
        yield running


def _open(browser, built, width: int, **context):
    return opened(browser, built.path, width, **context)


@pytest.mark.parametrize("width", [320, 390, 800, 1400])
def test_it_asks_for_nothing_and_fits_every_width(browser, built, width):
    page = _open(browser, built, width)
    assert page.trouble == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    widths = page.locator("img").evaluate_all("images => images.map(image => image.naturalWidth)")
    assert min(widths) > 0


def test_it_reads_without_script(browser, built):
    page = _open(browser, built, 800, java_script_enabled=False)
    written = len(built.soup.select("table tbody tr"))
    assert page.locator("table tbody tr").count() == written > 50
    assert page.locator("#answer").is_visible()


def test_a_table_sorts_by_number_and_back(browser, built):
    page = _open(browser, built, 1400)
    page.locator("details.part summary", has_text="Every run").click()
    table = page.locator("#cells ~ .scroll").first
    heading = table.locator("thead th", has_text="QPS").first
    place = 1 + heading.evaluate("cell => cell.cellIndex")
    cells = table.locator(f"tbody td:nth-child({place})")
    for direction, is_falling in (("ascending", False), ("descending", True)):
        heading.locator("button").click()
        values = [float(text.replace(",", "")) for text in cells.all_inner_texts()]
        assert values == sorted(values, reverse=is_falling)
        assert heading.get_attribute("aria-sort") == direction


@pytest.mark.parametrize(("scheme", "is_bright"), [("light", True), ("dark", False)])
def test_figures_follow_the_colour_scheme(browser, built, scheme, is_bright):
    page = _open(browser, built, 800, color_scheme=scheme)
    shot = Image.open(BytesIO(page.locator("img").first.screenshot())).convert("L")
    assert (np.mean(shot) > 128) == is_bright


def _causes(workloads: tuple[str, ...]) -> dict[str, Any]:
    """For each workload a cause in a long sentence, and what a query cost the server with both arms."""
    told = "server CPU-bound; its CPU time per query rises by {} % with HAProxy"
    cells = [cell(arm, cpu_us=40.0) | {"workload": one} for one in workloads for arm in ("direct", "haproxy")]
    contrasts = [
        OPEN | because(told.format(place)) | {"workload": one, "quantity": "capacity"}
        for place, one in enumerate(workloads)
    ]
    return {"level": 0.98, "cells": cells, "contrasts": contrasts, "physics": []}


def test_a_study_of_seven_workloads_with_all_their_causes_is_three_screens(browser, tmp_path: Path):
    seven = tuple(WORKLOADS)[:7]
    made = synthetic.evidence(workloads=dict.fromkeys(seven, (20_000.0, 1)))
    made = replace(made, findings=changed(made.findings, causes=_causes(seven)))
    built = conftest.build(made, tmp_path)
    page = _open(browser, built, 1280)
    assert page.evaluate("document.documentElement.scrollHeight") <= 3 * 800
    # A row for each workload, since none depends on threads; all levels are one click away.
    rows = "section.answer {} > table > tbody tr:not(.group)"
    assert page.locator(rows.format("> .scroll")).count() == 7
    assert page.locator(rows.format("details > .scroll")).count() == 7 * (1 + 3)
    assert (
        page.locator("#cost-of-a-query ~ figure img").count() == page.locator(".forest li").count() - 1 == 7
    )
