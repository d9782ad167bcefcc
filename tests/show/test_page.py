"""The page of a study: complete in one file, readable by everybody, and closed to hostile text."""

import base64
import hashlib
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import nbformat
import pytest
from bs4 import BeautifulSoup
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from benchbook.show import (
    bottleneck_section,
    claim_rows,
    curves,
    figures,
    forest,
    page,
    run_tables,
    study_answer,
    tables,
)
from tests.found import changed, doubt
from tests.goldens import assert_golden, assert_page
from tests.recorded_findings import chosen_findings
from tests.show import conftest, synthetic


def test_it_says_what_was_found_and_what_it_rests_on(built, made):
    _, voids = run_tables.build_tables(made)
    edited = page.render_html(built.notebook, study="quick", commit="0a1b2c3", edited=2)
    assert_page("report.txt", edited, run_tables.render_opening(made), voids)
    summary, _, _ = study_answer.render_summary(made).replace("\xa0", " ").rpartition(" · ")
    assert_golden("summary.md", f"{summary}\n")


@pytest.mark.parametrize("study", ["quick", "lab-ladder", "lab-proxies", "lab-tiproxy-cpu"])
def test_it_says_all_that_a_recorded_session_found(study: str):
    found = chosen_findings(study)
    lines = [*bottleneck_section.describe_proxy_cores(found), *claim_rows.render_claims(found)]
    drawn, _ = curves.of_findings(found.findings)
    assert_page(
        f"findings-{study}.txt",
        study_answer.render_opening(found),
        *bottleneck_section.render_section(found),
        *(f"<p>{line}</p>" for line in lines),
        *([drawn] if drawn else []),
        forest.of_findings(found.findings, found.aa),
        tables.tabulate_effects(found),
        tables.tabulate_levels(found),
        tables.tabulate_scaling(found),
        *tables.tabulate_claims(found),
        *figures.tabulate_percentiles(found),
        *figures.draw_ordered_arms(found),
    )


def test_it_is_small_and_quick(built):
    assert len(built.text.encode()) < 2_000_000
    assert built.seconds < 20


def test_it_needs_no_network(built):
    assert built.text.startswith("<!DOCTYPE html>") and built.soup.html["lang"] == "en"
    assert built.soup.title.string == "What a proxy costs"
    assert built.soup.find("a", class_="skip")["href"] == "#content"
    for tag in built.soup.find_all(True):
        for name in ("src", "srcset", "data", "poster", "background", "action"):
            assert str(tag.get(name, "data:")).startswith("data:"), tag
        if tag.name == "link":
            assert tag["href"].startswith("data:")
    assert not re.search(r"url\(|@import|https?://", built.soup.style.string)


def test_its_policy_allows_its_own_script_and_nothing_else(built):
    policy = built.soup.find("meta", {"http-equiv": "Content-Security-Policy"})["content"]
    (script,) = built.soup.find_all("script")
    digest = base64.b64encode(hashlib.sha256(script.string.encode()).digest()).decode()
    assert policy.startswith("default-src 'none'; img-src data:;")
    assert f"script-src 'sha256-{digest}'" in policy
    assert script.string in built.text


def test_every_figure_tells_its_numbers_to_those_who_cannot_see_it(built, made):
    """A bar of the forest has its numbers beside it."""
    drawn = [image for image in built.soup.find_all("img") if "bar" not in image.get("class", ())]
    assert drawn and all(len(image["alt"]) > 40 for image in drawn)
    for bar in built.soup.select(".forest li .bar"):
        assert bar.find_next_sibling("span").get_text(strip=True)


def test_anchors_are_unique_and_every_link_inside_the_page_arrives(built, made):
    ids = Counter(tag["id"] for tag in built.soup.find_all(id=True))
    assert max(ids.values()) == 1
    for link in built.soup.select('a[href^="#"]'):
        assert link["href"][1:] in ids
    for heading in built.soup.select("h2, h3"):
        # A link inside of what opens a part could not be told from it by hand or by ear.
        if heading.find_parent("summary"):
            assert heading["id"] and not heading.find("a")
            continue
        assert heading.find("a", class_="anchor")["href"] == f"#{heading['id']}"
    for found in made.findings.findings:
        assert f"finding-{found.id}" in ids


def test_the_foot_says_what_made_it_and_the_code_is_folded(built):
    foot = built.soup.footer.get_text()
    assert "benchbook" in foot and "0a1b2c3" in foot and "quick" in foot
    folded, whole = built.soup.find("details", class_="code").get_text(), built.soup.main.get_text()
    assert 0 < folded.count("figures.of_effects") == whole.count("figures.of_effects")


