"""Where one session lies beside the pooled ones, and what is different about its machine."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from benchbook.compare import edges, machines
from benchbook.compare.pooled import Brought, pool
from benchbook.compare.pooled_words import percent, span
from benchbook.compare.random_effects import FEWEST, Pool
from benchbook.compare.random_effects import pool as pooled_of
from benchbook.compare.sentences import NBSP, listing
from benchbook.core.pooled import Contrast, Occasion, Pooled, PooledEffect, Seen, Session
from benchbook.core.wording import count

Place = Literal["as expected", "outside what was expected", "nothing to expect yet", "no number here"]
# Steal of a quiet guest is below a tenth of a per cent; so much more than elsewhere is worth a word.
STEAL_MORE = 1.0


@dataclass(frozen=True)
class Placed:
    """An effect of a session beside those of the record, in words; `expected` are fractions, where known."""

    contrast: str
    threads: int | None
    effect: float | None
    expected: tuple[float, float] | None
    place: Place
    sentence: str


def placed(here: Brought, record: Pooled) -> list[Placed]:
    """Place each effect of a session that the record tells of; nothing where its design is another one.

    Expected is where a further session lies in nine of ten, its own blocks' error included. A session that is
    in the record itself is compared with the others, without its occasion.
    """
    if here.session.design != record.design:
        return []
    own = pool(record.study, [here])
    by_id = {contrast.id: contrast for contrast in own.contrasts}
    return [
        _one(contrast, effect, mine.seen[0], here.session.id)
        for contrast in record.contrasts
        if contrast.id in by_id
        for effect in contrast.told
        if (mine := by_id[contrast.id].at(effect.threads)) is not None
    ]


def different(here: Session, recorded: Sequence[Session]) -> list[str]:
    """Say what a session's machine and programs have otherwise than every recorded session."""
    return list(_different(here, recorded)) if recorded else []


def summary(here: Brought, record: Pooled) -> str:
    """Say in a sentence or two where a session lies, and what is different where it lies outside."""
    known = placed(here, record)
    judged = [one for one in known if one.expected is not None]
    if not judged:
        return ""
    outside = [one for one in judged if one.place == "outside what was expected"]
    if not outside:
        are = "The effect here is" if len(judged) == 1 else f"All {len(judged)} effects here are"
        return f"{are} as expected from the recorded sessions."
    lie = f"{len(outside)} of {count(len(judged), 'effect')} {'lies' if len(outside) == 1 else 'lie'}"
    if len(judged) == 1:
        lie = "The effect here lies"
    told = different(here.session, record.sessions)
    what = f"Different here: {listing(told)}." if told else "No difference of the machine is known."
    return f"{lie} outside what was expected. {what}"


def _one(contrast: Contrast, effect: PooledEffect, mine: Seen, session: str) -> Placed:
    others = [one for one in effect.occasions if session not in one.sessions]
    names = {name for one in others for name in one.sessions}
    seen = [one.effect for one in effect.sessions if one.session in names and one.effect is not None]
    at = "" if effect.threads is None else f" at {count(effect.threads, 'thread')}"
    lead = f"{contrast.names.treatment} on {contrast.names.workload}{at}"
    if mine.effect is None or mine.standard_error is None:
        text = f"{lead}: no number here ({mine.reason})."
        return Placed(contrast.id, effect.threads, None, None, "no number here", text)
    told = f"{lead}: {percent(mine.effect)} here; {count(len(seen), 'recorded session')}"
    beside = f"{told}: {span(min(seen), max(seen))}" if seen else told
    if len(others) < FEWEST:
        text = f"{beside}; {FEWEST} occasions are needed to expect anything, there are {len(others)}."
        return Placed(contrast.id, effect.threads, mine.effect, None, "nothing to expect yet", text)
    low, high = (math.expm1(end) for end in again(others).expected(mine.standard_error**2))
    is_outside = edges.is_outside(mine.effect, mine.effect, low, high)
    place: Place = "outside what was expected" if is_outside else "as expected"
    tail = "so as expected" if place == "as expected" else f"outside what was expected ({span(low, high)})"
    return Placed(contrast.id, effect.threads, mine.effect, (low, high), place, f"{beside}, {tail}.")


def again(occasions: Sequence[Occasion]) -> Pool:
    """Pool occasions again, such as those that remain without one."""
    logs = [math.log1p(one.effect) for one in occasions]
    return pooled_of(logs, [one.standard_error**2 for one in occasions])


def _different(here: Session, recorded: Sequence[Session]) -> Iterator[str]:
    if not any(machines.may_be_same(here.processor, one.processor) for one in recorded):
        yield f"{machines.name(here.processor)}, a processor that no recorded session had"
    for what, program in (("kernel", here.kernel), ("engine", here.engine)):
        if program is not None and program not in {getattr(one, what) for one in recorded}:
            yield f"{what} {program}"
    for name, version in here.proxies.items():
        if version not in {one.proxies.get(name) for one in recorded}:
            yield f"{name} {version}"
    if here.cores is not None and here.cores not in {one.cores for one in recorded}:
        yield f"{here.cores:g} cores"
    most = max((one.steal_pct or 0.0 for one in recorded), default=0.0)
    if here.steal_pct is not None and here.steal_pct > most + STEAL_MORE:
        yield f"steal {here.steal_pct:.1f}{NBSP}%, elsewhere at most {most:.1f}{NBSP}%"
    for name, value in here.probes.items():
        known = [one.probes[name] for one in recorded if name in one.probes]
        if known and not min(known) <= value <= max(known):
            yield f"{name} {value:g}, elsewhere {min(known):g} to {max(known):g}"
