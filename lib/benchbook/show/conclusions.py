"""The answer of a study: one sentence a contrast, and before them what its levels or its ladder show.

Or the whole study on one page of Markdown, for an issue: the answer, the numbers, what asks for care.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchbook.compare.bottlenecks import operational_laws
from benchbook.compare.inference.caveats import leaves_zero_out
from benchbook.compare.text import labels as labels_module
from benchbook.compare.text import sentences
from benchbook.core.artifacts.findings import AnswerPart, Finding, Findings
from benchbook.core.util.errors import given
from benchbook.show import bottleneck_section, numbers, templating
from benchbook.show.caveats_section import Doubt, points
from benchbook.show.effect_summary import ONE_SESSION, Line, brief, effect_of, effects_of
from benchbook.show.evidence import Evidence
from benchbook.show.markup import Html, slug
from benchbook.show.tables import contrast

_SERVED = {"qps": "queries per second", "tps": "transactions per second"}
# So many thread levels make a study one of how a server grows.
_A_CURVE = 5
# Two workloads with longer names are counted, not named.
_LETTERS = 45
_AGAINST = {
    "no useful interval": "No useful interval yet for",
    "not decided yet": "Nothing is decided yet for",
    "no practical difference": "There is no practical difference for",
}


@dataclass(frozen=True)
class Said:
    """One sentence of an answer, with the way to its evidence on the page and the finding it is about."""

    text: str
    way: str
    findings: tuple[Finding, ...] = ()

    @property
    def is_lead(self) -> bool:
        """Whether it is about arms or levels together, not about a contrast."""
        return not self.findings and self.way not in ("#why", "#cells")


def early(findings: Findings) -> str:
    """Say before the first look that nothing is decided, or what single runs did where no more is planned."""
    blocks, look = findings.blocks, findings.look
    if look.n or not look.next:
        return ""
    needed = numbers.count(look.next, "block")
    if blocks.planned >= look.next:
        done = f"{blocks.complete} of the {needed} that the first look needs are complete"
        return f"Nothing is decided yet: {done}."
    seen = "".join(f"{sentence} " for sentence in findings.described or ())
    planned = f"{numbers.count(blocks.planned, 'block')} {'is' if blocks.planned == 1 else 'are'} planned"
    return f"{seen}This describes runs and decides nothing: {planned}, and a decision needs {needed}."


def text(findings: Findings) -> str:
    """Return the answer as one paragraph; nothing where no finding could be computed."""
    return early(findings) or " ".join(one.text for one in said(findings))


def said(findings: Findings) -> list[Said]:
    """Return the sentences that answer a study's title: its ladder, its levels, then each contrast."""
    if broken := operational_laws.broken(findings.causes):
        return [Said(f"The books don't add up, so no effect is an answer: {broken[0]}.", "#why")]
    # A study of fixed rates has no part on why.
    way = "#why" if bottleneck_section.explained(findings.causes) else "#cells"
    contrasts: dict[tuple[str, str, str], list[Finding]] = {}
    for found in findings.findings:
        contrasts.setdefault((found.baseline, found.treatment, found.metric), []).append(found)
    rungs = findings.ladder.workloads if findings.ladder else ()
    return [
        *(Said(one.sentence.partition(",")[0].rstrip(".") + ".", "#ladder") for one in rungs),
        *_peaks(findings),
        *_asked(findings),
        *_costs(contrasts, findings),
        *(one for own in contrasts.values() for one in _contrast(own, findings)),
        *([Said(told, way)] if (told := bottleneck_section.full(findings)) else []),
    ]


def _costs(contrasts: Mapping[tuple[str, str, str], Sequence[Finding]], findings: Findings) -> Iterator[Said]:
    """Say what a query costs at rates that are asked for: what travels, before what a client waits."""
    for one in {found[0].treatment: found[0] for found in contrasts.values()}.values():
        names = labels_module.inside(one, "treatment"), labels_module.inside(one, "baseline")
        if told := bottleneck_section.cost(findings, one.treatment, names):
            yield Said(told, "#cells")


