"""A mistake in a file is told before anything starts: file, line, key, value, what to write."""

import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchbook.commands import cli, studies
from benchbook.core.study import load, validation_errors
from benchbook.core.study.params import Params
from benchbook.core.study.study import StudySpec
from benchbook.core.util import yaml_file
from benchbook.core.util.errors import BenchbookError, InputErrors
from tests import depth
from tests.goldens import assert_golden_case

TABLE = yaml_file.read_mapping(Path(__file__).parents[2] / "data" / "bad_inputs.yaml").data
CASES: list[dict[str, Any]] = TABLE["cases"]
MISTAKES = 72


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a good study and good parameters, in which nothing can be started."""
    monkeypatch.setenv("BENCHBOOK_ROOT", str(tmp_path))
    monkeypatch.setattr(subprocess, "Popen", None)
    (tmp_path / "studies").mkdir()
    (tmp_path / "studies" / "good.yaml").write_text(TABLE["study"])
    (tmp_path / "params.yaml").write_text(TABLE["params"])
    return tmp_path


def written(case: dict[str, Any]) -> bytes:
    """Return the bytes of a case's file."""
    text = case.get("whole", TABLE[case.get("file", "study")])
    if "line" in case:
        lines = text.splitlines()
        lines[case["line"] - 1] = case["is"]
        text = "\n".join(lines) + "\n"
    old, new = case.get("change", ("", ""))
    assert old in text
    return text.replace(old, new).encode(case.get("encoding", "utf-8"))


def name_of(case: dict[str, Any]) -> str:
    return f"{case.get('row', 'more')}: {case.get('is', case.get('encoding', 'whole file'))}"[:50]


def test_params_name_the_file_of_a_study_wherever_it_lies(root: Path):
    (root / "studies" / "pool").mkdir()
    (root / "studies" / "good.yaml").rename(root / "studies" / "pool" / "good.yaml")
    text = TABLE["params"].replace("{good: studies/good.yaml}", "{good: studies/pool/good.yaml}")
    (root / "params.yaml").write_text(text)
    assert load.load_study("good").threads == (1, 4) and list(load.load_params().studies) == ["good"]
    # As an archive has it that was made while all studies lay in one folder.
    (root / "params.yaml").write_text(TABLE["params"].replace("{good: studies/good.yaml}", "[good]"))
    assert list(load.load_params().studies) == ["good"]
    (root / "params.yaml").write_text(TABLE["params"])
    with pytest.raises(InputErrors) as refused:
        load.load_params()
    assert_golden_case("refused_files.txt", "params: a study in another folder", str(refused.value))


def test_a_study_that_is_called_like_a_folder_of_data_is_refused(root: Path):
    for name in ("record", "engines"):
        (root / "studies" / f"{name}.yaml").write_text(TABLE["study"])
    with pytest.raises(InputErrors) as refused:
        load.load_study("record")
    assert_golden_case("refused_files.txt", "study: called like a folder of data", str(refused.value))
    assert load.load_study("engines").title, "a word of ours elsewhere is a name like any other"


def test_two_files_of_one_name_are_refused(root: Path):
    (root / "studies" / "pool").mkdir()
    shutil.copy(root / "studies" / "good.yaml", root / "studies" / "pool")
    for asked in (load.load_params, lambda: load.load_study("good")):
        with pytest.raises(InputErrors) as refused:
            asked()
        assert_golden_case("refused_files.txt", "study: two files of one name", str(refused.value))


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_a_mistake_is_refused_with_its_place_and_its_remedy(case: dict[str, Any], root: Path):
    is_params = case.get("file") == "params"
    file = "params.yaml" if is_params else "studies/bad.yaml"
    (root / file).write_bytes(written(case))
    began = time.process_time()
    with pytest.raises(InputErrors) as refused:
        load.load_params() if is_params else load.load_study("bad")
    # Of work: a machine that is busy with others takes as long as it likes.
    took = time.process_time() - began
    (line,) = refused.value.errors
    place = f"{file}:{case.get('at', case.get('line'))}: "
    assert line.startswith(f"{place}{case['key']}")
    said = line.removeprefix(f"{place}{case['key']}")
    assert case.get("value", "") in said
    assert not [words for words in case["says"] if words not in said]
    assert case.get("hides", "\0") not in line
    assert took < 1


