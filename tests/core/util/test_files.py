"""Files are complete or absent, and the same content gives the same bytes."""

import math
import os
import time
from pathlib import Path

import pandas as pd
import pytest

from benchbook.core.util import files
from benchbook.core.util.errors import BenchbookError, NotThere
from tests.goldens import assert_golden_case


def test_the_same_content_gives_the_same_bytes_and_what_is_no_number_is_null(tmp_path: Path):
    files.write_json(tmp_path / "a", {"b": math.inf, "a": [1.5, "é"], "c": {"y": -math.inf, "x": None}})
    files.write_json(tmp_path / "b", {"c": {"x": math.nan, "y": None}, "a": (1.5, "é"), "b": None})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert (tmp_path / "a").read_bytes().endswith(b"}\n")
    assert files.read_json(tmp_path / "a") == {"b": None, "a": [1.5, "é"], "c": {"y": None, "x": None}}


def test_a_file_is_whole_or_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "deep" / "a.json"
    files.write_json(path, {"a": 1})
    before = path.read_bytes()

    def full_disk(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space left"):
        files.write_json(path, {"a": 2})
    assert path.read_bytes() == before


def test_a_table_is_written_without_its_index(tmp_path: Path):
    files.write_csv(tmp_path / "t.csv", pd.DataFrame({"a": [1, 2], "b": [0.1, None]}, index=[7, 8]))
    assert (tmp_path / "t.csv").read_bytes() == b"a,b\n1,0.1\n2,\n"


def test_the_hash_is_of_the_bytes_on_disk(tmp_path: Path):
    (tmp_path / "a").write_bytes(b"abc")
    # FIPS 180-2, appendix B.1
    digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert files.digest_file(tmp_path / "a") == digest


def test_what_no_stage_has_left_yet_says_what_to_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("BENCHBOOK_ROOT", str(tmp_path))
    with pytest.raises(NotThere) as refusal:
        files.read_csv(tmp_path / "data" / "own" / "schedule.csv", "run_id")
    assert_golden_case("refused_files.txt", "artifact: not there yet", str(refusal.value))
    assert len(refusal.value._render_traceback_()) == 1
    with pytest.raises(NotThere, match=r"notebooks/05_parse\.ipynb"):
        files.require_path(tmp_path / "data" / "own" / "tidy" / "runs.parquet")
    with pytest.raises(BenchbookError) as unread:
        files.read_json(tmp_path / "data" / "own" / "plots" / "x.json")
    assert_golden_case(
        "refused_files.txt", "json: no such file", str(unread.value).replace(f"{tmp_path}/", "")
    )


def test_a_key_that_stands_twice_among_many_is_named_at_once():
    text = "{" + ",".join(f'"{number}":0' for number in range(50_000)) + ',"7":1}'
    began = time.process_time()
    with pytest.raises(ValueError, match="'7'") as refused:
        files.parse_json(text.encode())
    assert time.process_time() - began < 5, "a minute, where each key was looked for among all before it"
    assert_golden_case("refused_files.txt", "json: a key twice", str(refused.value))
