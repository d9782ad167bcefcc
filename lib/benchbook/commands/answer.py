"""What the terminal says when the pipeline ends: the answer of each study, or how far it had come."""

from __future__ import annotations

import html
import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from benchbook.core import files, paths
from benchbook.core.errors import BenchbookError

WIDTH = 110


def text(study: str) -> str:
    """Return the answer of a study in a few lines, as its page has it; empty before it has findings."""
    where = paths.study(study)
    if not where.findings.is_file():
        return ""
    from benchbook.show import numbers

    found = files.read_json(where.findings)
    blocks, runs = found["blocks"], _runs(study)
    basis = f"{blocks['complete']} of {numbers.count(blocks['planned'], 'block')}{runs}, "
    basis += f"{numbers.minutes(found['machine_minutes'])} of machine time"
    lines = [f"{study}: {found['question']}", headline(found), f"({basis})"]
    return "\n".join(
        textwrap.fill(line, WIDTH, initial_indent="" if place == 0 else "  ", subsequent_indent="  ")
        for place, line in enumerate(lines)
    )


def headline(found: Mapping[str, Any]) -> str:
    """Return the answer of findings as plain text."""
    # Loaded here: it brings pandas and matplotlib along, and most of what `benchbook` does needs neither.
    from benchbook.show import prose
    from benchbook.show.markup import join

    told = join(prose.headline(found), "").text or "No finding could be computed; the page says why."
    return html.unescape(re.sub(r"<[^>]*>", "", told))


def _runs(study: str) -> str:
    kept, planned = progress(study)
    return f", {kept} runs" if kept == planned else f", {kept} of {planned} runs" if planned else ""


def progress(study: str) -> tuple[int, int]:
    """Return how many scheduled runs a study has kept, and how many are planned; zeros without a schedule."""
    where = paths.study(study)
    try:
        planned = set(files.read_csv(where.schedule, "run_id")["run_id"])
    except BenchbookError:
        return 0, 0
    kept = {path.name for path in where.raw.iterdir()} if where.raw.is_dir() else set()
    return len(planned & kept), len(planned)


def stopped(studies: Sequence[str]) -> str:
    """Say after Ctrl-C what was kept and that nothing is lost: the same command goes on."""
    counts = {name: progress(name) for name in studies}
    unfinished = {name: (kept, planned) for name, (kept, planned) in counts.items() if 0 < planned != kept}
    kept_runs = "; ".join(
        f"{kept} of {planned} runs kept" + (f" ({name})" if len(studies) > 1 else "")
        for name, (kept, planned) in unfinished.items()
    )
    if not kept_runs:
        whole = [name for name, (kept, planned) in counts.items() if planned and kept == planned]
        kept_runs = f"all runs of {', '.join(whole)} are kept" if whole else "no run was made yet"
    return f"stopped; {kept_runs}; the same command goes on"