def test_a_twin_that_would_mislead_is_refused_before_measuring_and_read_afterwards(root, capsys):
    """Evidence that was measured before the rule is analyzed and verified as it was."""
    text = (
        TABLE["study"]
        .replace("  settings: {max_connections: 500}", "  name: tidb")
        .replace("direct: {access: direct}", 'older: {engine: {version: "5.0"}}')
        .replace("proxy: {access: haproxy}", 'later: {engine: {version: "6.6"}}')
        .replace("aa: {}", "aa: {threads: [4]}")
    )
    (root / "studies" / "good.yaml").write_text(text)
    assert load.load_study("good").aa == load.study_file(root / "studies" / "good.yaml").aa
    said = r"^studies/good\.yaml:10: aa\.threads: \[4\]: .* serves fewer groups; write aa: {}, or plan\.order"
    stages = [["stage", stage, "good"] for stage in ("provision", "prepare", "warm-up", "run-matrix")]
    for asked in (["check"], ["plan", "good"], ["repro", "--study", "good"], *stages):
        assert cli.main(asked) == 2 and re.search(said, capsys.readouterr().err, re.MULTILINE), asked
    (root / "studies" / "good.yaml").write_text(text.replace("aa: {threads: [4]}", "aa: {}"))
    assert load.load_for_measuring("good").twin == "older_again"


def test_two_arms_that_set_the_same_are_refused_before_measuring_and_read_as_evidence(root: Path):
    text = TABLE["study"].replace("  proxy: {access: haproxy}", "  proxy: {access: direct, name: another}")
    (root / "studies" / "good.yaml").write_text(text)
    with pytest.raises(InputErrors) as refused:
        load.load_for_measuring("good")
    assert_golden_case("refused_files.txt", "study: two arms that set the same", str(refused.value))
    assert set(load.load_study("good").arms) == {"direct", "proxy"}


def test_every_mistake_of_the_list_is_refused_or_has_a_reason():
    refused = {case["row"] for case in CASES if "row" in case}
    reasons = {int(row) for row in TABLE["elsewhere"]}
    assert refused | reasons == set(range(1, MISTAKES + 1))
    assert not refused & reasons


def test_all_mistakes_of_a_file_are_told_at_once(root: Path):
    text = (
        TABLE["study"]
        .replace("  port: 23060", "  port: 80")
        .replace("table_size: 1000", "table_size: 10k")
        .replace("threads: [1, 4]", "treads: [1, 010]")
        .replace("blocks: 5", "blocks:")
    )
    # A claim is looked up whatever else is wrong.
    text = re.sub(r"^claims: .*$", "claims: [nobody/nothing]", text, flags=re.M)
    (root / "studies" / "bad.yaml").write_text(text)
    with pytest.raises(InputErrors) as refused:
        load.load_study("bad")
    assert_golden_case("refused_files.txt", "study: many mistakes", str(refused.value))


def test_all_contradictions_of_a_file_are_told_at_once(root: Path):
    text = (
        TABLE["study"]
        .replace("proxy:", "proxy_again:")
        .replace("  oltp_read_write:", "  mine:")
        .replace("threads: [1, 4]", "threads: [1, 600]")
        .replace("discard_s: 5", "discard_s: 0")
        .replace("warm_up: {}", "warm_up: {prewarm: false}")
    )
    (root / "studies" / "bad.yaml").write_text(text)
    with pytest.raises(InputErrors) as refused:
        load.load_study("bad")
    assert_golden_case("refused_files.txt", "study: many contradictions", str(refused.value))


def test_a_command_lists_the_mistakes_of_all_files_and_starts_nothing(root, capsys):
    assert cli.main(["check"]) == 0
    (root / "studies" / "bad.yaml").write_text(TABLE["study"].replace("tables: 2", "tables: 0"))
    (root / "studies" / "worse.yaml").write_text("- not a study\n")
    (root / "params.yaml").write_text(TABLE["params"].replace("level: 0.98", "level: 98"))
    assert cli.main(["check"]) == 2
    places = [line.split(": ")[0] for line in capsys.readouterr().err.splitlines()]
    assert places == ["params.yaml:5", "studies/bad.yaml:12", "studies/worse.yaml:1"]
    for command in (["plan", "bad"], ["up", "bad"], ["stage", "provision", "bad"]):
        assert cli.main(command) == 2
        assert_golden_case("refused_files.txt", "study: on the terminal", capsys.readouterr().err)


@pytest.mark.parametrize("name", ["nowhere", "../params", "studies/good.yaml", "", ".", "/etc/passwd"])
def test_a_study_is_a_name_and_never_a_path(name: str, root: Path):
    with pytest.raises(InputErrors) as refused:
        load.load_study(name)
    assert_golden_case("refused_files.txt", f"name: {name!r}", str(refused.value))


