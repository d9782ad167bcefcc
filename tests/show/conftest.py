"""One made-up study and its page, built once for all tests of this floor."""

import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from nbformat import NotebookNode

from benchbook.show import Evidence, page
from tests.show import notebooks, synthetic

REPORT = Path(__file__).parents[2] / "notebooks" / "07_report.ipynb"


@dataclass(frozen=True)
class Built:
    """The report of the made-up study: the executed notebook, the page, and what both took of a processor."""

    notebook: NotebookNode
    path: Path
    text: str
    soup: BeautifulSoup
    seconds: float


def build(made: Evidence, root: Path) -> Built:
    """Write a study below `root`, run the report notebook on it and render its page."""
    synthetic.write(made, root)
    start = time.process_time()
    notebook = notebooks.execute(REPORT, root, study=made.name)
    text = page.render_html(notebook, study=made.name, commit="0a1b2c3")
    seconds = time.process_time() - start
    path = root / "reports" / "studies" / f"{made.name}.html"
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    return Built(notebook, path, text, BeautifulSoup(text, "html.parser"), seconds)


@pytest.fixture(scope="session")
def made() -> Evidence:
    return synthetic.evidence()


@pytest.fixture(scope="session")
def built(made: Evidence, tmp_path_factory: pytest.TempPathFactory) -> Built:
    return build(made, tmp_path_factory.mktemp("study"))
