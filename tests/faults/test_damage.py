"""Damaged files are named and never read as data; no stage falls over them with a traceback."""

import json
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchbook.core.artifacts import run_folder
from benchbook.core.study import load
from benchbook.core.study.params import Limits
from benchbook.core.util.errors import InputErrors
from benchbook.measure import store
from benchbook.read import tidy, validity
from tests import depth
from tests.read import synthetic

LIMITS = Limits()
QUICK = settings(max_examples=depth.examples(60), suppress_health_check=list(HealthCheck))
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def made(base: Path) -> tuple[run_folder.RunFolder, pd.DataFrame]:
    """Write one valid run and its schedule."""
    shutil.rmtree(base, ignore_errors=True)
    plan = synthetic.planned()
    folder = synthetic.folder(base / "raw", plan, synthetic.output())
    names = ("run_id", "block", "position", "group", "arm", "workload", "threads", "seed")
    return folder, pd.DataFrame([{name: plan[name] for name in names}])


def read(base: Path, schedule: pd.DataFrame) -> tuple[list[Any], list[Any], list[Any]]:
    tables = tidy.read_study(base / "raw", base / "void", schedule, LIMITS)
    return tuple(tables[name].to_pylist() for name in ("runs", "refused", "voids"))  # type: ignore[return-value]


def test_the_run_of_these_tests_is_valid(tmp_path: Path):
    folder, schedule = made(tmp_path)
    assert validity.judge_run(folder, LIMITS).status == "valid"
    runs, refused, _ = read(tmp_path, schedule)
    assert (len(runs), refused) == (1, [])


@pytest.mark.parametrize("name", [*run_folder.CONTENT, run_folder.MANIFEST])
@QUICK
@given(value=ANYTHING)
def test_a_file_of_a_run_that_holds_something_else_is_named(name, value, tmp_path_factory):
    """Also with a manifest that agrees: then the checks must find it."""
    base = tmp_path_factory.getbasetemp() / f"damage-{name}"
    folder, schedule = made(base)
    (folder.path / name).write_text(json.dumps(value), encoding="utf-8")
    runs, refused, _ = read(base, schedule)
    assert runs == []
    assert [row["status"] for row in refused] == ["broken"]
    assert name in refused[0]["reasons"]
    if name not in (run_folder.MANIFEST, run_folder.MONITOR):
        part = folder.path.rename(folder.path.with_name(folder.name + run_folder.PART))
        run_folder.move_to_raw(run_folder.seal_folder(part, 1), base / "raw")
        assert validity.judge_run(folder, LIMITS).status != "valid"
        assert read(base, schedule)[0] == []


@pytest.mark.parametrize("name", [*run_folder.CONTENT, run_folder.MANIFEST])
@pytest.mark.parametrize("where", [0.0, 0.3, 0.99])
def test_a_file_of_a_run_that_was_cut_costs_that_run_alone(name, where, tmp_path, inject):
    folder, schedule = made(tmp_path)
    content = (folder.path / name).read_bytes()
    cut = content[: int(len(content) * where)]
    (folder.path / name).write_bytes(cut)
    if not content:
        pytest.skip("the file is empty when it is whole")
    inject("F40", f"{name} cut at {100 * where:g} %")
    runs, refused, _ = read(tmp_path, schedule)
    assert runs == [] and refused[0]["status"] == "broken" and name in refused[0]["reasons"]
    said: list[str] = []
    where = tmp_path / "raw", tmp_path / "void"
    # A row of the schedule is as much of a planned run as says which it is.
    missing = store.tidy_up([schedule.iloc[0]], *where, validity.judge_run, said.append)
    assert len(missing) == 1, "it is run again"
    assert name in "\n".join(said)
    assert (tmp_path / "void" / f"{folder.name}.a1" / name).read_bytes() == cut


@QUICK
@given(value=st.one_of(ANYTHING.map(json.dumps), st.text(max_size=40)))
def test_a_damaged_note_of_a_void_is_named_and_stops_nothing(value, tmp_path_factory):
    base = tmp_path_factory.getbasetemp() / "notes"
    folder, schedule = made(base)
    run_folder.void_folder(folder.path, base / "void", "invalid", ["V1 exit code: exit code 1"])
    note = base / "void" / f"{folder.name}.a1.void.json"
    note.write_bytes(value.encode("utf-8", "surrogatepass"))
    _, refused, voids = read(base, schedule)
    assert voids == []
    assert "unreadable" in [row["status"] for row in refused]
    assert any(note.name in row["reasons"] for row in refused)
    planned, say = [schedule.iloc[0]], lambda said: None
    assert len(store.tidy_up(planned, base / "raw", base / "void", validity.judge_run, say)) == 1
    assert store.count_attempts(base / "void", folder.name) == 0


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root with a study, a params.yaml and a source to be damaged."""
    root = Path(__file__).resolve().parents[2]
    monkeypatch.setenv("BENCHBOOK_ROOT", str(tmp_path))
    (tmp_path / "studies").mkdir()
    shutil.copy(root / "studies" / "quick.yaml", tmp_path / "studies")
    shutil.copytree(root / "data" / "published", tmp_path / "data" / "published")
    shutil.copy(root / "params.yaml", tmp_path)
    return tmp_path


@QUICK
@given(data=st.data())
def test_a_params_file_or_a_source_with_damage_is_refused_in_words(data: st.DataObject, room: Path):
    """Cut anywhere, with bytes changed anywhere: read as it is, or refused with the name of the file."""
    source = "data/published/tiproxy-haproxy/source.yaml"
    name = data.draw(st.sampled_from(["params.yaml", "studies/quick.yaml", source]))
    path = room / name
    whole = path.read_bytes()
    place = data.draw(st.integers(0, len(whole) - 1))
    odd = st.sampled_from([b"\t", b"\0", b": [", b"&a *a", b"!!python/x ", b"- "])
    other = data.draw(st.binary(max_size=6) | odd)
    path.write_bytes(whole[:place] + other + (whole[place + 1 :] if data.draw(st.booleans()) else b""))
    try:
        if name == "params.yaml":
            load.load_params()
        elif name.startswith("studies"):
            load.load_study("quick")
        else:
            from benchbook.core.published import source as sources

            sources.load_source("tiproxy-haproxy")
    except InputErrors as refused:
        assert refused.errors
        assert all(Path(name).name in line or "studies" in line for line in refused.errors), refused.errors
    finally:
        path.write_bytes(whole)
