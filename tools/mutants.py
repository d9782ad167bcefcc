"""Try whether the tests of the pure floors notice a broken line: draw places, break one at a time.

    python tools/mutants.py SEED HOW_MANY [NUMBER ...]

A place is a comparison, number, operator, condition, result or call in `measure`, `read`, `compare`, `plan`,
`show` and what the terminal is told; no line is drawn twice. Each mutant is tried against the tests of its
floor that need no server, then those above that show its words, in a copy of the files that are committed or
would be; with NUMBERs only those of the draw. A test that fails without any mutant is named and left out. The
last line has the counts.
"""

from __future__ import annotations

import ast
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("measure", "read", "compare", "plan", "show", "commands")
# Of this one what says the answer in a terminal.
FILES = {"commands": "terminal_summary.py"}
# Tests of a floor above that hold what a folder or module says.
ABOVE = {"compare/text": "tests/show", "show/logs_page.py": "tests/log_analysis"}
MARKS = "not server and not slow and not browser and not faults and not alone"
EXAMPLES = "tests/house/test_docs.py::test_examples_in_docstrings_come_out_as_they_say"
# Of a processor. Tests wait for others that hold the machine alone.
LIMIT_S, PATIENCE_S = 240, 900.0
BOUND = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
TURNED = {
    ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
OTHER = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Div,
    ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
# Types and the way a text is written are no behaviour that a test should hold.
UNSEEN = ("annotation", "returns", "format_spec")


@dataclass(frozen=True)
class Mutant:
    """A place in a file, by the number of its node, and what is done to it."""

    file: str
    node: int
    kind: str
    part: int


def nodes(tree: ast.AST) -> Iterator[tuple[ast.AST, str, ast.AST]]:
    """Yield every node with the field and the node that hold it."""
    for field, value in ast.iter_fields(tree):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and field not in UNSEEN:
                yield child, field, tree
                yield from nodes(child)


def kinds(node: ast.AST, parent: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield what can be done to a node."""
    match node:
        case ast.Compare():
            for part, which in enumerate(map(type, node.ops)):
                yield from [("bound", part)] * (which in BOUND) + [("turned", part)] * (which in TURNED)
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            yield from (("more", 0), ("less", 0))
        case ast.BinOp() | ast.AugAssign() if type(node.op) in OTHER:
            yield "operator", 0
        case ast.BoolOp():
            yield "and or", 0
        case ast.UnaryOp(op=ast.Not()):
            yield "not", 0
        case ast.If() | ast.IfExp() | ast.While():
            yield "condition", 0
        case ast.comprehension(ifs=[_, *_]):
            yield "filter", 0
        case ast.Return(value=ast.expr() as value) if not _is_none(value):
            yield "result", 0
        case ast.Slice():
            for part, end in enumerate((node.lower, node.upper)):
                yield from [("end", part)] * (end is not None and not isinstance(end, ast.Constant))
        case ast.Expr(value=ast.Call() | ast.Yield() | ast.YieldFrom()) if not isinstance(parent, ast.Module):
            yield "dropped", 0


def _is_none(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def mutated(text: str, one: Mutant) -> tuple[str, int, str]:
    """Return a file's text with a mutant in it, its line, and what was there and is there now."""
    tree = ast.parse(text)
    node, field, parent = list(nodes(tree))[one.node]
    near = node.ifs[0] if isinstance(node, ast.comprehension) else node
    shown = near.test if isinstance(near, ast.If | ast.While) else near
    was, line = ast.unparse(shown), near.lineno
    new = _change(node, one)
    if new is not node:
        held = getattr(parent, field)
        several = [new if each is node else each for each in held] if isinstance(held, list) else new
        setattr(parent, field, several)
    ast.fix_missing_locations(tree)
    now = node.ifs[0] if isinstance(node, ast.comprehension) else new
    now = now.test if isinstance(now, ast.If | ast.While) else now
    return ast.unparse(tree), line, " ".join(f"{was} => {ast.unparse(now)}".split())


def _change(node: ast.AST, one: Mutant) -> ast.AST:
    """Change a node in place, or return another one for it."""
    match one.kind:
        case "bound" | "turned":
            table = BOUND if one.kind == "bound" else TURNED
            node.ops[one.part] = table[type(node.ops[one.part])]()
        case "more" | "less":
            step = 1 if one.kind == "more" else -1
            is_share = isinstance(node.value, float) and 0 < abs(node.value) < 1
            node.value = node.value * 2.0**step if is_share else node.value + step
        case "operator":
            node.op = OTHER[type(node.op)]()
        case "and or":
            node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        case "not":
            return node.operand
        case "condition":
            node.test = ast.UnaryOp(ast.Not(), node.test)
        case "filter":
            node.ifs = [ast.UnaryOp(ast.Not(), node.ifs[0]), *node.ifs[1:]]
        case "result":
            node.value = ast.Constant(None)
        case "end":
            name = ("lower", "upper")[one.part]
            setattr(node, name, ast.BinOp(getattr(node, name), ast.Add(), ast.Constant(1)))
        case "dropped":
            return ast.Pass()
    return node


def drawn(seed: int, many: int) -> tuple[list[Mutant], int]:
    """Draw mutants, each in a line of its own; return them and how many there are to draw from."""
    files = [file for room in ROOMS for file in modules(ROOT, room)]
    found = [
        Mutant(str(file.relative_to(ROOT)), number, *what)
        for file in files
        for number, (node, _, parent) in enumerate(nodes(ast.parse(file.read_text())))
        for what in kinds(node, parent)
    ]
    of_all = len(found)
    random.Random(seed).shuffle(found)
    chosen: dict[tuple[str, int], Mutant] = {}
    for one in found:
        if len(chosen) < many:
            chosen.setdefault((one.file, mutated((ROOT / one.file).read_text(), one)[1]), one)
    return list(chosen.values()), of_all


def copy(into: Path) -> None:
    """Copy what is committed or would be; the floors as `ast` writes them, as mutants are."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (into / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, into / name)
    for room in ROOMS:
        for file in modules(into, room):
            write(file, ast.unparse(ast.parse(file.read_text())))


def modules(root: Path, room: str) -> list[Path]:
    """Modules of a floor from which places are drawn, sorted."""
    return sorted((root / "lib/benchbook" / room).rglob(FILES.get(room, "*.py")))


def write(file: Path, text: str) -> None:
    """Write a module; what Python kept of the one before may have the same second and size."""
    file.write_text(text)
    for kept in file.parent.glob(f"__pycache__/{file.stem}.*"):
        kept.unlink()


def tested(tree: Path, tests: list[str], log: Path, more: list[str]) -> int:
    """Run tests in a fork of this process, which has imported the libraries; return the exit code."""
    if (pid := os.fork()) == 0:
        os.setsid()
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for stream in (1, 2):
            os.dup2(out, stream)
        code = 99
        try:
            os.chdir(tree)
            resource.setrlimit(resource.RLIMIT_CPU, (LIMIT_S, LIMIT_S))
            sys.path[:0] = [str(tree), str(tree / "lib")]
            own = ["-q", "-n", "0", "-p", "no:cacheprovider", "-m", MARKS, "--rootdir", str(tree)]
            code = int(pytest.main([*own, *more, *tests]))
        finally:
            sys.stdout.flush()
            os._exit(code)
    deadline = time.monotonic() + PATIENCE_S
    while not (ended := os.waitpid(pid, os.WNOHANG))[0]:
        if time.monotonic() > deadline:
            os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return -signal.SIGKILL
        time.sleep(0.02)
    return os.waitstatus_to_exitcode(ended[1])


def failed(log: Path) -> list[str]:
    """Return the tests and files that failed, in pytest's words."""
    return re.findall(r"^(?:FAILED|ERROR) (.*?)(?: - .*)?$", log.read_text("utf-8", "replace"), re.MULTILINE)


def tests_of(tree: Path, room: str) -> list[str]:
    """Test files of a floor; where one module of it is drawn from, those that name this module."""
    found = (tree / "tests" if room in FILES else tree / "tests" / room).rglob("test_*.py")
    word = Path(FILES.get(room, "")).stem
    return sorted(str(path.relative_to(tree)) for path in found if word in path.read_text())


def noticed(tree: Path, file: str, log: Path, more: list[str]) -> int:
    """Run the tests of a floor until one fails, first those named after a module; return the exit code."""
    _, _, room, *_ = file.split("/")
    every, module = tests_of(tree, room), Path(file).stem
    own = [name for name in every if Path(name).stem.startswith(f"test_{module}")]
    above = [tests for part, tests in ABOVE.items() if f"benchbook/{part}" in file]
    for tests in ([*own, EXAMPLES], [name for name in every if name not in own], above):
        # 5: none of these is a test without a server.
        if tests and (code := tested(tree, tests, log, ["-x", *more])) not in (0, 5):
            return code
    return 0


def main(seed: int, many: int, *numbers: int) -> None:
    """Draw, try and count."""
    chosen, of_all = drawn(seed, many)
    asked = [number for number in range(len(chosen)) if not numbers or number in numbers]
    killed: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as scratch:
        tree, log = Path(scratch) / "tree", Path(scratch) / "log"
        copy(tree)
        os.environ["BENCHBOOK_ROOT"] = str(tree)
        rooms = {number: chosen[number].file.split("/")[2] for number in asked}
        left_out: dict[str, list[str]] = {}
        for room in sorted(set(rooms.values())):
            if (code := tested(tree, tests_of(tree, room), log, [])) not in (0, 1):
                sys.exit(f"{room}: its tests end with {code} without a mutant: {log.read_text()[-2000:]}")
            left_out[room] = failed(log)
            print(f"{room}: without a mutant {left_out[room] or 'no test'} fails", flush=True)
        for number in asked:
            one, room = chosen[number], rooms[number]
            path, began = tree / one.file, time.monotonic()
            was, (made, line, told) = path.read_text(), mutated((ROOT / one.file).read_text(), one)
            write(path, made)
            skip = [word for name in left_out[room] for word in ("--deselect", name)]
            code = noticed(tree, one.file, log, skip)
            write(path, was)
            killed[room] += code != 0
            by = (failed(log) or [f"exit code {code}"])[-1] if code else "SURVIVED"
            where = f"{one.file.removeprefix('lib/benchbook/')}:{line}"
            print(f"{number} {where} {told[:160]} | {by} {time.monotonic() - began:.1f} s", flush=True)
    each = ", ".join(f"{room} {killed[room]} of {count}" for room, count in Counter(rooms.values()).items())
    print(f"noticed {killed.total()} of {len(asked)} ({each}); drawn from {of_all} places")


if __name__ == "__main__":
    # Pure tests on one core: threads of libraries would only wait for each other, and a fork must have none.
    os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    import hypothesis  # noqa: F401
    import pandas  # noqa: F401
    import pyarrow.parquet  # noqa: F401
    import pydantic  # noqa: F401
    import pytest
    import ruamel.yaml  # noqa: F401
    import scipy.optimize
    import scipy.stats  # noqa: F401

    main(*map(int, sys.argv[1:]))
