"""pyproject.toml, requirements.lock, environment.yml and what is installed: one set of versions."""

import importlib.util
import re
import sys
import tomllib
from importlib import metadata
from types import ModuleType

import pytest
from packaging.markers import Marker
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from ruamel.yaml import YAML

from tests.house import tree

PRESCRIBED = (
    *("jupyterlab", "papermill", "nbconvert", "pandas", "seaborn"),
    *("sqlalchemy", "pymysql", "fabric", "dvc"),
)
# Nothing can name it: another package takes it up where it is there.
NEVER_NAMED = {"ruamel-yaml-clib": "makes ruamel.yaml read in C, which `dvc` does all the time"}
# How the code shows that it uses a dependency, where that isn't an import or a command of the same name.
USED_AS = {
    "axe-playwright-python": r"from axe_playwright_python",
    "beautifulsoup4": r"^from bs4 import",
    "ipykernel": r'"name": "python3"',  # the kernel every notebook names
    "jupyterlab": r"jupyter lab",
    "papermill": r'"papermill"',
    "nbdime": r"git-nbdiffdriver",
    "pyarrow": r"(to|read)_parquet\(",
    "pytest-xdist": r"^from xdist\.scheduler import",
    "ruamel-yaml": r"from ruamel\.yaml import",
    "setuptools": r'build-backend = "setuptools',
}
LOCK = (tree.ROOT / "requirements.lock").read_text()
PYPROJECT = (tree.ROOT / "pyproject.toml").read_text()
PROJECT = tomllib.loads(PYPROJECT)
ENTRY = re.compile(
    r"^([a-z0-9][a-z0-9._-]*)==([^\s;]+)(?: ; (.*?))? \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)",
    re.M,
)


def tool() -> ModuleType:
    file = tree.ROOT / "tools" / "environment_yml.py"
    spec = importlib.util.spec_from_file_location("environment_yml", file)
    assert spec and spec.loader
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def entries() -> list[tuple[str, str, str]]:
    return [(name, version, marker) for name, version, marker, _ in ENTRY.findall(LOCK)]


def test_the_lock_has_every_dependency_once_pinned_and_hashed():
    assert ENTRY.sub("", LOCK).strip() == "", "a line is no pinned hashed package"
    names = [name for name, _, _ in entries()]
    assert sorted(set(names)) == sorted(names)
    assert set(tool().direct(PYPROJECT)) <= set(names)
    assert {*PRESCRIBED} <= {tool().canonical(asked) for asked in PROJECT["project"]["dependencies"]}


def test_environment_yml_is_what_the_lock_says():
    made = tool().environment(PYPROJECT, LOCK)
    assert (tree.ROOT / "environment.yml").read_text() == made, "make lock"


def test_conda_gets_the_same_versions():
    """Read independently of the tool that writes the file."""
    conda = YAML(typ="safe").load((tree.ROOT / "environment.yml").read_text())["dependencies"]
    by_pip = next(item["pip"] for item in conda if isinstance(item, dict))
    assert by_pip[0] == "-r requirements.lock"
    versions = {name: version for name, version, _ in entries()}
    named = dict(line.split("==") for line in by_pip[1:])
    assert named == {name: versions[name] for name in named}
    assert set(PRESCRIBED) <= set(named)
    python = next(item for item in conda if isinstance(item, str) and item.startswith("python="))
    assert python.removeprefix("python=") in SpecifierSet(PROJECT["project"]["requires-python"])


def test_set_up_accepts_the_same_pythons():
    script = (tree.ROOT / "tools" / "setup.sh").read_text()
    oldest, newest = re.findall(r"^oldest=(\d+) newest=(\d+)", script, re.M)[0]
    accepted = SpecifierSet(PROJECT["project"]["requires-python"])
    minors = [minor for minor in range(30) if f"3.{minor}.1" in accepted]
    assert minors == list(range(int(oldest), int(newest) + 1))


def test_what_is_installed_is_what_is_locked():
    there = {canonicalize_name(one.name): one.version for one in metadata.distributions()}
    locked = {name: version for name, version, marker in entries() if not marker or Marker(marker).evaluate()}
    wrong = {name: there.get(name) for name, version in locked.items() if there.get(name) != version}
    assert not wrong, f"make setup ({sys.executable})"


@pytest.mark.parametrize("name", tool().direct(PYPROJECT))
def test_every_dependency_is_used(name: str):
    """An import in our code, or a command in the Makefile, the tools or the pipeline."""
    imported = rf"^\s*\"?(import|from) {re.escape(name)}\b"
    called = rf"(^|[\s@/]){re.escape(name)}\s"
    suffixes = {".py": imported, ".ipynb": imported, ".sh": called, "": called, ".yaml": called}
    own = USED_AS.get(name)
    using = [
        path
        for path in tree.tracked()
        if path.name != "test_environment.py" and path.name != "environment.yml" and path.suffix != ".lock"
        if (pattern := own or suffixes.get(path.suffix))
        if re.search(pattern, tree.text_of(path) or "", re.M)
    ]
    if name in NEVER_NAMED:
        pytest.skip(NEVER_NAMED[name])
    assert using, f"{name} is asked for and never used"
