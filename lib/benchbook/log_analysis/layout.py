"""Roles of runs: arm, workload, threads and repetition, from varying text around their logs.

Threads stand in the log; a number of the path that agrees with it in nearly all files is theirs. Workloads
and repetitions are known by their words, or by small numbers that count up. What varies beside these is the
arm; where folders vary, what varies in names beside them belongs to the workload.
"""

import itertools
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch

from benchbook.core.util.errors import BenchbookError
from benchbook.core.util.grouping import group_by
from benchbook.core.util.plural import count
from benchbook.log_analysis.runs import LogRun

Roles = dict[str, dict[str, str]]
"""Of each path its role by the role's name."""
ROLES = ("arm", "workload", "threads", "repeat", "process", "date", "any")
NEARLY_ALL = 0.9
SLOTS = (-1, 0, -2, 1)
SHORT_NAME = 20
_W = r"(?<![A-Za-z0-9])(?i:{})(?![A-Za-z0-9])"
_WORKLOADS = (
    r"oltp[_-](?:read[_-]?(?:only|write)|write[_-]?only|point[_-]?selects?|update[_-]?(?:non?[_-]?)?(?:index|key)"
    r"|insert|delete|ro|rw|wo|simple|complex)|select[_-]random[_-](?:points|ranges)|bulk[_-]insert"
    r"|read[_-]?(?:only|write)|write[_-]?only|point[_-]?selects?|update[_-]?(?:non?[_-]?)?(?:index|key)"
    r"|tpcc|tpc-c|ro|rw|wo|ps|insert|delete|select|update|oltp"
)
_WORKLOAD = re.compile(_W.format(_WORKLOADS))
_THREADS_WORDS = "threads?|thr|thds?|th|t|clients?|conns?|connections?|users?|concurrency|tps|c|u|n"
_THREADS = re.compile(
    rf"(?<![A-Za-z])(?i:{_THREADS_WORDS})[-_=. ]?0*(\d+)(?!\d)"
    r"|(?<![A-Za-z0-9])0*(\d+)[-_ ]?(?i:threads?|thr|thds?|th|t|clients?|conns?|users?)(?![A-Za-z0-9])"
)
_REPEATS = "runs?|rep(?:eat)?|iter(?:ation)?|trial|try|pass|attempt|round|loop|sample|block|set|r|i"
_REPEAT = re.compile(rf"(?<![A-Za-z])(?i:{_REPEATS})[-_=. ]?0*(\d+)(?![\dA-Za-z])")
_ROLE_WORD = re.compile(rf"[-_=. ](?i:{_THREADS_WORDS}|{_REPEATS})[-_=. ]?$")
_PAIRS = re.compile(r"(?i)pass|round|block|set")
_PROCESS = re.compile(r"(?<![A-Za-z])(?i:p|proc(?:ess)?|client|inst(?:ance)?|worker)[-_]?(\d+)(?![\dA-Za-z])")
_DATE = re.compile(r"(?<!\d)(20\d\d[-_.]?[01]\d[-_.]?[0-3]\d(?:[T_-]?\d\d[-:_]?\d\d(?:[-:_]?\d\d)?)?)(?!\d)")
_NUMBER = re.compile(r"(?<![A-Za-z0-9])0*(\d{1,5})(?![A-Za-z0-9])")
_BASELINE = re.compile(
    r"(?i)(?<![a-z])(?:base(?:line)?|direct|control|before|default|master|main|vanilla|stock|none|off|old|without)(?![a-z])"
)
_SHAPES = {"threads": r"\d+", "process": r"\d+", "arm": r".+?", "date": r"20\d\d[\d.:_T-]*"}
_ENDINGS = re.compile(r"(?:\.(?:log|txt|out|res|md|gz|xz|zst|bz2))+$")
_GENERIC = {"oltp", "select", "update", "insert", "delete"}
# What people call sysbench's own scripts; with `oltp_` before them or not they are the same.
_SCRIPTS = {"ro": "read_only", "rw": "read_write", "wo": "write_only", "ps": "point_select", "tpc_c": "tpcc",
            "readonly": "read_only", "readwrite": "read_write", "pointselect": "point_select",
            "point_selects": "point_select"}  # fmt: skip


