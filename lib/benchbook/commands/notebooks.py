"""Notebooks executed one after the other in this process, with one import of everything.

A kernel of its own costs three seconds of a processor; stages that measure have one, to be ended as a whole.
"""

from __future__ import annotations

import base64
import contextlib
import io
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import nbformat
from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, output_from_msg
from traitlets.config import Config

from benchbook.core.util import paths
from benchbook.core.util.errors import BenchbookError

# Figures become pictures as they do in JupyterLab.
BACKEND = "module://matplotlib_inline.backend_inline"
# No file in the home folder, and no result kept alive by a history that nobody scrolls.
_QUIET = {
    "HistoryManager": {"enabled": False},
    "InteractiveShell": {"cache_size": 0, "colors": "nocolor", "history_length": 0},
}


class Shell(InteractiveShell):
    """IPython, with the output of cells collected in `shown` as a notebook has it."""

    shown: list[NotebookNode]

    def show(self, kind: str, **content: Any) -> None:
        """Take one output: `stream`, `display_data`, `execute_result` or `error`."""
        last = self.shown[-1] if self.shown else None
        if kind == "stream" and last and last.get("name") == content["name"]:
            last.text += content["text"]
            return
        self.shown.append(output_from_msg({"header": {"msg_type": kind}, "content": content}))

    def enable_gui(self, gui: str | None = None) -> None:
        """Do nothing: figures are pictures, no windows."""

    def _showtraceback(self, etype: type, evalue: BaseException, stb: list[str]) -> None:
        self.show("error", ename=etype.__name__, evalue=str(evalue), traceback=stb)


class _Hook(DisplayHook):
    """Output of the last line of a cell."""

    def __call__(self, result: Any = None) -> None:
        if result is None:
            return
        data, metadata = self.compute_format_data(result)
        self.fill_exec_result(result)
        shell: Any = self.shell
        count = shell.execution_count
        shell.show("execute_result", data=_encode_data(data), metadata=metadata, execution_count=count)


class _Publisher(DisplayPublisher):
    """Output of `display`."""

    def publish(self, data: dict[str, Any], metadata: Any = None, *_: Any, **__: Any) -> None:
        self.shell.show("display_data", data=_encode_data(data), metadata=metadata or {})


class _CellOutput(io.TextIOBase):
    """Printed output of a cell."""

    encoding, errors = "utf-8", "strict"

    def __init__(self, shell: Shell, name: str) -> None:
        self._shell, self._name = shell, name

    def write(self, text: str) -> int:
        if text:
            self._shell.show("stream", name=self._name, text=text)
        return len(text)


def execute_notebook(notebook: Path, target: Path, root: Path, parameters: Mapping[str, str]) -> Path:
    """Execute a notebook below `root` and write it to `target`; BenchbookError at the first error."""
    document = nbformat.read(notebook, as_version=4)
    if parameters:
        # Behind the cell of parameters, in the words that papermill has for it.
        tags = [cell.metadata.get("tags", ()) for cell in document.cells]
        lines = ["# Parameters", *(f'{name} = "{value}"' for name, value in parameters.items()), ""]
        cell = new_code_cell("\n".join(lines), metadata={"tags": ["injected-parameters"]})
        document.cells.insert(next(at for at, of in enumerate(tags, 1) if "parameters" in of), cell)
    failed = None
    with contextlib.chdir(root), paths.use_root(root), _open_shell() as shell:
        for number, cell in enumerate((cell for cell in document.cells if cell.cell_type == "code"), 1):
            cell.outputs, cell.execution_count = [], None
            if not failed:
                cell.outputs, cell.execution_count = _run_cell(shell, cell, number), number
                failed = next((output for output in cell.outputs if output.output_type == "error"), None)
    target.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(document, target)
    if failed:
        raise BenchbookError(f"{notebook.stem}: {failed.ename}: {failed.evalue}")
    return target


@contextlib.contextmanager
def _open_shell() -> Iterator[Shell]:
    """Make a shell for one notebook, with names that no other notebook sees, and release it."""
    os.environ["MPLBACKEND"] = BACKEND
    shell = Shell.instance(config=Config(_QUIET), display_pub_class=_Publisher, displayhook_class=_Hook)
    shell.shown = []
    if "matplotlib" in sys.modules:
        from matplotlib_inline.backend_inline import configure_inline_support

        # It looks for its backend, and for the shell that shows figures, only when it is imported; and it
        # tells only the first shell of a process how figures become pictures, as long as it remembers one.
        configure_inline_support.current_backend = "unset"  # type: ignore[attr-defined]
        shell.enable_matplotlib("inline")
    try:
        yield shell
    finally:
        Shell.clear_instance()


def _run_cell(shell: Shell, cell: NotebookNode, number: int) -> list[NotebookNode]:
    shell.shown, shell.execution_count = [], number
    out, err = _CellOutput(shell, "stdout"), _CellOutput(shell, "stderr")
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        stopped = shell.run_cell(cell.source).error_in_exec
    if isinstance(stopped, KeyboardInterrupt | SystemExit):
        raise stopped
    return shell.shown


def _encode_data(data: Mapping[str, Any]) -> dict[str, Any]:
    return {
        kind: base64.b64encode(item).decode("ascii") if isinstance(item, bytes) else item
        for kind, item in data.items()
    }