def _peaks(findings: Findings) -> Iterator[Said]:
    """Say at how many threads each arm served most, of a study that has many levels."""
    arms = findings.names.arms
    by_workload: dict[str, list[str]] = {}
    for one in findings.scaling or ():
        if (
            len(one.threads) >= _A_CURVE
            and one.observed_max_threads
            and not one.arm.endswith(labels_module.AGAIN)
        ):
            name = labels_module.in_sentence(arms.get(one.arm, one.arm))
            many = numbers.count(one.observed_max_threads, "thread")
            by_workload.setdefault(one.workload, []).append(f"{name} at {many}")
    names = labels_module.labels(findings, "workloads")
    for workload, told in by_workload.items():
        place = f" on {names.get(workload, workload)}" if len(by_workload) > 1 else ""
        yield Said(f"Most queries a second came{place} from {numbers.listing(told)}.", "#scaling")


def _asked(findings: Findings) -> Iterator[Said]:
    """Say what the levels of a trend or a proportion came to."""
    for one in findings.claims or ():
        known = [part for part in one.parts if numbers.is_known(part.low)]
        way = f"#finding-{slug(one.claim)}"
        if one.kind == "proportional" and len(known) == 1:
            value, low, high = (
                numbers.significant(one) for one in (known[0].value, known[0].low, known[0].high)
            )
            yield Said(f"The highest rate is {value} times what is in proportion ({low} to {high}).", way)
        elif one.kind == "trend" and _is_plain(known):
            line = Line("", "", tuple(map(effect_of, known)))
            steps = _steps([part.where for part in known])
            ends = f" ({brief(*line.ends)})" if line.ends else ""
            told = f"Steps of {steps} showed no change in queries per second{ends}."
            if line.decided:
                told = f"Each step of {steps} meant {_amount(line)} queries per second."
            yield Said(told, way)


def _is_plain(parts: Sequence[AnswerPart]) -> bool:
    """Tell whether a trend is one of queries over something else than threads, which contrasts show."""
    shares = [part.scale == "share" and " against " not in part.where for part in parts]
    return bool(parts) and all(shares) and _over([part.where for part in parts]) != "threads"


def _steps(places: Sequence[str]) -> str:
    """Name what a trend goes over: threads per server from 500 to 1,000."""
    ends = [int(number) for one in places for number in re.findall(r"\d+", one.rpartition(", ")[2])]
    return _over(places) + (f" from {min(ends):,} to {max(ends):,}" if ends else "")


def _over(places: Sequence[str]) -> str:
    return re.split(r"\s*\d", places[0].rpartition(", ")[2])[0] or "steps"


def _contrast(own: Sequence[Finding], findings: Findings) -> Iterator[Said]:
    """Say what one treatment changed in one metric over workloads and levels, the time of a query first."""
    name = labels_module.inside(own[0], "treatment")
    if own[0].metric in _SERVED and (added := bottleneck_section.latency(findings, own[0].treatment, name)):
        yield Said(labels_module.sentence_case(added), "#why")
    treatment, baseline = (labels_module.inside(own[0], role) for role in ("treatment", "baseline"))
    compared = [found for found in own if numbers.is_known(found.effect) and numbers.is_known(found.low)]
    left = [found for found in own if found not in compared]
    if len(left) > 1 and {(one.effect, one.reason) for one in left} == {(None, left[0].reason)}:
        reason = left[0].reason or "there is no number"
        text = f"{treatment} could not be compared with {baseline}{_where(left)}: {reason}."
        text, way = labels_module.sentence_case(text), f"#finding-{slug(left[0].id)}"
        yield Said(text, way, tuple(left))
        left = []
    yield from (Said(found.sentence, f"#finding-{slug(found.id)}", (found,)) for found in left)
    if not compared:
        return
    text = _sentence(compared, treatment, baseline)
    way = f"#finding-{slug(compared[0].id)}"
    yield Said(labels_module.sentence_case(text), way, tuple(compared))


def _sentence(own: Sequence[Finding], treatment: str, baseline: str) -> str:
    line = Line("", "", tuple(effects_of(own)))
    shown = [found for found in own if any(one.label in sentences.SHOWN for one in effects_of([found]))]
    noun = _SERVED.get(own[0].metric)
    if not shown:
        return _quiet(own, line, treatment, baseline)
    hidden = len(own) - len(shown)
    others = "the other workload" if hidden == 1 else f"{hidden} others"
    where, rest = _where(shown), f"; no difference was shown on {others}" if hidden else ""
    if hidden and len(shown) > 1:
        where, rest = f" on {len(shown)} of {len(own)} workloads", ""
    if len(shown) == 1 and not line.direction:
        known = [one for one in shown[0].levels or () if one.label in sentences.SHOWN]
        least, most = (pick(known, key=lambda one: given(one.effect)) for pick in (min, max))
        first, last = sorted((least, most), key=lambda one: one.threads)
        compared = _compared(own[0], _of(given(first.effect), noun), treatment, baseline)
        other = f"{_of(given(last.effect), noun)} at {numbers.count(last.threads, 'thread')}"
        return f"{compared} at {numbers.count(first.threads, 'thread')} and {other},{where}{rest}."
    ends = f" ({brief(*line.ends)})" if len(line.effects) == 1 and line.ends else ""
    return f"{_compared(own[0], _amount(line, noun), treatment, baseline)}{where}{ends}{rest}."


