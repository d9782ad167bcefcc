"""Studies that ask the same contrast, in one row: across studies and sites, a sign that turns first."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from benchbook.compare.text import cpu_models
from benchbook.compare.text.labels import METRICS
from benchbook.core.artifacts.meta_analysis import MetaAnalysis, PooledEffect
from benchbook.core.study import descriptors
from benchbook.core.util import numeric_equality
from benchbook.core.util.number_format import glance_percent
from benchbook.core.util.plural import count

First = Literal["Turns", "Agrees", "Open"]
# A row is about what differs between its arms; where it was measured is what it is compared over.
_ELSEWHERE = ("site",)


@dataclass(frozen=True)
class SessionEffect:
    """Effect of one session of one study, turned so that all parts of a row have one direction."""

    study: str
    processor: str
    effect: float
    sign: int


@dataclass(frozen=True)
class CrossStudyRow:
    """One contrast at one thread level, with every session of every study that asks it."""

    treatment: str
    baseline: str
    engine: str
    workload: str
    metric: str
    threads: int | None
    parts: tuple[SessionEffect, ...]

    @property
    def first(self) -> First:
        """*Turns* where decided sessions have both signs, *Agrees* where all have one, else *Open*."""
        signs = {part.sign for part in self.parts} - {0}
        return "Turns" if len(signs) > 1 else "Agrees" if signs else "Open"

    @property
    def ends(self) -> tuple[SessionEffect, SessionEffect]:
        """The smallest and the largest effect."""
        parts = sorted(self.parts, key=lambda part: part.effect)
        return parts[0], parts[-1]

    @property
    def studies(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(part.study for part in self.parts))

    @property
    def name(self) -> str:
        """Contrast in words: HAProxy against no proxy, point selects, 8 threads."""
        at = "" if self.threads is None else f", {count(self.threads, 'thread')}"
        metric = "" if self.metric == "qps" else f", {METRICS.get(self.metric, self.metric)}"
        return f"{self.treatment} against {self.baseline}, {self.workload}{metric}{at}"


def build_rows(several: Sequence[MetaAnalysis]) -> list[CrossStudyRow]:
    """Rows, one for each contrast and level that several studies measure; reversals first.

    Arms are the same where their facts are (`machines.way`), not their names. Where a proxy is what differs,
    that is the contrast, whatever else comes with it. Contrasts asked the other way round are turned.
    """
    rows: dict[tuple[str, str, str, str, str, int | None], list[SessionEffect]] = {}
    for pooled in several:
        for contrast in pooled.contrasts:
            change = name_change(pooled.arms.get(contrast.baseline), pooled.arms.get(contrast.treatment))
            if change is None:
                continue
            from_, to = sorted(change, key=lambda text: (not text.startswith("no "), text))
            engine = pooled.arms[contrast.baseline].get("engine", "")
            for effect in contrast.finest:
                key = (to, from_, engine, contrast.names.workload, contrast.metric, effect.threads)
                rows.setdefault(key, []).extend(_session_effects(pooled, effect, (from_, to) != change))
    joined = [CrossStudyRow(*key, tuple(parts)) for key, parts in rows.items()]
    order = get_args(First)
    several_studies = (row for row in joined if len(row.studies) > 1)
    return sorted(several_studies, key=lambda row: (order.index(row.first), row.name))


def sign_reversals(study: str, rows: Sequence[CrossStudyRow]) -> list[str]:
    """Sign reversals between the sessions of several studies, if the study itself has one sign."""
    reversals = []
    for row in rows:
        signs = {part.sign for part in row.parts if part.study == study} - {0}
        if row.first == "Turns" and study in row.studies and len(signs) < 2:
            low, high = (f"{glance_percent(end.effect)} ({end.study}, {end.processor})" for end in row.ends)
            reversals.append(f"{row.name}: from {low} to {high}")
    return reversals


def name_change(
    baseline: Mapping[str, str] | None, treatment: Mapping[str, str] | None
) -> tuple[str, str] | None:
    """Baseline and treatment in words, by the facts of the arms; None without a difference.

    >>> name_change({"network": "host"}, {"network": "host", "proxy": "haproxy", "proxy cores": "1"})
    ('no proxy', 'HAProxy')
    >>> name_change({"network": "pod", "site": "local"}, {"network": "host", "site": "local"})
    ('pod network', 'host network')
    >>> name_change({"engine": "mariadb"}, {"engine": "mariadb", "site": "local"})
    """
    if baseline is None or treatment is None:
        return None
    names = tuple(way.get("proxy") for way in (baseline, treatment))
    if names[0] != names[1]:
        base, treated = (descriptors.product_name(name) if name else "no proxy" for name in names)
        return base, treated
    keys = [key for key in numeric_equality.diff_mappings(baseline, treatment) if key not in _ELSEWHERE]
    return (_describe_arm(baseline, keys), _describe_arm(treatment, keys)) if keys else None


def _describe_arm(way: Mapping[str, str], keys: Sequence[str]) -> str:
    words = {"network": "{} network", "qos": "{} pod", "neighbour": "neighbour", "service": "service"}
    values = {key: value.replace("_", "-") for key, value in way.items()}
    messages = {key: words.get(key, f"{key} {{}}").format(value) for key, value in values.items()}
    return ", ".join(messages.get(key, "no class of pod" if key == "qos" else f"no {key}") for key in keys)


def _session_effects(pooled: MetaAnalysis, effect: PooledEffect, is_turned: bool) -> Iterator[SessionEffect]:
    signs = {name: occasion.sign for occasion in effect.occasions for name in occasion.sessions}
    for session in effect.sessions:
        value, sign = session.effect or 0.0, signs[session.session]
        value, sign = (1 / (1 + value) - 1, -sign) if is_turned else (value, sign)
        processor = cpu_models.name_processor(pooled.session(session.session).processor)
        yield SessionEffect(pooled.study, processor, value, sign)
