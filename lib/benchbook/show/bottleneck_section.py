"""Why effects are what they are: the sentences, what a query cost each part as a figure and a table.

Nothing where no cause is known: what can't be explained is not guessed.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.patches import Patch

from benchbook.compare.bottlenecks import operational_laws
from benchbook.compare.bottlenecks.service_demand import decided, fit_cores
from benchbook.compare.text import labels as labels_module
from benchbook.core.artifacts.bottlenecks import Cause, Causes, CellCosts
from benchbook.core.artifacts.findings import Findings
from benchbook.show import numbers, theme
from benchbook.show.picture import Panel, Picture
from benchbook.show.table import Table, number, tabulated
from benchbook.show.templating import render

_MOST_WORDS = 20
_Place = tuple[str, int, str]
_EVENTS = {"instructions": "instructions", "llc_misses": "misses of the last cache"}
"""What the processor counts of a query, with columns of its own where the kernel lets us see it."""


def known(findings: Findings) -> list[Cause]:
    """Return the causes that have a sentence, in the study's order; none where the books break physics."""
    found = findings.causes
    if found is None or operational_laws.broken(findings.causes):
        return []
    return [one for one in found.contrasts if one.sentence]


def of_both_signs(several: Sequence[tuple[str, Findings]]) -> dict[_Place, list[tuple[float, str, Cause]]]:
    """Return causes of effects that have opposite signs over sessions, by workload, threads and treatment.

    `several` are findings by processor, the newest first: it counts. Causes stand by effect, with processor.
    """
    seen: dict[_Place, dict[str, tuple[float, str, Cause]]] = {}
    for name, own in several:
        for one in known(own):
            if one.qps is not None and one.short:
                place = one.workload, one.threads, one.treatment
                seen.setdefault(place, {}).setdefault(name, (one.qps.value, name, one))
    ranked = {place: sorted(own.values(), key=lambda row: row[0]) for place, own in seen.items()}
    return {place: own for place, own in ranked.items() if own[0][0] < 0 < own[-1][0]}


def latency(findings: Findings, treatment: str, name: str) -> str:
    """Say what time a treatment, by its name, adds to a query where nothing is full: that is what travels."""
    found = findings.causes
    own = [one for one in found.contrasts if one.treatment == treatment] if found else []
    own = [one for one in own if one.threads == 1 and not any(one.full.values()) and one.reason is None]
    added = [one.added_latency_us.value for one in own if one.added_latency_us]
    if not added or min(added) * max(added) <= 0:
        return ""
    ends = dict.fromkeys(numbers.significant(abs(value), 2) for value in sorted(added, key=abs))
    several = [next(iter(ends)), next(reversed(ends))] if len(ends) > 1 else list(ends)
    way = "adds {} µs to" if added[0] > 0 else "takes {} µs from"
    return f"{name} {way.format(' to '.join(several))} a query at 1 thread."


def cost(findings: Findings, treatment: str, names: tuple[str, str]) -> str:
    """Say what processor time a query takes at rates that were asked for, by the names of two arms.

    Of the proxy where both have one, else of all parts. Nothing where no rate decides it, or two disagree.
    """
    asked = findings.causes.contrasts if findings.causes else ()
    own = [one for one in asked if one.treatment == treatment and one.quantity == "cost"]
    is_proxy = bool(own) and all("proxy" in one.cost for one in own)
    told = [one.cost["proxy"] if is_proxy else one.added_cpu_us for one in own]
    shown = sorted(one.value for one in told if one is not None and decided(one))
    if not shown or shown[0] * shown[-1] <= 0:
        return ""
    ends = [100 * value if is_proxy else value for value in sorted(map(abs, (shown[0], shown[-1])))]
    span = " to ".join(dict.fromkeys(numbers.significant(end, 2) for end in ends))
    amount = f"{span}{numbers.NBSP}{'%' if is_proxy else 'µs'} {'more' if shown[0] > 0 else 'less'}"
    where = f" at {len(shown)} of {len(own)} rates" if len(shown) < len(own) else ""
    part = "the proxy" if is_proxy else "all parts"
    return (
        f"At the same rate a query takes {amount} processor time of {part} with {names[0]} than with "
        f"{names[1]}{where}.{_line(findings, treatment, names) if is_proxy else ''}"
    )


def _line(findings: Findings, treatment: str, names: tuple[str, str]) -> str:
    """Sentence on the proxy's cores against the rate: cores without a query, and a query's cost."""
    cells = findings.causes.cells if findings.causes else ()
    lines = [fit_cores(cells, arm, "proxy") for arm in (treatment, findings.baseline)]
    told = [
        f"{line[0]:.2f} cores and {numbers.significant(line[1], 2)} µs a query with {name}"
        for line, name in zip(lines, names, strict=True)
        if line is not None
    ]
    if len(told) < len(lines):
        return ""
    return f" Of all rates together the proxy takes {' against '.join(told)}."


