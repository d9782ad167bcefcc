"""Notebooks executed in this process leave what a kernel of their own would, and nothing to the next."""

import os
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from benchbook.commands import notebooks
from benchbook.core.util.errors import BenchbookError

FIGURE = """import matplotlib.pyplot as plt
figure, axes = plt.subplots(figsize=(1, 1))
display(figure, metadata={"image/png": {"alt": "nothing"}})
plt.close(figure)"""

WHERE = """import os, sys
from benchbook.core.util import paths
print(os.getcwd(), paths.find_root())
print("x", file=sys.stderr)"""


def execute(folder: Path, *sources: str, **parameters: str) -> list[nbformat.NotebookNode]:
    """Execute cells, the first one tagged as parameters, and return the cells as they were written."""
    cells = [new_code_cell(source) for source in sources]
    cells[0].metadata["tags"] = ["parameters"]
    nbformat.write(new_notebook(cells=cells), folder / "made.ipynb")
    notebooks.execute_notebook(folder / "made.ipynb", folder / "out" / "made.ipynb", folder, parameters)
    return written(folder)


def written(folder: Path) -> list[nbformat.NotebookNode]:
    found = nbformat.read(folder / "out" / "made.ipynb", as_version=4)
    nbformat.validate(found)
    return found.cells


def test_what_cells_show_is_written_in_order_with_the_parameters_that_were_given(tmp_path: Path):
    before = Path.cwd(), os.environ.get("BENCHBOOK_ROOT")
    shows = "print(study); print('two'); display(3); study * 2"
    cells = execute(tmp_path, 'study = "quick"', shows, FIGURE, WHERE, study="other")
    assert [cell.source for cell in cells][:2] == ['study = "quick"', '# Parameters\nstudy = "other"\n']
    stream, shown, result = cells[2].outputs
    assert (stream.name, stream.text) == ("stdout", "other\ntwo\n")
    assert (shown.output_type, shown.data["text/plain"]) == ("display_data", "3")
    assert (result.output_type, result.data["text/plain"]) == ("execute_result", "'otherother'")
    (picture,) = cells[3].outputs
    assert picture.data["image/png"].startswith("iVBOR") and picture.metadata["image/png"]["alt"] == "nothing"
    out, err = cells[4].outputs
    assert out.text == f"{tmp_path} {tmp_path}\n" and (err.name, err.text) == ("stderr", "x\n")
    assert [cell.execution_count for cell in cells] == [1, 2, 3, 4, 5]
    assert (Path.cwd(), os.environ.get("BENCHBOOK_ROOT")) == before


def test_a_figure_is_a_picture_in_the_second_notebook_of_a_process_too(tmp_path: Path):
    for _ in range(2):
        cells = execute(tmp_path, "kept = 1", FIGURE)
        assert cells[1].outputs[0].data["image/png"].startswith("iVBOR")


def test_a_name_of_one_notebook_is_not_there_in_the_next(tmp_path: Path):
    execute(tmp_path, "kept = 1")
    with pytest.raises(BenchbookError, match=r"^made: NameError: .*'kept'"):
        execute(tmp_path, "kept")


def test_the_first_error_ends_it_and_is_in_what_is_written(tmp_path: Path):
    with pytest.raises(BenchbookError, match=r"^made: ValueError: planted$"):
        execute(tmp_path, "print('one')", "raise ValueError('planted')", "print('never')")
    one, two, three = written(tmp_path)
    assert one.outputs[0].text == "one\n" and three.outputs == [] and three.execution_count is None
    assert (two.outputs[-1].ename, two.outputs[-1].evalue) == ("ValueError", "planted")


def test_a_line_that_is_no_python_is_an_error_too(tmp_path: Path):
    with pytest.raises(BenchbookError, match="made: SyntaxError"):
        execute(tmp_path, "a = = 1")


def test_to_stop_it_stops_it(tmp_path: Path):
    with pytest.raises(KeyboardInterrupt):
        execute(tmp_path, "raise KeyboardInterrupt")
