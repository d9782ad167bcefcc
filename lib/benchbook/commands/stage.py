"""Run one stage's notebook under supervision and report a failure in one line."""

from __future__ import annotations

import datetime
import json
import os
import shutil
import sys
from pathlib import Path

from benchbook.core.study import load
from benchbook.core.util import files, git, paths, process_env
from benchbook.core.util.errors import BenchbookError, InputErrors
from benchbook.sites.processes import supervise

STAGES = {stage: notebook for stage, (notebook, _) in paths.STAGES.items()} | {"runs": "runs"}
# Those that only show what there is; they need no process of their own.
SHOWING = ("report", "runs")
# Those that connect to a server.
MEASURING = ("provision", "prepare", "warm-up", "run-matrix")

# With less than this a notebook can't be written.
FULL_BYTES = 1 << 20

# Notebooks about everything, and the pages they become.
PAGES = {"method": "method.html", "claims": "claims.html", "story": "story.html", "findings": "index.html"}

# A stage that signal N ended has the exit code of this and N.
ENDED_BY = 128

# What makes numbers and pages; studies and params.yaml have doubts of their own.
CODE = ("lib", "notebooks", "dvc.yaml", "requirements.lock")


def run_stage(stage: str, name: str, is_here: bool = False) -> int:
    """Execute the notebook of a stage for a study; return 0, or the exit code of the failed part.

    It has a kernel of its own, but for what only shows something or is asked for `here`.
    """
    site = (load.load_for_measuring if stage in MEASURING else load.load_study)(name).site
    needed = site.existing.password_env if site.existing is not None and stage in MEASURING else None
    process_env.drop_passwords([needed] if needed else [])
    load.load_params()
    where = paths.study_paths(name)
    here = is_here or stage in SHOWING
    notebook = STAGES[stage]
    code = execute_notebook(notebook, where.notebooks, where.failed, here, study=name)
    if stage in MEASURING and code > ENDED_BY and site.kind == "local":
        from benchbook.sites.topology import teardown
        from benchbook.sites.workspace import lab_folder

        # Its process has seconds to end its servers, and a killed one has none for its namespaces and rules.
        teardown.after_kill(lab_folder(paths.find_root(), name))
    if stage in SHOWING and code == 0:
        page = where.report if stage == "report" else where.run_pages / "index.html"
        _render_page(where.notebooks / f"{notebook}.ipynb", page, name)
        if stage == "report":
            write_summary(name, current_commit(), count_edited())
    return code


def run_audit(source: str) -> int:
    """Execute the audit of a published source and render its page; return an exit code."""
    where = paths.source_paths(source)
    return _make_page("audit", where.notebooks, where.failed, where.report, source=where.name)


def make_page(name: str) -> int:
    """Execute a notebook about everything, one of `PAGES`, and render it; return an exit code."""
    folder = paths.find_root() / "data" / "site"
    return _make_page(name, folder / "notebooks", folder / "failed", paths.reports_folder() / PAGES[name])


def _make_page(notebook: str, into: Path, failed: Path, page: Path, **inputs: str) -> int:
    load.load_params()
    code = execute_notebook(notebook, into, failed, True, **inputs)
    if code == 0:
        _render_page(into / f"{notebook}.ipynb", page)
    return code


def _render_page(notebook: Path, page: Path, study: str | None = None) -> None:
    from benchbook.show import page as pages

    pages.render_page(notebook, page, study, current_commit(), paths.find_root(), count_edited())
    print(f"report: {_relative_path(page, paths.find_root())}")


def write_summary(name: str, made_by: str | None, changed: int) -> None:
    """Write the answer of a study as Markdown beside its page."""
    from benchbook.show import caveats_section, evidence, registration, sessions, study_answer
    from benchbook.show import page as page_

    report_inputs = evidence.load_evidence(name)
    more = [registration.check_registration(name, report_inputs.runs), *caveats_section.report_differences()]
    if changed:
        more.append(caveats_section.CaveatPoint("Edited code", page_.edited_code(made_by, changed), True))
    text = study_answer.render_summary(report_inputs, more, sessions.recorded_of(report_inputs))
    files.write_text(paths.study_paths(name).summary, text)


