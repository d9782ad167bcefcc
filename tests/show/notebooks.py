"""Run a notebook in this process and keep what it displays: no kernel, so that tests stay quick."""

import ast
from pathlib import Path
from typing import Any
from unittest import mock

import nbformat
from nbformat import NotebookNode


def execute(path: Path, root: Path, **parameters: Any) -> NotebookNode:
    """Return the notebook with outputs, run with `parameters` on the repository found at `root`."""
    notebook = nbformat.read(path, as_version=4)
    shown: list[NotebookNode] = []

    def display(*values: object, metadata: dict[str, Any] | None = None) -> None:
        for value in values:
            data = {"text/plain": repr(value)}
            # Figures of matplotlib have the method, and answer None.
            if (html := getattr(value, "_repr_html_", lambda: None)()) is not None:
                data["text/html"] = html
            shown.append(nbformat.v4.new_output("display_data", data, metadata=metadata or {}))

    names: dict[str, Any] = {"display": display}
    with mock.patch.dict("os.environ", {"BENCHBOOK_ROOT": str(root)}):
        for cell in notebook.cells:
            if cell.cell_type != "code":
                continue
            shown.clear()
            _run(cell.source, names)
            if "parameters" in cell.metadata.get("tags", []):
                names.update(parameters)
            cell.outputs = list(shown)
    return notebook


def _run(source: str, names: dict[str, Any]) -> None:
    """Run a cell as Jupyter does: the value of a last expression is displayed."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    if last is not None:
        value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
        if value is not None:
            names["display"](value)
