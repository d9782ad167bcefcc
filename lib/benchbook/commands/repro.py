"""`dvc repro`, with the holes around it closed: one run at a time, locks explained, outputs in git named.

DVC may end with 0 though its cache could not take an output (3.67 does on a full disk): that is noticed.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, filterfalse, pairwise
from pathlib import Path
from typing import Any

import psutil

from benchbook.commands import dvc_lock, studies
from benchbook.core.study import load
from benchbook.core.util import git, paths, process_env, yaml_file
from benchbook.core.util.errors import BenchbookError, InputErrors, did_you_mean
from benchbook.sites.machine import facts as machine
from benchbook.sites.processes import procfs, spawn, supervise
from benchbook.sites.workspace import free_bytes, lab_folder

_PAGE = re.compile(r"(report|runs)@(.+)")
# A study's page leads to those of its runs, and they to it.
_BESIDE = {"report": "runs", "runs": "report"}
LOW_BYTES = 500 << 20
# What DVC ends with, whatever failed.
DVC_FAILED = 255
FAILED = "failed; fix the error above"
# A stage that is stopped ends its servers in order first.
ENDING_S = 30.0


def run_command(words: list[str]) -> int:
    """Look, run `dvc repro` with these words, look again; return an exit code. `--study NAME` comes first."""
    if HELP & {*words}:
        print("usage: benchbook repro [--study NAME] [words for `dvc repro`, which are these:]\n")
    root, request = paths.find_root(), ReproRequest.parse(words)
    if wrong := studies.find_unlisted(root):
        raise InputErrors(wrong)
    if study := request.study:
        load.load_for_measuring(study)
        studies.write_size(study)
        studies.complete_study(study)
        studies.enlist_study(root, study)
    chosen = request.chosen
    with lock_clone(root):
        if repaired := dvc_lock.repair_lock_file(root):
            print(repaired)
        if wrong := [*resolve_locks(root), *find_tracked(root), *no_stages(root, request.arguments)]:
            raise InputErrors(wrong)
        if not request.is_asking:
            _examine_machine(root, request)
        code, is_stopped = run_request(root, request)
        if is_stopped:
            from benchbook.commands import terminal_summary

            print(f"\n{terminal_summary.describe_end('stopped', chosen)}", file=sys.stderr)
            return 130
        missing = [] if request.is_asking else find_absent(root)
    if missing:
        remedy = "free some space, then run `dvc commit -f`: nothing has to be measured again"
        what = f"{', '.join(missing)} in its cache ({cache_space(root)})"
        raise BenchbookError(f"DVC could not keep {what}; {remedy}")
    return code


@dataclass(frozen=True)
class ReproRequest:
    """Words of `benchbook repro`: the study of `--study`, if any, and those for DVC."""

    study: str | None
    arguments: list[str]

    @classmethod
    def parse(cls, words: list[str]) -> ReproRequest:
        """Request in words; `--study NAME` comes first."""
        return cls(words[1], words[2:]) if words[:1] == ["--study"] else cls(None, words)

    @cached_property
    def chosen(self) -> list[str]:
        """Studies to measure."""
        return [self.study] if self.study else list(load.load_params().studies)

    @property
    def is_asking(self) -> bool:
        """True if DVC is to run no stage, or to keep nothing."""
        return bool(ASKING & {*self.arguments})

    @property
    def is_whole(self) -> bool:
        """True if everything is wanted: words for DVC may name stages, which are then all that is."""
        return self.study is not None or not any("@" in word for word in self.arguments)

    @property
    def targets(self) -> list[str]:
        """Pages of the studies, or those that lead to named ones and back."""
        if self.is_whole:
            return [f"{page}@{name}" for name in self.chosen for page in _BESIDE]
        named = filter(None, map(_PAGE.fullmatch, self.arguments))
        beside = (f"{_BESIDE[match[1]]}@{match[2]}" for match in named)
        return [target for target in beside if target not in self.arguments]

    @property
    def calls(self) -> list[list[str]]:
        """Targets of each call of DVC."""
        is_dry = self.is_whole and DRY & {*self.arguments}
        return [*_dry_targets(self.chosen)] if is_dry else [self.targets]


def _examine_machine(root: Path, request: ReproRequest) -> None:
    """Print what studies will meet on this machine; refuse those that can't be measured now."""
    print(f"this machine now: {machine.describe_load()}")
    print("".join(f"{line}\n" for name in request.chosen for line in _list_expected(name)), end="")
    for name in request.chosen:
        _refuse_early(root, name, request.arguments)


