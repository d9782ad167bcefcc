"""README, CONTRIBUTING and CHANGELOG say what is there, name everything that is, and examples come out so."""

import doctest
import re
from importlib import import_module
from pathlib import Path

import pytest
from pydantic import BaseModel

from benchbook.core.study.params import Params
from benchbook.core.study.study import StudySpec
from benchbook.core.study.study_base import key_descriptions
from tests.house import tree

PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
WORDS = (
    *("study", "arm", "baseline", "treatment", "site", "endpoint", "workload", "cell", "block", "run"),
    *("interval", "warm-up", "discard", "sample", "effect", "claim", "verdict", "facts", "source"),
)
# Tools of the editor and of git: they need no line in a tree that is made for readers.
UNLISTED = {".ci", ".dvc", ".github", ".dvcignore", ".gitattributes", ".gitignore", "dvc.lock", "LICENSE"}

pages = pytest.mark.parametrize("name", PAGES)


def page(name: str) -> str:
    return (tree.ROOT / name).read_text(encoding="utf-8")


def section(name: str, word: str) -> str:
    """Return the part of a page under the first heading that has one of some words: "tree|house"."""
    heading = rf"^## [^\n]*\b(?:{word})\b[^\n]*\n"
    found = re.search(rf"{heading}(.*?)(?=^## |\Z)", page(name), re.M | re.S | re.I)
    assert found, f"{name} has no heading about {word}"
    return found.group(1)


@pages
def test_make_targets_named_in_a_page_exist(name: str):
    named = set(re.findall(r"(?<![\w-])make ([a-z][a-z-]*)\b", "\n".join(_code(page(name)))))
    assert named <= tree.make_targets()


def _code(text: str) -> list[str]:
    return re.findall(r"^```\w*\n(.*?)^```", text, re.M | re.S) + re.findall(r"`([^`\n]+)`", text)


def test_readme_shows_the_two_commands_first():
    commands, *_ = re.findall(r"^```sh\n(.*?)^```", page("README.md"), re.M | re.S)
    assert "make repro" in commands and "make test" in commands


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_no_line_is_too_long_to_read(name: str):
    assert max(map(len, page(name).splitlines())) <= 200


@pages
def test_files_named_in_a_page_exist(name: str):
    """Names in capitals or with a placeholder are examples: `studies/NAME.yaml`."""
    tops = ("lib/", "notebooks/", "studies/", "tests/", "tools/", "data/published/", "schemas/", "docs/")
    named = {word for code in re.findall(r"`([^`\n]+)`", page(name)) for word in code.split()}
    named = {word.partition(":")[0].rstrip(".,;") for word in named if word.startswith(tops)}
    given = {word for word in named if not re.search(r"[A-Z]{3}|[<>${}*…]|\bnew\b", word)}
    assert not [word for word in given if not (tree.ROOT / word).exists()]


def listed_tree() -> list[Path]:
    """Return the paths of the tree in README: a name and words about it, or several files on a line."""
    block = re.search(r"^```\w*\n(.*?)^```", section("README.md", "tree"), re.M | re.S)
    assert block, "the tree is a code block"
    found: list[Path] = []
    folders: list[tuple[int, Path]] = []
    for line in block.group(1).splitlines():
        bare = line.lstrip(" │├└─")
        depth = len(line) - len(bare)
        folders = [(other, path) for other, path in folders if other < depth]
        above = folders[-1][1] if folders else Path()
        names = bare.split()
        are_files = all(re.fullmatch(r"[\w-]*\.\w+|[A-Z]\w+", name) for name in names)
        found += [above / name for name in (names if are_files else names[:1])]
        if names and names[0].endswith("/"):
            folders.append((depth, found[-1]))
    return found


