"""One sentence on a treatment over sessions, for all its workloads and thread levels together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from benchbook.compare.meta.meta_analysis_text import (
    SERVED,
    ends_of,
    expected_on,
    fitting,
    is_expectation,
    percent,
    range_of,
    span,
    unsigned,
)
from benchbook.compare.text import labels
from benchbook.compare.text.sentences import told as told_by
from benchbook.core.artifacts.meta_analysis import Contrast, PooledEffect

_SHOWN = ("holds elsewhere", "same direction", "on average")
_DEPENDS = "depends on the machine"
# With the baseline, with ends, with the number of workloads: what the page says as well goes first.
_LESS_AND_LESS = (
    (True, True, True),
    (False, True, True),
    (True, False, True),
    (False, True, False),
    (False, False, False),
)
_REST = "; no difference was shown on the others"


def sentence(own: Sequence[Contrast]) -> str:
    """Say what a treatment changed in one metric, in at most 25 words where that can be done.

    `own` are its contrasts, one a workload. Levels that came to the same stand together; what an effect
    is on each workload and level, its own headline says.
    """
    told = [(one.workload, effect) for one in own for effect in one.told]
    known = [(workload, effect) for workload, effect in told if effect.label != "not computed"]
    if len(known) < 2:
        return (known or told)[0][1].headline
    treatment, baseline = map(labels.in_sentence, (own[0].names.treatment, own[0].names.baseline))
    clauses = _clauses(known)
    some = [one for clause in clauses for one in clause.some]
    lows, highs = zip(*map(range_of, some), strict=True)
    variants = told_by(
        "contrast.j2",
        treatment=treatment,
        baseline=baseline,
        metric=own[0].metric,
        served=SERVED.get(own[0].metric),
        clauses=clauses,
        depends=_DEPENDS,
        less_and_less=_LESS_AND_LESS,
        some=sorted((one.effect or 0.0, one.threads) for one in some if one.threads),
        span=span(min(lows), max(highs)),
        percent=percent,
        unsigned=unsigned,
    )
    return labels.sentence_case(fitting(variants))


@dataclass(frozen=True)
class _Clause:
    """What effects at neighbouring levels came to together: all that `word` says, on some of `of` workloads.

    `rest` says what the others came to.
    """

    levels: tuple[int, ...]
    word: str
    workloads: frozenset[str]
    some: tuple[PooledEffect, ...]
    of: int
    rest: str = ""

    @property
    def ends(self) -> str:
        """From where to where: as expected elsewhere, or as seen; beside `more` or `fewer` without a sign."""
        low, high = self._range
        return unsigned(low, high) if self.word in ("more", "fewer") and low * high > 0 else span(low, high)

    @property
    def _range(self) -> tuple[float, float]:
        lows, highs = zip(*map(range_of, self.some), strict=True)
        return min(lows), max(highs)

    @property
    def is_expected(self) -> bool:
        """Whether the ends are where a further session is expected."""
        return all(map(is_expectation, self.some))

    @property
    def range(self) -> str:
        """The ends, with whether they are expected and where, or were seen."""
        return f"expect {self.ends} {expected_on(*self.some)}" if self.is_expected else f"seen {self.ends}"

    @property
    def tail(self) -> str:
        """The ends as they stand at the end of a sentence, with the sessions that they rest on."""
        if self.word == _DEPENDS:
            return f": {self.ends}"
        known = sorted(self.some, key=is_expectation)
        low, high = self._range
        return ends_of(known[0], not self.word and low * high > 0)[0].format(self.ends)


def _clauses(told: Sequence[tuple[str, PooledEffect]]) -> list[_Clause]:
    """Return a clause for each level, or for neighbouring ones that came to the same."""
    levels = sorted({one.threads for _, one in told if one.threads is not None})
    made: list[_Clause] = []
    for level in levels or [0]:
        one = _clause([each for each in told if each[1].threads in (None, level)], level)
        before = made[-1] if made else one
        if made and (before.word, before.workloads) == (one.word, one.workloads):
            some = tuple(dict.fromkeys((*before.some, *one.some)))
            one = replace(one, levels=(*before.levels, level), some=some, of=max(before.of, one.of))
            made.pop()
        made.append(one)
    return made


def _clause(told: Sequence[tuple[str, PooledEffect]], level: int) -> _Clause:
    known = {_word(one) for _, one in told}
    chosen = {_DEPENDS} if _DEPENDS in known else known - {""} or {""}
    own = [(workload, one) for workload, one in told if _word(one) in chosen]
    workloads, every = ({workload for workload, _ in some} for some in (own, told))
    rest = _REST if known - chosen == {""} and len(workloads) < len(every) else ""
    word = "both" if len(chosen) > 1 else next(iter(chosen))
    return _Clause((level,), word, frozenset(workloads), tuple(one for _, one in own), len(every), rest)


def _word(one: PooledEffect) -> str:
    if (label := one.standing) == _DEPENDS:
        return _DEPENDS
    is_shown = label in _SHOWN or (label == "one session" and one.occasions[0].sign)
    return ("more" if (one.effect or 0.0) > 0 else "fewer") if is_shown else ""
