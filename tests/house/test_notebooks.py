"""Notebooks are stored clean, told as a story, and thin: calls here, functions in lib."""

import ast
import functools
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house import tree

TAGS = {"parameters", "hide", "hide-input", "hide-output", "fold"}
KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
MOST_CODE_CELLS, MOST_CODE_LINES = 9, 40
LOGIC = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.Try, ast.While, ast.Global,
)  # fmt: skip
SQL = re.compile(r"\b(SELECT|INSERT|UPDATE|DELETE|CREATE|DROP|ALTER|ANALYZE|SHOW)\s+\w+", re.I)
SHELL = re.compile(r"^\s*[!%]|get_ipython\(|os\.system|subprocess", re.M)
# A figure with its unit, as a result would have it; "95 %" of an interval is a setting, not a result.
RESULT = re.compile(r"\d\s*(%|tps\b|qps\b|ms\b|per cent\b|percent\b|times (faster|slower)\b)", re.I)

EXPLORED = sorted((tree.ROOT / "notebooks" / "explore").glob("*.ipynb"))
every = pytest.mark.parametrize("path", tree.notebooks(), ids=lambda path: path.stem)
and_explored = pytest.mark.parametrize("path", [*tree.notebooks(), *EXPLORED], ids=lambda path: path.stem)
stages = pytest.mark.parametrize(
    "path",
    [path for path in tree.notebooks() if path.stem in (*tree.STAGE_NOTEBOOKS, "07_report")],
    ids=lambda path: path.stem,
)


def parameters(path: Path) -> list[dict]:
    return [cell for cell in tree.cells(path) if "parameters" in cell["metadata"].get("tags", [])]


def test_the_six_stages_are_there():
    assert set(tree.STAGE_NOTEBOOKS) <= {path.stem for path in tree.notebooks()}


@and_explored
def test_it_is_stored_without_outputs_or_traces_of_a_run(path: Path):
    notebook = json.loads(path.read_text())
    assert notebook["metadata"] == {"kernelspec": KERNEL}, "make strip"
    assert notebook["nbformat"] == 4
    for cell in notebook["cells"]:
        assert set(cell["metadata"]) <= {"tags"}, "make strip"
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None, "make strip"


@and_explored
def test_it_is_stored_as_jupyter_stores_it(path: Path):
    """Opening and saving in JupyterLab then changes no byte, so nothing asks to be run again."""
    notebook = json.loads(path.read_text())
    assert path.read_text() == json.dumps(notebook, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    for cell in notebook["cells"]:
        source = cell["source"]
        assert isinstance(source, list) and source == "".join(source).splitlines(keepends=True)
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids)


@every
def test_it_begins_with_its_title_and_says_what_it_does(path: Path):
    first = tree.cells(path)[0]
    assert first["cell_type"] == "markdown"
    title, _, rest = first["source"].partition("\n")
    assert re.fullmatch(r"# \S.*", title)
    assert len(rest.split()) >= 10


@every
def test_its_second_cell_alone_has_parameters_typed_literals_with_help(path: Path):
    assert parameters(path) == [tree.cells(path)[1]]
    source = parameters(path)[0]["source"]
    names = []
    for statement, line in zip(ast.parse(source).body, source.strip().splitlines(), strict=True):
        assert isinstance(statement, ast.AnnAssign) and statement.value is not None, line
        ast.literal_eval(statement.value)
        assert re.search(r"  # \S", line), f"say what it is: {line}"
        names.append(ast.unparse(statement.target))
    others = "\n".join(cell["source"] for cell in tree.cells(path)[2:] if cell["cell_type"] == "code")
    assert not [name for name in names if not re.search(rf"\b{name}\b", others)], "a parameter nobody reads"


@every
def test_it_has_known_tags_and_only_calls(path: Path):
    assert {tag for cell in tree.cells(path) for tag in cell["metadata"].get("tags", [])} <= TAGS
    source = tree.code(path)
    assert not SHELL.search(source)
    parsed = ast.parse(source)
    assert not [type(node).__name__ for node in ast.walk(parsed) if isinstance(node, LOGIC)]
    strings = [node.value for node in ast.walk(parsed) if isinstance(node, ast.Constant)]
    assert not [text for text in strings if isinstance(text, str) and SQL.search(text)]


@stages
def test_a_stage_is_thin_and_tells_a_story(path: Path):
    """What goes in, the work, the evidence: code never comes without a word before it."""
    kinds = [cell["cell_type"] for cell in tree.cells(path)]
    assert kinds.count("markdown") >= 3
    assert kinds[-1] == "code", "it ends with what it left"
    written = [cell["source"] for cell in tree.cells(path) if cell["cell_type"] == "code"]
    assert len(written) <= MOST_CODE_CELLS
    lines = [line for source in written for line in source.splitlines() if line.strip()]
    assert len(lines) <= MOST_CODE_LINES


@and_explored
def test_every_figure_has_words_for_who_cannot_see_it(path: Path):
    drawn = re.compile(r"plt\.subplots|sns\.relplot")
    sources = (cell["source"] for cell in tree.cells(path))
    assert [source for source in sources if drawn.search(source) and '"alt"' not in source] == []


@every
def test_no_result_is_typed(path: Path):
    prose = "\n".join(cell["source"] for cell in tree.cells(path) if cell["cell_type"] == "markdown")
    assert not [line for line in prose.splitlines() if RESULT.search(line)]


@every
def test_every_import_is_used_and_exists(path: Path):
    source = tree.code(path)
    parsed = ast.parse(source)
    bound = [
        alias.asname or alias.name.split(".")[0]
        for node in ast.walk(parsed)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    ]
    read = {node.id for node in ast.walk(parsed) if isinstance(node, ast.Name)}
    assert not [name for name in bound if name not in read]
    ours = [name for name in tree.imports(source) if name.startswith("benchbook.")]
    assert not [name for name in ours if not tree.file_of(name) and not tree.file_of(name.rpartition(".")[0])]


def test_strip_leaves_clean_notebooks_alone_and_cleans_executed_ones(tmp_path: Path):
    """What JupyterLab and papermill leave goes, byte by byte back to what was stored."""
    folder = tmp_path / "notebooks"
    folder.mkdir()
    source = tree.notebooks()[0]
    clean, executed = folder / "clean.ipynb", folder / "executed.ipynb"
    shutil.copy(source, clean)
    notebook = json.loads(source.read_text())
    notebook["metadata"] |= {"papermill": {"duration": 1}, "language_info": {"name": "python"}}
    for cell in notebook["cells"]:
        cell["metadata"] |= {"papermill": {"status": "completed"}, "execution": {}}
        if cell["cell_type"] == "code":
            cell["execution_count"] = 3
            cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": ["1\n"]}]
    executed.write_text(json.dumps(notebook, indent=1) + "\n")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    script = ["sh", str(tree.ROOT / "tools" / "strip.sh")]
    strip = functools.partial(
        subprocess.run, cwd=tmp_path, env=os.environ | {"PATH": path}, capture_output=True, check=False
    )
    assert strip([*script, "--verify"]).returncode != 0
    strip(script)
    assert clean.read_text() == source.read_text()
    assert json.loads(executed.read_text()) == json.loads(source.read_text())
