"""Causes of effects: sentences, and costs of a query in each part. What can't be explained is not guessed."""

import itertools
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from benchbook.compare.bottlenecks import operational_laws
from benchbook.compare.bottlenecks.service_demand import fit_cores, is_decided
from benchbook.compare.text import labels as labels_module
from benchbook.core.artifacts.bottlenecks import Cause, Causes, CellCosts
from benchbook.core.artifacts.findings import Findings
from benchbook.core.util.number_format import format_count, format_level, format_significant, join_words
from benchbook.show import theme
from benchbook.show.picture import Panel, Picture
from benchbook.show.table import Table, TableColumn, build_table
from benchbook.show.templating import render_template

_MOST_WORDS = 20
_Place = tuple[str, int, str]
_EVENTS = {"instructions": "Instructions", "llc_misses": "LLC misses"}
"""Events that the processor counts of a query, with a column each where the kernel shows them."""


def select_causes(findings: Findings) -> list[Cause]:
    """Causes that have a sentence, in the study's order; none if the books break physics."""
    causes = findings.causes
    if causes is None or operational_laws.list_violations(findings.causes):
        return []
    return [contrast for contrast in causes.contrasts if contrast.sentence]


def of_both_signs(several: Sequence[tuple[str, Findings]]) -> dict[_Place, list[tuple[float, str, Cause]]]:
    """Causes of effects with opposite signs in `several` (by processor, newest first), ordered by effect."""
    observations: dict[_Place, dict[str, tuple[float, str, Cause]]] = {}
    for name, findings in several:
        for cause in select_causes(findings):
            if cause.qps is not None and cause.short:
                place = cause.workload, cause.threads, cause.treatment
                observations.setdefault(place, {}).setdefault(name, (cause.qps.value, name, cause))
    ranked = {place: sorted(rows.values(), key=lambda row: row[0]) for place, rows in observations.items()}
    return {place: rows for place, rows in ranked.items() if rows[0][0] < 0 < rows[-1][0]}


def describe_proxy_cores(findings: Findings) -> list[str]:
    """Sentence for each treatment at asked rates: cores of the proxy without a query, and a query's cost."""
    causes, arms = findings.causes, labels_module.label_by_name(findings, "arms")
    if causes is None:
        return []
    sentences = []
    chosen = [each for each in causes.contrasts if each.quantity == "cost" and "proxy" in each.cost]
    for treatment in dict.fromkeys(cause.treatment for cause in chosen):
        lines = [(arm, fit_cores(causes.cells, arm, "proxy")) for arm in (treatment, findings.baseline)]
        amounts = [
            f"{line[0]:.2f} cores + {format_significant(line[1], 2)} µs per query with {arms.get(arm, arm)}"
            for arm, line in lines
            if line is not None
        ]
        if len(amounts) == len(lines):
            sentences.append(f"CPU of the proxy against the rate (linear fit): {', '.join(amounts)}.")
    return sentences


def render_section(
    findings: Findings, earlier: Sequence[tuple[str, str, Findings]] = (), processor: str = ""
) -> list[object]:
    """Sentences and figure on causes; `earlier` ones (processor, day) tell where none newer does."""
    causes = findings.causes
    contrasts = [contrast for contrast in causes.contrasts if contrast.qps is not None] if causes else []
    turns = of_both_signs(
        [(processor, findings), *((name, earlier_findings) for name, _, earlier_findings in earlier)]
    )
    messages: dict[_Place, tuple[str, str]] = {}
    for session, of in (("", findings), *((f" ({name}, {day})", each) for name, day, each in earlier)):
        for cause in select_causes(of):
            reason = format_reason(cause)
            # In a sentence that can be read at once.
            brief = reason if len((cause.sentence or "").split(" ")) <= _MOST_WORDS else cause.short or reason
            place = cause.workload, cause.threads, cause.treatment
            messages.setdefault(place, (name_place(cause, of), f"{brief}{session}"))
    figures = [costs_of_a_query(causes, findings)] if causes and causes.contrasts else []
    if not messages and not contrasts:
        return [*figures]
    decided = (contrast for contrast in contrasts if is_decided(contrast.qps))
    reasons = list(dict.fromkeys(contrast.reason for contrast in decided if contrast.reason))
    inputs = {
        "turns": {messages[place][0]: turn for place, turn in turns.items()},
        "lines": _group_sentences({place: text for place, text in messages.items() if place not in turns}),
        "broken": operational_laws.list_violations(findings.causes),
        "reason": join_words(reasons[:2]) or "no difference in queries a second was shown",
    }
    return [render_template("causes.html.j2", **inputs), *figures]


def _group_sentences(messages: Mapping[_Place, tuple[str, str]]) -> list[tuple[str, str]]:
    """Each sentence once, behind the names and the thread levels of all effects that it explains."""
    lines: dict[str, dict[str, list[int]]] = {}
    for (_, threads, _), (name, sentence) in messages.items():
        lines.setdefault(sentence, {}).setdefault(name.rpartition(", ")[0], []).append(threads)
    grouped = []
    for sentence, of in lines.items():
        levels = [[*map(str, levels[:-1]), format_count(levels[-1], "thread")] for levels in of.values()]
        places = [f"{name}, {join_words(texts)}" for name, texts in zip(of, levels, strict=True)]
        grouped.append((join_words(places), sentence))
    return grouped


def format_reason(cause: Cause) -> str:
    """Cause in the wording that stands below a heading that asks; empty if no cause is known."""
    return (cause.sentence or "").removeprefix("because ")


