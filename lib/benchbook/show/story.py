"""The story of the five reports: what they claimed, what their tables bear out, what was measured, why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchbook.compare import machines
from benchbook.core.pooled import LABELS, Contrast, Pooled, PooledEffect
from benchbook.show import causes, numbers, theme
from benchbook.show.badge import badge
from benchbook.show.forest import Scale, log_of
from benchbook.show.markup import Html, element, slug
from benchbook.show.picture import Panel, Picture
from benchbook.show.standing import Measured, Overview
from benchbook.show.table import Column, Table, long, number

VERDICTS = ("holds", "does not hold", "not derivable")
_LEFT, _RIGHT, _FOOT, _HEAD, _ROW = 1.5, 0.1, 0.45, 0.3, 0.2
_MOST = 40
CAPTION = (
    "Each diamond is the mean over sessions, each bar where a further session on a further machine is "
    "expected in nine of ten; hollow where the bar holds zero."
)


def opening(seen: Overview, found: Sequence[Pooled]) -> Html:
    """Say on what the story rests, or that the record is still to be made."""
    if not seen.audits and not found:
        text = "Neither the record nor the audits are made yet: run `make pages` first, then this again."
    elif not found:
        text = "The record is not made yet: run `make pages` first; until then, only what was published."
    else:
        sessions = [one for study in found for one in study.sessions]
        several = machines.models([one.processor for one in sessions])
        counts = (
            numbers.count(len(seen.audits), "published report"),
            numbers.count(len(seen.claims), "claim"),
            numbers.count(len(found), "recorded study", "recorded studies"),
            numbers.count(len(sessions), "session"),
        )
        text = f"It rests on {numbers.listing(counts)} on {numbers.count(several, 'model')} of processor."
    return element("p", text)


def reports(seen: Overview) -> Table:
    """Count what each report's own tables bear out of its claims."""
    rows = []
    for audit in seen.audits:
        page = f"sources/{slug(audit['source'])}.html"
        rows.append(
            [
                element("a", audit["document"]["title"], href=page),
                *(audit["counts"][word] for word in VERDICTS),
            ]
        )
    columns = [long("Report"), *(number(f"Claims: {word}") for word in VERDICTS)]
    return Table("reports", "What the reports' own tables say", columns, rows,
                 empty="No report is audited yet: `make pages`.")  # fmt: skip


def measured(seen: Overview) -> Table:
    """List the claims that have an effect measured here beside the published number and the report's own."""
    rows = [
        [claim["claim"], claim["published"], badge(claim["verdict"]), study.name,
         numbers.effect(found), badge(found.get("verdict") or found["label"])]
        for claim in seen.claims
        for study, found in [*seen.answers(claim["id"]), *seen.shows(claim["id"])][:1]
    ]  # fmt: skip
    columns = [long("Claim"), Column("Published"), Column("Its own tables"), Column("Study"),
               Column("Measured here"), Column("Shown")]  # fmt: skip
    return Table("measured", "What was measured for a claim", columns, rows,
                 empty="Nothing is made yet: `make pages`.")  # fmt: skip


def labels(found: Sequence[Pooled]) -> Table:
    """Count how far the effects on throughput carry: one row a label."""
    said = Counter(effect.label for _, _, effect in _effects(found))
    rows = [[badge(label), said[label]] for label in LABELS if said[label]]
    return Table("labels", "How far effects carry", [Column("Label"), number("Effects")], rows,
                 empty="Nothing is made yet: `make pages`.")  # fmt: skip


