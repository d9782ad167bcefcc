"""`benchbook new`: five questions, on a terminal or as options, and a commented study file that is valid."""

from __future__ import annotations

import argparse
import json
import re
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchbook.core import load, paths, registry, traits, yamlfile
from benchbook.core.errors import BenchbookError, InputErrors, did_you_mean
from benchbook.core.explain import validate
from benchbook.core.study import Study
from benchbook.core.study_sections import NAME, Engine

# Seconds of discard and run, and what to know of them.
IN_TURNS = ("0.3", "1", "the arms take turns of 50 ms inside the same second")
IN_RUNS = ("2", "8", "whole runs, because turns can't be had; 15 and 45 s give narrower intervals")


@dataclass(frozen=True)
class Answers:
    """What was answered; `differs` has two arms or more, as YAML."""

    name: str
    question: str
    differs: str
    engine: str
    workloads: tuple[str, ...]
    threads: tuple[int, ...]


@dataclass(frozen=True)
class Asked:
    """One question: its option, what it asks, the answer that Enter gives, and what refuses an answer."""

    option: str
    text: str
    default: str
    check: Callable[[str], str | None]


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `benchbook new`; one that is given is not asked for."""
    parser.epilog = (
        "Without a terminal, what has no default must be given. "
        'Example: benchbook new --name pool --question "Does a larger pool help?" '
        '--differs "small: innodb_buffer_pool_size=8388608; large: innodb_buffer_pool_size=268435456"'
    )
    for one in QUESTIONS:
        default = f" (default: {one.default})" if one.default else ""
        parser.add_argument(f"--{one.option}", help=f"{one.text}{default}", metavar="TEXT")


def run(arguments: argparse.Namespace) -> int:
    """Ask what was not given, write `studies/NAME.yaml`, say what to do next; no file is replaced."""
    given = {one.option: getattr(arguments, one.option) for one in QUESTIONS}
    is_asked = sys.stdin.isatty()
    wrong, told = [], {}
    for one in QUESTIONS:
        answer, is_given = given[one.option], given[one.option] is not None
        if not is_given and is_asked:
            answer = _ask(one)
        elif not is_given:
            answer = one.default
            if not answer:
                wrong.append(
                    f"--{one.option}: missing, and there is no terminal to ask on; give it as an option"
                )
                continue
        if reason := one.check(answer):
            wrong.append(f"--{one.option}: {reason}")
        told[one.option] = answer
    if wrong:
        raise InputErrors(wrong)
    answers = Answers(
        *(told["name"].strip(), told["question"].strip(), told["differs"].strip(), told["engine"].strip()),
        tuple(word for word in _words(told["load"]) if not word.isdigit()),
        tuple(dict.fromkeys(int(word) for word in _words(told["load"]) if word.isdigit())),
    )
    write(answers)
    print(
        f"studies/{answers.name}.yaml is written; `make plan STUDY={answers.name}` shows how long it takes,"
    )
    print(f"`make repro STUDY={answers.name}` measures it. Commit it first: a page says so of its question.")
    return 0


def write(answers: Answers) -> None:
    """Write the study file, complete and valid or not at all. InputErrors with every mistake in it."""
    where = paths.study(answers.name)
    file = where.file
    if file.exists():
        raise InputErrors([f"--name: {answers.name}: {where.shown} is there already; choose another name"])
    content = _valid(answers, f"studies/{file.name}")
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        # Exclusive: between the look and the write another program may have made it.
        with file.open("x", encoding="utf-8") as stream:
            stream.write(content)
    except FileExistsError:
        raise InputErrors([f"studies/{file.name}: is there already; choose another name"]) from None
    try:
        load.study_file(file)
    except (InputErrors, BenchbookError):
        file.unlink()
        raise


def _valid(answers: Answers, name: str) -> str:
    """Return the file with the lengths of turns, or those of whole runs where turns can't be had."""
    try:
        validate(yamlfile.parse(text(answers).encode(), name), Study)
        return text(answers)
    except InputErrors:
        content = text(answers, IN_RUNS)
        validate(yamlfile.parse(content.encode(), name), Study)
        return content


def text(answers: Answers, lengths: tuple[str, str, str] = IN_TURNS) -> str:
    """Return the study file as YAML with a comment for what a newcomer will want to change."""
    discard_s, run_s, why = lengths
    arms = arms_of(answers.differs)
    settings = "\n".join(_arm(name, one, answers.engine) for name, one in arms.items())
    loads = "\n".join(f"  {name}: {{rand_type: uniform}}" for name in answers.workloads)
    return f"""# yaml-language-server: $schema=../schemas/study.schema.json
# Every key is explained in docs/parameters.md; `make plan STUDY={answers.name}` checks this file.
title: {_quoted(answers.question[:110].rstrip())}
question: {_quoted(answers.question)}

site:
  kind: local                 # this machine; hosts: docs/ssh.md, a cluster: docs/kubernetes.md
  port: 23060
  cpus: split                 # server on one half of the cores, client and proxy on the other

engine:
  name: {answers.engine}
{textwrap.indent(traits.engine(answers.engine).example, "  ")}

arms:                         # the first is the baseline; each holds only what differs
{settings}

# The baseline against itself: what is reported when there is nothing to find.
aa: {{threads: [{max(answers.threads)}]}}

dataset:
  tables: 2
  table_size: 20000
  seed: 1

workloads:
{loads}

threads: [{", ".join(map(str, answers.threads))}]

plan:
  blocks: 5                   # verdicts at 5, 10 and 20; more can be added later, and no run is made twice
  discard_s: {discard_s:<15} # not counted, at the start of each run
  run_s: {run_s:<19} # {why}
  max_repeats: 6

warm_up:
  prewarm: true
  analyze: true
  pilot_s: 2

claims: []                    # published claims that it answers, such as tidb-kubernetes/host-network
"""


