"""One sentence on a treatment over sessions, for all its workloads and thread levels together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from benchbook.compare import words
from benchbook.compare.pooled_words import SERVED, begun, ends_of, fitting, percent, range_of, span, unsigned
from benchbook.compare.sentences import listing
from benchbook.core.pooled import Contrast, PooledEffect
from benchbook.core.wording import count

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

    `own` are its contrasts, one a workload. Levels that came to the same are told together; what an effect
    is on each workload and level, its own headline says.
    """
    told = [(one.workload, effect) for one in own for effect in one.told]
    known = [(workload, effect) for workload, effect in told if effect.label != "not computed"]
    if len(known) < 2:
        return (known or told)[0][1].headline
    treatment, baseline = map(words.in_sentence, (own[0].names.treatment, own[0].names.baseline))
    text = fitting(_Said(treatment, baseline, own[0].metric, _clauses(known)).variants())
    return begun(text, treatment, baseline)


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
    def at(self) -> str:
        """`at 1 thread`; nothing where the levels are all there are."""
        return f"at {listing([*map(str, self.levels[:-1]), count(self.levels[-1], 'thread')])}"

    def on(self, is_exact: bool) -> str:
        """Say on how many workloads it is so; nothing where on all, or where nothing is claimed of any."""
        some, is_claim = len(self.workloads), self.word not in ("", _DEPENDS)
        return (
            f" on {some} of {count(self.of, 'workload')}" if some < self.of and (is_exact or is_claim) else ""
        )

    @property
    def ends(self) -> str:
        """From where to where: as expected elsewhere, or as seen."""
        lows, highs = zip(*map(range_of, self.some), strict=True)
        return span(min(lows), max(highs))

    @property
    def is_expected(self) -> bool:
        """Whether the ends are where a further session is expected."""
        return self.word != _DEPENDS and all(one.prediction_low is not None for one in self.some)

    @property
    def brief(self) -> str:
        """The ends as they stand in brackets."""
        return f"expect {self.ends} elsewhere" if self.is_expected else f"seen {self.ends}"

    @property
    def tail(self) -> str:
        """The ends as they stand at the end of a sentence, with the sessions that they rest on."""
        if self.word == _DEPENDS:
            return f": {self.ends}"
        known = sorted(self.some, key=lambda one: one.prediction_low is not None)
        return ends_of(known[0])[0].format(self.ends)

    @property
    def values(self) -> tuple[float, float]:
        """The smallest and the largest of its effects."""
        known = [one.effect or 0.0 for one in self.some]
        return min(known), max(known)


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
    if one.label == _DEPENDS:
        return _DEPENDS
    is_shown = one.label in _SHOWN or (one.label == "one session" and one.occasions[0].sign)
    return ("more" if (one.effect or 0.0) > 0 else "fewer") if is_shown else ""


@dataclass(frozen=True)
class _Said:
    """What a sentence is made of: the names of two arms, a metric, and what the levels came to."""

    treatment: str
    baseline: str
    metric: str
    clauses: Sequence[_Clause]

    def variants(self) -> Iterator[str]:
        """Yield the sentence in full, then with less and less of what the page says as well."""
        if len(self.clauses) > 2:
            yield self._many()
            return
        tell = self._one if len(self.clauses) == 1 else self._two
        for against, with_ends, with_on in _LESS_AND_LESS:
            yield tell(self.baseline if against else "", with_ends, with_on)

    def _one(self, against: str, with_ends: bool, with_on: bool) -> str:
        (clause,) = self.clauses
        ends = f"{clause.tail}{clause.rest}" if with_ends else ""
        return f"{self._begun(clause, against)}{clause.on(with_on)}{ends}."

    def _two(self, against: str, with_ends: bool, with_on: bool) -> str:
        first, second = self.clauses
        ends = [f" ({one.brief})" if with_ends else "" for one in self.clauses]
        if with_ends and first.is_expected and second.is_expected:
            ends[1] = f" ({second.ends})"
        return (
            f"{first.at} {self._begun(first, against)}{first.on(with_on)}{ends[0]}; "
            f"{second.at} {self._going_on(second, first)}{second.on(with_on)}{ends[1]}."
        )

    def _many(self) -> str:
        """Tell of levels that came to three things or more only the ends."""
        some = [one for clause in self.clauses for one in clause.some]
        what = f"what {self.treatment} changes against {self.baseline} depends on"
        if any(clause.word == _DEPENDS for clause in self.clauses):
            lows, highs = zip(*map(range_of, some), strict=True)
            return f"{what} the machine and on threads: {span(min(lows), max(highs))}."
        told = [
            f"{percent(value)} at {count(threads, 'thread')}"
            for value, threads in sorted((one.effect or 0.0, one.threads) for one in some if one.threads)
        ]
        return f"{what} threads: from {told[0]} to {told[-1]}."

    def _begun(self, clause: _Clause, against: str) -> str:
        if clause.word == _DEPENDS:
            beside = f" against {against}" if against else ""
            return f"what {self.treatment} changes{beside} {_DEPENDS}"
        if not clause.word:
            beside = f" between {self.treatment} and {against}" if against else f" by {self.treatment}"
            return f"no difference{beside} was shown"
        if self.metric in SERVED:
            than = f" than {against}" if against else ""
            return f"{self.treatment} served {self._amount(clause)} {SERVED[self.metric]}{than}"
        than = f" than with {against}" if against else ""
        return f"{words.metric(self.metric)} was {self._amount(clause)} with {self.treatment}{than}"

    def _going_on(self, clause: _Clause, before: _Clause) -> str:
        if clause.word == _DEPENDS:
            return f"it {_DEPENDS}"
        if not clause.word:
            return "no difference was shown"
        is_plain = before.word not in (_DEPENDS, "")
        if is_plain:
            return self._amount(clause)
        noun = SERVED.get(self.metric)
        return f"it served {self._amount(clause)} {noun}" if noun else self._begun(clause, "")

    def _amount(self, clause: _Clause) -> str:
        more, fewer = ("more", "fewer") if self.metric in SERVED else ("higher", "lower")
        low, high = clause.values
        if clause.word == "both":
            return f"from {unsigned(low, low)} {fewer} to {unsigned(high, high)} {more}"
        high = low if percent(low) == percent(high) else high
        return f"{unsigned(low, high)} {more if high > 0 else fewer}"