@dataclass(frozen=True)
class Layout:
    """Identification of runs: patterns that say it again, arms in their order, the baseline first."""

    patterns: tuple[str, ...]
    arms: tuple[str, ...]
    is_paired: bool

    def sentence(self, runs: Sequence[LogRun]) -> str:
        """The reading in one line that can be pasted back."""
        levels = len({(run.workload, run.level) for run in runs})
        repeats = Counter((run.arm, run.workload, run.level) for run in runs).values()
        fewest, most = min(repeats), max(repeats)
        each = f"{fewest} runs each" if fewest == most else f"{fewest} to {most} runs each"
        each = "one run each" if fewest == most == 1 else each
        by = " ".join(f"--by '{pattern}'" for pattern in self.patterns[:3])
        text = f"{count(len(self.arms), 'arm')}, {count(levels, 'level')}, {each}"
        base = f" --baseline '{self.arms[0]}'" if len(self.arms) > 1 else ""
        return f"{text}: {by}{base}" if by else text


@dataclass
class _Name:
    """One path with the spans of known role: start, end, role and value."""

    path: str
    threads: set[int]
    spans: list[tuple[int, int, str, str]]

    def is_free(self, start: int, end: int) -> bool:
        return all(end <= first or last <= start for first, last, _, _ in self.spans)

    def add(self, match: re.Match[str], role: str, group: int = 0) -> None:
        self.spans.append((*match.span(group), role, match.group(group)))
        self.spans.sort()

    def signature(self) -> tuple[object, ...]:
        return (self.path.count("/"), *((role, self.path.count("/", 0, at)) for at, _, role, _ in self.spans))

    def pieces(self) -> list[str]:
        ends = [0, *(end for _, end, _, _ in self.spans)]
        starts = [*(start for start, _, _, _ in self.spans), len(self.path)]
        return [self.path[end:start] for end, start in zip(ends, starts, strict=True)]


def identify_runs(
    runs: Sequence[LogRun],
    texts: Mapping[str, str],
    by: str | None = None,
    arm_globs: Sequence[tuple[str, str]] = (),
    baseline: str | None = None,
) -> tuple[list[LogRun], Layout]:
    """Runs with arm, workload, level, repetition and process, and the layout behind these."""
    if not runs:
        return [], Layout((), (), False)
    root = _common_folder([run.path for run in runs])
    names = {run.path: run.path[len(root) :] for run in runs}
    roles_by_path, patterns = _guess_roles(runs, names) if by is None else (_by_pattern(names, by), [by])
    described = _describe_arms(roles_by_path, texts)
    named = [_with_roles(run, roles_by_path[run.path], described.get(run.path)) for run in runs]
    named = _with_order(_with_arms(named, root, arm_globs))
    # A repetition's name may say that it belongs to one of the other arms, as passes do.
    is_paired = all(
        roles.get("repeat") and _PAIRS.search(roles.get("repeat_word", ""))
        for roles in roles_by_path.values()
    )
    return named, Layout(tuple(patterns), _order_arms(named, baseline), is_paired)


def _with_roles(run: LogRun, roles: Mapping[str, str], description: str | None) -> LogRun:
    level = int(roles["threads"]) if roles.get("threads") and roles.get("process") else run.threads
    arm, repeat = description or roles.get("arm", ""), roles.get("repeat") or roles.get("date", "")
    run = replace(run, arm=arm, workload=_name_workload(run, roles), level=level)
    return replace(run, repeat=repeat, process=roles.get("process", ""))


def _common_folder(paths: Sequence[str]) -> str:
    folders = [os.path.dirname(path) for path in paths]
    common = os.path.commonpath(folders) if all(folders) and len({p[:1] == "/" for p in paths}) == 1 else ""
    return f"{common}/" if common and common != "/" else common


