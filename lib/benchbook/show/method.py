"""The page on the method: what the A/A pairs of all studies showed, and the settings in force."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import BaseModel

from benchbook.compare import calibration as campaigns
from benchbook.compare import words
from benchbook.compare.doubts import leaves_zero_out
from benchbook.core import calibrated
from benchbook.core.findings import Finding, Findings
from benchbook.show import forest, numbers, standing
from benchbook.show.markup import Html, element, join, slug
from benchbook.show.shape import shaped
from benchbook.show.table import Column, Table, long, number

Studies = Mapping[str, Findings]


def studies() -> Studies:
    """Return the findings of every study that has them, by the way from this page to its own."""
    return {one.page: one.found for one in standing.measured()}


def opening(known: Studies) -> Html:
    """Write the title and, in one sentence, what the A/A pairs say of the method."""
    pairs = _pairs(known)
    out = sum(leaves_zero_out(aa) for _, aa in pairs)
    return shaped("method.html.j2", pairs=len(pairs), out=out)


def aa_figure(known: Studies) -> forest.Forest:
    """Draw the A/A effect of every study with its interval."""
    return forest.of_twins(
        (_name(way, known[way]), f"{way}#finding-{slug(aa.id)}", aa) for way, aa in _pairs(known)
    )


def aa_table(known: Studies) -> Table:
    """List the A/A result of every study, those without a pair as well."""
    rows = [_row(way, found) for way, found in known.items()]
    columns = [
        Column("Study"), long("Workload"), number("Effect"), number("Interval"), number("Level"),
        number("n", "blocks"), Column("Zero"),
    ]  # fmt: skip
    caption = "A study without a pair does not show how far apart equal arms come out."
    return Table("aa-record", "The A/A record", columns, rows, caption, "Nothing has been measured yet.")


def _row(way: str, found: Findings) -> list[object]:
    aa, study = found.aa, _name(way, found)
    if aa is None:
        return [element("a", study, href=way), "no A/A pair", "", "", "", "", ""]
    return [
        element("a", study, href=f"{way}#finding-{slug(aa.id)}"),
        words.of(aa, "workload"),
        numbers.percent(aa.effect),
        numbers.span(aa.low, aa.high),
        numbers.level(aa.level),
        aa.n,
        "leaves zero out" if leaves_zero_out(aa) else "",
    ]


def calibration() -> Html:
    """Write what the recorded campaigns show, a sentence a question, and where and when they ran."""
    table = calibrated.table()
    if table is None or table.empty:
        return element("p", "No calibration is recorded yet.")
    days = sorted({began[:10] for began in table.began_utc})
    span_ = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    machines = numbers.listing(sorted(set(table.machine)))
    busy = f"load {table.load_1min.min():.1f} to {table.load_1min.max():.1f} at their starts"
    told = f"{numbers.count(len(table), 'campaign')}, {span_}, on {machines}; {busy}."
    shown = [element("li", sentence) for sentence in campaigns.sentences(table)]
    return join([element("p", told), element("ul", *shown)])


def settings(*sections: BaseModel) -> Table:
    """List the settings of params.yaml that are in force, each with what it means."""
    rows = [
        [element("code", name), _value(getattr(section, name)), info.description or ""]
        for section in sections
        for name, info in type(section).model_fields.items()
    ]
    columns = [Column("Setting"), number("Value"), long("Meaning")]
    return Table("settings", "Settings in force", columns, rows)


def _value(value: object) -> str:
    return (
        numbers.listing(value) if isinstance(value, Sequence) and not isinstance(value, str) else str(value)
    )


def _name(way: str, found: Findings) -> str:
    return f"{found.study}{' (recorded)' if way.startswith('record/') else ''}"


def _pairs(known: Studies) -> list[tuple[str, Finding]]:
    return [(way, found.aa) for way, found in known.items() if found.aa]