def _compared(found: Finding, amount: str, treatment: str, baseline: str) -> str:
    if noun := _SERVED.get(found.metric):
        return f"{treatment} served {amount} {noun} than {baseline}"
    return f"{labels_module.metric(found.metric)} was {amount} with {treatment} than with {baseline}"


def _amount(line: Line, noun: str | None = "queries per second") -> str:
    """Write the shown effects of a line as one number or one range, each with its direction."""
    low, high = (pick(one.value for one in line.decided) for pick in (min, max))
    if not line.direction:
        return f"from {_of(low, noun)} to {_of(high, noun)}"
    near, far = sorted((abs(low), abs(high)))
    digits = 0 if near >= 0.1 else 1
    first, last = numbers.decimal(100 * near, digits), numbers.decimal(100 * far, digits)
    start = "" if first == last else f"{first} to "
    return f"{start}{_of(far if low > 0 else -far, noun, digits)}"


def _of(effect: float, noun: str | None, digits: int | None = None) -> str:
    """Write an effect with its direction: 27 % more, or 12 % higher."""
    more, less = ("more", "fewer") if noun else ("higher", "lower")
    places = (0 if abs(effect) >= 0.1 else 1) if digits is None else digits
    return f"{numbers.percent(abs(effect), places, False)} {less if effect < 0 else more}"


def _where(own: Sequence[Finding]) -> str:
    names = list(dict.fromkeys(labels_module.of(found, "workload") for found in own))
    told = numbers.listing(names)
    if len(names) == 1 or (len(names) == 2 and len(told) <= _LETTERS):
        return f" on {told}"
    return f" on {'both' if len(names) == 2 else len(names)} workloads"


def _quiet(own: Sequence[Finding], line: Line, treatment: str, baseline: str) -> str:
    """Say that no difference was shown, or why no answer can be given."""
    metric = "" if own[0].metric in _SERVED else f" in {labels_module.metric(own[0].metric)}"
    labels = {found.label for found in own}
    ends = f" ({brief(*line.ends)})" if line.ends and labels != {"no useful interval"} else ""
    if any(found.label == "not shown" and leaves_zero_out(found) for found in own):
        return f"{sentences.LOST} between {treatment} and {baseline}{metric}{_where(own)}{ends}."
    if len(labels) == 1 and (start := _AGAINST.get(*labels)):
        return f"{start} {treatment} against {baseline}{metric}{_where(own)}{ends}."
    return f"No difference{metric} between {treatment} and {baseline} was shown{_where(own)}{ends}."


_MOST_DOUBTS = 8


def markdown(seen: Evidence, more: Sequence[Doubt] = ()) -> str:
    """Write the summary of a study; every number is from its findings, every text is escaped.

    `more` are doubts that the findings don't know, such as the pre-registration.
    """
    found = seen.findings
    known = list(points(seen, more))
    first = [doubt for doubt in known if doubt.name in ("A/A", *(one.name for one in more))]
    given = {
        "rows": [one for one in (*found.findings, found.aa) if one],
        "doubts": list(dict.fromkeys([*first, *(doubt for doubt in known if doubt.is_care)])),
        "most": _MOST_DOUBTS,
    }
    return templating.markdown("summary.md.j2", found=found, answer=text(found), contrast=contrast, **given)


_NOTHING = Html("")


def opening(
    findings: Findings,
    setting: Sequence[str] = (),
    several: Html = _NOTHING,
    elsewhere: Html = _NOTHING,
) -> Html:
    """Write the title, on what the answer rests, and the answer: one sentence a contrast.

    `setting` is `setting.of`, `several` what recorded sessions say together (`sessions.over`), `elsewhere`
    those of other studies.
    """
    held = early(findings)
    given = {"setting": setting, "one_session": ONE_SESSION, "over": several, "elsewhere": elsewhere}
    told = [] if held else said(findings)
    return templating.render("answer.html.j2", found=findings, said=told, early=held, **given)
