"""Page of a source, made from audit.json: its claims, results of its tables, open points."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.ticker import FixedLocator, NullLocator

from benchbook.core.published.audit import Audit, AuditedNumber
from benchbook.core.published.audit import AuditedTable as Printed
from benchbook.core.util import number_format
from benchbook.show import theme
from benchbook.show.markup import Html, join_html, link_addresses, make_element, make_slug
from benchbook.show.picture import Panel, Picture
from benchbook.show.table import Table, build_table, number_column, text_column
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
    rows: list[list[object]] = [["found", link_addresses(audit.document.found)]]
    rows += [[f"version of {part}", value or "not stated"] for part, value in audit.versions.items()]
    rows += [[part, value or "not stated"] for part, value in audit.hardware.items()]
    for part, value in audit.configuration.items():
        report = _join_settings(value) if isinstance(value, Mapping) else value
        rows.append([f"settings of {part}", "not stated" if report is None else report])
    if audit.sysbench:
        rows.append(["sysbench options", _join_settings(audit.sysbench.options) or "not stated"])
        rows.append(["loading", audit.sysbench.prepare or "not stated"])
    rows += [[key.replace("_", " "), "not stated" if text is None else text] for key, text in audit.conduct]
    for name, arm in audit.arms.items():
        rows.append([f"arm {name}", "; ".join(filter(None, [arm.means, _join_settings(arm.settings)]))])
    for name, load in audit.workloads.items():
        many = load.statements and number_format.format_count(round(load.statements), "statement")
        message = f"{many} an event" if many else "statements not known"
        texts = [load.script, message, _join_settings(load.options), load.means]
        rows.append([f"load {name}", "; ".join(filter(None, texts))])
    return build_table("measured-how", rows, "measured")


def _join_settings(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={'not stated' if value is None else value}" for key, value in values.items())


def render_tables(audit: Audit) -> Html:
    """Write every table of the document, digit for digit."""
    result = []
    for table in audit.tables:
        columns = []
        for heading, *cells in zip(table.columns, *table.rows, strict=True):
            is_number = all(cell.replace(".", "", 1).isdigit() for cell in cells if cell)
            number = number_column(*_split_heading(heading, table.units.get(heading) or ""))
            columns.append(number if is_number else text_column(heading.replace("_", " ")))
        messages = [f"{table.stands}." if table.stands else "", _join_settings(table.at), table.note or ""]
        messages += [f"{heading.replace('_', ' ')}: {text}" for heading, text in table.means.items()]
        caption = " ".join(part if part.endswith(".") else f"{part}." for part in messages if part)
        result.append(Table(f"table-{table.name}", table.title, columns, table.rows, caption))
    return join_html(result)


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
    sets: list[frozenset[str]] = []
    for claim in audit.claims:
        sides = [side for cell in claim.cells for side in (cell, cell.baseline, cell.treatment) if side]
        names = frozenset(tables.keys() & {side.table for side in sides})
        if len(names) > 1 and names not in sets:
            sets.append(names)
    largest = [inner for inner in sets if not any(inner < other for other in sets)]
    return [[name for name in tables if name in group] for group in largest]


def _draw_picture(tables: Sequence[Printed]) -> Picture:
    by_load: dict[str, Lines] = {}
    for table in tables:
        for line in table.numbers:
            by_load.setdefault(str(line.at.get("workload", "")), []).append((table, line))
    panels = []
    for load, lines in by_load.items():
        present = {line.metric for _, line in lines}
        for metric in (next((text for text in choice if text in present), None) for choice in DRAWN):
            if metric:
                panels += _draw_panels([drawn for drawn in lines if drawn[1].metric == metric], load, metric)
    titles = [table.title for table in tables]
    anchor = make_slug("-".join(table.name for table in tables))[:80]
    title = number_format.join_words(titles) if len(tables) < 4 else f"{len(tables)} tables compared"
    return Picture(f"figure-{anchor}", title, tuple(panels), CAPTION)


def _draw_panels(lines: Lines, load: str, metric: str) -> list[Panel]:
    along, points = _collect_points(lines)
    if along is None or max(map(len, points.values()), default=0) < 2:
        return []
    with theme.figure_style():
        figure, axes = theme.make_canvas()
        names = list(points)
        for name, line in points.items():
            x, y = zip(*line, strict=True)
            shade = theme.colour_of_arm(name, names)
            axes.plot(x, y, color=shade, marker=theme.marker_of_arm(name, names))
        axes.set(title=theme.shorten_name(load), ylabel=LABELS[metric], xlabel=along.replace("_", " "))
        axes.set_ylim(0, 1.08 * max(y for line in points.values() for _, y in line))
        axes.yaxis.set_major_formatter("{x:,.0f}" if metric in DRAWN[0] else "{x:g}")
        levels = sorted({x for line in points.values() for x, _ in line})
        if len(levels) > 1 and along != "printed second":
            if levels[0] > 0 and levels[-1] / levels[0] >= LOG_FROM:
                axes.set_xscale("log")
            axes.xaxis.set_major_locator(FixedLocator(levels))
            axes.xaxis.set_minor_locator(NullLocator())
            axes.xaxis.set_major_formatter("{x:g}")
        theme.draw_legend(figure, names, names)
    message = " ".join(
        f"{name}: {', '.join(f'{y:g} at {x:g}' for x, y in line)}." for name, line in points.items()
    )
    return [Panel(figure, f"{load}, {LABELS[metric]} over {along.replace('_', ' ')}. {message}")]


def _collect_points(lines: Lines) -> tuple[str | None, Points]:
    """Key that varies and the series over it; report lines count from the first printed one."""
    levels: dict[str, set[Any]] = {}
    for _, line in lines:
        for key, value in line.at.items():
            if key not in NOT_ALONG and isinstance(value, int | float):
                levels.setdefault(key, set()).add(value)
    others = [key for key, level in levels.items() if key != "threads" and len(level) > 1]
    along = others[0] if others else "threads" if len(levels.get("threads", ())) > 1 else None
    if along is None:
        return None, {}
    arms = {(table.name, line.at.get("arm")) for table, line in lines}
    is_plain = len({arm for _, arm in arms}) == len(arms)
    points: Points = {}
    for table, line in lines:
        if along not in line.at:
            continue
        name = str(line.at.get("arm") or table.title) if is_plain else f"{table.title} ({line.at.get('arm')})"
        if line.value is not None:
            place = line.row if along == "second" else float(line.at[along])
            points.setdefault(name, []).append((place, line.value))
    return ("printed second" if along == "second" else along), {
        name: sorted(line) for name, line in points.items()
    }