def _guess_roles(runs: Sequence[LogRun], paths: Mapping[str, str]) -> tuple[Roles, list[str]]:
    by_path = group_by(runs, lambda run: run.path)
    names = {
        path: _Name(relative, {run.threads for run in by_path[path]}, []) for path, relative in paths.items()
    }
    every = [*names.values()]
    _mark_all(every, "date", _DATE)
    _find_workloads(every)
    if not _find_threads(every):
        # Folders of several people have the number in places of their own.
        folders = group_by(every, lambda name: name.path.rpartition("/")[0].partition("/")[0])
        for members in folders.values():
            if len({frozenset(name.threads) for name in members}) > 1:
                _find_threads(members)
    _mark_all(every, "repeat", _REPEAT)
    _mark_all(every, "process", _PROCESS)
    _keep_counting(every)
    _find_counters(every)
    return _find_arms(names)


def _mark_all(names: Sequence[_Name], role: str, pattern: re.Pattern[str]) -> None:
    """Give a role to each first group of a pattern that has none yet."""
    for name in names:
        for match in pattern.finditer(name.path):
            if name.is_free(*match.span(1)):
                name.add(match, role, 1)


def _find_workloads(names: Sequence[_Name]) -> None:
    for name in names:
        found_words = [*_WORKLOAD.finditer(name.path)]
        special = [match for match in found_words if match[0].lower() not in _GENERIC]
        if special := special or found_words:
            # The name of the file says more than its folder's.
            name.add(max(special, key=lambda match: (len(match[0]), match.start())), "workload")


def _find_threads(names: Sequence[_Name]) -> bool:
    """Mark the number that agrees with the log's threads in nearly all names; False if there is none."""
    single = [name for name in names if len(name.threads) == 1]
    for pattern, slot in itertools.product((_THREADS, _NUMBER), SLOTS):
        by_ratio = group_by(
            _find_free(single, pattern, slot),
            lambda item: int(item[1][item[2]]) / max(1, *item[0].threads),
        )
        for times in sorted(ratio for ratio in by_ratio if ratio == int(ratio) and 1 <= ratio <= 64):
            if len(by_ratio[times]) >= NEARLY_ALL * len(single):
                for name, match, group in by_ratio[times]:
                    name.add(match, "threads", group)
                return True
    return False


def _find_free(
    names: Sequence[_Name], pattern: re.Pattern[str], slot: int
) -> Iterator[tuple[_Name, re.Match[str], int]]:
    """Names with the match at a place among their free ones, and its group; those with too few left out."""
    for name in names:
        matches = [(match, match.lastindex or 1) for match in pattern.finditer(name.path)]
        free = [(match, group) for match, group in matches if name.is_free(*match.span(group))]
        if -len(free) <= slot < len(free):
            yield (name, *free[slot])


def _keep_counting(names: Sequence[_Name]) -> None:
    """Drop a word of repetition that is the same everywhere, or stands in an arm's name."""
    for role in ("repeat", "process"):
        values = {span[3] for name in names for span in name.spans if span[2] == role}
        if len(values) < 2 and len(names) > 1:
            for name in names:
                name.spans = [span for span in name.spans if span[2] != role]


def _find_counters(names: Sequence[_Name]) -> None:
    """Take bare numbers that count from 0 or 1 in the same place of all names as repetitions."""
    if any(span[2] == "repeat" for name in names for span in name.spans):
        return
    for slot in SLOTS:
        chosen = [*_find_free(names, _NUMBER, slot)]
        values = {int(match[1]) for _, match, _ in chosen}
        is_counting = values in ({*range(len(values))}, {*range(1, len(values) + 1)})
        if len(chosen) == len(names) and len(values) > 1 and is_counting:
            for name, match, group in chosen:
                name.add(match, "repeat", group)
            return


