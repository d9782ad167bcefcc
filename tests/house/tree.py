"""What the tests of the house look at: tracked files, modules and their imports, notebooks."""

import ast
import json
import re
import subprocess
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from benchbook.core.published import source
from benchbook.core.published.claim import ClaimSpec
from benchbook.core.published.source import SourceSpec
from benchbook.core.study import load
from benchbook.core.study.study import StudySpec
from benchbook.read import published

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "lib" / "benchbook"
FLOORS = ("core", "plan", "sites", "read", "compare", "measure", "show", "api", "evidence", "commands")
STAGE_NOTEBOOKS = ("01_provision", "02_prepare", "03_warm_up", "04_run_matrix", "05_parse", "06_analyze")


def shell_lines(*argv: str) -> list[str]:
    """Return what a command prints in this clone, which must end well."""
    return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()


@cache
def tracked() -> list[Path]:
    """Return every file that git tracks and that is on disk, relative to the root."""
    names = (Path(name) for name in shell_lines("git", "-c", "core.quotePath=off", "ls-files"))
    return [name for name in names if (ROOT / name).is_file()]


def is_ignored(name: str) -> bool:
    """Say whether git would ignore a path that is not tracked."""
    asked = ["git", "check-ignore", "--no-index", "--quiet", name]
    return subprocess.run(asked, cwd=ROOT, check=False).returncode == 0


@cache
def text_of(name: Path) -> str | None:
    """Return a tracked file's text, or None if it isn't text."""
    try:
        return (ROOT / name).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None


def modules() -> list[Path]:
    """Return all modules of the package, sorted."""
    return sorted(PACKAGE.rglob("*.py"))


def dotted(path: Path) -> str:
    """Return a module's dotted name: lib/benchbook/core/util/paths.py is benchbook.core.util.paths."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def file_of(module: str) -> Path | None:
    """Return the file of one of our modules, None if there is no such module."""
    base = PACKAGE.parent.joinpath(*module.split("."))
    candidates = (base.with_suffix(".py"), base / "__init__.py")
    return next((path for path in candidates if path.is_file()), None)


@cache
def parsed(source: str) -> ast.Module:
    """Return a source as a tree, made once for all tests; none may change it."""
    return ast.parse(source)


@cache
def text(path: Path) -> str:
    """Return the text of a module, read once for all tests."""
    return path.read_text()


@cache
def imports(source: str, module: str = "") -> frozenset[str]:
    """Return the dotted names a source imports, anywhere in it; relative ones resolved from `module`."""
    found: set[str] = set()
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                package = module.split(".")[: -node.level]
                base = ".".join([*package, base]) if base else ".".join(package)
            found |= {base} | {f"{base}.{alias.name}" for alias in node.names}
    return frozenset(found)


@cache
def reached(source: str) -> frozenset[str]:
    """Return every module of ours that a source imports, directly or through others."""
    seen: set[str] = set()
    waiting = [name for name in imports(source) if name.split(".")[0] == "benchbook"]
    while waiting:
        name = waiting.pop()
        path = file_of(name)
        if path is None or name in seen:
            continue
        seen.add(name)
        packages = [".".join(name.split(".")[:depth]) for depth in range(1, name.count(".") + 1)]
        inside = path.name == "__init__.py"
        waiting += packages + list(imports(text(path), f"{name}.__init__" if inside else name))
    return frozenset(seen)


def floors(names: Collection[str]) -> set[str]:
    """Return the floors that some modules of ours stand on."""
    return {name.split(".")[1] for name in names if name.startswith("benchbook.")} & set(FLOORS)


@cache
def study(name: str) -> StudySpec:
    """Return a study, at the size that its name asks for; read once for all tests."""
    return load.load_study(name)


@cache
def document(name: str) -> SourceSpec:
    """Return a published source, read once for all tests."""
    return source.load_source(name)


@cache
def cells_of(name: str) -> pd.DataFrame:
    """Return the cells of a source's tables, read once for all tests; none may change them."""
    return published.load_source(name).cells


def printed_levels(name: str) -> set[int]:
    """Return all thread levels that a source prints, those of several processes added."""
    cells = cells_of(name)
    levels = {int(level) for level in cells["threads"].dropna()} if "threads" in cells else set()
    if "processes" in cells:
        levels |= set(cells[["processes", "threads_per_process"]].dropna().astype(int).prod(axis=1))
    return levels


@cache
def claims_of(names: tuple[str, ...]) -> Mapping[str, ClaimSpec]:
    """Return published claims by their names, read once for all tests."""
    return published.resolve_claims(names)


def make_targets() -> set[str]:
    """Return the targets of the Makefile."""
    return set(re.findall(r"^([a-z][a-z-]*):", text(ROOT / "Makefile"), re.M))


def notebooks() -> list[Path]:
    """Return the pipeline's notebooks; `explore/` is free."""
    return sorted((ROOT / "notebooks").glob("*.ipynb"))


def cells(path: Path) -> list[dict[str, Any]]:
    """Return a notebook's cells, each source joined to one string."""
    found = json.loads(path.read_text())["cells"]
    return [cell | {"source": "".join(cell["source"])} for cell in found]


def code(path: Path) -> str:
    """Return all code of a notebook."""
    return "\n".join(cell["source"] for cell in cells(path) if cell["cell_type"] == "code")