def _list_expected(name: str) -> Iterator[str]:
    """Conditions a study will meet; InputErrors without a baseline here or in earlier sessions."""
    # Plans and sites take a second to import, which a refusal of words or names does not need.
    from benchbook.plan import schedule
    from benchbook.sites.topology import feasibility

    study = load.load_study(name)
    skipped = feasibility.find_infeasible(study)
    if study.baseline in skipped and not paths.study_paths(name).facts.is_file():
        raise InputErrors([f"{name}: {study.baseline}, its baseline: {skipped[study.baseline]}"])
    if study.site.precedence:
        yield f"{name}: measured {schedule.PRIORITY[study.site.precedence]}"
    yield from (f"{name}: {arm} will be skipped: {why}" for arm, why in skipped.items())


def _refuse_early(root: Path, name: str, arguments: Sequence[str]) -> None:
    """Refuse a study whose runs can't be made now before DVC, stages and loading take their minute."""
    from benchbook.commands import terminal_summary
    from benchbook.measure import preflight

    kept, planned = terminal_summary.count_progress(name)
    is_for_others = any("@" in word and not word.endswith(f"@{name}") for word in arguments)
    if (kept < planned or not planned) and not is_for_others:
        limits = load.load_params("limits").limits.model_dump()
        raw = paths.study_paths(name).raw
        preflight.refuse_before_loading(load.load_study(name), raw, lab_folder(root, name), limits)


def rebuild_pages() -> int:
    """Rebuild the record, the audits and the pages about everything; nothing is measured."""
    root = paths.find_root()
    with lock_clone(root):
        if wrong := [*studies.find_unlisted(root), *resolve_locks(root), *find_tracked(root)]:
            raise InputErrors(wrong)
        from benchbook.commands import pages

        return pages.make_pages(with_record=True)


def run_request(root: Path, request: ReproRequest) -> tuple[int, bool]:
    """Run DVC for the measured stages, print the answers, then render the pages that they lead to.

    Returns an exit code, and whether a signal stopped it.
    """
    for targets in request.calls:
        code, is_stopped = _run_dvc(root, ["repro", *request.arguments, *targets])
        if code or is_stopped:
            return _end_early(root, request.chosen, code, is_stopped), is_stopped
    if request.is_asking:
        return 0, False
    # It brings pandas along, which nobody needs while stages run.
    from benchbook.commands import pages

    _print_answers(root, request.chosen)
    if not (request.is_whole or request.targets):
        return 0, False
    # Nobody waits half a minute for an answer that stands.
    print("\nThe pages that it leads to are being made …")
    process_env.drop_passwords()
    return pages.make_pages(with_record=False), False


def _end_early(root: Path, chosen: Sequence[str], code: int, is_stopped: bool) -> int:
    """Let no link of the pages that are there be dead; say after a failure what is kept. An exit code."""
    from benchbook.commands import pages, terminal_summary

    pages.stand_in(root)
    if is_stopped:
        return code
    print(terminal_summary.describe_end(FAILED, chosen), file=sys.stderr)
    return 1 if code == DVC_FAILED else code


def _print_answers(root: Path, chosen: Sequence[str]) -> None:
    from benchbook.commands import terminal_summary

    for name in chosen:
        if output := terminal_summary.render_answer(name):
            page = root / "reports" / "studies" / f"{name}.html"
            print("\n".join(["", *output, *([f"Report: {page}"] if page.is_file() else [])]))


def _dry_targets(chosen: Sequence[str]) -> Iterator[list[str]]:
    """Targets of a dry run, since DVC reads inputs: first stages without outputs, then later ones, forced."""
    first, later = [], []
    for name in chosen:
        where = paths.study_paths(name)
        left = {f"{stage}@{name}": getattr(where, leaves) for stage, (_, leaves) in paths.STAGES.items()}
        left = {"code": paths.code_file(name), **left, f"runs@{name}": where.run_pages}
        stages = list(left)
        begins = next((at for at, stage in enumerate(stages) if not left[stage].exists()), len(stages))
        first += stages[begins : begins + 1] or stages[-2:]
        later += stages[begins + 1 :]
    yield list(dict.fromkeys(first))
    if later:
        yield ["--force", "--single-item", *later]


