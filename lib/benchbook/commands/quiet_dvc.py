"""DVC's command line without its hints on git and remotes, which would stand right before an answer."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence

from dvc.cli import main
from dvc.repo import scm_context
from dvc.ui import ui

PUSH = "Use `dvc push`"


def run_dvc(words: Sequence[str]) -> int:
    """Run a command of DVC; return its exit code. Warnings and errors stay."""
    write = ui.write

    def write_without_hint(*parts: object, **options: object) -> None:
        if not str(parts[0] if parts else "").startswith(PUSH):
            write(*parts, **options)

    ui.write = write_without_hint
    scm_context.logger.setLevel(logging.WARNING)
    return int(main([*words]))


if __name__ == "__main__":
    sys.exit(run_dvc(sys.argv[1:]))
