"""What a study may not ask for is refused by its key, with what to write: each answer in a golden file."""

import io
from copy import deepcopy
from pathlib import Path

from ruamel.yaml import YAML

from benchbook.core.study import study_variants, validation_errors
from benchbook.core.study.study import StudySpec
from benchbook.core.util import yaml_file
from benchbook.core.util.errors import InputErrors
from tests import small
from tests.goldens import assert_golden

DATA = Path(__file__).parents[2] / "data"


def answer(sections: dict) -> list[str]:
    """The lines that a study file of these sections is refused with; none if it is taken."""
    text = io.BytesIO()
    YAML(typ="safe").dump(sections, text)
    try:
        validation_errors.validate_document(yaml_file.parse_mapping(text.getvalue(), "study.yaml"), StudySpec)
    except InputErrors as error:
        return [line.partition(": ")[2] for line in error.errors]
    return []


def test_what_contradicts_itself_is_refused_with_key_and_remedy():
    answers, taken = [], []
    for group, table in yaml_file.read_mapping(DATA / "refused_studies.yaml").data.items():
        sections = small.sections(**table["study"])
        assert answer(sections) == [], f"{group}: the study itself is good"
        answers += [*[""] * bool(answers), group]
        for change in table["refused"]:
            study_variants.apply_patch(changed := deepcopy(sections), change)
            lines = answer(changed)
            taken += [] if lines else [change]
            answers.append("  - " + "\n    ".join(lines))
    assert taken == []
    assert_golden("refused_studies.txt", "\n".join([*answers, ""]))
