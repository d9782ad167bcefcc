"""Machines as sessions tell of them: which processors are the same model, and what people call them."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from benchbook.compare.text import labels
from benchbook.core.artifacts.artifact import find_fact
from benchbook.core.artifacts.meta_analysis import Processor

_NUMBERS = r"\(family (?P<family>\d+), model (?P<model>\d+), stepping (?P<stepping>\d+)\)"
_TOLD = re.compile(rf"^(?P<name>.*?) ?{_NUMBERS}$")
_NOISE = re.compile(r"\((?:R|TM)\)|\b(?:Processor|CPU|Intel|AMD|\d+-Core)\b|@.*$")


def parse_processor(message: str | None) -> Processor:
    """Processor by its name in facts, `NAME (family 6, model 207, stepping 2)` or the name alone."""
    match = _TOLD.match(message or "")
    if match is None:
        return Processor(name=message or "unknown")
    numbers = {key: int(match[key]) for key in ("family", "model", "stepping")}
    return Processor(name=match["name"], **numbers)


def name_processor(processor: Processor) -> str:
    """Common name of a processor, with its generation if its own name says too little."""
    short = " ".join(_NOISE.sub(" ", processor.name).split()) or processor.name
    if processor.family is None or processor.model is None or re.search(r"\d", short):
        return short
    numbers = f"{processor.family}/{processor.model}"
    return f"{short} {labels.NAMES['processors'].get(numbers, f'model {numbers}')}"


def may_be_same(processor: Processor, other: Processor) -> bool:
    """True if two processors are the same model, or may be: of one the name alone is known."""
    key, other_key = _model_key(processor), _model_key(other)
    return key == other_key if key and other_key else processor.name == other.name


def model_keys(processors: Sequence[Processor]) -> list[str]:
    """Keys of processors' models in their order; a name alone may be the first known model of that name."""
    keys_by_name: dict[str, str] = {}
    for each in processors:
        if key := _model_key(each):
            keys_by_name.setdefault(each.name, key)
    return [_model_key(each) or keys_by_name.get(each.name, each.name) for each in processors]


def count_models(several: Sequence[Processor]) -> int:
    """Number of models that are certainly different."""
    return len(set(model_keys(several)))


def _model_key(processor: Processor) -> str:
    """Family, model and stepping of a processor; empty where a machine gave its name alone."""
    numbers = (processor.family, processor.model, processor.stepping)
    return "" if None in numbers else "/".join(map(str, numbers))


def arm_signature(facts: Mapping[str, Any]) -> dict[str, str]:
    """Signature of an arm by its facts, comparable over studies and sites: no ports, paths or versions."""
    zones = facts.get("zones") or find_fact(facts, "engine", "cluster", "zones") or {}
    results = {
        "site": find_fact(facts, "site", "kind"),
        **{part: find_fact(facts, part, "name") for part in ("engine", "proxy")},
        "service": "yes" if facts.get("service") else None,
        "network": facts.get("network"),
        "qos": facts.get("qos") if facts.get("qos") != "none" else None,
        "neighbour": find_fact(facts, "neighbour", "processes"),
        "zones_ms": zones.get("latency_ms"),
        **{f"{part} cores": find_fact(facts, "cpu", part, "quota_cores") for part in ("server", "proxy")},
    }
    return {key: str(value) for key, value in results.items() if value is not None}