def _find_arms(names: Mapping[str, _Name]) -> tuple[Roles, list[str]]:
    groups = group_by(names, lambda path: names[path].signature())
    results: dict[str, dict[str, str]] = {}
    patterns: list[str] = []
    for members in sorted(groups.values(), key=len, reverse=True):
        pieces = [names[path].pieces() for path in members]
        cuts = [_common_ends([row[at] for row in pieces]) for at in range(len(pieces[0]))]
        if len(groups) > 1 and not any(cuts) and (begin := pieces[0][0]):
            # Nothing varies within names of this form: their beginning tells them from others.
            cuts[0] = (0, 0 if len(pieces[0]) > 1 else len(os.path.splitext(begin)[1]))
        has_folder = any(cut and "/" in "".join(pieces[0][at:]) for at, cut in enumerate(cuts))
        for path, row in zip(members, pieces, strict=True):
            results[path] = _assign_roles(names[path], row, cuts, has_folder)
        patterns.append(_build_pattern(names[members[0]], pieces[0], cuts, has_folder))
    return results, list(dict.fromkeys(pattern for pattern in patterns if "{" in pattern))


def _common_ends(values: list[str]) -> tuple[int, int] | None:
    """Number of common characters at the start and the end of some texts; None if all are common."""
    if len(set(values)) == 1:
        return None
    mirrored = [value[::-1] for value in values]
    start, end = (len(os.path.commonprefix(each)) for each in (values, mirrored))  # noqa: RUF071 (by letter)
    first = values[0]
    end = min(end, min(map(len, values)) - start)
    # Words stay whole, and so do short names.
    is_short = all(len(part) <= SHORT_NAME for value in values for part in value.split("/"))
    inside = (lambda char: char != "/") if is_short else str.isalnum
    start, end = (_without_word(text, inside) for text in (first[:start], mirrored[0][:end]))
    # The word of a number that follows is none of the name.
    word = _ROLE_WORD.search(first[: len(first) - end])
    if word is not None and all(value[: len(value) - end].endswith(word[0]) for value in values):
        end += len(word[0])
    while _are_separated(values, start):
        start += 1
    while _are_separated(values, -end - 1):
        end += 1
    return start, end


def _without_word(text: str, inside: Callable[[str], bool]) -> int:
    """Length of a text without the characters of a word at its end."""
    return next((at for at in range(len(text), 0, -1) if not inside(text[at - 1])), 0)


def _are_separated(values: list[str], at: int) -> bool:
    """True if all texts have the same separator at a place."""
    there = {value[at] if -len(value) <= at < len(value) else "" for value in values}
    return len(there) == 1 and there <= {*"-_. "}


def _assign_roles(
    name: _Name, row: list[str], cuts: Sequence[tuple[int, int] | None], has_folder: bool
) -> dict[str, str]:
    roles = {"arm": ""}
    for at, (piece, cut) in enumerate(zip(row, cuts, strict=True)):
        if cut is not None and (text := piece[cut[0] : len(piece) - cut[1]].strip("/-_. ")):
            _add_role(roles, _role_of_piece(row, at, has_folder), text)
        if at < len(name.spans):
            start, _, role, value = name.spans[at]
            if role == "repeat":
                roles["repeat_word"] = _word_of_repeat(name.path[:start], any(cuts[at + 1 :]))
            _add_role(roles, role, value)
    return roles


def _add_role(roles: dict[str, str], role: str, text: str) -> None:
    """Add what a name says of a role to what it has said of it; the last number is that of threads."""
    between = " " if role in ("arm", "workload") else "."
    roles[role] = f"{roles[role]}{between}{text}" if roles.get(role) and role != "threads" else text


def _role_of_piece(row: list[str], at: int, has_folder: bool) -> str:
    """Role of what varies at a place: where folders vary, it is a workload's behind them."""
    return "arm" if not has_folder or "/" in "".join(row[at:]) else "workload"


