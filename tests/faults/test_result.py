"""Every row of the fault matrix has a test or a reason; the README states the last result, as it was."""

import json
import re
from pathlib import Path

from ruamel.yaml import YAML

from tests.faults.book import RESULT, SENTENCE, statement

ROOT = Path(__file__).resolve().parents[2]
ROWS = YAML(typ="safe").load(Path(__file__).with_name("rows.yaml").read_text(encoding="utf-8"))


def test_the_matrix_is_whole():
    assert [row.split()[0] for row in ROWS] == [f"F{number}" for number in range(1, 69)]


def test_each_row_has_its_test_or_says_what_it_waits_for():
    tests = {row: found for row, found in ROWS.items() if not str(found).startswith("waits for ")}
    files = {path: (ROOT / path).read_text(encoding="utf-8") for path, _ in tests.values()}
    assert [row for row, (path, name) in tests.items() if f"def {name}(" not in files[path]] == []


def test_the_readme_states_the_last_result_and_no_other():
    """`make test-faults` writes both; a fault more or less asks for another run."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    result = json.loads(RESULT.read_text(encoding="utf-8"))
    assert SENTENCE.findall(text) == [statement(result)]
    numbers = list(map(int, re.findall(r"\d+", result["sentence"])))
    assert numbers == [result[name] for name in ("injected", "accounted", "invalid_as_valid", "orphans")]
    assert len(result["faults"]) == result["injected"]
