"""Pages of the published record show every number, follow every digit, and hold plain text only."""

import copy
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from benchbook.compare.claims.audit import audit_source
from benchbook.core.artifacts import record as index
from benchbook.core.artifacts.findings import FindingData
from benchbook.core.published.audit import Audit
from benchbook.core.util import files, paths
from benchbook.core.util.source_files import source_names as names
from benchbook.read import published
from benchbook.show import audit_page, claim_status, claims_page, home_page, story, tables
from tests import found, sources
from tests.goldens import assert_golden, assert_page
from tests.recorded import entry


@pytest.fixture(scope="module")
def audits() -> dict[str, Audit]:
    return sources.audits()


def whole(one: Audit) -> str:
    parts = [audit_page.render_opening, audit_page.render_arithmetic, tables.tabulate_checks]
    parts += [audit_page.tabulate_setup, audit_page.render_tables, audit_page.leaves_open]
    return "\n".join(part(one)._repr_html_() for part in parts)


def test_the_page_of_a_source_says_what_its_tables_bear_out_and_what_it_leaves_out(audits: dict[str, Audit]):
    one = audits["tidb-kubernetes"]
    assert_page("source.txt", whole(one), *audit_page.draw_pictures(one))


@pytest.mark.parametrize("name", names())
def test_every_printed_number_is_on_the_page(audits: dict[str, Audit], name: str):
    page = audit_page.render_tables(audits[name])._repr_html_()
    for table in audits[name].tables:
        for row in table.rows:
            for cell in row:
                assert cell == "" or cell.replace("&", "&amp;") in page


def test_one_changed_digit_changes_the_page(tmp_path, monkeypatch, audits):
    folder = tmp_path / "data" / "published" / "tidb-upgrade"
    shutil.copytree(paths.source_paths("tidb-upgrade").published, folder)
    file = folder / "write-only-versions.csv"
    file.write_text(file.read_text(encoding="utf-8").replace("8210", "8310"), encoding="utf-8")
    monkeypatch.setenv("BENCHBOOK_ROOT", str(tmp_path))
    before, after = whole(audits["tidb-upgrade"]), whole(audit_source(published.load_source("tidb-upgrade")))
    # 23300 / 8310 - 1 = 180.39 %
    assert "+183.80 %" in before and "+180.39 %" in after and "+183.80 %" not in after


def test_what_a_document_says_is_text_and_nothing_else(audits: dict[str, Audit]):
    found = copy.deepcopy(audits["tidb-upgrade"].plain)
    found["document"]["title"] = found["claims"][0]["claim"] = "<script>alert(1)</script>"
    found["tables"][2]["rows"][0][0] = "<img src=x onerror=alert(1)>"
    page = whole(Audit.model_validate(found))
    assert "<script>" not in page and "<img" not in page


@pytest.mark.parametrize("name", names())
def test_figures_hold_the_numbers_they_show(audits: dict[str, Audit], name: str):
    drawn = audit_page.draw_pictures(audits[name])
    alts = [panel.alt for picture in drawn for panel in picture.panels]
    assert drawn and all(alts)
    told = " ".join(alts)
    measured = [line for table in audits[name].tables for line in table.numbers if line.metric == "qps"]
    assert all(f"{line.value:g}" in told for line in measured)


def finding(claim: str | None, **more: object) -> FindingData:
    made = {
        "id": "oltp_point_select.host.qps", "workload": "oltp_point_select", "effect": 0.061,
        "low": 0.049, "high": 0.079, "claim": claim, "verdict": "confirmed", "label": "higher",
        "baseline": "pod", "treatment": "host",
    }  # fmt: skip
    return found.finding(**made | more)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, audits: dict[str, Audit]) -> Path:
    for name, one in audits.items():
        one.write(tmp_path / "data" / "audit" / name / "audit.json")
    monkeypatch.setenv("BENCHBOOK_ROOT", str(tmp_path))
    return tmp_path


def illustrate(site: Path, **more: object) -> None:
    """Write a study of the lab whose arm illustrates a claim, with what it found."""
    study = found.findings(finding(None, verdict=None, **more), title="A lab")
    study.write(site / "data" / "lab" / "findings.json")
    text = "site: {kind: local}\nengine: {name: mariadb}\narms:\n  pod: {network: pod}\n"
    host = "{illustrates: [tidb-kubernetes/host-network], stands_in_for: the network of a cloud}"
    files.write_text(site / "studies" / "lab.yaml", f"{text}  host: {host}\n")


def shown_of_host(seen: claim_status.ClaimStatus) -> str:
    """What the table of claims says stands behind the claim about host networks."""
    page = BeautifulSoup(claims_page.render_claims(seen).text, "html.parser")
    return page.find(id="claim-tidb-kubernetes-host-network").find_parent("tr").find_all("td")[-1].get_text()


def test_an_illustration_says_where_it_or_another_study_has_the_other_sign(site: Path):
    illustrate(site)
    seen = claim_status.load_status()
    recorded = replace(seen, studies=[replace(study, is_recorded=True) for study in seen.studies])
    recorded.__dict__["reversals"] = {"lab": ["host against pod: from −3 % (a) to +9 % (b)"]}
    illustrate(site, effect=-0.05, low=-0.07, high=-0.03, label="lower")
    cases = {
        "as claimed": seen,
        "other studies show both signs": recorded,
        "the other way": claim_status.load_status(),
    }
    lines = [f"{title}: {' '.join(shown_of_host(status).split())}" for title, status in cases.items()]
    assert_golden("illustrations.txt", "\n".join(lines) + "\n")


