"""What git holds: nothing that belongs to one machine, to one day, or to nobody else."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.house import tree

# Raw logs, recorded sessions and published documents are quoted as they came.
QUOTED = re.compile(r"data/published/|data/record/[^/]+/\d{8}T|tests/data/|requirements\.lock")
NOWHERE = {
    "work left in comments": re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b"),
    # /home/me is nobody's: examples may use it.
    "a path of one machine": re.compile(r"(?<![\w.$}~-])/(work|root|home/(?!me\b)[a-z]\w*|Users/\w+)(/|\b)"),
    "a package registry": re.compile(
        r"(pypi|pythonhosted)\.org|pkg\.dev|registry\.npmjs|proxy\.golang\.org|(deb|security)\.debian\.org"
        r"|--(extra-)?index-url"
    ),
}
SECRETS = {
    "a private key": re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----"),
    "a cloud key": re.compile(r"\b(AKIA[0-9A-Z]{16}|AIza[\w-]{35}|gh[pousr]_\w{36}|xox[abprs]-[\w-]{10,})"),
    "a password in an argument": re.compile(r"--(mysql-)?password=[^\s\"'{<$*…|\\]"),
    "a password in a URL": re.compile(r"\w://[^\s/:@\"'{}<>]+:[^\s/@\"'{}<>$*]{3,}@[\w.-]+"),
}
LARGEST_BYTES = 1_000_000


def texts() -> list[tuple[str, str]]:
    found = [(str(name), tree.text_of(name)) for name in tree.tracked()]
    return [(name, text) for name, text in found if text is not None]


def lines_with(pattern: re.Pattern[str], quoted_too: bool = False) -> list[str]:
    return [
        f"{name}:{number}: {match.group(0)}"
        for name, text in texts()
        # Few texts have a match, and to look at each of all lines takes several times as long.
        if (quoted_too or not QUOTED.match(name)) and pattern.search(text)
        for number, line in enumerate(text.splitlines(), 1)
        if (match := pattern.search(line))
    ]


@pytest.mark.parametrize("what", NOWHERE)
def test_nothing_of_this_is_in_git(what: str):
    assert not lines_with(NOWHERE[what])


def test_no_package_registry_is_named_in_the_lock():
    assert not [line for line in (tree.ROOT / "requirements.lock").read_text().splitlines() if "://" in line]


@pytest.mark.parametrize("what", SECRETS)
def test_no_secret(what: str):
    assert not lines_with(SECRETS[what], quoted_too=True)


def test_no_large_file():
    files = [tree.ROOT / name for name in tree.tracked()]
    assert not [str(file) for file in files if file.is_file() and file.stat().st_size > LARGEST_BYTES]


def test_source_is_never_ignored():
    ours = ["lib/benchbook/core/new.py", "tests/core/test_new.py", "notebooks/08_new.ipynb"]
    ours += ["studies/new.yaml", "studies/network/new.yaml"]
    ours += ["data/published/new/table.csv", "dvc.lock", ".dvc/config", "schemas/new.json"]
    assert not [name for name in ours if tree.is_ignored(name)]


def test_what_the_pipeline_makes_is_ignored():
    """DVC then adds nothing to any .gitignore of its own."""
    made = ["data/quick/findings.json", "data/quick/raw/run/sysbench.out", "data/audit/x/audit.json"]
    made += ["reports/quick.html", ".dvc/cache/files", ".dvc/tmp/lock", ".venv/bin/python"]
    made += ["lib/benchbook/core/__pycache__/paths.pyc", "notebooks/.ipynb_checkpoints/x.ipynb"]
    assert not [name for name in made if not tree.is_ignored(name)]


def test_nothing_tracked_is_ignored():
    assert not tree.shell_lines("git", "ls-files", "-ci", "--exclude-standard")


def test_dvc_does_not_hash_what_python_and_jupyter_leave():
    patterns = (tree.ROOT / ".dvcignore").read_text().split()
    assert {"__pycache__", ".ipynb_checkpoints"} <= set(patterns)


def test_the_lock_of_dvc_is_not_in_git_and_can_t_be_ignored(tmp_path: Path):
    """In git it would be untrue after the next commit; the questions and answers say what to do with it."""
    from dvc.dvcfile import FileIsGitIgnored, Lockfile
    from dvc.repo import Repo

    assert "dvc.lock" not in map(str, tree.tracked())
    assert "'dvc.lock' is git-ignored" in (tree.ROOT / "docs" / "record.md").read_text(encoding="utf-8")
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    (tmp_path / ".gitignore").write_text("/dvc.lock\n")
    refused = pytest.raises(FileIsGitIgnored, match=r"dvc\.lock' is git-ignored")
    with Repo.init(str(tmp_path)) as repo, refused:
        Lockfile(repo, str(tmp_path / "dvc.lock")).load()