def full(findings: Findings) -> str:
    """Say of each level which cores some arm filled, or that nothing was full; nothing if that is open.

    Where a full client set runs aside, it is said too.
    """
    found, seen = findings.causes, dict[str, list[int]]()
    if found is None:
        return ""
    for threads in dict.fromkeys(cell.threads for cell in found.cells):
        cells = [cell for cell in found.cells if cell.threads == threads]
        places = [place for cell in cells for place in cell.places]
        filled = dict.fromkeys(_cores(place.parts) for place in places if place.is_full)
        is_open = not all(cell.places for cell in cells) or any(place.is_full is None for place in places)
        if filled or not is_open:
            seen.setdefault(numbers.listing(list(filled)) or "nothing", []).append(threads)
    lines = [f"{what} at {_threads(levels)}" for what, levels in seen.items()]
    if aside := findings.client_full:
        lines.append(f"the client's core in runs at {_threads(aside)} that are set aside")
    return f"What was full: {'; '.join(lines)}." if lines else ""


def _threads(levels: Sequence[int]) -> str:
    return numbers.listing([*map(str, levels[:-1]), numbers.count(levels[-1], "thread")])


def explained(found: Causes | None) -> list[Cause]:
    """Return the contrasts of queries a second: where there is none, a page says nothing of why."""
    return [one for one in found.contrasts if one.qps is not None] if found else []


def _cores(parts: tuple[str, ...]) -> str:
    return f"the {parts[0]}'s core" if len(parts) == 1 else f"the cores of {numbers.listing(list(parts))}"


def shown(
    findings: Findings, earlier: Sequence[tuple[str, str, Findings]] = (), processor: str = ""
) -> list[object]:
    """Return sentences and figure for the place under a study's answer; nothing where nothing was seen.

    `earlier` are other sessions, by processor and day, the newest first: one tells why where no newer does.
    Where an effect turns between them and that of `processor`, each says why.
    """
    found = findings.causes
    contrasts = explained(found)
    turns = of_both_signs([(processor, findings), *((name, own) for name, _, own in earlier)])
    told: dict[_Place, tuple[str, str]] = {}
    for session, own in (("", findings), *((f"{name}, {day}", own) for name, day, own in earlier)):
        for one in known(own):
            place = one.workload, one.threads, one.treatment
            told.setdefault(place, (where(one, own), f"{_brief(one)}{f' ({session})' if session else ''}"))
    lines: dict[str, dict[str, list[int]]] = {}
    for place, (name, sentence) in told.items():
        if place not in turns:
            lines.setdefault(sentence, {}).setdefault(name.rpartition(", ")[0], []).append(place[1])
    figures = [costs_of_a_query(found, findings)] if found and found.contrasts else []
    if not told and not contrasts:
        return [*figures]
    reasons = list(dict.fromkeys(one.reason for one in contrasts if one.reason and decided(one.qps)))
    given = {
        "turns": {told[place][0]: own for place, own in turns.items()},
        "lines": [
            (numbers.listing([f"{name}, {_threads(levels)}" for name, levels in of.items()]), sentence)
            for sentence, of in lines.items()
        ],
        "broken": operational_laws.broken(findings.causes),
        "reason": numbers.listing(reasons[:2]) or "no difference in queries a second was shown",
    }
    return [render("causes.html.j2", **given), *figures]


def reason(cause: Cause) -> str:
    """Return why as it stands below a heading that asks; empty where no cause is known."""
    return (cause.sentence or "").removeprefix("because ")


def _brief(one: Cause) -> str:
    """Return why in a sentence that can be read at once."""
    is_brief = len((one.sentence or "").split(" ")) <= _MOST_WORDS
    return reason(one) if is_brief else one.short or reason(one)


def tables(findings: Findings) -> list[Table]:
    """Return what a query cost each part in both arms of every contrast, and how that changed."""
    found = findings.causes
    if found is None or not found.contrasts:
        return []
    arms, workloads = (labels_module.labels(findings, kind) for kind in ("arms", "workloads"))
    cells = {(cell.workload, cell.threads, cell.arm): cell for cell in found.cells}
    seen = {name for cell in found.cells for part in cell.parts for name in part.a_query}
    events = [name for name in _EVENTS if name in seen]
    rows = []
    for one in found.contrasts:
        pair = [cells.get((one.workload, one.threads, arm)) for arm in (findings.baseline, one.treatment)]
        costs = [{part.part: part.a_query for part in cell.parts} if cell else {} for cell in pair]
        # Why is told once a contrast, beside the first of its parts.
        of_parts = [(part, [own.get(part, {}) for own in costs]) for part in {**costs[0], **costs[1]}]
        rows += [(one, part, own, not place) for place, (part, own) in enumerate(of_parts)]
    base = arms.get(findings.baseline, findings.baseline)
    of_events = [number(name, _EVENTS[event]) for event in events for name in (base, "Treatment")]
    given = {"base": base, "level": numbers.level(found.level), "arms": arms, "workloads": workloads}
    return [tabulated("costs-of-a-query", rows, of_events=of_events, events=events, **given)]


