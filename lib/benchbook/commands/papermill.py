"""papermill with the patience that a busy machine asks for; the program that a stage's process runs.

Its command line has no word for how long a kernel's output may lag behind its work: nbclient gives up after
four seconds, and a stage whose work was done then ended as failed.
"""

from __future__ import annotations

import sys

from papermill import execute_notebook

# How long a kernel may take to start, and its last output to arrive; load 33 on two cores took some seconds.
START_S, OUTPUT_S = 300, 600


def run_notebook(notebook: str, target: str, root: str, parameter: str = "", value: str = "") -> None:
    """Execute a notebook in a kernel of its own below `root`, with at most one parameter."""
    execute_notebook(
        notebook,
        target,
        {parameter: value} if parameter else {},
        kernel_name="python3",
        progress_bar=False,
        cwd=root,
        start_timeout=START_S,
        iopub_timeout=OUTPUT_S,
        stdout_file=sys.stdout,
    )


if __name__ == "__main__":
    run_notebook(*sys.argv[1:])