def test_hostile_names_and_texts_stay_text(tmp_path: Path):
    evil = '"><script>alert(1)</script><img src=x onerror=alert(2)>\x1b[31m'
    hostile = synthetic.evidence(blocks=3, treatment=evil, workloads={evil: (20_000.0, 1)})
    said = changed(hostile.findings, title=evil, question=evil, scope=evil, warnings=[doubt(evil)])
    hostile = replace(hostile, findings=said)
    hostile = synthetic.with_folders(hostile, voids=hostile.voids.assign(reasons=evil))
    built = conftest.build(hostile, tmp_path)
    assert len(built.soup.find_all("script")) == 1
    assert all(image["src"].startswith("data:image/svg+xml") for image in built.soup.find_all("img"))
    assert not any(name.startswith("on") for tag in built.soup.find_all(True) for name in tag.attrs)
    assert "\x1b" not in built.text
    assert "<script>alert(1)</script>" in built.soup.main.get_text()


def _page(*cells) -> BeautifulSoup:
    return BeautifulSoup(page.render_html(new_notebook(cells=list(cells))), "html.parser")


def test_other_outputs_are_shown_without_colours_codes_and_hidden_cells():
    stream = new_output("stream", name="stdout", text="\x1b[31mred\x1b[0m <b>")
    soup = _page(
        new_markdown_cell("# Title\n\n<script>x</script>"),
        new_code_cell("secret = 1", outputs=[stream], metadata={"tags": ["hide"]}),
        new_code_cell("print()", outputs=[stream]),
        new_code_cell("1", outputs=[new_output("display_data", {"text/html": "<img src='https://a.b/c'>x"})]),
        new_code_cell("2", outputs=[new_output("error", ename="E", evalue="", traceback=["\x1b[1mboom"])]),
        new_markdown_cell("## Same\n\n## Same"),
    )
    text = soup.main.get_text()
    assert text.count("red <b>") == 1
    assert "boom" in text and "This page is incomplete" in text
    assert len(soup.find_all("script")) == 1
    assert [tag["id"] for tag in soup.find_all("h2")] == ["same", "same-2"]
    assert not soup.find("img", src=True)


def test_a_picture_without_alt_text_is_refused_and_one_with_it_is_shown():
    data = {"image/png": "AAAA"}
    with pytest.raises(ValueError, match=r"^cell 1: .*alt text"):
        _page(new_code_cell("1", outputs=[new_output("display_data", data)]))
    image = _page(
        new_code_cell("1", outputs=[new_output("display_data", data)], metadata={"alt": 'a "b"'})
    ).img
    assert image["alt"] == 'a "b"'


def test_rendering_writes_the_page_where_it_is_asked_to(tmp_path: Path):
    nbformat.write(new_notebook(cells=[new_markdown_cell("# A & B\n\ntext")]), tmp_path / "a.ipynb")
    path = page.render_page(tmp_path / "a.ipynb", tmp_path / "reports" / "a.html")
    soup = BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")
    assert soup.title.string == soup.h1.get_text() == "A & B"


def test_a_table_of_a_notebook_scrolls_in_a_box_of_its_own():
    head = "<thead><tr><th></th><th>qps</th></tr></thead>"
    table = f"<table>{head}<tbody><tr><th>0</th><td>1</td></tr></tbody></table>"
    cells = [new_markdown_cell("# One\n\n## Two")]
    cells += [new_code_cell("", outputs=[new_output("display_data", {"text/html": table})]) for _ in range(2)]
    soup = BeautifulSoup(page.render_html(new_notebook(cells=cells)), "html.parser")
    boxes = soup.select("div.scroll[role=region][tabindex='0'] > table")
    assert len(boxes) == 2
    assert [box.parent["aria-label"] for box in boxes] == ["Table 1: Two", "Table 2: Two"]
    assert [cell.get_text() for cell in boxes[0].find_all("th")] == ["qps", "0"]


def _executed(number: int) -> nbformat.NotebookNode:
    """Make the same notebook as executed the `number`-th time."""
    text = f"<object at 0x7f{number}0c0ffee> /tmp/ipykernel_{number}/77{number}.py:1 /home/me{number}/work/x"
    about = {"tags": ["hide-input"], "papermill": {"d": number}}
    about["execution"] = {"iopub.execute_input": f"2026-01-0{number}"}
    cell = new_code_cell("x", execution_count=number, metadata=about)
    cell.outputs = [
        new_output("execute_result", {"text/plain": text, "text/html": "<p>7</p>"}, execution_count=number),
        new_output("stream", name="stderr", text=text),
        new_output("error", ename="E", evalue=text, traceback=[text]),
    ]
    notebook = new_notebook(cells=[new_markdown_cell("# a"), cell])
    notebook.metadata["papermill"] = {"start_time": f"2026-01-0{number}", "output_path": f"/x/{number}"}
    notebook.metadata["language_info"] = {"version": f"3.11.{number}"}
    return notebook


def test_two_executions_give_the_same_bytes():
    notebooks = {number: _executed(number) for number in (1, 2)}
    first, second = (page.render_html(of, root=Path(f"/home/me{n}/work")) for n, of in notebooks.items())
    assert first == second and "<p>7</p>" in first
    assert "papermill" not in first and "0x7f" not in first and "2026" not in first
    assert "0x7f" in notebooks[1].cells[1].outputs[1].text, "the given notebook is as it was"
