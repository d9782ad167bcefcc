"""`benchbook new`: six questions, on a terminal or as options, and a commented study file that is valid."""

from __future__ import annotations

import argparse
import json
import re
import sys
import textwrap
import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePath
from typing import Any

from benchbook.core.study import descriptors, load
from benchbook.core.study.custom_scripts import CustomScript
from benchbook.core.study.study import StudySpec
from benchbook.core.study.study_base import NAME
from benchbook.core.study.sysbench_workloads import SCRIPTS
from benchbook.core.study.validation_errors import validate_document
from benchbook.core.util import paths, yaml_file
from benchbook.core.util.errors import BenchbookError, InputErrors, did_you_mean

LUA = ".lua"
# Seconds of discard and run, and what to know of them.
IN_TURNS = ("0.3", "1", "the arms take turns of 20 ms or more inside the same second")
IN_RUNS = ("2", "8", "whole runs, because turns can't be had; 15 and 45 s give narrower intervals")
OF_SCRIPT = ("1", "10", "long enough to count the errors of a script that has some")
ENGINES, SERVERS, SCRIPT = "engines", "servers", "script"
ASKED: dict[str, dict[str, dict[str, Any]]] = tomllib.loads(
    Path(__file__).with_name("new.toml").read_text("utf-8")
)
KINDS = ASKED["kind"]


@dataclass(frozen=True)
class Answers:
    """The answers; `differs` has two arms or more, as YAML."""

    about: str
    name: str
    question: str
    differs: str
    engine: str
    workloads: tuple[str, ...]
    threads: tuple[int, ...]


