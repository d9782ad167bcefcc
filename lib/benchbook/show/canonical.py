"""The same notebook twice gives the same bytes: what changes with every execution is dropped or masked."""

from __future__ import annotations

import copy
import re
from pathlib import Path

from nbformat import NotebookNode

_KEPT_CELL = ("tags", "alt")
_MASKS = (
    (re.compile(r"0x[0-9a-f]{6,}"), "0x…"),  # where an object lived
    (re.compile(r"ipykernel_\d+(?:/\d+\.py)?"), "ipykernel"),  # the kernel's process and cell files
    (re.compile(r"/tmp/[\w./-]+"), "/tmp/…"),
)


def canonical(notebook: NotebookNode, root: Path | None = None) -> NotebookNode:
    """Copy a notebook without times, papermill's records, ids, counters, addresses and this checkout's path.

    `root` is the repository's folder, written as a dot. HTML outputs keep their bytes: they are ours and
    hold none of it.
    """
    clean = copy.deepcopy(notebook)
    clean.metadata = NotebookNode(
        kernelspec={"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
    )
    clean.nbformat, clean.nbformat_minor = 4, 5
    for number, cell in enumerate(clean.cells, 1):
        cell["id"] = f"cell-{number}"
        cell.metadata = NotebookNode({key: cell.metadata[key] for key in _KEPT_CELL if key in cell.metadata})
        if cell.cell_type != "code":
            continue
        cell.execution_count = None
        for output in cell.outputs:
            _clean_output(output, root)
    return clean


def _clean_output(output: NotebookNode, root: Path | None) -> None:
    if "execution_count" in output:
        output.execution_count = None
    if output.output_type == "stream":
        output.text = _mask(output.text, root)
    elif output.output_type == "error":
        output.traceback = [_mask(line, root) for line in output.traceback]
        output.evalue = _mask(output.evalue, root)
    elif "text/plain" in output.data:
        output.data["text/plain"] = _mask(output.data["text/plain"], root)


def _mask(text: str, root: Path | None) -> str:
    for pattern, mask in _MASKS:
        text = pattern.sub(mask, text)
    return text.replace(str(root), ".") if root else text
