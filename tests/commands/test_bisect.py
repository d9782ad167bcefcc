"""The search for a slower commit: by answers that are known, in a real clone, and with a real server."""

import re
import shutil
import subprocess
from functools import partial
from pathlib import Path

import pytest

from benchbook.commands import bisect, cli, commit_builds, gate
from benchbook.core.study.study_sections import Build
from benchbook.core.util import paths
from benchbook.core.util.errors import BenchbookError, InputErrors
from benchbook.sites.engines import packages
from tests.goldens import assert_golden

COMMITS = [f"{number:040x}" for number in range(1, 17)]
SERVER = '#!/bin/sh\n# {about}\nLD_PRELOAD="${{0%/*}}/receive.so" exec /usr/sbin/mariadbd "$@"\n'
# A server takes what a client sent by `recv`; so many microseconds more of processor time each time.
RECEIVE = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/socket.h>
#include <time.h>
ssize_t recv(int socket, void *into, size_t length, int flags)
{
    static ssize_t (*real)(int, void *, size_t, int);
    struct timespec begin, now;
    if (!real) real = dlsym(RTLD_NEXT, "recv");
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - begin.tv_sec) * 1000000000L + now.tv_nsec - begin.tv_nsec < BURN_US * 1000L);
    return real(socket, into, length, flags);
}
"""
# What lies above a server's program is its base: messages, and what makes a data folder.
BUILD = (
    "mkdir out out/sbin && cp server.sh out/sbin/mariadbd && ln -s /usr/share /usr/bin out/"
    " && gcc -shared -fPIC -o out/sbin/receive.so receive.c -ldl"
)


def search(
    slow_from: int, unbuilt: tuple[int, ...] = (), undecided: tuple[int, ...] = (), half: float = 0.025
) -> bisect.Search:
    """Return a search over sixteen commits, the first slower one by its place from 0 on."""

    def ask(commit: str, minutes: float, margin: float):
        place = COMMITS.index(commit)
        asked.append((place, minutes))
        margins.append(margin)
        if place in unbuilt:
            raise packages.NotBuiltError("no compiler")
        if place in undecided:
            return bisect.GateAnswer("undecided", "-2 %")
        told = bisect.GateAnswer("slower", "-5 %", half)
        return told if place >= slow_from else bisect.GateAnswer("not slower", "0 %")

    asked: list[tuple[int, float]] = []
    margins: list[float] = []
    made = bisect.Search(COMMITS, ask, 5.0, 0.03)
    made.asked, made.margins = asked, margins  # type: ignore[attr-defined]
    return made


@pytest.mark.parametrize("slow_from", range(16))
def test_the_first_slower_commit_of_sixteen_takes_five_gates(slow_from: int):
    made = search(slow_from)
    assert bisect.narrow_commits(made) == [COMMITS[slow_from]]
    # The last one, and then log2(16) of those before it.
    assert len(made.asked) <= 5


def test_commits_that_cannot_be_built_stay_in_question():
    assert bisect.narrow_commits(search(9, unbuilt=(7, 8))) == COMMITS[7:10]
    assert bisect.narrow_commits(search(12, unbuilt=(7, 8))) == [COMMITS[12]]


def test_an_undecided_gate_gets_more_minutes_and_then_ends_the_search():
    made = search(12, undecided=(7,))
    assert bisect.narrow_commits(made) == COMMITS
    assert made.asked == [(15, 5.0), (7, 5.0), (7, 10.0), (7, 20.0)]


@pytest.mark.parametrize(("half", "then"), [(0.025, 0.03), (0.17, 0.17)])
def test_the_others_are_asked_for_half_of_what_the_bad_commit_lost(half: float, then: float):
    """A gate that tells 17 % from nothing is short where one of 3 % stays undecided for long."""
    made = search(11, half=half)
    assert bisect.narrow_commits(made) == [COMMITS[11]]
    assert made.margins == [0.03, *[then] * (len(made.asked) - 1)]


def test_a_bad_commit_that_is_not_slower_leaves_nothing_to_look_for():
    assert bisect.narrow_commits(search(99)) == []
    with pytest.raises(BenchbookError, match="0000000000 is undecided"):
        bisect.narrow_commits(search(99, undecided=(15,)))


needs_a_compiler = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """Make a clone of seventeen commits, of which the twelfth makes the server slower."""
    folder = tmp_path / "server"
    folder.mkdir()

    def git(*words: str) -> None:
        names = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run(["git", "-C", str(folder), *names, *words], check=True, capture_output=True)

    git("init", "-q", "-b", "main")
    for number in range(17):
        (folder / "server.sh").write_text(SERVER.format(about=f"change {number}"))
        (folder / "server.sh").chmod(0o755)
        burnt = 6 if number >= 11 else 0
        (folder / "receive.c").write_text(RECEIVE.replace("BURN_US", str(burnt)))
        git("add", "server.sh", "receive.c")
        git("commit", "-q", "-m", f"Change {number}")
    return folder


@needs_a_compiler
def test_a_commit_is_built_once_and_says_why_it_cannot_be(repo: Path, tmp_path: Path):
    head = commit_builds.resolve_commit(str(repo), "main", "--bad")
    asked = Build(repo=str(repo), ref="main", command=BUILD, binary="out/sbin/mariadbd")
    made = packages.build_commit(repo, tmp_path, asked, head)
    assert "change 16" in made.read_text()
    made.write_text("as it was built")
    again = packages.build_commit(repo, tmp_path, asked, head)
    assert again.read_text() == "as it was built"
    with pytest.raises(packages.NotBuiltError, match="`echo no; exit 3` ended with 3: no"):
        packages.build_commit(repo, tmp_path, asked.model_copy(update={"command": "echo no; exit 3"}), head)
    with pytest.raises(InputErrors, match=r"^--good: nowhere: "):
        commit_builds.resolve_commit(str(repo), "nowhere", "--good")


@needs_a_compiler
def test_a_search_that_ends_in_the_middle_leaves_nothing_in_the_clone(repo: Path):
    asked = Build(repo=str(repo), ref="main", command=BUILD, binary="out/sbin/mariadbd")
    with pytest.raises(KeyboardInterrupt), commit_builds.open_builder(asked, None) as build:
        made = build(commit_builds.resolve_commit(str(repo), "main", "--bad"))
        raise KeyboardInterrupt
    listed = subprocess.run(["git", "worktree", "list"], cwd=repo, capture_output=True, text=True, check=True)
    assert not made.exists() and listed.stdout.count("\n") == 1


def test_a_study_that_is_built_needs_no_words_and_is_measured_by_its_programs():
    study = gate.read_request("gate", "3%", "2").study
    build = Build(repo="../server", ref="v1", command="make", binary="out/mariadbd")
    study = study.model_copy(update={"engine": study.engine.model_copy(update={"build": build})})
    how = commit_builds.resolve_build(study, repo=None, build="make -j9", binary=None)
    assert how.command == "make -j9" and how.binary == "out/mariadbd"
    assert how.repo == str(paths.find_root().parent / "server")
    built = commit_builds.build_arms(study, {"good": Path("/a/mariadbd"), "asked": Path("/b/mariadbd")})
    assert built.engine.build is None and built.baseline == "good"
    binaries = {name: arm.engine.binary for name, arm in built.arms.items()}
    assert binaries == {"good": "/a/mariadbd", "asked": "/b/mariadbd"}


def test_what_neither_words_nor_study_say_of_a_build_is_asked_for_at_once(capsys):
    """With an exit code that is no answer: goldens/refused_builds.txt."""
    printed = []
    for line in (
        "gate gate --base main",
        "bisect gate --good v1 --bad main",
        "bisect gate --good v1 --bad main --build make",
    ):
        assert cli.main(line.split()) == 3
        printed.append(f"benchbook {line}\n{capsys.readouterr().err}")
    assert_golden("refused_builds.txt", "\n".join(printed))


def test_the_exit_code_of_a_search_says_how_many_commits_are_left(repo, monkeypatch, capsys):
    """None, one that could not be built, and one more that was not asked: goldens/bisect.txt."""

    def narrow(search: bisect.Search, left: int) -> list[str]:
        search.unbuilt.add(search.commits[-1])
        return list(search.commits[len(search.commits) - left :])

    words = ["--good", "main~16", "--bad", "main", "--build", "true", "--binary", "server.sh"]
    commits = {commit_builds.resolve_commit(str(repo), f"main~{back}", ""): back for back in range(17)}
    printed = []
    for left, code in ((0, 1), (1, 0), (2, 2)):
        monkeypatch.setattr(bisect, "narrow_commits", partial(narrow, left=left))
        assert cli.main(["bisect", "gate", "--repo", str(repo), *words]) == code
        text = capsys.readouterr().out
        for commit, back in commits.items():
            text = re.sub(rf"\b{commit[:7]}\w*", f"main~{back}", text)
        printed.append(text)
    assert_golden("bisect.txt", "\n".join(printed))


@needs_a_compiler
@pytest.mark.server
@pytest.mark.slow
def test_a_pull_request_is_compared_with_its_base_by_one_command(repo, open_folder, tmp_path, monkeypatch):
    monkeypatch.setenv("BENCHBOOK_LOCK", str(tmp_path / "machine.lock"))
    monkeypatch.setenv("BENCHBOOK_LAB_DIR", str(open_folder / "pull" / "labs"))
    words = ["gate", "gate", "--repo", str(repo), "--base", "main~16", "--head", "main", "--minutes", "4"]
    words += ["--build", BUILD, "--binary", "out/sbin/mariadbd", "--markdown", str(tmp_path / "gate.md")]
    assert cli.main(words) == gate.EXIT["slower"]
    text = (tmp_path / "gate.md").read_text()
    assert text.startswith("❌ **slower** (oltp_point_select): −"), text
    assert "| ▼¹ |" in text and "baseline base" in text, text
    listed = subprocess.run(["git", "worktree", "list"], cwd=repo, capture_output=True, text=True, check=True)
    assert listed.stdout.count("\n") == 1, "nothing of what was built stays"


@needs_a_compiler
@pytest.mark.server
@pytest.mark.slow
def test_a_planted_commit_is_found_on_a_real_server(repo: Path, open_folder, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("BENCHBOOK_LOCK", str(tmp_path / "machine.lock"))
    monkeypatch.setenv("BENCHBOOK_LAB_DIR", str(open_folder / "bisect" / "labs"))
    words = ["bisect", "gate", "--repo", str(repo), "--good", "main~16", "--bad", "main", "--minutes", "1.5"]
    words += ["--build", BUILD, "--binary", "out/sbin/mariadbd"]
    assert cli.main([*words, "--work", str(open_folder / "bisect" / "work")]) == 0
    said = capsys.readouterr().out
    assert "Change 11: slower" in said.partition("the first slower commit:")[2], said
