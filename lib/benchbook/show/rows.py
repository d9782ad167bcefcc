"""The rows of the first page: a question each, with what was published, recomputed and measured for it.

Pure: an `Overview` goes in, rows come out, and the template `first.html.j2` gives them their shape. What is
not known is empty, and a column that no row fills is left out.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchbook.compare import words
from benchbook.compare.sentences import SHOWN
from benchbook.show import numbers, opposite
from benchbook.show.markup import slug
from benchbook.show.standing import Measured, Overview
from benchbook.show.tables import levels_of

Pooled = Mapping[str, Mapping[str, Any]]
# The four findings of the first document, which the page opens with.
HEADLINES = tuple(
    f"tidb-kubernetes/{claim}" for claim in ("host-network", "load-balancer", "c2-machines", "ubuntu")
)
_MOST_LINES = 3
ONE_SESSION = "one session on one machine"


@dataclass(frozen=True)
class Effect:
    """One measured effect, a fraction of the baseline, with the ends of its interval and its label."""

    value: float
    low: float | None
    high: float | None
    label: str


@dataclass(frozen=True)
class Line:
    """What one contrast came to: its effects, in words with the way to their evidence."""

    name: str
    way: str
    effects: tuple[Effect, ...]
    is_opposite: bool = False
    expected: tuple[float, float] | None = None
    """Where a further session is expected, or the range of the sessions; None of one session."""
    standing: str = ""
    """What the sessions say together, such as `depends on the machine`; empty of one session."""

    @property
    def decided(self) -> list[Effect]:
        """The effects that are shown to be above or below zero."""
        return [one for one in self.effects if one.label in SHOWN]

    @property
    def ends(self) -> tuple[float, float] | None:
        """Where the bar goes: as expected, else over all intervals; None where one is missing."""
        if self.expected:
            return self.expected
        lows, highs = ([getattr(one, end) for one in self.effects] for end in ("low", "high"))
        known = [one for one in (*lows, *highs) if numbers.is_known(one)]
        return (min(known), max(known)) if known and len(known) == len(lows) + len(highs) else None

    @property
    def told(self) -> str:
        """One number, one range, or why there is none."""
        if self.expected:
            return brief(*self.expected)
        shown = self.decided
        if not shown:
            labels = {one.label for one in self.effects}
            return {"not shown": "no difference shown"}.get(label := min(labels), label) if labels else "none"
        return brief(min(one.value for one in shown), max(one.value for one in shown))

    @property
    def beside(self) -> str:
        """The interval of a single effect, or how many of several are not shown."""
        if self.expected:
            return ""
        if len(self.effects) == 1 and self.ends:
            return brief(*self.ends)
        hidden = len(self.effects) - len(self.decided)
        if not self.decided and self.ends:
            return brief(*self.ends)
        return f"{hidden} of {len(self.effects)} not shown" if hidden else ""

    @property
    def direction(self) -> str:
        """`higher`, `lower`, or nothing where neither or both are shown."""
        labels = {one.label for one in self.decided}
        return labels.pop() if len(labels) == 1 else ""


@dataclass(frozen=True)
class Claimed:
    """What was published, and what the document's own tables say of it."""

    published: str
    verdict: str
    own: str
    way: str


@dataclass(frozen=True)
class Row:
    """One question. `why` and `carries` are empty where nobody has said it."""

    question: str
    way: str
    claims: tuple[Claimed, ...]
    lines: tuple[Line, ...]
    more: int = 0
    sessions: str = ""
    why: str = ""
    why_way: str = ""
    carries: str = ""
    carries_way: str = ""
    would: str = ""


@dataclass(frozen=True)
class Group:
    """Questions that lie in one folder of `studies/`; the published findings have no folder."""

    name: str
    rows: tuple[Row, ...]

    @property
    def digest(self) -> str:
        """What the first contrast of each question came to."""
        return " · ".join(f"{row.lines[0].name}: {row.lines[0].told}" for row in self.rows if row.lines)


