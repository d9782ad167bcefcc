"""Each field of a committed run is held by a check, or stands in the table of what nothing can show false."""

import csv
import functools
import io
import json
from collections.abc import Collection, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from benchbook.core import paths, runfolder
from benchbook.evidence import archive, disclosed, proof
from benchbook.evidence.unpacked import Unpacked
from benchbook.plan import binding
from benchbook.read import validity
from tests.site import forging
from tests.site.conftest import ROOT

pytestmark = pytest.mark.usefixtures("logs_parsed_once")

# In turns with servers of their own and behind a proxy; whole runs of a fixed rate; a cluster.
RUNS = {
    "turns": ("lab-ladder/20261124T0456Z-0530", "-t0004-pool-8m-"),
    "proxy": ("quick/20261124T0425Z-9801", "-t0001-haproxy-"),
    "rate": ("lab-latency/20261123T1651Z-8394", "-haproxy-"),
    "cluster": ("cluster-network/20261123T0547Z-1d49", "-host-"),
    "postgresql": ("lab-postgresql/20261123T1729Z-f409", "-t"),
    "distance": ("lab-zones/20261125T0145Z-0033", "-several-zones-"),
}
CHECKS = ("session.json", "raw", "moments", "turns", "beside", "counters", "missing runs", "facts.json")
FILES = ("evidence.json", "plan.json", "session.json")


class Room:
    """One run of an unpacked archive, and what the checks that concern a run say of it."""

    def __init__(self, root: Path, name: str, sign: str) -> None:
        self.root, self.name = root, name
        self.where = paths.StudyPaths(name, root)
        self.run = next(one for one in runfolder.listing(self.where.raw) if sign in one.name)

    def file(self, name: str) -> Path:
        """Return one of the files whose fields are changed."""
        return self.where.session if name == "session.json" else self.run.path / name

    def wrong(self, checks: Collection[str] = CHECKS) -> set[str]:
        """Return what contradicts the others, as `proof.prove` finds it of this run and of all together."""
        held = Unpacked(self.root, self.name)
        held.judged = {self.run.name: validity.judge(self.run, held.params.limits)}
        found = [
            text
            for what in checks
            for text in proof._found(what, functools.partial(proof.CHECKS[what], held))
        ]
        return {*found, *proof._found("run", functools.partial(proof._of_run, held, self.run))}

    def named(self, file: Path, content: bytes, checks: Collection[str] = CHECKS) -> bool:
        """Tell whether other bytes in a file are named, with all hashes made again."""
        was, manifest = file.read_bytes(), (self.run.path / "manifest.json").read_bytes()
        file.write_bytes(content)
        forging.seal(self.run.path)
        try:
            return bool(self.wrong(checks))
        finally:
            file.write_bytes(was)
            (self.run.path / "manifest.json").write_bytes(manifest)


@pytest.fixture
def room(request: pytest.FixtureRequest, tmp_path: Path) -> Room:
    place, sign = RUNS[request.param]
    archive.unpack(ROOT / "data" / "record" / f"{place}.tar.xz", tmp_path)
    found = Room(tmp_path, place.partition("/")[0], sign)
    assert found.wrong() == set()
    return found


def told(file: str, field: str) -> bool:
    return any(fnmatch(field, one) for entry in disclosed.known()["open"] for one in entry.get(file, ()))


def changed(room: Room, name: str) -> Iterator[tuple[str, bytes]]:
    """Yield each field of a JSON file with the file's bytes in which it is another."""
    text = room.file(name).read_text() if room.file(name).is_file() else "{}"
    for at, value in forging.leaves(json.loads(text)):
        made: Any = json.loads(text)
        forging.put(made, at, forging.other(value))
        yield ".".join(map(str, at)), json.dumps(made).encode()


def columns(room: Room) -> Iterator[tuple[str, bytes]]:
    """Yield each column of the monitor with the file's bytes in which it has half as much again and more."""
    first, *rows = csv.reader(io.StringIO((room.run.path / "monitor.csv").read_text()))
    for place, name in enumerate(first):
        made = [[*row[:place], _more(row[place]), *row[place + 1 :]] for row in rows]
        yield name, ("\n".join(",".join(row) for row in [first, *made]) + "\n").encode()


def _more(text: str) -> str:
    try:
        return str(1.5 * float(text) + 7) if text else ""
    except ValueError:
        return f"{text}x"


@pytest.mark.slow
@pytest.mark.parametrize("room", RUNS, indirect=True)
def test_each_field_is_held_or_stands_in_the_table(room: Room) -> None:
    loose = [
        f"{name}: {field}"
        for name in FILES
        for field, content in changed(room, name)
        if not told(name, field) and not room.named(room.file(name), content)
    ]
    monitor = room.run.path / "monitor.csv"
    loose += [
        f"monitor.csv: {name}"
        for name, content in columns(room)
        if not told("monitor.csv", name) and not room.named(monitor, content)
    ]
    assert loose == []


@pytest.mark.slow
@pytest.mark.parametrize("room", ["turns", "distance"], indirect=True)
def test_each_key_of_the_study_file_is_held_or_stands_in_the_list(room: Room) -> None:
    text, loose = room.where.file.read_text(), []
    for at, value in forging.leaves(YAML(typ="safe").load(text)):
        made, field, whole = YAML(typ="safe").load(text), ".".join(map(str, at)), io.StringIO()
        forging.put(made, at, forging.other(value))
        YAML(typ="safe").dump(made, whole)
        is_listed = any(fnmatch(f"{field}.", f"{one}.*") for one in binding.UNBOUND_KEYS)
        if not is_listed and not room.named(room.where.file, whole.getvalue().encode(), proof.CHECKS):
            loose.append(field)
    assert loose == []


def test_verify_says_every_line_of_the_table(tmp_path: Path) -> None:
    archive.unpack(ROOT / "data" / "record" / f"{RUNS['turns'][0]}.tar.xz", tmp_path)
    lines = "\n".join(disclosed.unproven(Unpacked(tmp_path, "lab-ladder")))
    for entry in disclosed.known()["open"]:
        for file, names in entry.items():
            assert file == "says" or f"{file}: {entry['says']} ({', '.join(names)})" in lines
