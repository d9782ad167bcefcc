"""Imports go down only; pure floors stay pure; a module has one reason to change."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.house import tree

BELOW = {
    "core": set(),
    "plan": {"core"},
    "sites": {"core"},
    "read": {"core"},
    "compare": {"core"},
    "measure": {"plan", "sites", "core"},
    "show": {"compare", "core"},
    "api": {"plan", "read", "compare", "show", "core"},
    "commands": {"api", "measure", "plan", "read", "compare", "show", "sites", "core"},
}
# What each room of `sites` may import: all that stands above it here. What lies loose in `sites` is shared by
# all rooms and imports none but `processes`; `provision` alone stands on top.
ROOMS = ("processes", "agent", "machine", "tidb", "engines", "proxies", "arms", "local", "hosts", "existing")
ROOMS += ("kube", "gke")
# Rooms that stand beside each other: none of these pairs may import one another.
BESIDE = (
    {"engines", "proxies"},
    {"local", "hosts", "existing", "kube"},
    {"local", "hosts", "existing", "gke"},
)
ON_TOP = {"provision": {"arms"}}
# Clients outside a cluster are hosts of an inventory: what comes to a load balancer really comes to it.
EXCEPTIONS = {
    "benchbook.sites.kube.outside": {"hosts"},
    "benchbook.sites.kube.site": {"hosts"},
}
PURE = ("plan", "read", "compare")
# A connection, a process, a clock, a seed from nowhere.
IMPURE = {
    "asyncio", "fabric", "http", "multiprocessing", "paramiko", "psutil", "pymysql", "requests", "secrets",
    "signal", "socket", "sqlalchemy", "subprocess", "threading", "time", "urllib", "uuid",
}  # fmt: skip
CLOCKS = {"now", "utcnow", "today"}
SEEDED = {"Random", "default_rng", "Generator", "SeedSequence", "PCG64", "Philox"}
MOST_LINES, MOST_OF_A_FUNCTION = 400, 60

modules = pytest.mark.parametrize("path", tree.modules(), ids=tree.dotted)


def of_floors(names: tuple[str, ...]) -> pytest.MarkDecorator:
    chosen = [path for path in tree.modules() if path.relative_to(tree.PACKAGE).parts[0] in names]
    return pytest.mark.parametrize("path", chosen, ids=tree.dotted)


def test_the_package_has_these_floors_and_no_other():
    folders = {path.parent.name for path in tree.PACKAGE.glob("*/__init__.py")}
    assert folders == set(BELOW)


@of_floors(tree.FLOORS)
def test_imports_go_down_only(path: Path):
    floor = path.relative_to(tree.PACKAGE).parts[0]
    module = f"{tree.dotted(path)}.__init__" if path.name == "__init__.py" else tree.dotted(path)
    reached = {name for name in tree.imports(path.read_text(), module) if name.startswith("benchbook")}
    upwards = {
        name
        for name in reached
        if name.count(".")
        and name.split(".")[1] in tree.FLOORS
        and name.split(".")[1] not in BELOW[floor] | {floor}
    }
    assert not upwards, f"{floor} may import {sorted(BELOW[floor])} only"


def rooms_below(module: str) -> set[str]:
    """Return the rooms that a module of `sites` may import from."""
    parts = module.split(".")[2:]
    if not parts or parts[0] not in ROOMS:
        return {"processes"} | ON_TOP.get(".".join(parts), set())
    beside = set().union(*(pair - {parts[0]} for pair in BESIDE if parts[0] in pair))
    below = set(ROOMS[: ROOMS.index(parts[0]) + 1]) - beside
    return below | EXCEPTIONS.get(module, set())


def rooms_reached(path: Path, module: str) -> set[str]:
    """Return the rooms of `sites` that a module imports from, itself included or not."""
    names = [name.split(".") for name in tree.imports(path.read_text(), module)]
    return {name[2] for name in names if name[:2] == ["benchbook", "sites"] and len(name) > 2} & set(ROOMS)


def test_sites_has_these_rooms_and_no_other():
    assert {path.parent.name for path in (tree.PACKAGE / "sites").glob("*/__init__.py")} == set(ROOMS)


@of_floors(("sites",))
def test_rooms_of_sites_import_down_only(path: Path):
    module = tree.dotted(path)
    upwards = rooms_reached(path, module) - rooms_below(module)
    assert not upwards, f"{module} may import from {sorted(rooms_below(module))} only"


def test_no_exception_between_rooms_is_left_that_nobody_needs():
    for module, rooms in EXCEPTIONS.items():
        path = tree.file_of(module)
        assert path is not None and rooms <= rooms_reached(path, module)


@of_floors(tree.FLOORS)
def test_imports_of_ours_exist(path: Path):
    module = f"{tree.dotted(path)}.__init__" if path.name == "__init__.py" else tree.dotted(path)
    ours = {node for node in tree.imports(path.read_text(), module) if node.startswith("benchbook.")}
    # The last part may be an attribute instead of a module; the part before it may not.
    assert not {name for name in ours if not tree.file_of(name) and not tree.file_of(name.rpartition(".")[0])}


@of_floors(PURE)
def test_pure_floors_have_no_connection_process_clock_or_luck(path: Path):
    parsed = ast.parse(path.read_text())
    found = {name for name in tree.imports(path.read_text()) if name.split(".")[0] in IMPURE}
    for node in ast.walk(parsed):
        if not isinstance(node, ast.Attribute):
            continue
        owner = ast.unparse(node.value)
        if node.attr in CLOCKS and owner.split(".")[-1] in {"datetime", "date", "Timestamp"}:
            found.add(f"{owner}.{node.attr}")
        if owner in {"random", "np.random", "numpy.random"} and node.attr not in SEEDED:
            found.add(f"{owner}.{node.attr}")
        if owner == "os" and node.attr in {
            "system",
            "popen",
            "fork",
            "getpid",
            "urandom",
            "environ",
            "getenv",
        }:
            found.add(f"os.{node.attr}")
    for node in ast.walk(parsed):
        if isinstance(node, ast.Call) and not node.args and not node.keywords:
            called = ast.unparse(node.func)
            if called.split(".")[-1] in {"Random", "default_rng"}:
                found.add(f"{called}() without a seed")
        if isinstance(node, ast.ImportFrom) and node.module in {"random", "numpy.random"}:
            found |= {f"{node.module}.{alias.name}" for alias in node.names if alias.name not in SEEDED}
    assert not found


def _without_words(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Count the lines of a function but those of its docstring."""
    said = (ast.get_docstring(node) or "").count("\n") + 1 if ast.get_docstring(node) else 0
    return node.end_lineno - node.lineno + 1 - said


@modules
def test_a_module_has_a_readable_size(path: Path):
    text = path.read_text()
    assert len(text.splitlines()) <= MOST_LINES
    long = {
        node.name: length
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (length := _without_words(node)) > MOST_OF_A_FUNCTION
    }
    assert not long


@modules
def test_a_module_says_what_it_is_for_in_one_line(path: Path):
    said = ast.get_docstring(ast.parse(path.read_text()))
    assert said and said.splitlines()[0].rstrip().endswith((".", ":", "?"))


@of_floors(tree.FLOORS)
def test_public_functions_are_typed_and_described(path: Path):
    wanting = []
    for node in ast.parse(path.read_text()).body:
        inside = node.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_") else []
        for function in [node, *inside]:
            if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) or function.name.startswith(
                "_"
            ):
                continue
            arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
            untyped = [a.arg for a in arguments if a.annotation is None and a.arg not in {"self", "cls"}]
            if untyped or function.returns is None:
                wanting.append(f"{function.name}: untyped {', '.join(untyped) or 'result'}")
            if function is node and ast.get_docstring(function) is None:
                wanting.append(f"{function.name}: no docstring")
    assert not wanting
