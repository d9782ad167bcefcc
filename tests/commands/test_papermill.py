"""A stage's process waits for a kernel that is slow to tell what it did."""

import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

# What the kernel tells waits behind seven seconds of sleep; nbclient by itself waits for four. The kernel
# answers before, since it doesn't wait for its own streams.
LAGGING = """
import sys, time
sys.stdout.flush_timeout = sys.stderr.flush_timeout = 0.1
get_ipython().kernel.iopub_thread.schedule(lambda: time.sleep(7))
open("done", "w").close()
"""


@pytest.mark.slow
def test_a_lagging_kernel_is_waited_for(tmp_path: Path) -> None:
    notebook = new_notebook(cells=[new_code_cell(LAGGING)])
    notebook.metadata["kernelspec"] = {"name": "python3", "language": "python", "display_name": "Python 3"}
    source, target = tmp_path / "in.ipynb", tmp_path / "out.ipynb"
    nbformat.write(notebook, source)
    argv = [sys.executable, "-m", "benchbook.commands.papermill", str(source), str(target), str(tmp_path)]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-400:]
    assert (tmp_path / "done").is_file() and target.is_file()
