"""Page of a source, made from audit.json: its claims, results of its tables, open points."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, NullLocator

from benchbook.core.published.audit import Audit, AuditedClaim, AuditedNumber
from benchbook.core.published.audit import AuditedTable as Printed
from benchbook.core.util import number_format
from benchbook.core.util.grouping import group_by
from benchbook.show import theme
from benchbook.show.markup import Html, join_html, link_addresses, make_element, make_slug
from benchbook.show.picture import Panel, Picture
from benchbook.show.table import Table, TableColumn, build_table, number_column, text_column
from benchbook.show.templating import render_template


def render_opening(audit: Audit) -> Html:
    """Write the title, the subject, the number of claims that hold, and one line for each claim."""
    failed = sum(check.passed is False for check in audit.checks)
    # The failed checks that concern the numbers of a claim.
    failing = {of.id: dict.fromkeys(text.partition(":")[0] for text in of.doubts) for of in audit.claims}
    return render_template("source.html.j2", audit=audit, failed=failed, failing=failing)


def render_arithmetic(audit: Audit) -> Html:
    """Write each claim with its verdict, the rule it was judged by, and the arithmetic of every cell."""
    return render_template("arithmetic.html.j2", claims=audit.claims)


def tabulate_setup(audit: Audit) -> Table:
    """List the setup: versions, machines, settings, sysbench, arms and loads."""
    stated: list[tuple[str, object]] = [(f"version of {part}", text) for part, text in audit.versions.items()]
    stated += audit.hardware.items()
    stated += [(f"settings of {part}", values) for part, values in audit.configuration.items()]
    if audit.sysbench:
        stated += [("sysbench options", audit.sysbench.options), ("loading", audit.sysbench.prepare)]
    stated += [(key.replace("_", " "), text) for key, text in audit.conduct]
    rows: list[list[object]] = [["found", link_addresses(audit.document.found)]]
    rows += [[name, _format_stated(value)] for name, value in stated]
    for name, arm in audit.arms.items():
        rows.append([f"arm {name}", "; ".join(filter(None, [arm.means, _join_settings(arm.settings)]))])
    for name, load in audit.workloads.items():
        many = load.statements and number_format.format_count(round(load.statements), "statement")
        message = f"{many} an event" if many else "statements not known"
        texts = [load.script, message, _join_settings(load.options), load.means]
        rows.append([f"load {name}", "; ".join(filter(None, texts))])
    return build_table("measured-how", rows, "measured")


def _format_stated(value: object) -> object:
    """Value as a document states it, settings by name; or that it states none."""
    text = _join_settings(value) if isinstance(value, Mapping) else value
    return "not stated" if text in (None, "") else text


def _join_settings(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={'not stated' if value is None else value}" for key, value in values.items())


def render_tables(audit: Audit) -> Html:
    """Write every table of the document, digit for digit."""
    result = []
    for table in audit.tables:
        columns = [_build_column(table, *cells) for cells in zip(table.columns, *table.rows, strict=True)]
        messages = [f"{table.stands}." if table.stands else "", _join_settings(table.at), table.note or ""]
        messages += [f"{heading.replace('_', ' ')}: {text}" for heading, text in table.means.items()]
        caption = " ".join(part if part.endswith(".") else f"{part}." for part in messages if part)
        result.append(Table(f"table-{table.name}", table.title, columns, table.rows, caption))
    return join_html(result)


def _build_column(table: Printed, heading: str, *cells: str) -> TableColumn:
    """Column of a printed table: of numbers where every cell is one."""
    if all(cell.replace(".", "", 1).isdigit() for cell in cells if cell):
        return number_column(*_split_heading(heading, table.units.get(heading) or ""))
    return text_column(heading.replace("_", " "))


def _split_heading(heading: str, unit: str) -> tuple[str, str]:
    """Heading of a CSV file in plain words, and its unit if the heading does not name it."""
    label = re.sub(r"(?<=\d)_(?=\d)", ".", heading)
    label = re.sub(rf"_(?:{re.escape(unit)}|pct)$", "", label) if unit else label
    rate = re.search(r"(?:^|_)(qps|tps)$", label)
    if rate:
        label = f"{label[: rate.start(1)]}{rate[1].upper()}"
    return label.replace("_", " "), "" if rate and unit == "1/s" else unit


def leaves_open(audit: Audit) -> Html:
    """List the points that the document leaves open."""
    return make_element("ul", *(make_element("li", text) for text in audit.leaves_open), class_="doubts")


Points = dict[str, list[tuple[float, float]]]
Lines = list[tuple[Printed, AuditedNumber]]

NOT_ALONG = ("arm", "workload", "processes", "threads_per_process")
# One of each group is drawn, the first that is printed.
DRAWN = (("qps", "tps"), ("latency_p95_ms", "latency_p99_ms", "latency_avg_ms"))
LABELS = {
    "qps": "queries per second",
    "tps": "transactions per second",
    "latency_p95_ms": "95th percentile, ms",
    "latency_p99_ms": "99th percentile, ms",
    "latency_avg_ms": "mean latency, ms",
}
LOG_FROM = 20
CAPTION = "Drawn from the printed numbers, one a point: nothing shows how far a second run would move them."


def draw_pictures(audit: Audit) -> list[Picture]:
    """Draw the tables that a claim compares in one picture each, then every table that is left."""
    tables = {table.name: table for table in audit.tables if table.numbers}
    compared = _group_tables(audit, tables)
    left = [[name] for name in tables if not any(name in group for group in compared)]
    drawn = (_draw_picture([tables[name] for name in group]) for group in (*compared, *left))
    return [picture for picture in drawn if picture.panels]


def _group_tables(audit: Audit, tables: Mapping[str, Printed]) -> list[list[str]]:
    """Tables that claims compare with each other; each set once, no set inside another."""
    sets = dict.fromkeys(_tables_of_claim(claim).intersection(tables) for claim in audit.claims)
    largest = [inner for inner in sets if len(inner) > 1 and not any(inner < other for other in sets)]
    return [[name for name in tables if name in group] for group in largest]


def _tables_of_claim(claim: AuditedClaim) -> frozenset[str | None]:
    sides = [side for cell in claim.cells for side in (cell, cell.baseline, cell.treatment) if side]
    return frozenset(side.table for side in sides)


def _draw_picture(tables: Sequence[Printed]) -> Picture:
    lines = [(table, line) for table in tables for line in table.numbers]
    by_load = group_by(lines, lambda drawn: str(drawn[1].at.get("workload", "")))
    panels = [panel for load, of_load in by_load.items() for panel in _draw_panels(of_load, load)]
    titles = [table.title for table in tables]
    anchor = make_slug("-".join(table.name for table in tables))[:80]
    title = number_format.join_words(titles) if len(tables) < 4 else f"{len(tables)} tables compared"
    return Picture(f"figure-{anchor}", title, tuple(panels), CAPTION)


def _draw_panels(lines: Lines, load: str) -> Iterator[Panel]:
    """Panels of a load, one for each kind of metric that is printed at several levels."""
    by_metric = group_by(lines, lambda drawn: drawn[1].metric)
    for choice in DRAWN:
        metric = next((name for name in choice if name in by_metric), "")
        along = _find_axis(by_metric.get(metric, []))
        points = _collect_points(by_metric[metric], along) if along else {}
        if any(len(line) > 1 for line in points.values()):
            yield _draw_panel(points, load, metric, along)


def _draw_panel(points: Points, load: str, metric: str, along: str) -> Panel:
    names, axis = list(points), "printed second" if along == "second" else along.replace("_", " ")
    drawn = [point for line in points.values() for point in line]
    with theme.figure_style():
        figure, axes = theme.make_canvas()
        for name, line in points.items():
            x, y = zip(*line, strict=True)
            shade = theme.colour_of_arm(name, names)
            axes.plot(x, y, color=shade, marker=theme.marker_of_arm(name, names))
        axes.set(title=theme.shorten_name(load), ylabel=LABELS[metric], xlabel=axis)
        axes.set_ylim(0, 1.08 * max(y for _, y in drawn))
        axes.yaxis.set_major_formatter("{x:,.0f}" if metric in DRAWN[0] else "{x:g}")
        if along != "second":
            _mark_levels(axes, sorted({x for x, _ in drawn}))
        theme.draw_legend(figure, names, names)
    message = " ".join(
        f"{name}: {', '.join(f'{y:g} at {x:g}' for x, y in line)}." for name, line in points.items()
    )
    return Panel(figure, f"{load}, {LABELS[metric]} over {axis}. {message}")


def _mark_levels(axes: Axes, levels: Sequence[float]) -> None:
    """Mark each of these levels on the axis below, on a log scale where they are far apart."""
    if levels[0] > 0 and levels[-1] / levels[0] >= LOG_FROM:
        axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(levels))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter("{x:g}")


def _find_axis(lines: Lines) -> str:
    """Key that varies, `threads` if no other does; empty if none does."""
    levels: dict[str, set[Any]] = {}
    for _, line in lines:
        for key, value in line.at.items():
            if key not in NOT_ALONG and isinstance(value, int | float):
                levels.setdefault(key, set()).add(value)
    varying = [key for key, level in levels.items() if len(level) > 1]
    return min(varying, key=lambda key: key == "threads", default="")


def _collect_points(lines: Lines, along: str) -> Points:
    """Series over a key; report lines count from the first printed one."""
    arms = {(table.name, line.at.get("arm")) for table, line in lines}
    is_plain = len({arm for _, arm in arms}) == len(arms)
    points: Points = {}
    for table, line in lines:
        if along in line.at and line.value is not None:
            arm = line.at.get("arm")
            name = str(arm or table.title) if is_plain else f"{table.title} ({arm})"
            place = line.row if along == "second" else float(line.at[along])
            points.setdefault(name, []).append((place, line.value))
    return {name: sorted(line) for name, line in points.items()}
