"""One raw run as a section of a page: what was run, what the checks saw, its seconds, its log."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchbook.core import files, runfolder, turns
from benchbook.core.runfolder import RunFolder
from benchbook.show import numbers, sparkline, theme
from benchbook.show.badge import badge
from benchbook.show.markup import Html, element, join, slug

_SHARED = (
    "Arms took turns: each second above, and each rate in the log, holds the turns of all arms. The queries "
    "per second of this run count its own turns alone."
)


@dataclass(frozen=True)
class Section:
    """A run folder with what judging it gave.

    `judged` has `status`, `qps`, `checks` (id, name, passed, detail, is_excused) and `evidence`, as
    read/validity.py returns it. `note` is the record beside a voided folder, None for a valid run.
    """

    folder: RunFolder
    judged: Any
    note: Mapping[str, Any] | None = None

    @property
    def plan(self) -> Mapping[str, Any]:
        """What was to be run; empty if the folder never got that far."""
        return self.judged.evidence.plan

    @property
    def block(self) -> int:
        """The block it belongs to; 0 if the folder does not say."""
        return int(self.plan.get("block", 0))

    @property
    def order(self) -> tuple[bool, int, str]:
        """Valid runs in the order of the schedule, then voided ones."""
        return self.note is not None, int(self.plan.get("position", 0)), self.folder.name

    @property
    def place(self) -> str:
        """The workload and thread count, or where voided attempts stand."""
        if self.note is not None:
            return "Voided attempts"
        return f"{self.plan['workload']}, {numbers.count(self.plan['threads'], 'thread')}"


def file_name(block: int) -> str:
    """Give the file name of a block's page."""
    return f"block-{block}.html"


def address(block: int, folder: str) -> str:
    """Give the place of a run among the run pages; `folder` is its folder's path or name."""
    return f"{file_name(block)}#{anchor(folder.rpartition('/')[2])}"


def anchor(name: str) -> str:
    """Give the anchor of a run: `name` is its folder's, so a voided attempt has one of its own."""
    return f"run-{slug(name)}"


def section(run: Section, page: Path, most: int, arms: Sequence[str]) -> Html:
    """Write a run; logs longer than `most` characters keep head and tail, links lead to the whole files."""
    parts = [
        _heading(run),
        _facts(run),
        _seconds(run, arms),
        _checks(run),
        _text("Command", " ".join(map(str, run.judged.evidence.seen.get("argv", []))), most),
        _text("Errors (sysbench.err)", run.judged.evidence.err or "", most, is_open=True),
        _text("Log (sysbench.out)", run.judged.evidence.out, most),
        *_other_clients(run, most),
        _files(run, page),
    ]
    return join(part for part in parts if part.text)


def _heading(run: Section) -> Html:
    plan = run.plan
    if not plan:
        return element("h3", run.folder.name, id=anchor(run.folder.name))
    name = f"{plan['position']} · {plan['arm']}"
    if run.note is not None:
        name += f" · {plan['workload']}, {numbers.count(plan['threads'], 'thread')}, attempt {_attempt(run)}"
    return element("h3", name, id=anchor(run.folder.name))


def _attempt(run: Section) -> object:
    return (run.note or {}).get("attempt", run.judged.evidence.seen.get("attempt", 1))


def _facts(run: Section) -> Html:
    seen, judged = run.judged.evidence.seen, run.judged
    sentence: list[object] = [badge(judged.status) if run.note is None else badge(str(run.note["status"]))]
    if judged.qps is not None:
        sentence.append(f"{numbers.significant(judged.qps)} queries per second")
    if seen.get("started_utc"):
        sentence.append(f"started {str(seen['started_utc'])[:19].replace('T', ' ')} UTC")
    if run.plan:
        sentence += [
            f"{run.plan['run_s']} s after a discard of {run.plan['discard_s']} s",
            f"seed {run.plan['seed']}",
        ]
    if run.judged.evidence.others:
        spread = seen.get("start_spread_ms")
        clients = numbers.count(1 + len(run.judged.evidence.others), "client")
        sentence.append(clients if spread is None else f"{clients}, started within {spread:.0f} ms")
    if run.note is None and _attempt(run) != 1:
        sentence.append(f"attempt {_attempt(run)}")
    sentence.append(element("code", run.folder.name))
    line = element("ul", *(element("li", item) for item in sentence), class_="basis")
    if run.note is None:
        return line
    reasons = (element("li", reason, class_="care") for reason in run.note.get("reasons", []))
    return join([line, element("ul", *reasons, class_="doubts")])