def _word_of_repeat(before: str, has_arms_behind: bool) -> str:
    """Word of a repetition, such as `run`; a bare number in front of the arms is that of a pass over all."""
    word = re.search(r"([A-Za-z]+)[-_=. ]?0*$", before)
    if word is not None and re.fullmatch(f"(?i:{_REPEATS})", word[1]):
        return word[1]
    return "pass" if has_arms_behind else ""


def _build_pattern(
    name: _Name, row: list[str], cuts: Sequence[tuple[int, int] | None], has_folder: bool
) -> str:
    text = ""
    roles = [span[2] for span in name.spans]
    for at, (piece, cut) in enumerate(zip(row, cuts, strict=True)):
        begin, end = (len(piece), len(piece)) if cut is None else (cut[0], len(piece) - cut[1])
        role = _role_of_piece(row, at, has_folder)
        text += piece[:begin] + (f"{{{role}}}" if piece[begin:end] else "") + piece[end:]
        text += f"{{{roles[at]}}}" if at < len(roles) else ""
    return text


def _by_pattern(names: Mapping[str, str], by: str) -> Roles:
    """Roles of each path by a pattern of the user's; raises BenchbookError if it fits none."""
    pattern = _compile_pattern(by)
    by_path: Roles = {}
    for path, relative in names.items():
        parts = path.split("/")
        # A pattern may begin in any folder.
        tails = ("/".join(parts[at:]) for at in range(len(parts) - 1, -1, -1))
        match = next(filter(None, map(pattern.fullmatch, (relative, *tails))), None)
        roles = by_path[path] = {}
        for key, value in (match.groupdict() if match else {}).items():
            role = key.rstrip("0123456789")
            roles[role] = f"{roles[role]} {value}" if role in roles else value
    if not any(roles.get(role) for roles in by_path.values() for role in ("arm", "repeat", "workload")):
        example = next(iter(names.values()))
        raise BenchbookError(f"--by '{by}' fits none of {len(names)} files, such as {example}")
    return by_path


def _compile_pattern(by: str) -> re.Pattern[str]:
    """A pattern of the user's, with a numbered group for each role; raises BenchbookError for no role."""
    words = re.split(r"\{(\w+)\}", by)
    if unknown := [role for role in words[1::2] if role not in ROLES]:
        known_roles = ", ".join(f"{{{role}}}" for role in ROLES)
        raise BenchbookError(f"--by: {{{unknown[0]}}} is unknown; write {known_roles}")
    regex = re.escape(words[0])
    for number, (role, literal) in enumerate(zip(words[1::2], words[2::2], strict=True)):
        # A folder's name may be part of an arm only where nothing else follows in it.
        regex += f"(?P<{role}{number}>{_SHAPES.get(role, r'[^/]+?')})" + re.escape(literal)
    return re.compile(regex.replace(r"\*", "[^/]*") + r"(?:\.(?:log|txt|out|res|gz|xz|zst))*")


def _describe_arms(results: Mapping[str, Mapping[str, str]], texts: Mapping[str, str]) -> dict[str, str]:
    """Arms with their description in a DESC or params file."""
    described = {}
    numbered: dict[str, str] = {}
    settings: dict[str, dict[str, str]] = {}
    for path, text in texts.items():
        numbered |= dict(re.findall(r"^\s*(\d+)[ .:)]+(\S.*?)\s*$", text, re.M))
        pairs = re.findall(r"^\s*([\w.-]+)\s*[=:]\s*(\S.*?)\s*$", text, re.M)
        settings[os.path.dirname(path)] = dict(pairs)
    varied = {
        key
        for key in itertools.chain(*settings.values())
        if len({setting.get(key) for setting in settings.values()}) > 1
        and not re.search(r"(?i)thread|date|time|dir|path|pid|run", key)
    }
    for path, roles in results.items():
        arm = roles.get("arm", "")
        if words := numbered.get(arm[len(arm.rstrip("0123456789")) :]):
            described[path] = f"{arm} ({words})"
        values = settings.get(os.path.dirname(path), {})
        if keys := sorted(varied & values.keys()):
            described[path] = " ".join(f"{key}={values[key]}" for key in keys)
    return described


