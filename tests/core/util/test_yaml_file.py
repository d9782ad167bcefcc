"""A file is read as DVC reads it, and whatever another reader would take for something else is refused."""

import time
from pathlib import Path

import pytest
import yaml
from dvc.utils.serialize import parse_yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from benchbook.core.util import yaml_file
from benchbook.core.util.errors import InputErrors
from tests import depth
from tests.goldens import assert_golden_case


def parse(text: str | bytes) -> yaml_file.YamlDocument:
    return yaml_file.parse_mapping(text.encode() if isinstance(text, str) else text, "studies/x.yaml")


def errors(text: str | bytes) -> list[str]:
    with pytest.raises(InputErrors) as refused:
        parse(text)
    return refused.value.errors


# Tokens that a person may write where a number, a word or a truth value is meant.
TOKENS = (
    "1", "-1", "+1", "0", "00", "010", "-010", "0o17", "0o1_7", "0x1F", "0b101", "1_000", "1__0", "0x_1F",
    "1.5", ".5", "1.", "1e3", "1E3", "1e+3", "1.5e3", "1.5e+3", "1_0.5", "1:30", "1:30.5", "190:20:30",
    "-1:30", ".inf", "-.inf", "+.inf", ".nan", ".NaN", "inf", "nan", "yes", "Yes", "YES", "no", "on", "Off",
    "y", "N", "true", "True", "TRUE", "false", "null", "Null", "~", "abc", "10k", "4x", "1m", "2026-11-20",
    "10.11", "'010'", '"yes"', "0.5", "089", "+.5", "-0", "1e-3", ".5e3", "0e1", "1.e3",
)  # fmt: skip


def same(one: object, two: object) -> bool:
    """Compare two values by type as well; NaN is the same as NaN."""
    return type(one) is type(two) and (one == two or (one != one and two != two))


def read_by_1_1(text: str) -> object:
    try:
        return yaml.safe_load(text)["key"]
    except (yaml.YAMLError, ValueError) as error:
        return error


def is_told(token: str) -> bool:
    """Say whether a token is either the same in YAML 1.1 and 1.2, or named as ambiguous."""
    document = parse(f"key: {token}")
    return ("key",) in document.ambiguous or same(document.data["key"], read_by_1_1(f"key: {token}"))


@pytest.mark.parametrize("token", TOKENS)
def test_a_value_is_what_dvc_reads_and_named_where_yaml_1_1_reads_it_otherwise(token: str):
    assert same(parse(f"key: {token}").data["key"], parse_yaml(f"key: {token}", "x.yaml", typ="safe")["key"])
    assert is_told(token)


@given(
    st.text(alphabet="0123456789_:.+-eExXoObBynYNfFaA", min_size=1, max_size=8)
    | st.from_regex(
        r"[-+]?(0[xob]?)?[0-9_]{0,3}(:[0-9]{1,2})?\.?[0-9_]{0,2}([eE][-+]?[0-9]{1,2})?", fullmatch=True
    )
)
@settings(max_examples=depth.examples(100), deadline=None)
def test_no_number_like_token_slips_through(token: str):
    try:
        parse(f"key: {token}")
    except InputErrors:
        return
    assert is_told(token)


@pytest.mark.parametrize("token", ["'010'", '"1:30"', '"yes"', "'1e6'"])
def test_a_quoted_value_is_text_and_not_ambiguous(token: str):
    assert not parse(f"key: {token}").ambiguous


@pytest.mark.parametrize(
    ("token", "remedy"),
    [("1e6", "write 1000000"), ("10_000", "write 10000"), ("010", "read as 8"), ("1:30", "plain seconds")],
)
def test_an_ambiguous_value_comes_with_its_remedy(token: str, remedy: str):
    line = parse(f"a: 1\nkey: {token}").ambiguous["key",]
    assert line.startswith(f"studies/x.yaml:2: key: {token}: ")
    assert remedy in line


def test_lines_are_known_for_every_key_and_item():
    document = parse("a:\n  b: 1\n  c:\n  - x\n  - y: 2\nd: {e: 3}\n")
    lines = {"a": 1, "a.b": 2, "a.c": 3, "a.c.0": 4, "a.c.1": 5, "a.c.1.y": 5, "d": 6, "d.e": 6}
    assert {".".join(map(str, path)): line for path, line in document.lines.items() if path} == lines
    assert document.where(("a", "c", 7)) == "studies/x.yaml:3", "an unknown part: what is above it"


def test_all_duplicates_are_listed_with_both_lines():
    told = "\n".join(errors("a: 1\nb: {c: 1, c: 2}\na: 3\n"))
    assert_golden_case("refused_files.txt", "yaml: duplicate keys", told)