def build_tables(findings: Findings) -> list[Table]:
    """Cost of a query in each part, in both arms of every contrast, and its change."""
    causes = findings.causes
    if causes is None or not causes.contrasts:
        return []
    arms, workloads = (labels_module.label_by_name(findings, kind) for kind in ("arms", "workloads"))
    cells = {(cell.workload, cell.threads, cell.arm): cell for cell in causes.cells}
    counted = {name for cell in causes.cells for part in cell.parts for name in part.a_query}
    events = [name for name in _EVENTS if name in counted]
    rows = [row for cause in causes.contrasts for row in _rows_of_cause(cause, findings.baseline, cells)]
    # Numbers of both arms, which may stand below each other.
    pairs = partial(TableColumn, kind="n pair")
    inputs: dict[str, Any] = {"arms": arms, "workloads": workloads, "events": events}
    inputs |= {"base": arms.get(findings.baseline, findings.baseline), "pairs": pairs}
    inputs |= {"level": format_level(causes.level), "of_events": [pairs(_EVENTS[event]) for event in events]}
    return [build_table("costs-of-a-query", rows, **inputs)]


def _rows_of_cause(
    cause: Cause, baseline: str, cells: Mapping[_Place, CellCosts]
) -> Iterator[tuple[Cause, str, list[Any], bool]]:
    """Demand and cores of each part in both arms; the first part has the contrast's sentence."""
    pair = [cells.get((cause.workload, cause.threads, arm)) for arm in (baseline, cause.treatment)]
    known = [cell for cell in pair if cell is not None]
    if len(known) < len(pair):
        return
    demands = [{part.part: part.a_query for part in cell.parts} for cell in known]
    use = [{part: place for place in cell.places for part in place.parts} for cell in known]
    for number, part in enumerate(dict.fromkeys(itertools.chain(*demands))):
        of_arms = [(demand.get(part, {}), used.get(part)) for demand, used in zip(demands, use, strict=True)]
        yield cause, part, of_arms, number == 0


def name_place(cause: Cause, findings: Findings) -> str:
    """Name of a cause's effect, as on every page: HAProxy, point selects, 8 threads."""
    arms, workloads = (labels_module.label_by_name(findings, kind) for kind in ("arms", "workloads"))
    names = arms.get(cause.treatment, cause.treatment), workloads.get(cause.workload, cause.workload)
    return ", ".join([*names, format_count(cause.threads, "thread")])


_MOST = 6
"""Contrasts that are drawn of one workload; the table has all."""


def costs_of_a_query(causes: Causes, findings: Findings) -> Picture:
    """Draw the processor time of a query, us, a panel a workload; full parts are hatched."""
    cells = {(cell.workload, cell.threads, cell.arm): cell for cell in causes.cells}
    arms, workloads = (labels_module.label_by_name(findings, kind) for kind in ("arms", "workloads"))
    panels = []
    for workload in dict.fromkeys(contrast.workload for contrast in causes.contrasts):
        of_workload = [contrast for contrast in causes.contrasts if contrast.workload == workload]
        # Those with a cause, then others, but drawn in the study's order.
        most = sorted(of_workload, key=lambda item: item.sentence is None)[:_MOST]
        bars = []
        for cause in (each for each in of_workload if each in most):
            pair = [(workload, cause.threads, arm) for arm in (findings.baseline, cause.treatment)]
            bars += [cells[key] for key in pair if key in cells and cells[key] not in bars]
        if bars:
            panels.append(_draw_panel(workloads.get(workload, workload), bars, arms))
    caption = (
        "CPU time per query of client, proxy and server, stacked. Hatched: its cores were saturated, "
        "so its CPU time per query limits throughput."
    )
    return Picture("cost-of-a-query", "CPU time per query of each part", tuple(panels), caption, most=2)


def _draw_panel(name: str, bars: Sequence[CellCosts], arms: Mapping[str, str]) -> Panel:
    from matplotlib.patches import Patch

    report = []
    with theme.figure_style():
        # In at most two lines beside its bar.
        names = (textwrap.wrap(theme.shorten_name(arms.get(bar.arm, bar.arm), 36), 18) for bar in bars)
        labels = ["\n".join(name) + f" · {bar.threads}" for name, bar in zip(names, bars, strict=True)]
        height = 0.35 if any("\n" in label for label in labels) else 0.25
        figure, axes = theme.make_canvas(theme.WIDTH, 1.0 + height * len(bars))
        for place, bar in enumerate(bars):
            end, texts = 0.0, []
            full = {part for use in bar.places if use.is_full for part in use.parts}
            for part in bar.parts:
                width, shade = part.a_query["cpu_us"].value, theme.PARTS[part.part]
                saturated = " (saturated)" if part.part in full else ""
                texts.append(f"{part.part} {format_significant(width)} µs{saturated}")
                hatch: dict[str, Any] = {"hatch": "////", "edgecolor": theme.PAPER}
                style = hatch if part.part in full else {}
                axes.barh(place, width, left=end, height=0.72, color=shade, linewidth=0, **style)
                end += width
            at = format_count(bar.threads, "thread")
            report.append(f"{arms.get(bar.arm, bar.arm)} at {at}: {', '.join(texts)}.")
        axes.set_yticks(range(len(bars)), labels)
        axes.tick_params(axis="y", labelcolor=theme.INK, labelsize=theme.SMALLEST)
        axes.set(ylim=(len(bars) - 0.4, -0.6), title="\n".join(textwrap.wrap(name, 24)))
        axes.set_xlabel("CPU time per query, µs")
        axes.grid(axis="y", visible=False)
        axes.grid(axis="x", visible=True)
        axes.spines["left"].set_visible(False)
        handles = [Patch(facecolor=shade, label=part) for part, shade in theme.PARTS.items()]
        figure.legend(handles=handles, loc="outside upper left", ncols=3, handlelength=1.0)
    return Panel(figure, f"{name}, CPU time per query. {' '.join(report)}")
