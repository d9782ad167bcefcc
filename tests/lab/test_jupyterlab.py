"""Each notebook in JupyterLab by Run All, in a real browser: it gives what the pipeline gave."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchbook.core.util import files
from tests import rooms
from tests.house import tree
from tests.lab.jupyterlab import Lab, running
from tests.pipeline.clone import Clone, make

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.server]
STAGES = ("01_provision", "02_prepare", "03_warm_up", "04_run_matrix", "05_parse", "06_analyze")
LEFT = ("metrics.json", "schedule.csv", "dataset.json")
# Whose a notebook is, unless it is asked for another study: `study: str = "quick"`, as JSON has it.
NAMED = re.compile(r'(study: str = \\")([a-z-]+)')


@pytest.fixture(scope="module")
def clone(open_folder: Path) -> Clone:
    """A clone in which the pipeline has measured the study of seconds; its notebooks ask for that study."""
    made = make(open_folder / "labtest")
    made.study(port=rooms.port(320))
    code, said = made.run("dvc", "repro", "report@tiny")
    assert code == 0, said
    logs = "tests/data/logs/folder-numbered-results-with-description"
    shutil.copytree(tree.ROOT / logs, made.path / logs, dirs_exist_ok=True)
    for notebook in (made.path / "notebooks").rglob("*.ipynb"):
        notebook.write_text(NAMED.sub(r"\1tiny", notebook.read_text(encoding="utf-8")))
    return made


@pytest.fixture(scope="module")
def lab(clone: Clone) -> Iterator[Lab]:
    with running(clone) as started:
        yield started


def test_it_opens_on_the_start_notebook_and_asks_nothing(lab: Lab, tmp_path: Path):
    page = lab.open()
    page.wait_for_timeout(3000)
    page.screenshot(path=tmp_path / "start.png")
    assert page.opened == "notebooks/explore/browse.ipynb"
    assert page.locator(".jp-Dialog, .Toastify__toast").count() == 0
    assert page.elsewhere == []
    page.close()


def test_without_the_token_nobody_gets_in(lab: Lab):
    page = lab.browser.new_context().new_page()
    answer = page.goto(lab.address + "/api/contents")
    assert answer is not None and answer.status == 403
    page.close()


def test_the_stages_by_run_all_give_what_the_pipeline_gave(lab: Lab, clone: Clone):
    """All but the raw runs and their session's seed is taken away first, so that each stage makes its own."""
    before = _made(clone)
    runs = clone.runs()
    for path in clone.data.iterdir():
        if path.name not in ("raw", "session.json"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    for stage in STAGES:
        lab.run_all(f"notebooks/{stage}.ipynb")
    after = _made(clone)
    assert {name for name in before if before[name] != after[name]} == set()
    assert clone.runs() == runs


def _made(clone: Clone) -> dict[str, object]:
    """Return what the stages made, by name; of the findings not how busy the machine was at provision."""
    known: dict[str, object] = {name: (clone.data / name).read_bytes() for name in LEFT}
    known |= {path.name: path.read_bytes() for path in (clone.data / "tidy").iterdir()}
    found = files.read_json(clone.data / "findings.json")
    return known | {f"findings.{key}": found[key] for key in found.keys() - {"quiet", "warnings"}}


@pytest.mark.parametrize("name", ["07_report", "findings"])
def test_the_pages_notebooks_run_too(lab: Lab, name: str):
    assert lab.run_all(f"notebooks/{name}.ipynb")


@pytest.mark.parametrize(
    "name",
    ["browse", "start", "compare_two_arms", "find_stalls", "plan_next_blocks", "precision", "your_logs"],
)
def test_an_exploration_runs(lab: Lab, name: str, tmp_path: Path):
    cells = lab.run_all(f"notebooks/explore/{name}.ipynb", picture=tmp_path / f"{name}.png")
    kinds = {kind for cell in cells for output in cell["outputs"] for kind in output.get("data", {})}
    assert "text/html" in kinds
    if name in ("browse", "find_stalls", "plan_next_blocks"):
        assert "application/vnd.jupyter.widget-view+json" in kinds


def test_a_slider_moves_the_plan(lab: Lab):
    page = lab.open("notebooks/explore/plan_next_blocks.ipynb")
    page.evaluate("() => window.jupyterapp.commands.execute('runmenu:run-all')")
    told = re.compile(r"More blocks: \d+|No more blocks: the \d+|More than ten thousand blocks")
    moved = page.locator(".jupyter-widgets .jp-OutputArea-output", has_text=told)
    handle = page.locator(".jupyter-widgets .noUi-handle").first
    handle.wait_for()
    assert moved.count() == 0
    handle.focus()
    handle.press("End")
    moved.first.wait_for()
    page.close()


def test_strip_brings_every_notebook_back_to_what_git_has(lab: Lab, clone: Clone):
    """After Run All and save in JupyterLab, `make strip` leaves no byte changed but the study's name."""
    code, said = clone.run("sh", "tools/strip.sh")
    assert code == 0, said
    for notebook in (clone.path / "notebooks").rglob("*.ipynb"):
        if ".ipynb_checkpoints" in notebook.parts:
            continue
        text, stored = notebook.read_text(encoding="utf-8"), tree.ROOT / notebook.relative_to(clone.path)
        if own := NAMED.search(stored.read_text(encoding="utf-8")):
            notebook.write_text(text.replace(own[1] + "tiny", own[0]))
    code, said = clone.run("git", "status", "--porcelain", "notebooks")
    assert (code, said) == (0, "")
