"""One page for a reviewer: changes since a commit in notebooks, keys and findings; no network."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import nbformat

from benchbook.commands import repro, review_record
from benchbook.compare.text.results_table import ResultRow, rows_of_finding
from benchbook.core.artifacts.findings import FindingData, Findings
from benchbook.core.util import files, git, number_format, paths
from benchbook.core.util.errors import BenchbookError
from benchbook.show import page
from benchbook.show.registration import keys_of
from benchbook.show.results_view import describe_row
from benchbook.show.table import Table, build_table
from benchbook.show.tables import name_contrast
from benchbook.show.templating import render_template

_ABSENT = "not there"
# What a notebook's output or metadata says never decides a review: they are stored without either.
_MOST_OF_A_DIFF = 40_000
_MOST_OF_ALL = 600_000
_KINDS = {"A": "added", "M": "changed", "D": "removed", "T": "another kind"}
_SETTINGS = re.compile(r"params\.yaml|studies/.+\.yaml")
_CODE = (".py", ".sh", ".lua", ".css", ".js", ".j2", ".toml", "Makefile")


def write_review(base: str) -> Path:
    """Write data/review/review.html: the working tree against its branching point from `base`."""
    root = paths.find_root()
    commit = git.run_git("merge-base", base, "HEAD")
    if commit is None:
        raise BenchbookError(f"{base}: git knows no such commit here; write BASE=main or another")
    commit = commit.strip()
    listed = git.run_git("diff", "--name-status", "--no-renames", commit) or ""
    changed = [tuple(line.split("\t", 1)) for line in listed.splitlines()]
    untracked = git.run_git("ls-files", "--others", "--exclude-standard") or ""
    changed += [("new, not in git", name) for name in untracked.splitlines()]
    names = [name for _, name in changed]
    inputs = {
        "head": (git.run_git("rev-parse", "--short=10", "HEAD") or "").strip(),
        "record": review_record.compare_record(commit),
        "findings": _compare_findings(commit, find_stale()),
        "keys": _compare_keys(commit, [name for name in names if _SETTINGS.fullmatch(name)]),
        "notebooks": {name: _diff_notebook(commit, name) for name in names if name.endswith(".ipynb")},
        "code": _compare_code(commit, [(kind, name) for kind, name in changed if name.endswith(_CODE)]),
        "files": build_table("files", [(name, _KINDS.get(kind, kind)) for kind, name in changed]),
    }
    shown = render_template("review.html.j2", base=base, commit=commit[:10], many=len(names), **inputs)
    output = nbformat.v4.new_output("display_data", {"text/html": shown.text})
    cells = [nbformat.v4.new_code_cell("", outputs=[output])]
    title = f"What changed since {base}"
    target = root / "data" / "review" / "review.html"
    text = page.render_html(nbformat.v4.new_notebook(cells=cells), title, commit=commit[:10])
    files.write_text(target, text)
    return target


def find_stale() -> dict[str, list[str]]:
    """Stages of each study with inputs that changed after they ran, by `dvc status`; or nothing."""
    try:
        status = json.loads(repro.dvc_says(paths.find_root(), "status", "--json").stdout)
    except ValueError:
        return {}
    stale: dict[str, list[str]] = {}
    for name, changes in status.items():
        # The page and those of runs are made of the numbers, and decide nothing.
        stage, _, study = str(name).partition("@")
        moved = [change for change in changes if isinstance(change, dict) and "changed deps" in change]
        if study and moved and stage in paths.STAGES and stage != "report":
            stale.setdefault(study, []).append(stage)
    return stale


def _compare_findings(commit: str, old: Mapping[str, Sequence[str]]) -> Iterator[Table]:
    """Put the findings of each study side by side: as DVC has them for the commit, and as they are."""
    here = {file.parent.name for file in (paths.find_root() / "data").glob("*/findings.json")}
    then = _list_studies_with_findings(commit)
    if not here | then:
        yield build_table("findings-of-none", [], "findings")
    for study in sorted(here | then):
        before, caption = None, "the study had no findings then"
        if study in then:
            before, caption = _read_earlier(study, commit)
        now = Findings.read(paths.study_paths(study).findings) if study in here else None
        if now is None:
            caption = caption or "Nothing is there now: `dvc pull` or `make repro` brings it."
        elif study in old:
            caption += (
                f" Now is stale: what {number_format.join_words(old[study])} read has changed since; "
                f"`make repro STUDY={study}` brings the numbers of these files."
            )
        inputs = {"study": study, "told": caption, "contrast": name_contrast, "describe_row": describe_row}
        yield build_table("then-and-now", list(side_by_side(before, now)), f"findings-{study}", **inputs)


def _list_studies_with_findings(commit: str) -> set[str]:
    """Studies of which DVC had findings at a commit."""
    lock = keys_of(git.run_git("show", f"{commit}:dvc.lock")) or {}
    outs = (out["path"] for stage in (lock.get("stages") or {}).values() for out in stage.get("outs", []))
    return {Path(out).parts[1] for out in outs if str(out).endswith("/findings.json")}


def _read_earlier(study: str, commit: str) -> tuple[Findings | None, str]:
    # DVC takes most of a second to load, which all other commands can do without.
    import dvc.api
    from dvc.exceptions import DvcException

    try:
        text = dvc.api.read(f"data/{study}/findings.json", repo=str(paths.find_root()), rev=commit)
        return Findings.parse(json.loads(text), paths.study_paths(study).findings), ""
    except (DvcException, OSError) as error:
        why = f"What was found then is not in this clone's cache ({type(error).__name__}): `dvc fetch`."
        return None, why
    except BenchbookError as error:
        return None, f"What was found then can't be read: {error}."


def side_by_side(then: Findings | None, now: Findings | None) -> Iterator[list[object]]:
    """Rows for every effect of either by level, A/A included, with the change in words."""
    before, after = (
        {
            (finding.id, row.threads): (finding, row)
            for finding in (findings.everything if findings else ())
            for row in rows_of_finding(finding)
        }
        for findings in (then, now)
    )
    for key, (finding, row) in {**before, **after}.items():
        old, new = before.get(key), after.get(key)
        yield [finding, row, old, new, _describe_change(old, new)]


def _describe_change(
    old: tuple[FindingData, ResultRow] | None, new: tuple[FindingData, ResultRow] | None
) -> str:
    if old is None or new is None:
        return "new" if old is None else "gone"
    (was, old_row), (now, new_row) = old, new
    changes = {"verdict": was.verdict != now.verdict, "label": old_row.label != new_row.label}
    if words := [word for word, is_changed in changes.items() if is_changed]:
        return f"{number_format.join_words(words)} changed"
    is_same = old_row.change == new_row.change and was.band == now.band
    return "the same" if is_same else "numbers moved"


def _compare_keys(commit: str, names: Sequence[str]) -> Table:
    rows = []
    listed = git.run_git("ls-tree", "-r", "--name-only", commit, "--", "studies") or ""
    earlier = {Path(name).stem: name for name in listed.splitlines() if name.endswith(".yaml")}
    for name in names:
        file, stem = paths.find_root() / name, Path(name).stem
        is_study = name != "params.yaml"
        if is_study and not file.is_file() and paths.study_paths(stem).file.is_file():
            continue  # It lies in another folder now, where its name comes again.
        then = keys_of(git.run_git("show", f"{commit}:{earlier.get(stem, name) if is_study else name}")) or {}
        now = (keys_of(file.read_text(encoding="utf-8")) if file.is_file() else None) or {}
        rows += [[f"{name}{key and ': '}{key}", *both] for key, *both in diff_keys(then, now)]
    return build_table("keys", rows)


def diff_keys(then: Any, now: Any, key: str = "") -> Iterator[list[str]]:
    """Each key that differs with both its values, the outermost if one side has none of it."""
    if isinstance(then, Mapping) and isinstance(now, Mapping):
        for part in dict.fromkeys([*then, *now]):
            inside = f"{key}.{part}" if key else str(part)
            yield from diff_keys(then.get(part, _ABSENT), now.get(part, _ABSENT), inside)
    elif then != now:
        yield [key, _format_value(then), _format_value(now)]


def _format_value(value: Any) -> str:
    return _ABSENT if value is _ABSENT else json.dumps(value, ensure_ascii=False, default=str)


def _compare_code(commit: str, changed: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Changes in each file of code, as git shows them; a new file in full."""
    code, left = dict[str, str](), _MOST_OF_ALL
    for kind, name in changed:
        if kind in _KINDS:
            text = git.run_git("diff", commit, "--", name) or ""
        else:
            lines = (paths.find_root() / name).read_text(encoding="utf-8", errors="replace").splitlines()
            text = "\n+".join(["--- new, not in git", *lines])
        code[name] = _cut_text(text, min(_MOST_OF_A_DIFF, left))
        left = max(left - len(code[name]), 0)
    return code


def _cut_text(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}\n… and more"


def _diff_notebook(commit: str, name: str) -> str:
    """Differences of a notebook from that of a commit, cell by cell, as nbdime tells them."""
    from nbdime import diff_notebooks
    from nbdime.prettyprint import PrettyPrintConfig, pretty_print_notebook_diff

    then, file = git.run_git("show", f"{commit}:{name}"), paths.find_root() / name
    if not file.is_file():
        return "removed"
    try:
        now = nbformat.read(file, as_version=4)
        before = nbformat.reads(then, as_version=4) if then else nbformat.v4.new_notebook()
    except (ValueError, nbformat.reader.NotJSONError, AttributeError) as error:
        return f"not a notebook: {error}"
    out = io.StringIO()
    config = PrettyPrintConfig(out=out, use_color=False, use_git=False, use_diff=False)
    pretty_print_notebook_diff("then", "now", before, diff_notebooks(before, now), config)
    # The first three lines name the two sides, which the page has done already.
    text = "\n".join(out.getvalue().splitlines()[3:]) or "no difference that counts"
    return _cut_text(text, _MOST_OF_A_DIFF)