@pytest.mark.parametrize("name", ["My study", "a;b", "$(id)", "x@y", "--help", "über"])
def test_a_file_with_an_unusable_name_is_refused(name: str, root: Path):
    (root / "studies" / f"{name}.yaml").write_text(TABLE["study"])
    with pytest.raises(InputErrors) as refused:
        load.load_study(name)
    assert_golden_case("refused_files.txt", f"name of a file: {name!r}", str(refused.value))


def test_a_stage_sees_only_what_it_declares(root: Path):
    seen = load.load_study("good", "arms", "threads")
    assert (seen.baseline, seen.threads, seen.deployed("direct_again")) == ("direct", (1, 4), "direct")
    with pytest.raises(BenchbookError) as refused:
        _ = seen.dataset
    assert_golden_case("refused_files.txt", "section: not declared", str(refused.value))
    with pytest.raises(BenchbookError, match="reads `aa`"):
        # A property, by the section that it reads.
        _ = seen.twin
    with pytest.raises(BenchbookError, match="reads `limits`"):
        _ = load.load_params("analysis").limits
    with pytest.raises(BenchbookError) as refused:
        load.load_study("good", "arms", "four")
    assert_golden_case("refused_files.txt", "section: none of a study", str(refused.value))
    with pytest.raises(AttributeError, match="StudySpec has no five"):
        _ = seen.five


# Values of every kind, and keys that are nearly ours.
KEYS = st.text(max_size=5) | st.integers(0, 3) | st.sampled_from(["access", "direct", "oltp_read_write"])
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.dates()
    | st.sampled_from(["10k", "yes", "oltp_read_write", "direct", "uniform", "pareto", 2013, 0.5, 10**30]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)


def places(value: Any, path: tuple = ()) -> list[tuple]:
    """Return the path of every value inside a file."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path] + [found for key, item in items for found in places(item, (*path, key))]


def changed(value: Any, path: tuple, new: Any) -> Any:
    """Return a copy with another value in one place."""
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = changed(value[path[0]], path[1:], new)
    return copy


GOOD = {kind: yaml_file.parse_mapping(TABLE[kind].encode(), kind).data for kind in ("study", "params")}


@given(st.data())
@settings(max_examples=depth.examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_value_in_any_place_is_taken_or_refused(data: st.DataObject):
    kind = data.draw(st.sampled_from(["study", "params"]))
    good = GOOD[kind]
    for _ in range(data.draw(st.integers(1, 3))):
        good = changed(good, data.draw(st.sampled_from(places(good)[1:])), data.draw(VALUES))
    document = yaml_file.YamlDocument("x.yaml", good, dict.fromkeys(places(good), 1), {})
    try:
        validation_errors.validate_document(document, StudySpec if kind == "study" else Params)
    except InputErrors as error:
        assert error.errors
        assert all(line.startswith("x.yaml:1: ") and "; " in line for line in error.errors)


@given(st.data())
@settings(max_examples=depth.examples(60), deadline=None)
def test_a_damaged_file_is_taken_or_refused(data: st.DataObject):
    """Letters lost, added or exchanged anywhere in a good file."""
    text = TABLE["study"]
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text)))
        lost = data.draw(st.integers(0, 12))
        more = data.draw(st.text(alphabet=" \n\t:-[]{}&*!'\"#0aé~", max_size=3))
        text = text[:at] + more + text[at + lost :]
    try:
        document = yaml_file.parse_mapping(text.encode(), "x.yaml")
        study = validation_errors.validate_document(document, StudySpec)
    except InputErrors as error:
        assert all(line.startswith("x.yaml") for line in error.errors)
    else:
        assert study.arms and study.threads


def test_sections_that_say_nothing_may_be_left_out(root: Path):
    """Without them the baseline is measured against itself everywhere, and no claim is answered."""
    absent = "|".join(studies.OPTIONAL)
    short = re.sub(rf"^(?:{absent}):.*\n(?:  .*\n)*", "", TABLE["study"], flags=re.M)
    (root / "studies" / "good.yaml").write_text(short)
    study = load.load_study("good")
    assert study.has_twin("a", 4) and study.claims == () and study.dataset.tables == 2
    studies.complete_study("good")
    assert set(studies.OPTIONAL) <= set(yaml_file.read_mapping(root / "studies" / "good.yaml").data)
    assert load.load_study("good") == study
