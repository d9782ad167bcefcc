"""What belongs to an own script, and what can't."""

import hashlib
from pathlib import Path

import pytest

from benchbook.core.study import interleaving
from benchbook.core.study.custom_scripts import CustomScript
from benchbook.core.util.errors import BenchbookError
from tests import small
from tests.goldens import assert_golden_case


def script(folder: Path, **modules: str) -> CustomScript:
    for name, text in modules.items():
        (folder / f"{name}.lua").write_bytes(text.encode())
    return CustomScript("mine", folder / "mine.lua", {})


def test_modules_beside_it_belong_to_it_and_those_of_sysbench_do_not(tmp_path: Path):
    mine = script(
        tmp_path,
        mine='require("a")\nrequire "oltp_common"\n',
        a="local b = require 'b'\r\n",
        b='-- require("c")\n--[[ require("c") ]] return 1',
        c="",
    )
    assert list(mine.texts()) == ["mine.lua", "a.lua", "b.lua"]
    # Line ends as they are: the digest is the file's.
    assert mine.digests()["a.lua"] == hashlib.sha256(b"local b = require 'b'\r\n").hexdigest()


@pytest.mark.parametrize("text", ['dofile("other.lua")', "require(name)", 'require("a" .. n)'])
def test_what_it_runs_must_be_told_beforehand(text: str, tmp_path: Path):
    mine = script(tmp_path, mine=text)
    with pytest.raises(BenchbookError) as refused:
        mine.texts()
    assert_golden_case("refused_files.txt", f"script: {text}", str(refused.value).replace(f"{tmp_path}/", ""))


def test_a_script_that_is_not_there_is_named_with_what_to_do(tmp_path: Path):
    with pytest.raises(BenchbookError) as refused:
        CustomScript("mine", tmp_path / "gone.lua", {}).texts()
    assert_golden_case("refused_files.txt", "script: gone", str(refused.value).replace(f"{tmp_path}/", ""))


def test_arms_that_share_a_server_get_whole_runs():
    changes = {
        "workloads": {"mine": {"script": "../beside/mine.lua", "options": {"scale": 1}}},
        "plan": {"blocks": 1, "discard_s": 1, "run_s": 2},
    }
    assert interleaving.choose_order(small.study(**changes), "mine") == interleaving.RUNS
    changes["arms"] = {"a": {}, "b": {"engine": {"settings": {"max_connect_errors": 101}}}}
    assert interleaving.choose_order(small.study(**changes), "mine") == interleaving.TURNS