@pytest.mark.parametrize(
    "text",
    ["a: !!python/object/apply:os.system [id]", "a: !!python/name:os.system ''", "a: !mine {b: 1}",
     "a: !!set {b}", "a: !!binary aGk=", "!!python/object:os.x {a: 1}", "a: !!omap [b: 1]", "a: ="],
)  # fmt: skip
def test_tags_are_refused_by_name(text: str):
    assert "tag not allowed" in errors(text)[0]


def test_anchors_that_multiply_are_refused_before_memory_is():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    began = time.process_time()
    told = "\n".join(errors("\n".join(lines)))
    assert time.process_time() - began < 5
    assert_golden_case("refused_files.txt", "yaml: anchors that multiply", told)


def test_an_anchor_that_holds_itself_is_refused():
    for shape, text in {"list": "a: &a [1, *a]", "mapping": "a: &a\n  b: *a"}.items():
        told = "\n".join(errors(text))
        assert_golden_case("refused_files.txt", f"yaml: an anchor of a {shape} in itself", told)


def test_anchors_and_merges_work_as_in_dvc():
    text = "a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}\nc: *a\n"
    assert parse(text).data == parse_yaml(text, "x.yaml", typ="safe")
    assert parse(text).data["b"] == {"x": 1, "y": 3}


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"\xef\xbb\xbfa: 1\n", "x.yaml:1: starts with a byte order mark; save it as UTF-8 without BOM"),
        ("a: 1\n".encode("utf-16"), "studies/x.yaml:1: byte 0 is not UTF-8; save it as UTF-8 without BOM"),
        (b"a: 1\nb: caf\xe9\n", "studies/x.yaml:2: byte 11 is not UTF-8; save it as UTF-8 without BOM"),
        (b"a:\n\tb: 1\n", "studies/x.yaml:2:1: not YAML: a tab in the indentation"),
        (b"a: [1, 2\nb: 3\n", "studies/x.yaml:2:2: not YAML: "),
        (b"a: 'open\n", "not YAML: "),
        (b"a: 1\n---\nb: 2\n", "not YAML: "),
        (b"a: \x00\n", "not YAML: "),
        (b"", "studies/x.yaml:1: expected a mapping of keys to values"),
        (b"# only a comment\n", "studies/x.yaml:1: expected a mapping of keys to values"),
        (b"- a\n- b\n", "studies/x.yaml:1: expected a mapping of keys to values"),
        (b"just text\n", "studies/x.yaml:1: expected a mapping of keys to values"),
        (b"? [a, b]\n: 1\n", "studies/x.yaml:1: (top): a key must be plain text"),
        (b"a: !!bool maybe", "not YAML: "),
        (b"a: !!int abc", "not YAML: "),
        (b"a: !!timestamp soon", "not YAML: "),
        (b"a: *b\n", "not YAML: "),
        (b"a: " + b"x" * 1_000_001, "file too large"),
        (b"a: " + b"[" * 400, "not YAML: "),
        (b"a: " + b"[" * 60 + b"]" * 60, "nested deeper than 50 levels"),
    ],
)  # fmt: skip
def test_what_is_no_mapping_in_utf8_is_refused_with_its_place(raw: bytes, said: str):
    assert said in errors(raw)[0]


def test_windows_line_ends_are_read():
    document = parse(b"a: 1\r\nb:\r\n  c: 2\r\n")
    assert document.data == {"a": 1, "b": {"c": 2}}
    assert document.lines["b", "c"] == 3


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path):
    for case, path in {"no file": tmp_path / "none.yaml", "a folder": tmp_path}.items():
        with pytest.raises(InputErrors) as refused:
            yaml_file.read_mapping(path)
        text = str(refused.value).replace(tmp_path.name, "FOLDER")
        assert_golden_case("refused_files.txt", f"yaml: {case}", text)


@given(st.one_of(st.text(max_size=60), st.text(alphabet="a:-[]{}&*!?|>'\"%@#,\n\t 01x~<", max_size=40)))
@example("&a : *a")
@example("a: &a\n b: *a")
@example("%YAML 1.1\n---\na: yes")
@example("a: !!float x")
@example("<<: 1")
@example("a: {<<: [1]}")
@example("a: 9999-99-99")
@settings(max_examples=depth.examples(150), deadline=None)
def test_any_text_is_read_or_refused(text: str):
    """Whatever is in a file, the answer is a mapping or a list of mistakes."""
    try:
        assert isinstance(yaml_file.parse_mapping(text.encode("utf-8", "surrogatepass"), "x.yaml").data, dict)
    except InputErrors as error:
        assert all(line.startswith("x.yaml") for line in error.errors)


def test_a_file_that_a_program_wrote_has_no_limit_of_size():
    lines = [f"k{number}: [a, b]\n" for number in range(yaml_file.MAX_NODES)]
    text = "".join([*lines, f"last: {'x' * yaml_file.MAX_BYTES}\n"])
    read = yaml_file.parse_mapping(text.encode(), "index.yaml", True)
    assert len(read.data) == yaml_file.MAX_NODES + 1