def test_the_tree_in_readme_is_the_tree():
    listed = listed_tree()
    # data/ and reports/ are made by the pipeline, so a fresh clone may not have them yet.
    made = {"data", "reports"}
    assert not [path for path in listed if path.parts[0] not in made and not (tree.ROOT / path).exists()]
    tops = {name.parts[0] for name in tree.tracked()} - UNLISTED
    assert not tops - {path.parts[0] for path in listed}
    floors = {Path("lib/benchbook") / floor for floor in tree.FLOORS}
    assert not floors - set(listed)


def test_the_glossary_has_every_word():
    rows = re.findall(r"^(?:\||[-*])\s*([^|:—–]+)", section("README.md", "words|glossary"), re.M)
    terms = {term.strip(" *`_") for row in rows for term in re.split(r",|/| and ", row.lower())}
    assert not set(WORDS) - terms


def keys(model: type[BaseModel], prefix: str = "") -> list[tuple[str, str | None]]:
    """Return every key of a model with what is said about it, models inside included."""
    found = []
    for name, info in model.model_fields.items():
        found.append((f"{prefix}{name}", key_descriptions(model).get(name)))
        for inside in _models(info.annotation):
            found += keys(inside, f"{prefix}{name}.")
    return found


def _models(annotation: object) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [one for part in getattr(annotation, "__args__", ()) for one in _models(part)]


def test_every_parameter_is_documented():
    found = keys(StudySpec) + keys(Params, "params.yaml: ")
    assert not [key for key, said in found if not said or not said.strip().endswith((".", ";", ")"))]


def test_every_parameter_with_a_unit_says_it():
    units = {"_s": "second", "_ms": "millisecond", "_pct": "percent", "_mib": "MiB"}
    silent = [
        key
        for key, said in keys(StudySpec) + keys(Params)
        for suffix, unit in units.items()
        if key.endswith(suffix) and unit.lower() not in (said or "").lower()
    ]
    assert not silent


def test_the_changelog_is_one_that_readers_know():
    text = page("CHANGELOG.md")
    assert re.search(r"^## \[?Unreleased\]?|^## \[?\d+\.\d+\.\d+", text, re.M)
    kinds = set(re.findall(r"^### (\w+)", text, re.M))
    assert kinds <= {"Results", "Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_the_index_leads_to_every_document():
    listed = set(re.findall(r"\]\(([\w-]+\.md)\)", page("docs/README.md")))
    assert {file.name for file in documents()} - {"README.md"} <= listed


def documents() -> list[Path]:
    return sorted((tree.ROOT / "docs").glob("*.md"))


def test_the_documents_are_short_enough_to_be_read():
    """One page a question, and nothing on two of them: with 196 kB nobody could say where a thing stood."""
    assert len((tree.ROOT / "CONTRIBUTING.md").read_bytes()) <= 6_000
    assert len((tree.ROOT / "CHANGELOG.md").read_bytes()) <= 10_000
    assert sum(len(file.read_bytes()) for file in documents()) <= 100 * 1024


def anchors(text: str) -> set[str]:
    """Return the anchors that GitHub gives the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", text, re.M)
    plain = (re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower() for heading in headings)
    return {re.sub(r"[^\w -]", "", heading).replace(" ", "-") for heading in plain}


def test_links_of_documents_lead_to_a_page_and_its_heading():
    dead = []
    for file in [*documents(), *(tree.ROOT / name for name in (*PAGES, "studies/README.md"))]:
        text = re.sub(r"<img[^>]+src=\"([^\"]+)\"", r"](\1)", file.read_text(encoding="utf-8"))
        for link, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)", text):
            leads = (file.parent / link).resolve() if link else file
            is_there = "://" in link or (
                leads.exists() and (not anchor or anchor in anchors(leads.read_text(encoding="utf-8")))
            )
            dead += [] if is_there else [f"{file.name}: {link}#{anchor}"]
    assert not dead


def test_examples_in_docstrings_come_out_as_they_say():
    named = [tree.dotted(path) for path in tree.modules() if ">>> " in tree.text(path)]
    results = {name: doctest.testmod(import_module(name)) for name in named}
    assert results and not {name: one for name, one in results.items() if one.failed or not one.attempted}
