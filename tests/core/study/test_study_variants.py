"""A study at another size: the study's own file with a merge patch on it, in a file that DVC follows."""

import re
from pathlib import Path

import pytest

from benchbook.commands import studies
from benchbook.core.study import load, study_variants
from benchbook.core.util import paths, yaml_file
from benchbook.core.util.errors import InputErrors
from tests.goldens import assert_golden_case

TABLE = yaml_file.read_mapping(Path(__file__).parents[2] / "data" / "bad_inputs.yaml").data
# Of the study's keys: one number inside a flow mapping, a list, and a key that goes away.
FULL = """
sizes:
  full:
    threads: [8, 16]          # as printed
    dataset: {table_size: 777}
    aa: {workloads: null}
  broken:
    threads: [8, 8]
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BENCHBOOK_ROOT", str(tmp_path))
    (tmp_path / "studies").mkdir()
    (tmp_path / "studies" / "good.yaml").write_text("# of the lab\n" + TABLE["study"] + FULL)
    (tmp_path / "params.yaml").write_text(TABLE["params"])
    return tmp_path


def test_a_merge_patch_is_that_of_the_standard():
    """The example of RFC 7396, section 3."""
    author, phone = {"givenName": "John"}, {"phoneNumber": "+01-123-456-7890"}
    rest = {"content": "This will be unchanged"}
    whole = {"title": "Goodbye!", "tags": ["example", "sample"], **rest}
    whole["author"] = author | {"familyName": "Doe"}
    patch = {"title": "Hello!", "author": {"familyName": None}, "tags": ["example"], **phone}
    study_variants.apply_patch(whole, patch)
    assert whole == {"title": "Hello!", "author": author, "tags": ["example"], **rest, **phone}


def test_a_size_is_loaded_without_a_file(root: Path):
    assert study_variants.variant_names("good") == ["good-full", "good-broken"]
    small, full = load.load_study("good"), load.load_study("good-full")
    assert (full.threads, full.dataset.table_size) == ((8, 16), 777)
    assert (full.arms, full.plan, full.dataset.tables) == (small.arms, small.plan, small.dataset.tables)
    assert full.sizes == {} and paths.list_studies() == ["good"]
    assert load.load_study("good-full", "threads").threads == (8, 16)


def test_a_mistake_in_a_size_has_the_line_where_it_stands(root: Path):
    lines = (root / "studies" / "good.yaml").read_text().splitlines()
    at = 1 + lines.index("    threads: [8, 8]")
    with pytest.raises(InputErrors) as refused:
        load.load_study("good-broken")
    text = str(refused.value).replace(f"good.yaml:{at}:", "good.yaml:LINE:")
    assert_golden_case("refused_files.txt", "size: a repeated value", text)


def test_the_file_is_written_once_and_is_the_study_then(root: Path, capsys):
    full, file = load.load_study("good-full"), paths.study_paths("good-full").file
    studies.write_size("good-full")
    assert "written from studies/good.yaml" in capsys.readouterr().out
    text = file.read_text()
    assert text.startswith("# of the lab\n# Made from studies/good.yaml at its size `full`")
    assert "sizes" not in text
    assert re.search(r"^threads: \[8, 16\] +# as printed$", text, re.M)
    assert load.load_study("good-full") == full == load.study_file(file)
    studies.write_size("good-full")
    studies.write_size("good")
    assert capsys.readouterr().out == "" and paths.list_studies() == ["good", "good-full"]
    file.write_text(text.replace("777", "778"))
    studies.write_size("good-full")
    assert_golden_case("refused_files.txt", "size: its file was changed", capsys.readouterr().out)
    assert load.load_study("good-full").dataset.table_size == 778


def test_a_size_is_written_beside_its_study(root: Path, capsys):
    (root / "studies" / "pool").mkdir()
    (root / "studies" / "good.yaml").rename(root / "studies" / "pool" / "good.yaml")
    studies.write_size("good-full")
    said = "studies/pool/good-full.yaml: written from studies/pool/good.yaml"
    assert capsys.readouterr().out.startswith(said)
    assert (root / "studies" / "pool" / "good-full.yaml").is_file()


def test_params_that_name_a_size_without_its_file_say_what_writes_it(root: Path):
    params = root / "params.yaml"
    there = "good: studies/good.yaml"
    params.write_text(params.read_text().replace(there, there.replace("good", "good-full")))
    with pytest.raises(InputErrors) as refused:
        load.load_params()
    assert_golden_case("refused_files.txt", "params: a size without its file", str(refused.value))
    with pytest.raises(InputErrors) as refused:
        load.load_study("good-ful")
    assert_golden_case("refused_files.txt", "size: a typing mistake", str(refused.value))