@contextlib.contextmanager
def lock_clone(root: Path) -> Iterator[None]:
    """Hold the clone for one run of the pipeline; BenchbookError naming the other one, at once."""
    file = root / ".dvc" / "tmp" / "benchbook-repro.lock"
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a+", encoding="ascii") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            held.seek(0)
            pid = held.read().strip() or "unknown"
            remedy = f"stop it with Ctrl-C where it was started (`kill -TERM {pid}` does the same)"
            why = f"another `make repro` runs in this clone (process {pid}); wait until it ends, or {remedy}"
            raise BenchbookError(why) from None
        held.truncate(0)
        held.write(str(os.getpid()))
        held.flush()
        yield
        held.truncate(0)


def _read_stages(root: Path) -> Iterator[tuple[str, dict[str, Any], Any]]:
    """Each stage of dvc.yaml by name, with the studies or sources it is made for, if for each."""
    lists = yaml_file.read_mapping(root / "params.yaml").data
    for name, item in yaml_file.read_mapping(root / "dvc.yaml").data["stages"].items():
        yield name, item, lists.get(item["foreach"].strip("${}"), []) if "foreach" in item else None


def no_stages(root: Path, arguments: Sequence[str]) -> list[str]:
    """Name words that are no stage, each with the nearest: DVC says only that, after seconds."""
    stages = {name: [f"{name}@{item}" for item in items or ()] for name, _, items in _read_stages(root)}
    known = [*chain.from_iterable(stages.values()), *stages]
    names, messages = ", ".join(filter(stages.get, stages)), []
    for word in filterfalse(known.__contains__, _list_targets(arguments)):
        near = did_you_mean(word, known)
        remedy = near if near.startswith("did you mean") else f"write one of {names}, @ and a name"
        messages.append(f"{word}: no such stage; {remedy}")
    return messages


def _list_targets(arguments: Sequence[str]) -> list[str]:
    """Words that name stages, those with an @ first; behind an option another one may be what it takes."""
    words = [word for word in arguments if "@" in word and not word.startswith("-")]
    pairs = pairwise(("", *arguments))
    named = (word for before, word in pairs if not before.startswith("-"))
    return [*words, *filter(re.compile(r"\w[\w-]*").fullmatch, named)]


def resolve_locks(root: Path) -> list[str]:
    """Remedies for what a killed DVC left in its lock of readers and writers; that of a zombie is let go."""
    file = root / ".dvc" / "tmp" / "rwlock"
    name = file.relative_to(root)
    try:
        holders = _read_holders(file)
    except FileNotFoundError:
        return []
    except (ValueError, AttributeError, TypeError, KeyError):
        why = "empty or cut, left by a DVC that was killed; no command of DVC works until it is gone"
        return [f"{name}: {why}; if no DVC runs in this clone, `rm {name}`"]
    written = file.stat().st_mtime
    alive = sorted({pid for pid in holders if procfs.is_alive(pid)})
    if not alive and any(map(psutil.pid_exists, holders)):
        # DVC takes a zombie for a holder, and in many containers nobody collects those of a killed parent.
        file.unlink(missing_ok=True)
    remedies = []
    for pid in alive:
        command, is_reused = repr(procfs.read_command(pid)[:60]), False
        with contextlib.suppress(psutil.NoSuchProcess):
            is_reused = psutil.Process(pid).create_time() > written
        held_by = f"{name}: held by process {pid}, which is gone; its number is now {command}"
        remedy = f"DVC would wait for that; if no DVC runs in this clone, `rm {name}`"
        runs = f"DVC runs in this clone: process {pid}, {command}"
        stop = f"wait until it ends, or stop it with `kill -INT {pid}`"
        remedies.append(f"{held_by}, and {remedy}" if is_reused else f"{runs}; {stop}")
    return remedies