def where(cause: Cause, findings: Findings) -> str:
    """Name what a cause is of, as every page does: HAProxy, point selects, 8 threads."""
    arms, workloads = labels_module.labels(findings, "arms"), labels_module.labels(findings, "workloads")
    names = arms.get(cause.treatment, cause.treatment), workloads.get(cause.workload, cause.workload)
    return ", ".join([*names, numbers.count(cause.threads, "thread")])


_MOST = 6
"""Contrasts that are drawn of one workload; the table has all."""


def costs_of_a_query(found: Causes, findings: Findings) -> Picture:
    """Draw the processor time of a query, us, a panel a workload; what was full is hatched."""
    cells = {(cell.workload, cell.threads, cell.arm): cell for cell in found.cells}
    arms, workloads = (labels_module.labels(findings, kind) for kind in ("arms", "workloads"))
    panels = []
    for workload in dict.fromkeys(one.workload for one in found.contrasts):
        own = [one for one in found.contrasts if one.workload == workload]
        # Those with a cause, then others, but drawn in the study's order.
        most = sorted(own, key=lambda one: one.sentence is None)[:_MOST]
        bars = []
        for one in (each for each in own if each in most):
            pair = [(workload, one.threads, arm) for arm in (findings.baseline, one.treatment)]
            bars += [cells[key] for key in pair if key in cells and cells[key] not in bars]
        if bars:
            panels.append(_panel(workloads.get(workload, workload), bars, arms))
    caption = (
        "Processor time of a query, client, proxy and server after each other. Hatched: its cores were full, "
        "so its cost decides how many queries are served."
    )
    return Picture("cost-of-a-query", "What a query costs each part", tuple(panels), caption, most=2)


def _panel(name: str, bars: Sequence[CellCosts], arms: Mapping[str, str]) -> Panel:
    with theme.style():
        # In at most two lines beside its bar.
        names = (textwrap.wrap(theme.short(arms.get(bar.arm, bar.arm), 36), 18) for bar in bars)
        labels = ["\n".join(name) + f" · {bar.threads}" for name, bar in zip(names, bars, strict=True)]
        height = 0.35 if any("\n" in label for label in labels) else 0.25
        figure, axes = theme.canvas(theme.WIDTH, 1.0 + height * len(bars))
        for place, bar in enumerate(bars):
            end, full = 0.0, _full(bar)
            for part in bar.parts:
                width, shade = part.a_query["cpu_us"].value, theme.PARTS[part.part]
                hatch: dict[str, Any] = {"hatch": "////", "edgecolor": theme.PAPER}
                style = hatch if part.part in full else {}
                axes.barh(place, width, left=end, height=0.72, color=shade, linewidth=0, **style)
                end += width
        axes.set_yticks(range(len(bars)), labels)
        axes.tick_params(axis="y", labelcolor=theme.INK, labelsize=theme.SMALLEST)
        axes.set(ylim=(len(bars) - 0.4, -0.6), title="\n".join(textwrap.wrap(name, 24)))
        axes.set_xlabel("µs of processor time a query")
        axes.grid(axis="y", visible=False)
        axes.grid(axis="x", visible=True)
        axes.spines["left"].set_visible(False)
        handles = [Patch(facecolor=shade, label=part) for part, shade in theme.PARTS.items()]
        figure.legend(handles=handles, loc="outside upper left", ncols=3, handlelength=1.0)
    return Panel(figure, f"{name}, processor time of a query. {' '.join(_told(bar, arms) for bar in bars)}")


def _full(bar: CellCosts) -> set[str]:
    return {part for place in bar.places if place.is_full for part in place.parts}


def _told(bar: CellCosts, arms: Mapping[str, str]) -> str:
    full = _full(bar)
    parts = [
        f"{part.part} {numbers.significant(part.a_query['cpu_us'].value)} µs{' (full)' * (part.part in full)}"
        for part in bar.parts
    ]
    return f"{arms.get(bar.arm, bar.arm)} at {numbers.count(bar.threads, 'thread')}: {', '.join(parts)}."