def execute_notebook(notebook: str, into: Path, failed: Path, is_here: bool = True, **inputs: str) -> int:
    """Execute a notebook with at most one parameter, keep a failed one in `failed`; return an exit code."""
    root, target, log = paths.find_root(), into / f"{notebook}.ipynb", into / f".{notebook}.log"
    source = root / "notebooks" / f"{notebook}.ipynb"
    try:
        into.mkdir(parents=True, exist_ok=True)
        log.touch()
    except OSError as error:
        remedy = "look at its owner, mode and mount (after `sudo make`, `sudo chown -R $USER .` helps)"
        why = f"{_relative_path(into, root)}: cannot be written: {error.strerror}"
        raise BenchbookError(f"{why}; {remedy}") from None
    if is_here:
        from benchbook.commands import notebooks

        try:
            notebooks.execute_notebook(source, target, root, inputs)
            code = 0
        except BenchbookError:
            code = 1
    else:
        words = [word for pair in inputs.items() for word in pair]
        code = _run_papermill([str(source), str(target), str(root), *words], log)
    if code != 0:
        statement = _last_error(target) or f"exit code {code}"
        print(f"{notebook} failed: {statement}{_disk_remedy(target, statement)}", file=sys.stderr)
        stamp = datetime.datetime.now(datetime.UTC).strftime("%Y%m%dT%H%M%SZ")
        try:
            failed.mkdir(parents=True, exist_ok=True)
            for file in (path for path in (target, log) if path.is_file()):
                shutil.copyfile(file, failed / f"{notebook}-{stamp}{file.suffix}")
            kept = f"the executed notebook and its log are kept in {_relative_path(failed, root)}"
            print(kept, file=sys.stderr)
        except OSError as error:
            print(f"the executed notebook could not be kept: {error.strerror}", file=sys.stderr)
    log.unlink(missing_ok=True)
    return code


def _run_papermill(words: list[str], log: Path) -> int:
    """Run papermill: people get its progress at once and one line on failure, and the log all else."""
    os.environ.update(BENCHBOOK_ROOT=str(paths.find_root()), PYTHONHASHSEED="0", PYTHONUNBUFFERED="1")
    os.environ.update(JUPYTER_PREFER_ENV_PATH="1", PYDEVD_DISABLE_FILE_VALIDATION="1")
    return supervise.run_stage([sys.executable, "-m", "benchbook.commands.papermill", *words], log)


def current_commit() -> str | None:
    """The commit that the clone stands on, or None if git does not say."""
    return (git.run_git("rev-parse", "--short=10", "HEAD") or "").strip() or None


def commit_of_evidence(study: str) -> str | None:
    """The last commit that changed inputs of a study's evidence, or None without git."""
    # Not the archive: one that is itself committed has the same bytes when it is packed again.
    made_with = ("lib", "notebooks", "params.yaml", "data/published", paths.study_paths(study).shown)
    return (git.run_git("log", "-1", "--format=%H", "--", *made_with) or "").strip()[:10] or None


def count_edited() -> int:
    """Count the files of the code that differ from the commit; 0 if git does not say."""
    listed = git.run_git("status", "--porcelain", "--untracked-files=all", "--", *CODE)
    return len((listed or "").splitlines())


def _disk_remedy(target: Path, statement: str) -> str:
    """Remedy for a full disk, if that is the cause of a failure; else empty."""
    free = shutil.disk_usage(target.parent).free
    if "No space left" not in statement and free > FULL_BYTES:
        return ""
    remedy = "what was complete is kept and taken up again; free some space and run the stage again"
    return f"; the disk of {target.parent} is full ({free >> 10} KiB free): {remedy}"


def _last_error(notebook: Path) -> str | None:
    """Last error of an executed notebook, without its traceback."""
    try:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    except (OSError, ValueError, KeyError):
        return None
    for cell in reversed(cells):
        for output in cell.get("outputs", []):
            if output.get("output_type") == "error":
                is_refusal = output["ename"] in BENCHBOOK_ERRORS
                return output["evalue"] if is_refusal else f"{output['ename']}: {output['evalue']}"
    return None


def _relative_path(path: Path, root: Path) -> str:
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)


BENCHBOOK_ERRORS = {
    BenchbookError.__name__, InputErrors.__name__, "SiteError", "LockHeld", "SettingsDiffer", "Refused",
    "Unreachable", "AgentGone", "NotThere",
}  # fmt: skip


def run_command(stage: str, study: str, here: bool) -> int:
    """Run stages one after another until one fails; return an exit code."""
    requests = stage.split(",")
    remedy = f"no such stage; write one of {', '.join(STAGES)}"
    if wrong := [f"stage: {text}: {remedy}" for text in requests if text not in STAGES]:
        raise InputErrors(wrong)
    return next((code for text in requests if (code := run_stage(text, study, here))), 0)