def get_question(option: str, about: str = "") -> tuple[str, str]:
    """Question for an option of a study about something, and the answer that Enter gives."""
    values, kind = ASKED["question"][option], KINDS.get(about, {})
    text = values["text"].format(kinds=", ".join(KINDS), engines=" or ".join(list_engines()))
    example = kind.get("example", {}).get(option)
    default = kind.get("default", {}).get(option, values.get("default", ""))
    return f"{text}, such as {example}" if example else text, default


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `benchbook new`; one that is given is not asked for."""
    parser.epilog = (
        "Without a terminal, what has no default must be given. Example: benchbook new --about setting "
        '--name pool --question "Does a larger pool help?" '
        f'--differs "{get_question("differs", "setting")[1]}"'
    )
    for option in CHECKS:
        text, default = get_question(option)
        message = f"{text} (default: {default})" if default else text
        parser.add_argument(f"--{option}", help=message, metavar="TEXT")


def run_dialog(**inputs: str | None) -> int:
    """Ask for missing answers, write `studies/NAME.yaml`, print the next step; replace no file."""
    wrong: list[str] = []
    messages: dict[str, str] = {}
    for option, check in CHECKS.items():
        text, default = get_question(option, messages.get("about", ""))
        answer = inputs[option]
        if answer is None:
            answer = _ask_until_valid(text, default, check) if sys.stdin.isatty() else default
        if not answer:
            wrong.append(f"--{option}: missing, and there is no terminal to ask on; give it: {text}")
        elif reason := check(answer):
            wrong.append(f"--{option}: {reason}")
        messages[option] = answer.strip()
    if wrong:
        raise InputErrors(wrong)
    workloads, threads = _split_load(messages.pop("load"))
    answers = Answers(**messages, workloads=tuple(workloads), threads=tuple(threads))
    write_study(answers)
    name = answers.name
    print(f"studies/{name}.yaml is written; `make plan STUDY={name}` shows how long it takes,")
    print(f"`make repro STUDY={name}` measures it. Commit the file before: the report shows whether you did.")
    print(KINDS[answers.about].get("next", "").format(name), end="")
    return 0


def write_study(answers: Answers) -> None:
    """Write the study file, complete and valid or not at all. InputErrors with every mistake in it."""
    where = paths.study_paths(answers.name)
    # Where turns can't be had it gets the lengths of whole runs.
    for lengths in (IN_TURNS, IN_RUNS):
        content = _render_study(answers, lengths)
        try:
            validate_document(yaml_file.parse_mapping(content.encode(), where.shown), StudySpec)
            break
        except InputErrors:
            if lengths is IN_RUNS:
                raise
    where.file.parent.mkdir(parents=True, exist_ok=True)
    # Exclusive: another program may have made it meanwhile.
    with where.file.open("x", encoding="utf-8") as stream:
        stream.write(content)
    try:
        load.study_file(where.file)
    except BenchbookError:
        where.file.unlink()
        raise


def _render_study(answers: Answers, lengths: tuple[str, str, str]) -> str:
    """The study file as YAML with a comment at each value that a newcomer will want to change."""
    # It brings pandas along.
    from benchbook.show import templating

    (baseline, first), *rest = arms_of(answers.differs).items()
    # The commit of the baseline is the study's own, so that a search for another one needs no more words.
    bare = {key: value for key, value in first.items() if "ref" not in first or key not in _OF_BUILD}
    name = answers.engine
    settings = [descriptors.find_engine(name).example]
    if answers.about == ENGINES:
        settings = _format_settings(_comparable_settings(name))
    inputs = {
        "lengths": OF_SCRIPT if answers.about == SCRIPT else lengths,
        "endpoint": first.get("endpoint", "").rpartition(":") if answers.about == SERVERS else None,
        "engine": "\n".join([f"name: {name}", *settings, *_format_build(first)]),
        "settings": "\n".join(_format_arm(*pair, answers.about) for pair in [(baseline, bare), *rest]),
        "options": {word: _script_options(word) for word in answers.workloads if word.endswith(LUA)},
        "is_script": answers.about == SCRIPT,
        "quoted": partial(json.dumps, ensure_ascii=False),
    }
    return templating.render_text("study.yaml.j2", of=answers, **inputs)


def _script_options(word: str) -> tuple[str, Mapping[str, tuple[str, str]]]:
    """Name of a custom script in a study, and the options that it declares."""
    name = PurePath(word).stem.lower().replace("-", "_")
    return name, CustomScript(name, (paths.find_root() / word).resolve(), {}).declared()


def arms_of(differs: str) -> dict[str, dict[str, str]]:
    """Arms of an answer: names with their settings, `name: key=value, key=value; name: …`.

    >>> arms_of("direct; haproxy: access=haproxy; other: db.example.org:3306")
    {'direct': {}, 'haproxy': {'access': 'haproxy'}, 'other': {'endpoint': 'db.example.org:3306'}}
    """
    arms = {}
    for part in filter(None, map(str.strip, differs.split(";"))):
        name, _, settings = (piece.strip() for piece in part.partition(":"))
        if name in arms:
            raise ValueError(f"{name}: twice; give each arm a name of its own")
        # An address alone is where the arm's server or proxy listens.
        texts = (re.sub(r"^([^=\s]+:\d+)$", r"endpoint=\1", text.strip()) for text in settings.split(","))
        pairs = (text.partition("=") for text in texts if text)
        arms[name] = {key.strip(): value.strip() for key, _, value in pairs}
    return arms


# Keys of an arm, of its engine, and of a commit that is built; all others are settings of the server.
_OF_ARM = ("access", "network", "qos")
_OF_ENGINE = {"engine": "name", "version": "version", "binary": "binary"}
_OF_BUILD = ("repo", "ref", "command", "binary")


def _format_arm(name: str, settings: Mapping[str, str], about: str) -> str:
    lines = [f"    {key}: {value}" for key, value in settings.items() if key in _OF_ARM]
    if "endpoint" in settings:
        host, _, port = settings["endpoint"].rpartition(":")
        lines.append(f"    endpoint: {{host: {host}, port: {port}}}")
    built = _OF_BUILD if "ref" in settings else ()
    of_engine = [key for key in settings if key in _OF_ENGINE and key not in built]
    engine = [f'{_OF_ENGINE[key]}: "{settings[key]}"' for key in of_engine] + _format_build(settings)
    beside = {*_OF_ARM, *_OF_ENGINE, *built, "endpoint"}
    server = {key: value for key, value in settings.items() if key not in beside}
    if about == ENGINES and "engine" in settings:
        server = _comparable_settings(settings["engine"]) | server
    if engine := [*engine, *_format_settings(server)]:
        lines += ["    engine:", textwrap.indent("\n".join(engine), " " * 6)]
    return "\n".join([f"  {name}:", *lines]) if lines else f"  {name}: {{}}"


def _format_settings(server: Mapping[str, str]) -> list[str]:
    return ["settings:", *(f"  {key}: {value}" for key, value in server.items())] if server else []


def _comparable_settings(engine: str) -> dict[str, str]:
    """Settings for comparing an engine with others, from its descriptor."""
    meanings = descriptors.find_engine(engine).meanings.values()
    return {name: json.dumps(value) for alike in meanings for name, value in alike.items()}


def _format_build(settings: Mapping[str, str]) -> list[str]:
    named = {key: settings[key] for key in _OF_BUILD if key in settings}
    return [f"build: {json.dumps(named)}"] if "ref" in settings else []


def _ask_until_valid(text: str, default: str, check: Callable[[str], str | None]) -> str:
    """Ask until the answer can be used; Enter takes the default."""
    while True:
        answer = input(f"{text}{f' [{default}]' if default else ''}: ").strip() or default
        reason = check(answer)
        if reason is None:
            return answer
        print(f"  {reason}")


def _split_load(text: str) -> tuple[list[str], list[int]]:
    """Workloads and numbers of threads in an answer, each once."""
    words = re.split(r"[,\s]+", text.strip().strip("[]"))
    workloads = dict.fromkeys(word for word in words if not word.isdigit())
    return [*workloads], [*dict.fromkeys(int(word) for word in words if word.isdigit())]


def _check_choice(choices: Collection[str], text: str) -> str | None:
    return None if text.strip() in choices else f"{text}: {did_you_mean(text.strip(), choices)}"


def _check_name(text: str) -> str | None:
    if not re.fullmatch(NAME, text.strip()):
        return "write lower-case letters, digits, _ and -, a letter first, 40 at most"
    if text.strip() in load.TAKEN:
        return f"data/{text.strip()} has a meaning of its own; choose another name"
    if text.strip() in paths.list_studies():
        return f"{paths.study_paths(text.strip()).shown} is there already; choose another name"
    return None


def _check_question(text: str) -> str | None:
    if not 3 <= len(text.strip()) <= 1000 or "\n" in text:
        return "write one sentence of 3 to 1000 characters"
    return None


def _check_differs(text: str) -> str | None:
    try:
        arms = arms_of(text)
    except ValueError as error:
        return str(error)
    if len(arms) < 2:
        return "name two arms or more with ; between them, such as: direct; haproxy: access=haproxy"
    if wrong := next(filter(None, map(_check_arm, arms, arms.values())), None):
        return wrong
    if len({tuple(sorted(arm.items())) for arm in arms.values()}) < len(arms):
        return "two arms are the same; say in what each differs"
    return None


def _check_arm(name: str, settings: Mapping[str, str]) -> str | None:
    if not re.fullmatch(NAME, name):
        return f"{name!r} is no name of an arm; write lower-case letters, digits, _ and -"
    for key, value in settings.items():
        form = r"[^'\x22\\]+" if key in _OF_BUILD else r"[\w.,:/@%+-]+"
        if not re.fullmatch(r"[a-z][a-z0-9_.-]*", key) or not re.fullmatch(form, value):
            return f"{name}: {key}={value}: write key=value, with , between several"
    if "endpoint" in settings and not re.fullmatch(r"\S+:\d+", settings["endpoint"]):
        return f"{name}: endpoint={settings['endpoint']}: write HOST:PORT"
    return None


def list_engines() -> list[str]:
    """Engines that run on this machine."""
    return [name for name, of in descriptors.load_engines().items() if "local" in of.sites]


def _check_load(text: str) -> str | None:
    scripts, threads = _split_load(text)
    for word in scripts:
        if word not in SCRIPTS and not word.endswith(LUA):
            return f"{word}: {did_you_mean(word, SCRIPTS)}"
    if not scripts or not threads or not all(1 <= number <= 65535 for number in threads):
        return "name workloads and numbers of threads, such as: oltp_point_select 1 8"
    return None


CHECKS: dict[str, Callable[[str], str | None]] = {
    "about": partial(_check_choice, KINDS),
    "name": _check_name,
    "question": _check_question,
    "differs": _check_differs,
    "engine": lambda text: _check_choice(list_engines(), text),
    "load": _check_load,
}
