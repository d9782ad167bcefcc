"""Page on the method: results of the A/A pairs of all studies, and the settings in force."""

import csv
from collections.abc import Mapping

from pydantic import BaseModel

from benchbook.compare.inference.caveats import leaves_zero_out
from benchbook.compare.text import labels
from benchbook.core.artifacts.findings import FindingData, Findings
from benchbook.core.study.descriptors import find_engine, product_name
from benchbook.core.util import paths
from benchbook.show import claim_status, forest
from benchbook.show.markup import Html, make_slug
from benchbook.show.table import Table, build_table
from benchbook.show.templating import render_template

Studies = Mapping[str, Findings]
# What the other arm of a known effect has, by the word of `benchmarks/calibration.yaml`.
EFFECTS = {
    "burns, mariadb": "performance_schema on against off",
    "burns, tidb": "cache of prepared plans off against on",
    "rows": "200 rows against 100",
}


def load_studies() -> Studies:
    """Findings of every study that has them, by the link from this page to its own."""
    return {study.page: study.found for study in claim_status.load_studies()}


def render_opening(findings_list: Studies) -> Html:
    """Write the title and, in one sentence, the result of the A/A pairs for the method."""
    pairs = _aa_pairs(findings_list)
    out = sum(leaves_zero_out(aa) for _, aa in pairs)
    wide = sum(aa.label == "no useful interval" for _, aa in pairs)
    return render_template("method.html.j2", pairs=len(pairs), out=out, wide=wide)


def aa_figure(findings_list: Studies) -> forest.Forest:
    """Draw the A/A effect of every study with its interval."""
    pairs = ((_name_study(way, findings_list[way]), way, aa) for way, aa in _aa_pairs(findings_list))
    return forest.of_twins((name, f"{way}#finding-{make_slug(aa.id)}", aa) for name, way, aa in pairs)


def aa_table(findings_list: Studies) -> Table:
    """List the A/A result of every study, those without a pair as well."""
    rows = [(way, _name_study(way, findings), findings.aa) for way, findings in findings_list.items()]
    return build_table("aa-record", rows, leaves_zero_out=leaves_zero_out)


def tabulate_calibration() -> Table:
    """List the results of the recorded campaigns, a row a question and case."""
    file = paths.record_folder() / "calibration" / "results.csv"
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    rows = [row | {"case": _label_case(row["case"])} for row in csv.DictReader(lines)]
    return build_table("calibration", rows)


def _label_case(case: str) -> str:
    effect, _, place = case.partition(", ")
    engine, _, workload = place.partition(", ")
    if not workload:
        return case
    label = EFFECTS.get(effect) or EFFECTS.get(f"{effect}, {engine}")
    label = label or f"{product_name(effect)} against direct connections"
    where = "selects of ranges" if effect == "rows" else labels.label_workload(workload)
    return f"{find_engine(engine).product}: {label}; {where}"


def tabulate_settings(*sections: BaseModel) -> Table:
    """List the settings of params.yaml that are in force, each with its meaning."""
    rows = [
        (name, getattr(section, name), info.description)
        for section in sections
        for name, info in type(section).model_fields.items()
    ]
    return build_table("settings", rows)


def _name_study(way: str, findings: Findings) -> str:
    return f"{findings.study}{' (recorded)' if way.startswith('record/') else ''}"


def _aa_pairs(findings_list: Studies) -> list[tuple[str, FindingData]]:
    return [(way, findings.aa) for way, findings in findings_list.items() if findings.aa]
