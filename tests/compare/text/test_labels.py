"""Names that a stranger reads without knowing this project's words."""

from pathlib import Path

from ruamel.yaml import YAML

from benchbook.compare.text import labels, sentences
from benchbook.compare.text.cpu_models import model_keys, name_processor, parse_processor
from benchbook.show import audit_page, theme

CASES = YAML(typ="safe").load(Path(__file__).parents[2] / "data" / "names.yaml")
OTHERS = {
    "cores_used": sentences.cores_used,
    "shorten_name": theme.shorten_name,
    "name_processor": lambda text: name_processor(parse_processor(text)),
    "model_keys": lambda *texts: model_keys([*map(parse_processor, texts)]),
    "_split_heading": lambda *of: [*audit_page._split_heading(*of)],
}


def test_things_are_called_by_the_names_that_are_known():
    for name, cases in CASES.items():
        call = OTHERS.get(name) or getattr(labels, name)
        assert [[*of, call(*of)] for *of, _ in cases] == cases, name
