"""Figures say their numbers in words, draw the same bytes twice, and say when there is nothing to draw."""

import base64
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from benchbook.core.util import number_format
from benchbook.show import figures, picture, theme
from tests.compare.bottlenecks.test_load_curve import rated_cells
from tests.found import findings
from tests.goldens import assert_page
from tests.show import synthetic
from tests.show.figures.edge import inked_edges

DRAWN = {
    "throughput": lambda made: figures.draw_throughput(made.runs, made.arms),
    "seconds": lambda made: figures.draw_seconds(made.intervals, made.runs, made.arms),
}


@pytest.mark.parametrize("anchor", DRAWN)
def test_every_figure_draws_the_same_bytes_twice_and_cuts_no_label(made, anchor):
    first, second = DRAWN[anchor](made), DRAWN[anchor](made)
    assert first.anchor == anchor
    shown = first._repr_html_()
    assert shown == second._repr_html_()
    images = [base64.b64decode(one).decode() for one in re.findall(r"svg\+xml;base64,([^\"]+)", shown)]
    assert len(images) == len(first.panels)
    assert not re.search(r"<dc:date>|\d{4}-\d\d-\d\dT", "".join(images))
    assert not any(inked_edges(panel.figure) for panel in first.panels), "a label is cut"


def test_one_thread_is_no_plural_and_what_was_not_measured_is_not_told(made):
    runs = made.runs.assign(latency_p99_ms=np.nan)
    alt = " ".join(one.alt for one in figures.draw_throughput(runs, made.arms).panels).replace("\xa0", " ")
    assert " at 1 thread, " in alt and "1 threads" not in alt and ": ." not in alt


def test_throughput_tells_the_geometric_mean(made):
    runs = made.runs[(made.runs["workload"] == "oltp_read_write") & (made.runs["threads"] == 16)]
    mean = np.exp(np.log(runs.loc[runs["arm"] == "haproxy", "qps"]).mean())
    told = figures.draw_throughput(made.runs, made.arms).panels[1].alt
    assert f"{number_format.format_significant(mean)} at 16\xa0threads" in told.split("haproxy:")[1]
    # A run without a query has no place on such a mean.
    stopped = pd.concat([made.runs, runs[runs["arm"] == "haproxy"].iloc[:1].assign(qps=0.0)])
    assert figures.draw_throughput(stopped, made.arms).panels[1].alt == told


def test_every_run_has_a_line_that_can_be_seen(made):
    panels = figures.draw_seconds(made.intervals, made.runs, made.arms).panels
    axes = [axes for panel in panels for axes in panel.figure.axes]
    lines = [line for part in axes for line in part.lines if line.get_marker() == "None"]
    of_most_threads = made.runs[made.runs.threads == made.runs.threads.max()]
    assert len(lines) == of_most_threads.run_id.isin(made.intervals.run_id).sum()
    assert all(line.get_linewidth() >= 0.5 for line in lines)


def test_a_stall_is_told_and_a_discarded_second_is_none(made):
    slow = made.intervals["is_discarded"]
    intervals = made.intervals.assign(qps=made.intervals["qps"].where(~slow, 0.0))
    told = " ".join(one.alt for one in figures.draw_seconds(intervals, made.runs, made.arms).panels)
    assert told.count("1\xa0stalled second") == 1
    assert told.count("0\xa0stalled seconds") == 3


@pytest.mark.parametrize(("discard_s", "shaded"), [(2.0, [(0.0, 2.0)]), (0.0, [])])
def test_the_discard_is_shaded_in_the_seconds_of_runs(made, discard_s: float, shaded: list):
    runs = made.runs.assign(discard_s=discard_s)
    axes = figures.draw_seconds(made.intervals, runs, made.arms).panels[0].figure.axes[0]
    assert [(patch.get_x(), patch.get_x() + patch.get_width()) for patch in axes.patches] == shaded
    assert [text.get_text() for text in axes.texts] == ["discarded"] * len(shaded)


def test_a_load_curve_draws_cores_and_latency_against_the_rate_and_leaves_out_unknown_percentiles(
    made, tmp_path
):
    causes, runs, histograms = rated_cells("at-10", "at-20", "at-40")
    (tmp_path / "tidy").mkdir()
    histograms.to_parquet(tmp_path / "tidy" / "histograms.parquet")
    names = {"arms": {}, "workloads": {name: f"point selects ({name})" for name in runs["workload"].unique()}}
    known = findings(baseline="direct", names=names, causes=causes)
    (picture,) = figures.draw_load_curves(replace(made, folder=tmp_path, runs=runs, findings=known))
    cores, latency = picture.panels
    assert_page("load-curve.txt", picture)
    assert inked_edges(cores.figure) == inked_edges(latency.figure) == []
    assert figures.draw_load_curves(made) == []


def test_nothing_measured_is_said_not_drawn(made):
    nothing = synthetic.empty(made)
    pictures = [draw(nothing) for draw in DRAWN.values()]
    assert [picture.panels for picture in pictures] == [()] * len(DRAWN)
    assert_page("nothing-measured.txt", *pictures)


def test_names_with_markup_and_formulas_are_drawn_as_they_are():
    name = "<b>$x_1$</b>"
    evil = synthetic.evidence(blocks=2, treatment=name, workloads={name: (20_000.0, 1)})
    assert not any("<b>" in draw(evil)._repr_html_() for draw in DRAWN.values())


def test_every_arm_keeps_its_colour_and_marker(made):
    assert made.arms == ("direct", "haproxy", "direct_again")
    assert len({theme.marker_of_arm(arm, made.arms) for arm in made.arms}) == 3
    assert theme.colour_of_arm("direct", made.arms) == theme.colour_of_arm("direct", ("direct", "other"))


def _luminance(shade: str) -> float:
    parts = [int(shade[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_every_colour_of_the_style_has_a_dark_value():
    colours = set(re.findall(r"\b[0-9a-f]{6}$", theme.STYLE.read_text(), re.M))
    assert len(colours) > 3 and {f"#{one}" for one in colours} <= set(theme.SHADES)


def test_a_colour_of_a_shape_or_of_a_class_follows_the_readers_scheme():
    (ink, dark_ink), (rule, dark_rule) = list(theme.SHADES.items())[1:5:3]
    made = picture.follow_scheme(f'<svg><path fill="{ink}"/></svg>', f".s0{{fill:{rule}}}")
    assert f"{{:root{{--c0:{dark_ink};--c1:{dark_rule}}}}}.s0{{fill:var(--c1)}}" in made
    assert f":root{{--c0:{ink};--c1:{rule}}}" in made and '<path fill="var(--c0)"/>' in made


def test_arms_stand_out_on_both_backgrounds(made):
    for light, dark in {**theme._ARMS, **theme._AGAIN}.items():
        for shade, ground in ((light, theme.PAPER), (dark, theme._DARK[theme.PAPER])):
            bright, dim = sorted((_luminance(shade), _luminance(ground)), reverse=True)
            assert (bright + 0.05) / (dim + 0.05) > 3