@dataclass(frozen=True)
class _Seen(Overview):
    """What is known, with what the sessions of each study say together."""

    pooled: Pooled

    def contrasts(self, study: Measured, own: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Return what several sessions say of findings; nothing where one of them has a single session."""
        known = {one["id"]: one for one in self.pooled.get(study.name, {}).get("contrasts", ())}
        found = [known.get(one["id"]) for one in own]
        several = [one for one in found if one and len(_counted(one["whole"])) > 1]
        return several if len(several) == len(own) else []

    def beyond(self, studies: Sequence[Measured], lines: Sequence[Line]) -> dict[str, Any]:
        """Say on how many sessions a row rests, and whether it carries over, as far as they say it."""
        if not studies:
            return {}
        labels = list(dict.fromkeys(line.standing for line in lines if line.standing))
        one = studies[0]
        sessions = self.pooled.get(one.name, {}).get("sessions", ())
        if labels and len(studies) == 1:
            processors = {json.dumps(each["processor"], sort_keys=True) for each in sessions}
            told = f"{numbers.count(len(sessions), 'session')}, {numbers.count(len(processors), 'processor')}"
            return {"sessions": told, "carries": "; ".join(labels[:2]), "carries_way": f"{one.page}#answer"}
        if len(studies) == 1:
            return {"sessions": ONE_SESSION}
        return {
            "sessions": f"{len(studies)} studies" + ("" if labels else f", each {ONE_SESSION}"),
            "carries": "; ".join(labels[:2]),
            "carries_way": f"{one.page}#answer" if labels else "",
        }


def _counted(part: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the sessions that are pooled in an effect."""
    return [one for one in part["seen"] if one["reason"] is None and numbers.is_known(one["effect"])]


def _over_sessions(contrasts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return effects, expected range and standing of a line that rests on several sessions."""
    parts = [
        part
        for one in contrasts
        for part in ([one["whole"]] if one["one_number"] or not one["levels"] else one["levels"])
    ]
    effects = tuple(
        Effect(one["effect"], one["low"], one["high"], one["label"] or "not shown")
        for part in parts
        for one in _counted(part)
    )
    ends = [_expected(part) for part in parts]
    known = [end for both in ends if both for end in both]
    labels = list(dict.fromkeys(part["label"] for part in parts))
    return {
        "effects": effects,
        "expected": (min(known), max(known)) if known and None not in ends else None,
        "standing": ", ".join(labels[:2]),
    }


def _expected(part: Mapping[str, Any]) -> tuple[float, float] | None:
    """Return where a further session is expected; with too few of them, their range."""
    for name in ("prediction", "range"):
        low, high = part[f"{name}_low"], part[f"{name}_high"]
        if numbers.is_known(low) and numbers.is_known(high):
            return low, high
    return None


def brief(low: float, high: float) -> str:
    """Write one effect, or a range of effects, with no more digits than a glance can use.

    >>> brief(0.2701, 0.2701), brief(-0.179, 0.33), brief(0.0148, 0.0148)
    ('+27\\xa0%', '−18 to +33\\xa0%', '+1.5\\xa0%')
    """
    digits = 1 if min(abs(low), abs(high)) < 0.1 and max(abs(low), abs(high)) < 0.3 else 0
    if low == high:
        return numbers.percent(low, digits)
    return numbers.span(low, high, digits)


def groups(seen: Overview, folders: Mapping[str, str], pooled: Pooled | None = None) -> list[Group]:
    """Return the published findings, then the studies by folder; `folders` has the folder of each study.

    `pooled` has what the sessions of a study say together, by its name, as pooled.json holds it. A study
    whose effects stand in a row above is not named again.
    """
    seen = _Seen(seen.audits, seen.studies, seen.shipped, pooled or {})
    known = {claim["id"]: claim for claim in seen.claims}
    first = [_headline(seen, known[name]) for name in HEADLINES if name in known]
    named = {study.page for name in HEADLINES for study in _behind(seen, name)}
    found = [Group("", tuple(first))] if first else []
    own: dict[str, list[Row]] = {}
    for study in seen.studies:
        if study.page not in named or not first:
            own.setdefault(folders.get(study.name, ""), []).append(_study(seen, study))
    found += [Group(_named(folder), tuple(own[folder])) for folder in sorted(own)]
    return found


def _named(folder: str) -> str:
    """Name a folder of studies as a heading does: tidb-cluster is TiDB cluster."""
    name = " ".join(words.PRODUCTS.get(part, part) for part in folder.split("-"))
    return name[:1].upper() + name[1:] or "Other studies"


def _behind(seen: Overview, claim: str) -> list[Measured]:
    """Return the studies whose effects stand in the row of a claim."""
    both = [*seen.answers(claim), *seen.shows(claim)]
    both += [pair for is_judged in (True, False) for pair in seen.asked(claim, is_judged)]
    return list({study.page: study for study, _ in both}.values())


def _headline(seen: _Seen, claim: Mapping[str, Any]) -> Row:
    lines = [line for study in _behind(seen, claim["id"]) for line in _of_claim(seen, study, claim)]
    way = f"claims.html#claim-{slug(claim['id'])}"
    ways = seen.shipped.get(claim["id"], ())
    would = "" if lines or not ways else f"make repro STUDY={ways[0].name}"
    return Row(
        claim["claim"],
        way,
        (_claimed(claim),),
        tuple(lines),
        would=would,
        **seen.beyond(_behind(seen, claim["id"]), lines),
    )


def _of_claim(seen: _Seen, study: Measured, claim: Mapping[str, Any]) -> Iterator[Line]:
    name = claim["id"]
    own = [*study.answers(name), *study.shows(name)]
    pairs: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for found in own:
        pairs.setdefault((found["treatment"], found["baseline"]), []).append(found)
    for group in pairs.values():
        turned = opposite.of_pair(group, claim)
        line = _line(seen, study, study.name, group)
        if line is not None:
            yield replace(line, is_opposite=turned == "all")
    for one in study.asked(name):
        parts = tuple(_parts(one)) if one["kind"] == "effect" else ()
        if parts:
            way = f"{study.page}#finding-{slug(one['claim'])}"
            yield Line(study.name, way, parts, opposite.parts(one) == "all")


def _parts(one: Mapping[str, Any]) -> Iterator[Effect]:
    for part in one["parts"]:
        if part["scale"] == "share" and numbers.is_known(part["low"]):
            label = "higher" if part["low"] > 0 else "lower" if part["high"] < 0 else "not shown"
            yield Effect(part["value"], part["low"], part["high"], label)


def _study(seen: _Seen, study: Measured) -> Row:
    contrasts: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for found in study.found["findings"]:
        key = found["treatment"], found["baseline"], found["metric"]
        contrasts.setdefault(key, []).append(found)
    lines = [
        line for own in contrasts.values() if (line := _line(seen, study, _contrast(own), own)) is not None
    ]
    lines.sort(key=lambda line: not line.decided)
    claims = [claim for claim in seen.claims if study in _behind(seen, claim["id"])]
    return Row(
        study.found["title"],
        study.page,
        tuple(map(_claimed, claims)),
        tuple(lines[:_MOST_LINES]),
        more=max(len(lines) - _MOST_LINES, 0),
        **seen.beyond([study], lines),
    )


def _contrast(own: Sequence[Mapping[str, Any]]) -> str:
    """Name what is compared with the baseline, and the metric unless it is queries per second."""
    name = words.of(own[0], "treatment")
    return name if own[0]["metric"] == "qps" else f"{name}, {numbers.metric(own[0]['metric'])}"


def _line(seen: _Seen, study: Measured, name: str, own: Sequence[Mapping[str, Any]]) -> Line | None:
    way = f"{study.page}#finding-{slug(own[0]['id'])}"
    if contrasts := seen.contrasts(study, own):
        return Line(name, way, **_over_sessions(contrasts))
    effects = tuple(_effects(own))
    return Line(name, way, effects) if effects else None


def _effects(own: Iterable[Mapping[str, Any]]) -> Iterator[Effect]:
    """Give the effect of each workload, or of each thread level where no single number stands for all."""
    for found in own:
        for one in (found,) if found["headline"] else levels_of(found):
            if numbers.is_known(one["effect"]):
                yield Effect(one["effect"], one["low"], one["high"], one.get("label") or "not shown")


def _claimed(claim: Mapping[str, Any]) -> Claimed:
    name, _, short = claim["id"].partition("/")
    is_share = claim["kind"] == "effect" and claim["is_share"] and numbers.is_known(claim["mean"])
    own = numbers.percent(claim["mean"]) if is_share else ""
    return Claimed(
        claim["published"], claim["verdict"], own, f"sources/{slug(name)}.html#claim-{slug(short)}"
    )


def place(fraction: float, room: float = 0.92) -> float:
    """Return where an effect stands on the scale of all rows, from 0 to 1; zero is in the middle.

    The scale is one of ratios: halving and doubling are equally far from zero. What is beyond
    exp(`room`) stands at the edge.
    """
    return (max(-room, min(room, math.log1p(max(fraction, -0.999)))) / room + 1) / 2