def _seconds(run: Section, arms: Sequence[str]) -> Html:
    """Draw the seconds; in turns the discard lasts longer on sysbench's clock, and a second is shared."""
    is_shared = bool(run.plan) and turns.is_in_turns(run.plan)
    discard_s = turns.clock_seconds(run.plan)[0] if is_shared else run.plan.get("discard_s", 0)
    drawn = sparkline.seconds(_series(run), float(discard_s), _colour(run, arms))
    return join([drawn, element("p", _SHARED, class_="files")]) if is_shared else drawn


def _series(run: Section) -> list[tuple[float, float]]:
    return [(float(one.second), float(one.qps)) for one in run.judged.evidence.log.intervals]


def _colour(run: Section, arms: Sequence[str]) -> str:
    arm = run.plan.get("arm", "")
    return theme.colour(arm, arms) if arm in arms or theme.is_again(arm) else theme.MUTED


def _checks(run: Section) -> Html:
    checks = run.judged.checks
    passed = sum(check.passed is True for check in checks)
    told = f"{passed} of {numbers.count(len(checks), 'check')} passed"
    known = element("a", told, href="index.html#checks-of-a-run")
    rest = [check for check in checks if check.passed is not True]
    rows = (
        element("li", element("b", f"{check.id} {check.name}"), ": ", _outcome(check), class_=_mark(check))
        for check in rest
    )
    return join([element("p", known, class_="files"), element("ul", *rows, class_="checks") if rest else ""])


def _outcome(check: Any) -> str:
    word = "failed" if check.passed is False else "not made here" if check.is_excused else "evidence missing"
    return f"{word}: {check.detail}" if check.detail else word


def _mark(check: Any) -> str | None:
    return None if check.passed or check.is_excused else "care"


def _text(title: str, text: str, most: int, is_open: bool = False) -> Html:
    if not text.strip():
        return Html("")
    left_out = len(text) - most
    if left_out > 0:
        half = most // 2
        middle = f"\n… {left_out:,} characters are left out here; the file has them …\n"
        text = text[:half] + middle + text[-half:]
    shown = element("pre", text, tabindex="0", aria_label=title)
    return element("details", element("summary", title), shown, open="" if is_open else None)


def _other_clients(run: Section, most: int) -> Iterator[Html]:
    """Write what the clients after the first printed."""
    for number, (out, err) in enumerate(run.judged.evidence.others, start=1):
        names = [runfolder.of_client(number, name) for name in (runfolder.ERR, runfolder.OUT)]
        yield _text(f"Errors ({names[0]})", err or "", most, is_open=True)
        yield _text(f"Log ({names[1]})", out, most)


def _files(run: Section, page: Path) -> Html:
    below = os.path.relpath(run.folder.path, page.parent)
    names = (*run.folder.content(), runfolder.MANIFEST)
    there = [name for name in names if (run.folder.path / name).is_file()]
    links = [element("a", name, href=f"{below}/{name}").text for name in there]
    if run.note is not None:
        links.append(element("a", runfolder.VOID, href=f"{below}.{runfolder.VOID}").text)
    return element("p", "Raw files: ", Html(", ".join(links) or "none"), class_="files")


def note(folder: Path) -> Mapping[str, Any] | None:
    """Read the record beside a voided folder; None if it is not voided."""
    file = folder.with_name(f"{folder.name}.{runfolder.VOID}")
    return files.read_json(file) if file.is_file() else None
