"""Check V5: sysbench was started with the options of the plan, and says so itself.

Its header repeats a few of them. The command line that was recorded has all, so it is held against what the
plan asks for, option by option.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from benchbook.core import registry, several, sysbench_options
from benchbook.core.params import Limits
from benchbook.read import checks_log, checks_own
from benchbook.read.evidence import Evidence

BINARY = "sysbench"
PLACES = {
    "mysql": ({"mysql-socket"}, {"mysql-host", "mysql-port"}),
    "pgsql": ({"pgsql-host", "pgsql-port"},),
}


def options(run: Evidence, limits: Limits) -> list[str]:
    """V5: header, command line and file of options say what the plan asks for."""
    return checks_log.header(run, limits) + command_line(run) + checks_own.files(run)


def command_line(run: Evidence) -> list[str]:
    """Return where the recorded command line, or the file of options beside it, is not the plan's."""
    argv = run.get("argv")
    given = [word[2:].partition("=")[::2] for word in argv if word.startswith("--")]
    words = [word for word in argv if not word.startswith("--")]
    script, has_file = run.asked("script"), several.has_file(run.plan.get("arm_setting"))
    faults = []
    if [PurePosixPath(words[0]).name if words else None, *words[1:]] != [BINARY, script, "run"]:
        faults.append(f"the command is {' '.join(words)!r}, {f'{BINARY} {script} run'!r} asked")
    accounts = sum(name == sysbench_options.ACCOUNT for name, _ in given)
    if accounts != 1 + has_file:
        faults.append(f"{accounts} options --{sysbench_options.ACCOUNT}, {1 + has_file} expected")
    found = dict(given)
    faults += [f"--{name} is given twice" for name in found if _is_repeated(name, given)]
    general, of_script = sysbench_options.general(run.planned), sysbench_options.of_script(run.planned)
    if has_file:
        faults += _faults(run.get("options", "asked"), general, run)
        return faults + list(_differing(found, of_script))
    return faults + _faults(found, general | of_script, run)


def _faults(found: Mapping[str, str], asked: Mapping[str, str], run: Evidence) -> list[str]:
    """Return where options differ from those asked, among them what says where the server is."""
    place = {name: value for name, value in found.items() if name in sysbench_options.CONNECTION}
    rest = {name: value for name, value in found.items() if name not in place}
    faults = list(_differing(rest, asked))
    driver = sysbench_options.driver(run.planned)
    if place.get("db-driver") != driver:
        faults.append(f"--db-driver={place.get('db-driver')}, {driver} expected")
    places = PLACES.get(driver, ())
    named = {name for names in PLACES.values() for one in names for name in one & place.keys()}
    if named not in places:
        faults.append("the command line names no server, or two")
    is_socket = "mysql-socket" in place or place.get("pgsql-host", "").startswith("/")
    if (run.plan.get("arm_setting") or {}).get("access") == registry.SOCKET and not is_socket:
        faults.append("the command line names no socket, access: socket asked")
    if driver != "mysql":
        return faults
    tls = (run.seen.get("tls") or {}).get("asked")
    if tls is not None and (place.get("mysql-ssl") == "off") != (tls == "off"):
        faults.append(f"--mysql-ssl={place.get('mysql-ssl')}, encryption {tls} asked")
    return faults


def _differing(found: Mapping[str, str], asked: Mapping[str, str]) -> Iterator[str]:
    for name in dict.fromkeys([*asked, *found]):
        if name == sysbench_options.ACCOUNT or found.get(name) == asked.get(name):
            continue
        if name not in asked:
            yield f"--{name}={found[name]} is on the command line, and the plan does not ask for it"
        else:
            given = f"is {found[name]}" if name in found else "is not on the command line"
            yield f"--{name} {given}, {asked[name]} asked"


def _is_repeated(name: str, given: Sequence[tuple[str, ...]]) -> bool:
    return name != sysbench_options.ACCOUNT and sum(one[0] == name for one in given) > 1
