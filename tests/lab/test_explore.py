"""The worked explorations: stored clean, read through the API, true on a study whose effect is known."""

import re
from pathlib import Path

import matplotlib as mpl
import pytest

from benchbook.compare.meta.meta_analysis import pool_sessions
from benchbook.core.artifacts import meta_analysis
from benchbook.core.util import paths
from benchbook.show import page
from tests.compare.sessions import PROCESSORS, finding, part, session
from tests.house import tree
from tests.show import notebooks

EXPLORE = tree.ROOT / "notebooks" / "explore"
every = pytest.mark.parametrize("path", sorted(EXPLORE.glob("*.ipynb")), ids=lambda path: path.stem)


@every
def test_it_reads_as_a_story_through_the_api_and_its_links_lead_somewhere(path: Path):
    kinds = [cell["cell_type"] for cell in tree.cells(path)]
    assert kinds[0] == "markdown" and tree.cells(path)[0]["source"].startswith("# ")
    assert kinds.count("markdown") >= 5
    ours = {name for name in tree.imports(tree.code(path)) if name.startswith("benchbook")}
    statistics = ("benchbook.compare.meta", "benchbook.compare.stats.variance_components")
    assert all(name == "benchbook" or name.startswith(statistics) for name in ours)
    prose = "\n".join(cell["source"] for cell in tree.cells(path) if cell["cell_type"] == "markdown")
    linked = re.findall(r"\]\(([^)#\s]+)\)", prose)
    assert not [link for link in linked if "://" not in link and not (path.parent / link).exists()]


@every
@pytest.mark.filterwarnings("ignore:FigureCanvasAgg is non-interactive")
def test_it_runs_on_a_made_up_study(path: Path, monkeypatch: pytest.MonkeyPatch):
    logs = tree.ROOT / "tests" / "data" / "logs" / "folder-numbered-results-with-description"
    own = {"start": {}, "your_logs": {"folder": str(logs)}}
    own["browse"] = {"study": "two-arms", "folder": str(logs)}
    root = paths.find_root()
    if path.stem == "pool_sessions":
        brought = []
        for day, (log, processor) in enumerate(zip((0.1, 0.2, 0.4), PROCESSORS, strict=False), start=1):
            when = {"measured": f"2026-11-{day:02d}T06:00", "processor": processor}
            brought.append(session(finding(part(log, 0.01), {1: part(log, 0.01)}), **when))
        monkeypatch.setattr(meta_analysis, "read_pooled", lambda name: pool_sessions(name, brought))
    if path.stem == "judge_a_claim":
        root, own["judge_a_claim"] = tree.ROOT, {"session": "20261126T0804Z-43a5"}
    study = own.get(path.stem, {"study": "two-arms"})
    with mpl.rc_context({"backend": "agg"}):
        executed = notebooks.execute(path, root, **study)
    shown = [output for cell in executed.cells for output in cell.get("outputs", [])]
    assert len(shown) >= 3
    # A picture without words for those who can't see it is refused.
    assert "<main" in page.render_html(executed)
    if path.stem == "compare_two_arms":
        # Ratios of the five blocks: 80/100, 88/110, 97/120, 103/130, 112/140; geometric mean 0.800112.
        table = next(output.data["text/plain"] for output in shown if "by hand" in output.data["text/plain"])
        assert re.search(r"effect +-0\.199888 +-0\.199888", table), table
    if path.stem == "start":
        assert any("not measured yet: " in output.data["text/plain"] for output in shown)
