"""Words that made readers decode only get fewer in texts, and a class name stands once."""

import ast
import io
import re
import tokenize

from tests.house import tree

IDIOM = re.compile(r"\b(told|said|whoever|nobody|somebody|of ours|anew|begun)\b", re.IGNORECASE)
# To find where comments are takes longer than all the rest, and few lines have one of the words after a `#`.
PERHAPS = re.compile(f"#.*{IDIOM.pattern}", re.IGNORECASE)
# As counted on 2026-11-22. Take it down with what you rewrite; it never goes up.
MOST = 140
# None is left in documents and notebooks; the room is for what is written at the same time elsewhere.
MOST_IN_PROSE = 4


def texts(source: str) -> list[tuple[int, str]]:
    """Return every string and comment of a module with its line; names of code are left out."""
    found = [
        (node.lineno, node.value)
        for node in ast.walk(tree.parsed(source))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    tokens = tokenize.generate_tokens(io.StringIO(source).readline) if PERHAPS.search(source) else ()
    return found + [(one.start[0], one.string) for one in tokens if one.type == tokenize.COMMENT]


def test_private_words_in_texts_only_get_fewer():
    found = [
        f"{file.relative_to(tree.PACKAGE)}:{line}: {word}"
        for file in sorted(tree.PACKAGE.rglob("*.py"))
        for line, text in texts(file.read_text())
        for word in IDIOM.findall(text)
    ]
    assert len(found) <= MOST, "\n".join(["write subject, verb and number instead of:", *found])


def test_notebooks_and_documents_are_free_of_them():
    words = []
    for name in tree.tracked():
        if name.suffix == ".md" and name.name != "CHANGELOG.md":
            text = (tree.ROOT / name).read_text()
        elif name.suffix == ".ipynb":
            cells = tree.cells(tree.ROOT / name)
            text = "\n".join(cell["source"] for cell in cells if cell["cell_type"] == "markdown")
        else:
            continue
        words += [f"{name}: {word}" for word in IDIOM.findall(text)]
    assert len(words) <= MOST_IN_PROSE, words


def test_a_class_name_stands_once():
    modules: dict[str, list[str]] = {}
    for file in tree.modules():
        for node in ast.walk(tree.parsed(tree.text(file))):
            if isinstance(node, ast.ClassDef):
                modules.setdefault(node.name, []).append(tree.dotted(file))
    assert not {name: places for name, places in modules.items() if len(places) > 1}