def _quoted(text: str) -> str:
    # What JSON writes in quotes, YAML reads in them.
    return json.dumps(text, ensure_ascii=False)


def arms_of(differs: str) -> dict[str, dict[str, str]]:
    """Return the arms of an answer: names with what they set, `name: key=value, key=value; name: …`.

    >>> arms_of("direct; haproxy: access=haproxy")
    {'direct': {}, 'haproxy': {'access': 'haproxy'}}
    """
    arms = {}
    for part in (part.strip() for part in differs.split(";")):
        if not part:
            continue
        name, _, settings = (piece.strip() for piece in part.partition(":"))
        pairs = (one.partition("=") for one in settings.split(",") if one.strip())
        if name in arms:
            raise ValueError(f"{name}: twice; give each arm a name of its own")
        arms[name] = {key.strip(): value.strip() for key, _, value in pairs}
    return arms


# Keys of an arm that are one word; all others are settings of the server.
_OF_ARM = ("access", "network", "qos")


def _arm(name: str, settings: Mapping[str, str], engine: str) -> str:
    own = {key: value for key, value in settings.items() if key in _OF_ARM}
    version = settings.get("version")
    server = {key: value for key, value in settings.items() if key not in (*_OF_ARM, "version")}
    if not settings:
        return f"  {name}: {{}}"
    lines = [f"  {name}:", *(f"    {key}: {value}" for key, value in own.items())]
    if version or server:
        lines.append("    engine:")
    if version:
        lines.append(f'      version: "{version}"')
    if server:
        lines += ["      settings:", *(f"        {key}: {value}" for key, value in server.items())]
    return "\n".join(lines)


def _ask(one: Asked) -> str:
    """Ask until the answer can be used; Enter takes the default."""
    while True:
        default = f" [{one.default}]" if one.default else ""
        answer = input(f"{one.text}{default}: ").strip() or one.default
        reason = one.check(answer)
        if reason is None:
            return answer
        print(f"  {reason}")


def _words(text: str) -> list[str]:
    return list(dict.fromkeys(re.split(r"[,\s]+", text.strip().strip("[]"))))


def _name(text: str) -> str | None:
    if not re.fullmatch(NAME, text.strip()):
        return "write lower-case letters, digits, _ and -, a letter first, 40 at most"
    if text.strip() in paths.studies():
        return f"{paths.study(text.strip()).shown} is there already; choose another name"
    return None


def _question(text: str) -> str | None:
    if not 3 <= len(text.strip()) <= 1000 or "\n" in text:
        return "write one sentence of 3 to 1000 characters"
    return None


def _differs(text: str) -> str | None:
    try:
        arms = arms_of(text)
    except ValueError as error:
        return str(error)
    if len(arms) < 2:
        return "name two arms or more with ; between them, such as: direct; haproxy: access=haproxy"
    for name, settings in arms.items():
        if not re.fullmatch(NAME, name):
            return f"{name!r} is no name of an arm; write lower-case letters, digits, _ and -"
        for key, value in settings.items():
            if not re.fullmatch(r"[a-z][a-z0-9_.-]*", key) or not re.fullmatch(r"[\w.,/@%+-]+", value):
                return f"{name}: {key}={value}: write key=value, with , between several"
    if len({tuple(sorted(one.items())) for one in arms.values()}) < len(arms):
        return "two arms are the same; say in what each differs"
    return None


def _engine(text: str) -> str | None:
    return None if text.strip() in engines() else f"{text}: {did_you_mean(text.strip(), engines())}"


def engines() -> list[str]:
    """Return the engines that run on this machine."""
    return [name for name, of in traits.engines().items() if "local" in of.sites]


def _load(text: str) -> str | None:
    words = _words(text)
    threads = [word for word in words if word.isdigit()]
    scripts = [word for word in words if not word.isdigit()]
    unknown = [word for word in scripts if word not in registry.SCRIPTS]
    if unknown:
        return f"{unknown[0]}: {did_you_mean(unknown[0], registry.SCRIPTS)}"
    if not scripts or not threads or not all(1 <= int(word) <= 65535 for word in threads):
        return "name workloads and numbers of threads, such as: oltp_point_select 1 8"
    return None


QUESTIONS: Sequence[Asked] = (
    Asked("name", "Name of the study, and of its file", "", _name),
    Asked("question", "The question, in a sentence", "", _question),
    Asked(
        "differs",
        "What differs, arm by arm, the baseline first (name: key=value, key=value; name: …)",
        "direct; haproxy: access=haproxy",
        _differs,
    ),
    Asked("engine", f"Engine: {' or '.join(engines())}", Engine.model_fields["name"].default, _engine),
    Asked("load", "Workloads of sysbench, and threads", "oltp_point_select oltp_read_write 1 8", _load),
)
