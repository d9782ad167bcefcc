"""Imports go down only; pure floors stay pure; a module has one reason to change."""

import ast
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import networkx as nx
import pytest

from tests.house import tree

BELOW = {
    "core": set(),
    "plan": {"core"},
    "sites": {"core"},
    "read": {"core"},
    "compare": {"core"},
    "measure": {"plan", "sites", "core"},
    "log_analysis": {"read", "compare", "core"},
    "show": {"log_analysis", "compare", "core"},
    "api": {"evidence", "plan", "read", "compare", "log_analysis", "show", "core"},
    "evidence": {"measure", "plan", "read", "compare", "show", "sites", "core"},
    "commands": {"evidence", "api", "measure", "plan", "read", "compare", "log_analysis", "show", "sites"}
    | {"core"},
}
# What each room of `sites` may import: all that stands above it here. What lies loose in `sites` is shared by
# all rooms and imports none but `processes`; `provision` alone stands on top.
ROOMS = ("descriptors", "processes", "agent", "machine", "tidb", "engines", "proxies", "topology", "local")
ROOMS += ("hosts", "external", "kube", "gke")
# Rooms that stand beside each other: none of these pairs may import one another.
BESIDE = (
    {"engines", "proxies"},
    {"local", "hosts", "external"},
    # Pods have the agent of hosts, and clients outside a cluster are hosts of an inventory.
    {"local", "external", "kube"},
    {"local", "hosts", "external", "gke"},
)
# The rooms of `core` and of `compare`, each above those before it; what lies loose in `core` stands on all.
ORDERED_ROOMS = {
    "core": ("util", "study", "artifacts", "published"),
    "compare": ("text", "stats", "meta", "bottlenecks", "claims", "inference"),
}
ON_TOP = {"provision": {"topology"}}
PURE = ("plan", "read", "compare")
# A connection, a process, a clock, a seed from nowhere.
IMPURE = {
    "asyncio", "fabric", "http", "multiprocessing", "paramiko", "psutil", "pymysql", "requests", "secrets",
    "signal", "socket", "sqlalchemy", "subprocess", "threading", "time", "urllib", "uuid",
}  # fmt: skip
CLOCKS = {"now", "utcnow", "today"}
OF_THE_SYSTEM = {"system", "popen", "fork", "getpid", "urandom", "environ", "getenv"}
SEEDED = {"Random", "default_rng", "Generator", "SeedSequence", "PCG64", "Philox"}
MOST_LINES, MOST_OF_A_FUNCTION = 500, 80
MOST_LITERAL_KEYS = 900

# One test for each rule looks at all modules and names every one that breaks it: as a test for each module
# there were two thousand, and they cost more than what they look at.


def of_floors(*names: str) -> list[Path]:
    """Return the modules of some floors."""
    return [path for path in tree.modules() if path.relative_to(tree.PACKAGE).parts[0] in names]


def imports(path: Path) -> frozenset[str]:
    """Return what a module of ours imports."""
    module = f"{tree.dotted(path)}.__init__" if path.name == "__init__.py" else tree.dotted(path)
    return tree.imports(tree.text(path), module)


def broken(found: Mapping[Path, object]) -> dict[str, object]:
    """Return what is wrong by the name of its module, without those of which nothing is wrong."""
    return {tree.dotted(path): wrong for path, wrong in found.items() if wrong}


def test_the_package_has_these_floors_and_no_other():
    folders = {path.parent.name for path in tree.PACKAGE.glob("*/__init__.py")}
    assert folders == set(BELOW)


def upwards(path: Path) -> set[str]:
    """Return what a module imports from floors above its own."""
    floor = path.relative_to(tree.PACKAGE).parts[0]
    reached = [name for name in imports(path) if name.startswith("benchbook") and name.count(".")]
    above = set(tree.FLOORS) - BELOW[floor] - {floor}
    return {name for name in reached if name.split(".")[1] in above}


def rooms_below(module: str) -> set[str]:
    """Return the rooms that a module of `sites` may import from."""
    parts = module.split(".")[2:]
    if not parts or parts[0] not in ROOMS:
        return {"processes"} | ON_TOP.get(".".join(parts), set())
    beside = set().union(*(pair - {parts[0]} for pair in BESIDE if parts[0] in pair))
    return set(ROOMS[: ROOMS.index(parts[0]) + 1]) - beside


def rooms_reached(path: Path, module: str) -> set[str]:
    """Return the rooms of `sites` that a module imports from, itself included or not."""
    names = [name.split(".") for name in tree.imports(tree.text(path), module)]
    return {name[2] for name in names if name[:2] == ["benchbook", "sites"] and len(name) > 2} & set(ROOMS)


def test_sites_has_these_rooms_and_no_other():
    assert {path.parent.name for path in (tree.PACKAGE / "sites").glob("*/__init__.py")} == set(ROOMS)


def test_rooms_of_sites_import_down_only():
    modules = {path: tree.dotted(path) for path in of_floors("sites")}
    wrong = {path: rooms_reached(path, name) - rooms_below(name) for path, name in modules.items()}
    assert not broken(wrong), "what a room may import stands above it in ROOMS"


