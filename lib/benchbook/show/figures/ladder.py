"""A ladder from its first arm to its last: each arm's change against the first, with its interval."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from benchbook.compare import words
from benchbook.show import numbers, theme
from benchbook.show.picture import Panel, Picture

CAPTION = (
    "Each arm of the ladder in its order, from first to last: the change against the first arm, on a "
    "scale of "
    "ratios, with its interval. A filled marker was shown to differ from the first; the line is the "
    "best arm up to "
    "there."
)


def ladder(findings: Mapping[str, Any]) -> Picture:
    """Draw a study's ladder, one panel for each workload and metric; an effect without one number is not
    drawn."""
    own = findings.get("ladder") or {"workloads": []}
    return Picture(
        "ladder", "From the first arm to the last", tuple(_panels(own["workloads"], findings)), CAPTION
    )


def _panels(workloads: list[Mapping[str, Any]], findings: Mapping[str, Any]) -> Iterator[Panel]:
    for found in workloads:
        steps = [one for one in found["against_first"] if one["headline"] and numbers.is_known(one["effect"])]
        if not steps:
            continue
        with theme.style():
            figure, axes = theme.canvas()
            _draw(axes, found, findings)
        yield Panel(figure, _told(found))


def _draw(axes: Axes, found: Mapping[str, Any], findings: Mapping[str, Any]) -> None:
    first = found["against_first"][0]["baseline"]
    arms = [first, *(one["treatment"] for one in found["against_first"])]
    effects: dict[str, float] = {first: 0.0}
    colour = theme.colour(arms[0], arms)
    axes.axhline(0, color=theme.MUTED, linewidth=1, zorder=1)
    for place, one in enumerate(found["against_first"], 1):
        if not one["headline"] or not numbers.is_known(one["effect"]):
            continue
        effects[one["treatment"]] = math.log1p(one["effect"])
        if numbers.is_known(one["low"]):
            low, high = math.log1p(max(one["low"], -0.999)), math.log1p(one["high"])
            axes.plot([place, place], [low, high], color=colour, linewidth=2.4, solid_capstyle="butt")
    for place, arm in enumerate(arms):
        label = next((one["label"] for one in found["against_first"] if one["treatment"] == arm), "higher")
        is_shown = label in ("higher", "lower", "no practical difference")
        if arm in effects:
            axes.plot(
                *(place, effects[arm], "D"), color=colour, markersize=6, zorder=4,
                markerfacecolor=colour if is_shown else theme.PAPER, markeredgecolor=colour,
            )  # fmt: skip
    best = [effects.get(one["best"]) for one in found["best"] or ()]
    heights = [one for one in best if one is not None]
    if best and len(heights) == len(best):
        axes.step(range(len(heights)), heights, where="post", color=theme.INK, linewidth=1, zorder=2)
    names = words.labels(findings, "arms")
    axes.set_xticks(range(len(arms)), [theme.short(names.get(arm, arm), 14) for arm in arms])
    axes.set_xlim(-0.4, len(arms) - 0.6)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: numbers.decimal(100 * math.expm1(y), 0, True)))
    axes.set_ylabel(
        f"{words.metric(found['metric'])}, change against {theme.short(names.get(first, first), 14)}, %"
    )
    axes.set_title(theme.short(words.of(found["against_first"][0], "workload"), 44))


def _told(found: Mapping[str, Any]) -> str:
    """Say the figure's numbers in words."""
    told = [
        f"{words.of(one, 'treatment')} {numbers.percent(one['effect'])} "
        f"({numbers.span(one['low'], one['high'])}), {one['label']}"
        if one["headline"]
        else f"{words.of(one, 'treatment')}: {one['label']}"
        for one in found["against_first"]
    ]
    first = found["against_first"][0]
    what = f"{words.metric(found['metric'])} on {words.of(first, 'workload')}"
    head = f"{what} against {words.of(first, 'baseline')}: "
    return f"{head}{'; '.join(told)}. {found['sentence']}"