def _name_workload(run: LogRun, roles: Mapping[str, str]) -> str:
    script = run.options.get("script", "")
    words = roles.get("workload", "").split()
    if script and (not words or words[0].lower() in _GENERIC):
        words[:1] = [script]
    return " ".join(map(_script_name, words)) or _by_mix(run)


def _script_name(word: str) -> str:
    """The name of a script, if a word is one."""
    if _WORKLOAD.fullmatch(word) is None:
        return word
    name = word.lower().replace("-", "_")
    bare = name.removeprefix("oltp_")
    return _SCRIPTS.get(bare, bare)


def _by_mix(run: LogRun) -> str:
    """Statement mix of a run's transactions, as the name of an unnamed workload."""
    each = [round(count / max(run.events, 1), 1) for count in (run.reads, run.writes, run.other)]
    names = {"14/4/2": "read_write", "14/0/2": "read_only", "14/0/0": "read_only", "1/0/0": "point_select",
             "0/4/2": "write_only", "0/1/0": "one write"}  # fmt: skip
    mix = "/".join(f"{number:g}" for number in each)
    return names.get(mix, f"{mix} r/w/o")


def _with_arms(runs: list[LogRun], root: str, arm_globs: Sequence[tuple[str, str]]) -> list[LogRun]:
    """Runs with an arm: the user's, else a heading, an address, or the name of file or folder."""
    for name, pattern in arm_globs:
        # A pattern may be of a part of the path.
        runs = [replace(run, arm=name) if fnmatch(run.path, f"*{pattern}*") else run for run in runs]
    headings = [_THREADS.sub("", _WORKLOAD.sub("", run.heading)).strip(" ,:;-–()") for run in runs]
    places = [":".join(filter(None, map(run.options.get, ("host", "port")))) for run in runs]
    telling = [arms for arms in (headings, places) if len({*arms}) > 1 and all(arms)]
    paths = {run.path for run in runs}
    stem = os.path.basename(root.rstrip("/"))
    if len(paths) == 1:
        stem = _ENDINGS.sub("", os.path.basename(paths.pop()))
    arms = telling[0] if telling else [stem or "all"] * len(runs)
    return [replace(run, arm=run.arm or arm) for run, arm in zip(runs, arms, strict=True)]


def _with_order(runs: list[LogRun]) -> list[LogRun]:
    """Runs of a file that differ in nothing are repetitions in their order."""
    counts: Counter[tuple[object, ...]] = Counter()
    ordered = []
    for run in runs:
        key = (run.arm, run.workload, run.level, run.repeat, run.process)
        counts[key] += 1
        ordered.append(run if counts[key] == 1 else replace(run, repeat=f"{run.repeat}+{counts[key]}"))
    return ordered


def _order_arms(runs: Sequence[LogRun], baseline: str | None) -> tuple[str, ...]:
    arms = sorted({run.arm for run in runs}, key=_number_key)
    first = next((arm for arm in arms if _BASELINE.search(arm)), arms[0])
    if baseline is not None and (first := find_arm(baseline, arms) or "") not in arms:
        raise BenchbookError(f"--baseline {baseline}: no arm has that name; there are {', '.join(arms)}")
    return (first, *(arm for arm in arms if arm != first))


def _number_key(text: str) -> list[tuple[int, int | str]]:
    """Key that sorts texts with their numbers by value."""
    return [(0, int(part)) if part.isdigit() else (1, part) for part in re.split(r"(\d+)", text) if part]


def find_arm(name: str, arms: Sequence[str]) -> str | None:
    """The arm of a name, or the only one that has it as a part; None if there are none or several."""
    near = [arm for arm in arms if arm == name.strip()] or [arm for arm in arms if name.strip() in arm]
    return near[0] if len(near) == 1 else None
