"""`benchbook logs PATH…`: results of existing logs of sysbench, without server or study file."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

from benchbook.core.util.errors import BenchbookError
from benchbook.log_analysis.comparison import LogSet, judge_claim, read_logs
from benchbook.log_analysis.text import render_markdown, render_terminal


def report_logs(
    paths: list[str],
    by: str | None,
    arm: list[str],
    baseline: str | None,
    claim: list[str],
    markdown: bool,
    json_: bool,
    html: Path | None,
    csv: Path | None,
    parquet: Path | None,
    draft: Path | None,
) -> int:
    """Print the results of logs, and write the requested files; 1 if no run could be read."""
    logs = read_logs(paths, by, [*map(_parse_arm, arm)], baseline, any((html, csv, parquet)))
    logs.claims = [(text, judge_claim(logs, text)) for text in claim] if logs.runs else []
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 160
    if json_:
        from benchbook.log_analysis.tables import as_document

        print(json.dumps(as_document(logs), indent=2))
    else:
        _print_text(render_markdown(logs) if markdown else render_terminal(logs, width))
    if not logs.runs:
        print("benchbook: no run could be read; docs/logs.md says what is", file=sys.stderr)
        return 1
    for path in _write_files(logs, csv, parquet, html, draft):
        print(f"written: {path}", file=sys.stderr)
    return 0


def _parse_arm(pair: str) -> tuple[str, str]:
    """Name and glob of an arm that is written as NAME=GLOB."""
    name, _, pattern = pair.partition("=")
    if not name or not pattern:
        raise BenchbookError(f"--arm {pair}: write NAME=GLOB, such as --arm 'new=*/8.4/*'")
    return name, pattern


def _write_files(
    logs: LogSet, csv: Path | None, parquet: Path | None, html: Path | None, draft: Path | None
) -> list[Path]:
    """Write the requested files, each by a module that no other of them needs; return all of them."""
    written = list[Path]()
    for folder, form in ((csv, "csv"), (parquet, "parquet")):
        if folder:
            from benchbook.log_analysis.tables import write_tables

            written += write_tables(logs, folder, form)
    if html:
        from benchbook.show.logs_page import write_page

        written.append(write_page(logs, html))
    if draft:
        from benchbook.log_analysis.study_draft import write_study

        written.append(write_study(logs, draft))
    return written


def _print_text(text: str) -> None:
    try:
        print(text)
    except BrokenPipeError:
        # The reader of the pipe, such as `head`, ended first.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