def ordered_rooms_reached_upwards(path: Path) -> set[str]:
    """Modules in higher rooms of the same floor that a module of `core` or `compare` imports."""
    floor, *room = path.relative_to(tree.PACKAGE).parts[:-1]
    rooms = ORDERED_ROOMS[floor]
    if not room:
        return set()
    above = rooms[rooms.index(room[0]) + 1 :]
    prefixes = tuple(f"benchbook.{floor}.{name}" for name in above)
    return {name for name in imports(path) if name.startswith(prefixes)}


def test_core_and_compare_have_these_rooms_and_import_down_only():
    for floor, rooms in ORDERED_ROOMS.items():
        assert {path.parent.name for path in (tree.PACKAGE / floor).glob("*/__init__.py")} == set(rooms)
    assert not broken({path: ordered_rooms_reached_upwards(path) for path in of_floors(*ORDERED_ROOMS)})


def import_graph() -> nx.DiGraph:
    """Imports between modules of ours, those inside functions included."""
    graph = nx.DiGraph()
    for path in tree.modules():
        module = tree.dotted(path)
        for name in imports(path):
            target = name if tree.file_of(name) else name.rpartition(".")[0]
            if target.startswith("benchbook.") and tree.file_of(target) and target != module:
                graph.add_edge(module, target)
    return graph


def test_imports_make_no_circles():
    circles = [sorted(part) for part in nx.strongly_connected_components(import_graph()) if len(part) > 1]
    assert circles == []


def absent(path: Path) -> set[str]:
    """Return what a module imports of ours that is not there."""
    ours = {node for node in imports(path) if node.startswith("benchbook.")}
    # The last part may be an attribute instead of a module; the part before it may not.
    return {name for name in ours if not tree.file_of(name) and not tree.file_of(name.rpartition(".")[0])}


def impure(path: Path) -> set[str]:
    """Return the connections, processes, clocks and luck that a module of a pure floor reaches for."""
    parsed = tree.parsed(tree.text(path))
    found = {name for name in tree.imports(tree.text(path)) if name.split(".")[0] in IMPURE}
    for node in ast.walk(parsed):
        if isinstance(node, ast.Attribute):
            owner = ast.unparse(node.value)
            is_clock = node.attr in CLOCKS and owner.split(".")[-1] in {"datetime", "date", "Timestamp"}
            is_luck = owner in {"random", "np.random", "numpy.random"} and node.attr not in SEEDED
            if is_clock or is_luck or (owner == "os" and node.attr in OF_THE_SYSTEM):
                found.add(f"{owner}.{node.attr}")
        if isinstance(node, ast.Call) and not node.args and not node.keywords:
            called = ast.unparse(node.func)
            if called.split(".")[-1] in {"Random", "default_rng"}:
                found.add(f"{called}() without a seed")
        if isinstance(node, ast.ImportFrom) and node.module in {"random", "numpy.random"}:
            found |= {f"{node.module}.{alias.name}" for alias in node.names if alias.name not in SEEDED}
    return found


def _without_words(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Count the lines of a function but those of its docstring."""
    return node.end_lineno - node.lineno + 1 - len((ast.get_docstring(node) or "").splitlines())


def too_long(path: Path) -> dict[str, int]:
    """Return how many lines a module or its functions have, where these are too many."""
    text = tree.text(path)
    lines = {"the whole module": len(text.splitlines())}
    found = {
        node.name: length
        for node in ast.walk(tree.parsed(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (length := _without_words(node)) > MOST_OF_A_FUNCTION
    }
    return found | {name: count for name, count in lines.items() if count > MOST_LINES}


def without_purpose(path: Path) -> bool:
    """Say whether the first line of a module's docstring is no sentence."""
    words = ast.get_docstring(tree.parsed(tree.text(path)))
    return not words or not words.splitlines()[0].rstrip().endswith((".", ":", "?"))


def undescribed(path: Path) -> list[str]:
    """Return the public functions of a module without types or a docstring."""
    wanting = []
    for node in tree.parsed(tree.text(path)).body:
        inside = node.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_") else []
        functions = [
            one for one in (node, *inside) if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)
        ]
        for function in (one for one in functions if not one.name.startswith("_")):
            arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
            untyped = [a.arg for a in arguments if a.annotation is None and a.arg not in {"self", "cls"}]
            if untyped or function.returns is None:
                wanting.append(f"{function.name}: untyped {', '.join(untyped) or 'result'}")
            if function is node and ast.get_docstring(function) is None:
                wanting.append(f"{function.name}: no docstring")
    return wanting


EVERYWHERE = [(wrong, tree.FLOORS) for wrong in (upwards, absent, undescribed)]


@pytest.mark.parametrize(
    ("wrong", "floors"), [*EVERYWHERE, (impure, PURE), (too_long, None), (without_purpose, None)]
)
def test_no_module_is_wrong_in_this(wrong: Callable[[Path], object], floors: Sequence[str] | None):
    assert not broken({path: wrong(path) for path in (of_floors(*floors) if floors else tree.modules())})


def literal_keys(path: Path) -> int:
    """Count where a module has `record["key"]`: what is read or written so no type holds, no tool checks."""
    return sum(
        isinstance(node, ast.Subscript)
        and isinstance(node.slice, ast.Constant)
        and isinstance(node.slice.value, str)
        for node in ast.walk(tree.parsed(tree.text(path)))
    )


def test_records_are_types():
    found = {tree.dotted(path): literal_keys(path) for path in tree.modules()}
    most = sorted(found, key=found.__getitem__)[-8:]
    assert sum(found.values()) < MOST_LITERAL_KEYS, f"give records types, most of all in {most}"
