"""Notebooks executed one after the other in one kernel, which imports everything once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from papermill.iorw import load_notebook_node
from papermill.parameterize import parameterize_notebook

from benchbook.core.errors import BenchbookError

# Between two notebooks nothing may stay: names go, and the place is the next one's.
_BETWEEN = "%reset -f\nimport os; os.environ['BENCHBOOK_ROOT'] = {root!r}; os.chdir({root!r}); del os"
# A machine that is busy with others takes a minute to import a kernel.
STARTUP_S = 300
SETTINGS = {
    "PYTHONHASHSEED": "0",
    "JUPYTER_PREFER_ENV_PATH": "1",
    "PYDEVD_DISABLE_FILE_VALIDATION": "1",
}


class Kernel:
    """A kernel that executes notebooks in turn; use `started`."""

    def __init__(self, client: NotebookClient) -> None:
        self._client = client

    def execute(self, notebook: Path, target: Path, root: Path, **parameters: str) -> Path:
        """Execute a notebook with parameters where `root` is the repository, and write it to `target`.

        Raises BenchbookError with the first error of a cell.
        """
        known = parameterize_notebook(load_notebook_node(str(notebook)), parameters)
        first = nbformat.v4.new_code_cell(_BETWEEN.format(root=str(root)))
        known.cells.insert(0, first)
        self._client.nb = known
        try:
            self._client.execute(cleanup_kc=False)
        except CellExecutionError as error:
            raise BenchbookError(f"{notebook.stem}: {error.ename}: {error.evalue}") from None
        known.cells.remove(first)
        target.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(known, target)
        return target


@contextmanager
def started(folder: Path) -> Iterator[Kernel]:
    """Start a kernel in a folder and stop it at the end."""
    os.environ.update(SETTINGS)
    empty = nbformat.v4.new_notebook()
    client = NotebookClient(
        empty,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
        startup_timeout=STARTUP_S,
        extra_arguments=["--log-level=ERROR"],
    )
    client.km = client.create_kernel_manager()
    try:
        yield Kernel(client)
    finally:
        # Without a kernel manager the kernel is gone already.
        if client.km is not None:
            client._cleanup_kernel()