def forest(found: Sequence[Pooled]) -> Picture:
    """Draw every effect on throughput over several occasions, the largest loss first."""
    known = [one for one in _effects(found) if one[2].effect is not None and one[2].k > 1]
    known.sort(key=lambda one: one[2].effect or 0.0)
    step = max(1, -(-len(known) // _MOST))
    shown = known[::step]
    panels = [_panel(shown)] if shown else []
    title = "Effects over sessions" + (f", one of {step}" if step > 1 else "")
    return Picture("elsewhere", title, tuple(panels), CAPTION, "No study has several sessions yet.")


def _effects(found: Sequence[Pooled]) -> Iterator[tuple[Pooled, Contrast, PooledEffect]]:
    for study in found:
        for contrast in study.contrasts:
            if contrast.metric == "qps":
                yield from ((study, contrast, one) for one in contrast.told)


def _panel(shown: Sequence[tuple[Pooled, Contrast, PooledEffect]]) -> Panel:
    ends = [_ends(one) for _, _, one in shown]
    low, high = min(0.0, *(low for low, _ in ends)), max(0.0, *(high for _, high in ends))
    room = 0.05 * (high - low)
    with theme.style():
        height = _FOOT + _HEAD + _ROW * len(shown)
        figure = Figure(figsize=(2 * theme.WIDTH, height))
        width = 2 * theme.WIDTH
        room_left, inside = 2 * _LEFT / width, 1 - (2 * _LEFT + _RIGHT) / width
        axes = figure.add_axes((room_left, _FOOT / height, inside, 1 - (_FOOT + _HEAD) / height))
        axis_of_change(axes, len(shown), (low - room, high + room))
        sides = axes.get_yaxis_transform()
        for y, ((study, contrast, one), (left, right)) in enumerate(zip(shown, ends, strict=True)):
            axes.text(-0.02, y, _named(study, contrast, one), transform=sides, ha="right", va="center",
                      fontsize=theme.SMALLEST)  # fmt: skip
            axes.plot([left, right], [y, y], color=theme.ACCENT, linewidth=5, alpha=0.4)
            is_shown = left > 0 or right < 0
            axes.plot(log_of(one.effect or 0.0), y, "D", color=theme.ACCENT, markersize=5,
                      markerfacecolor=theme.ACCENT if is_shown else theme.PAPER)  # fmt: skip
    told = (f"{_named(study, contrast, one)}: {one.short}" for study, contrast, one in shown)
    return Panel(figure, "Effects over sessions. " + "; ".join(told))


def _ends(one: PooledEffect) -> tuple[float, float]:
    """Return where a further session is expected, or the range of those seen, on the log scale."""
    chosen = (one.prediction_low, one.prediction_high)
    if None in chosen:
        chosen = (one.range_low, one.range_high)
    return log_of(chosen[0] or 0.0), log_of(chosen[1] or 0.0)


def _named(study: Pooled, contrast: Contrast, one: PooledEffect) -> str:
    where = "" if one.threads is None else f", {numbers.count(one.threads, 'thread')}"
    return f"{study.study}: {contrast.treatment}, {contrast.workload.removeprefix('oltp_')}{where}"


def reasons(studies: Sequence[Measured]) -> Table:
    """Give the first known cause of each study in a sentence."""
    rows = [
        [element("a", study.name, href=f"{study.page}#why"), found[0].sentence or ""]
        for study in studies
        if (found := causes.known(study.found))
    ]
    return Table("why", "Why", [Column("Study"), long("Because")], rows, empty="No cause is known yet.")


def axis_of_change(axes: Axes, rows: int, limits: tuple[float, float]) -> None:
    """Make axes for so many rows of effects: log ratios between the limits, read as per cent."""
    ticks = Scale(*limits).ticks
    axes.set_xlim(*limits)
    axes.set_ylim(rows - 0.4, -0.6)
    axes.grid(axis="y", visible=False)
    axes.grid(axis="x", visible=True)
    axes.axvline(0, color=theme.MUTED, linewidth=1, zorder=1)
    axes.spines["left"].set_visible(False)
    axes.set_yticks([])
    axes.set_xticks(
        [log_of(tick) for tick in ticks], [numbers.decimal(100 * tick, 0, True) for tick in ticks]
    )
    axes.set_xlabel("change against the baseline, %")
