"""YAML read one way only: as DVC does (YAML 1.2); other readings by YAML 1.1 are refused."""

import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from benchbook.core.util.errors import InputErrors

MAX_BYTES = 1_000_000
MAX_NODES = 20_000
MAX_DEPTH = 50
TAG = "tag:yaml.org,2002:"
KINDS = ("map", "seq", "str", "int", "float", "bool", "null", "timestamp", "merge")
PLAIN_TAGS = {TAG + kind for kind in KINDS}

# Plain scalars that YAML 1.1 and 1.2 read as different values: each is refused by name, so that
# dvc.lock can never record one value while another tool uses another.
AMBIGUOUS = (
    (re.compile(r"[-+]?0[0-9_]+"), "leading zero, read as {octal} by YAML 1.1", "write it without the zero"),
    (re.compile(r"(?=.*_)(?=.*[0-9])[-+.0-9][-+.0-9_eE]*"), "underscore inside a number", "write {plain}"),
    (
        re.compile(r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?"),
        "read as minutes and seconds by YAML 1.1",
        "write plain seconds",
    ),
    (
        re.compile(r"yes|no|on|off|Yes|No|On|Off|YES|NO|ON|OFF|y|n|Y|N"),
        "a truth value in YAML 1.1, text in 1.2",
        "write true or false, or quote it",
    ),
    (
        re.compile(
            r"[-+]?([0-9]+[eE][-+]?|([0-9]+\.[0-9]*|\.[0-9]+)[eE])[0-9]+|[-+]\.[0-9]+([eE][-+][0-9]+)?"
        ),
        "a number in YAML 1.2, text in 1.1",
        "write {plain}",
    ),
    (re.compile(r"[-+]?0o[0-7_]+"), "octal in YAML 1.2, text in 1.1", "write the number without 0o"),
)


@dataclass(frozen=True)
class YamlDocument:
    """A parsed file: `data`, the line of each key path, and scalars that YAML 1.1 would read differently."""

    name: str
    data: dict[str, Any]
    lines: dict[tuple[str | int, ...], int]
    ambiguous: dict[tuple[str | int, ...], str]

    def where(self, path: tuple[str | int, ...]) -> str:
        """`FILE:LINE` of the nearest known part of a key path."""
        while path and path not in self.lines:
            path = path[:-1]
        return f"{self.name}:{self.lines.get(path, 1)}"

    def at(self, path: tuple[str | int, ...], text: str) -> str:
        """`FILE:LINE: path.to.key: text`."""
        return f"{self.where(path)}: {'.'.join(map(str, path))}: {text}"


def read_mapping(path: Path, name: str | None = None, is_ours: bool = False) -> YamlDocument:
    """Read a YAML mapping from a file; raise `InputErrors` naming file, line and remedy.

    A file that `is_ours`, written by a program, goes through the parser in C: it reads YAML 1.1, in a tenth
    of the time, and of what a program writes it reads the same. Limits of size don't bind it.
    """
    name = name or path.name
    try:
        raw = path.read_bytes()
    except OSError as error:
        why = f"cannot be read: {error.strerror}; check the name and its permissions"
        raise InputErrors([f"{name}: {why}"]) from None
    return parse_mapping(raw, name, is_ours)


# The pure parser takes half a second for a long source, and one command asks for a file many times.
@lru_cache(maxsize=128)
def parse_mapping(raw: bytes, name: str, is_ours: bool = False) -> YamlDocument:
    """Parse a YAML mapping, the same bytes to the same object; `InputErrors` with every mistake found."""
    if len(raw) > MAX_BYTES and not is_ours:
        raise InputErrors([f"{name}: {len(raw)} bytes: file too large; the limit is {MAX_BYTES} bytes"])
    if raw.startswith(b"\xef\xbb\xbf"):
        raise InputErrors([f"{name}:1: starts with a byte order mark; save it as UTF-8 without BOM"])
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line, remedy = raw[: error.start].count(b"\n") + 1, "save it as UTF-8 without BOM"
        raise InputErrors([f"{name}:{line}: byte {error.start} is not UTF-8; {remedy}"]) from None
    try:
        node = YAML(typ="safe", pure=not is_ours).compose(text)
    except (MarkedYAMLError, YAMLError, ValueError, RecursionError) as error:
        raise InputErrors([_syntax_error(error, name)]) from None
    if not isinstance(node, MappingNode):
        raise InputErrors([f"{name}:1: expected a mapping of keys to values; write `key: value` lines"])
    walk = _Walk(name, is_ours)
    walk.visit(node, ())
    if walk.errors:
        raise InputErrors(walk.errors)
    try:
        data = YAML(typ="safe", pure=True).constructor.construct_document(node)
    # A tag such as !!bool before any other text fails in as many ways as there are types.
    except Exception as error:
        raise InputErrors([_syntax_error(error, name)]) from None
    return YamlDocument(name, data, walk.lines, walk.ambiguous)


def _syntax_error(error: Exception, name: str) -> str:
    mark = getattr(error, "problem_mark", None)
    where = f"{name}:{mark.line + 1}:{mark.column + 1}" if mark is not None else name
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    if "\\t" in problem or "'\\t'" in str(error):
        problem = "a tab in the indentation"
    return f"{where}: not YAML: {problem}; indent with spaces and close every bracket and quote"


class _Walk:
    """Visit the node tree once: lines of keys, duplicate keys, tags, ambiguous scalars, expanded size."""

    def __init__(self, name: str, is_ours: bool) -> None:
        self.name, self.is_ours = name, is_ours
        self.lines: dict[tuple[str | int, ...], int] = {}
        self.errors: list[str] = []
        self.ambiguous: dict[tuple[str | int, ...], str] = {}
        self.count = 0

    def complain(self, node: Node, path: tuple[str | int, ...], text: str) -> None:
        self.errors.append(self.line(node, path, text))

    def line(self, node: Node, path: tuple[str | int, ...], text: str) -> str:
        key = ".".join(map(str, path)) or "(top)"
        return f"{self.name}:{node.start_mark.line + 1}: {key}: {text}"

    def visit(self, node: Node, path: tuple[str | int, ...]) -> None:
        self.count += 1
        if self.count > MAX_NODES and not self.is_ours:
            if self.count == MAX_NODES + 1:
                why = f"more than {MAX_NODES} values: file too large when expanded"
                self.complain(node, (), f"{why}; use fewer anchors")
            return
        if len(path) > MAX_DEPTH:
            self.complain(node, path[:1], f"nested deeper than {MAX_DEPTH} levels; an anchor may hold itself")
            return
        self.lines.setdefault(path, node.start_mark.line + 1)
        tag = str(node.ctag if hasattr(node, "ctag") else node.tag)
        if tag not in PLAIN_TAGS:
            self.complain(node, path, f"{tag.replace(TAG, '!!')}: tag not allowed; write a plain value")
        if isinstance(node, MappingNode):
            self.mapping(node, path)
        elif isinstance(node, SequenceNode):
            for index, child in enumerate(node.value):
                self.visit(child, (*path, index))
        elif isinstance(node, ScalarNode) and node.style is None:
            self.scalar(node, path)

    def mapping(self, node: MappingNode, path: tuple[str | int, ...]) -> None:
        first: dict[str, int] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, ScalarNode):
                self.complain(key_node, path, "a key must be plain text; write `key: value`")
                continue
            key, line = key_node.value, key_node.start_mark.line + 1
            place = (*path, key)
            if key in first:
                self.complain(key_node, place, f"duplicate key, first on line {first[key]}; keep one of them")
            first.setdefault(key, line)
            self.visit(value_node, place)
            self.lines[place] = line

    def scalar(self, node: ScalarNode, path: tuple[str | int, ...]) -> None:
        value = node.value
        for pattern, wrong, remedy in AMBIGUOUS:
            if pattern.fullmatch(value):
                digits = value.replace("_", "").lstrip("+-")
                octal = int(digits, 8) if digits.isdigit() and not set(digits) & set("89") else "text"
                text = f"{value}: {wrong.format(octal=octal)}; {remedy.format(plain=_plain_number(value))}"
                self.ambiguous[path] = self.line(node, path, text)
                return


def _plain_number(number: str) -> str:
    """Write a number as all readers of YAML read it: 1e6 is 1000000, 1_000 is 1000."""
    try:
        exact = Decimal(number.replace("_", "")).normalize()
    except InvalidOperation:
        return "the number out"
    return f"{exact:f}" if abs(exact.adjusted()) < 30 else "the number out"