def _read_holders(file: Path) -> set[int]:
    """Processes in a lock file of DVC: one writer and any number of readers for each path."""
    held = json.loads(file.read_text(encoding="utf-8"))
    readers = chain.from_iterable(held.get("read", {}).values())
    return {int(item["pid"]) for item in (*held.get("write", {}).values(), *readers)}


def find_tracked(root: Path) -> list[str]:
    """Name outputs of the pipeline that git tracks: DVC would refuse them, but only after the stage ran."""
    listed = git.run_git("ls-files", "-z", "--", "data", "reports", root=root) or ""
    names = [name for name in listed.split("\0") if name]
    inside = {out: [name for name in names if f"{name}/".startswith(f"{out}/")] for out in _list_outs(root)}
    return [
        f"{out}: {len(tracked)} files are tracked by git, and DVC refuses them, but after the stage "
        f"has run; `git rm -r -q --cached {out}`, then commit"
        for out, tracked in inside.items()
        if tracked
    ]


def _list_outs(root: Path) -> Iterator[str]:
    """Outputs that DVC keeps of every stage, with the names of studies and sources put in."""
    for _, stage, named in _read_stages(root):
        # DVC has the name of a list's item in ${item}; of a mapping's it is in ${key}.
        word, items = "${key}" if isinstance(named, dict) else "${item}", [None] if named is None else named
        body = stage.get("do", stage)
        for out in [*body.get("outs", []), *body.get("metrics", []), *body.get("plots", [])]:
            name, flags = next(iter(out.items())) if isinstance(out, dict) else (out, {})
            if flags.get("cache", True):
                yield from (str(name).replace(word, str(item)) for item in items)


def find_absent(root: Path) -> list[str]:
    """Outputs that DVC has recorded and does not have in its cache."""
    output = dvc_says(root, "status", "--json")
    try:
        status = json.loads(output.stdout)
    except ValueError:
        why = output.stderr.strip()[-300:]
        raise BenchbookError(f"`dvc status` failed: {why}; run it to see why") from None
    changes = [change for stage in status.values() for change in stage if isinstance(change, dict)]
    outs = [item for change in changes for item in (change.get("changed outs") or {}).items()]
    return sorted(out for out, how in outs if how == "not in cache")


def cache_space(root: Path) -> str:
    """Free space on the disk of DVC's cache, as a sentence."""
    folder = Path(root, dvc_says(root, "cache", "dir").stdout.strip() or ".dvc/cache")
    free = free_bytes(folder)
    return f"{free >> 10} KiB are free on the disk of {folder}" + (": it is full" if free < LOW_BYTES else "")


def dvc_says(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Output of a command of DVC, and its exit code."""
    requests = [sys.executable, "-m", "dvc", *words]
    return subprocess.run(requests, cwd=root, capture_output=True, text=True, check=False)


DRY = {"--dry", "-n"}
HELP = {"--help", "-h"}
ASKING = DRY | HELP | {"--no-commit"}


def _run_dvc(root: Path, arguments: list[str]) -> tuple[int, bool]:
    """Run DVC in our process group, to die with us; return its exit code and if a signal stopped it."""
    caught: list[int] = []
    is_terminal = sys.stdin is not None and sys.stdin.isatty()

    def pass_on(number: int, _: object) -> None:
        caught.append(number)
        # What a DVC that has ended leaves behind becomes ours, and is ended below.
        spawn.call_prctl(spawn.PR_SET_CHILD_SUBREAPER, 1)
        # The terminal tells the whole group of Ctrl-C; a second word would cut short what DVC does then.
        # Otherwise its stage gets the signal from here: DVC leaves that to the terminal.
        if not (is_terminal and number == signal.SIGINT):
            for pid in procfs.find_descendants(os.getpid()) if number == signal.SIGINT else [child.pid]:
                supervise.send_signal(pid, signal.Signals(number))

    child = spawn.spawn_program([sys.executable, "-m", "benchbook.commands.quiet_dvc", *arguments], cwd=root)
    wanted = [signal.SIGTERM, signal.SIGHUP, signal.SIGINT]
    before = {number: signal.signal(number, pass_on) for number in wanted}
    try:
        code = child.wait()
        if caught:
            supervise.end_descendants(child, grace_s=ENDING_S)
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)
    return (code if code >= 0 else 128 - code), bool(caught)