def test_each_claim_is_answered_illustrated_or_open_beside_its_published_number(site: Path):
    illustrate(site)
    answered = finding("tidb-kubernetes/load-balancer", id="oltp_point_select.lb.qps", treatment="lb")
    found.findings(answered, title="Networks").write(site / "data" / "networks" / "findings.json")
    text = "engine: {name: tidb}\narms: {}\nclaims: [tidb-kubernetes/host-network]\n"
    files.write_text(site / "studies" / "own.yaml", f"site: {{kind: kubernetes}}\n{text}")
    for name in ("reads", "updates", "writes"):
        of = text.replace("host-network", "ubuntu")
        files.write_text(site / "studies" / f"{name}.yaml", f"site: {{kind: ssh}}\n{of}")
    seen = claim_status.load_status()
    shown = claims_page.tabulate_studies, claims_page.tabulate_sources, story.tabulate_measured
    parts = claims_page.render_opening, claims_page.render_claims, *shown, story.tabulate_reports
    assert_page("claims.txt", *(part(seen) for part in parts), home_page.render_page(seen))
    assert {claim.names[0] for claim in claim_status.load_status("tidb-upgrade").claims} == {"tidb-upgrade"}


def test_what_an_arm_stands_in_for_is_told_as_its_file_says_it_now_while_the_arm_is_the_same(site: Path):
    session = "20261122T0000Z-0000"

    def stand_ins(file: str, arms: str) -> list[str]:
        head = "site: {kind: local}\nengine: {name: mariadb}\narms:\n"
        files.write_text(site / file, f"{head}{arms}")
        index.write_study("lab", index.Recorded(title="A lab", sessions={session: entry()}))
        found.findings(finding(None), title="A lab").write(paths.recorded_paths("lab", session).findings)
        (measured,) = claim_status.load_studies()
        return measured.stand_ins("s/c")

    recorded = f"data/recorded/lab/{session}/studies/lab.yaml"
    first = "  a: {load: {idle_connections: 5}, stands_in_for: five}\n"
    later = "  b: {load: {idle_connections: 9}, illustrates: [s/c], stands_in_for: TOLD}\n"
    assert stand_ins(recorded, first + later.replace("TOLD", "nine")) == ["nine"]
    assert stand_ins("studies/lab.yaml", first + later.replace("TOLD", "nine of ten")) == ["nine of ten"]
    other = later.replace("9", "8").replace("TOLD", "eight")
    assert stand_ins("studies/lab.yaml", first + other) == ["nine"], "that arm is another one now"
    same = later.replace("TOLD", "the same with nine")
    assert stand_ins("studies/lab.yaml", first + same) == ["five", "the same with nine"]
    withdrawn = same.replace("illustrates: [s/c], ", "")
    assert stand_ins("studies/lab.yaml", first + withdrawn) == [], "the study file illustrates it no more"


@pytest.mark.parametrize(
    ("nodes", "told"), [(("n1", "n1"), "one node of a cluster"), (("n1", "n2"), "a cluster")]
)
def test_a_cluster_of_one_node_is_not_sold_as_more(site: Path, nodes: tuple[str, str], told: str):
    illustrate(site)
    file = site / "studies" / "lab.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace("local", "kubernetes"), encoding="utf-8")
    moment = dict(zip(("client_node", "server_node"), nodes, strict=True))
    facts = {"arms": {"pod": {"moment": moment}, "host": {"moment": moment}}}
    files.write_json(site / "data" / "lab" / "facts.json", facts)
    (study,) = claim_status.load_studies()
    assert study.place == f"{told}, MariaDB"


def test_an_empty_site_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("BENCHBOOK_ROOT", str(tmp_path))
    seen = claim_status.load_status()
    assert_page("empty-site.txt", claims_page.render_claims(seen), claims_page.tabulate_studies(seen))


def test_the_walk_through_is_a_source_that_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """docs/adding-a-source.md, followed to the letter: folder, table, source.yaml."""
    text = (Path(__file__).parents[2] / "docs" / "adding-a-source.md").read_text(encoding="utf-8")
    table = re.search(r"```csv\n(.*?)```", text, re.S)[1]
    description = re.search(r"```yaml\n(.*?)```", text, re.S)[1]
    folder = tmp_path / "data" / "published" / "example"
    folder.mkdir(parents=True)
    (folder / "reads.csv").write_text(table, encoding="utf-8")
    (folder / "source.yaml").write_text(description, encoding="utf-8")
    monkeypatch.setenv("BENCHBOOK_ROOT", str(tmp_path))
    found = audit_source(published.load_source("example"))
    # 2.1, 2.1132, 2.3041: geometric mean 2.1704, in the band 1.8 to 2.2 times; latencies 0.38 to 0.81 ms.
    verdicts = {claim.id: claim.verdict for claim in found.claims}
    assert list(verdicts.values()) == ["holds", "holds", "not derivable"]
    assert found.claims[0].mean == pytest.approx(1.1704, abs=1e-4)
    # Threads / QPS at 32 plain: 1.87; at 32 cached: 0.812; all within rounding.
    assert not [check for check in found.checks if check.passed is False]
    assert whole(found) and audit_page.draw_pictures(found)
