from __future__ import annotations

from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from benchbook.show.page import canonical


def _executed(number: int) -> nbformat.NotebookNode:
    """Make the same notebook as executed the `number`-th time."""
    text = (
        f"<object at 0x7f{number}0c0ffee> /tmp/ipykernel_{number}/77{number}.py:1 /home/me{number}/work/x.csv"
    )
    cell = new_code_cell(
        "x", execution_count=number, metadata={"tags": ["hide-input"], "papermill": {"d": number}}
    )
    cell.metadata["execution"] = {"iopub.execute_input": f"2026-01-0{number}"}
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
    first, second = (
        nbformat.writes(canonical(_executed(number), Path(f"/home/me{number}/work"))) for number in (1, 2)
    )
    assert first == second
    assert "papermill" not in first and "0x7f" not in first and "2026" not in first


def test_outputs_tags_and_the_given_notebook_are_kept():
    given = _executed(1)
    clean = canonical(given)
    assert clean.cells[1].outputs[0].data["text/html"] == "<p>7</p>"
    assert clean.cells[1].metadata == {"tags": ["hide-input"]}
    assert given.cells[1].execution_count == 1
