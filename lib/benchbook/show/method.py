"""The page on the method: what the A/A pairs of all studies showed, and the settings in force."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel

from benchbook.compare.inference.caveats import leaves_zero_out
from benchbook.compare.stats import calibration as campaigns
from benchbook.core.artifacts import calibration_store
from benchbook.core.artifacts.findings import Finding, Findings
from benchbook.show import claim_status, forest
from benchbook.show.markup import Html, slug
from benchbook.show.table import Table, tabulated
from benchbook.show.templating import render

Studies = Mapping[str, Findings]


def studies() -> Studies:
    """Return the findings of every study that has them, by the way from this page to its own."""
    return {one.page: one.found for one in claim_status.measured()}


def opening(known: Studies) -> Html:
    """Write the title and, in one sentence, what the A/A pairs say of the method."""
    pairs = _pairs(known)
    out = sum(leaves_zero_out(aa) for _, aa in pairs)
    wide = sum(aa.label == "no useful interval" for _, aa in pairs)
    return render("method.html.j2", pairs=len(pairs), out=out, wide=wide)


def aa_figure(known: Studies) -> forest.Forest:
    """Draw the A/A effect of every study with its interval."""
    return forest.of_twins(
        (_name(way, known[way]), f"{way}#finding-{slug(aa.id)}", aa) for way, aa in _pairs(known)
    )


def aa_table(known: Studies) -> Table:
    """List the A/A result of every study, those without a pair as well."""
    rows = [(way, _name(way, found), found.aa) for way, found in known.items()]
    return tabulated("aa-record", rows, leaves_zero_out=leaves_zero_out)


def calibration() -> Html:
    """Write what the recorded campaigns show, a sentence a question, and where and when they ran."""
    table = calibration_store.table()
    if table is None or table.empty:
        return render("calibration.html.j2", table=None)
    days = sorted({began[:10] for began in table.began_utc})
    given = {"days": dict.fromkeys((days[0], days[-1])), "machines": sorted(set(table.machine))}
    return render("calibration.html.j2", table=table, sentences=campaigns.sentences(table), **given)


def settings(*sections: BaseModel) -> Table:
    """List the settings of params.yaml that are in force, each with what it means."""
    rows = [
        (name, getattr(section, name), info.description)
        for section in sections
        for name, info in type(section).model_fields.items()
    ]
    return tabulated("settings", rows)


def _name(way: str, found: Findings) -> str:
    return f"{found.study}{' (recorded)' if way.startswith('record/') else ''}"


def _pairs(known: Studies) -> list[tuple[str, Finding]]:
    return [(way, found.aa) for way, found in known.items() if found.aa]
