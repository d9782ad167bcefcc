"""Sentences of a report: every number is read from findings, every name is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from benchbook.compare import sentences, words
from benchbook.show import numbers, setting
from benchbook.show.badge import badge
from benchbook.show.doubts import doubts
from benchbook.show.markup import Html, element, join, slug

__all__ = ["answer", "doubts", "headline", "opening", "sentence"]

Finding = Mapping[str, Any]


def opening(
    findings: Mapping[str, Any],
    facts: Mapping[str, Any] | None = None,
    dataset: Mapping[str, Any] | None = None,
) -> Html:
    """Write the title, the question, and on what the answer rests: versions, machine and data, blocks."""
    blocks = findings["blocks"]
    basis = [
        *setting.of(facts, dataset),
        *_order(findings.get("turns")),
        f"{blocks['complete']} of {numbers.count(blocks['planned'], 'block')}",
        f"{numbers.level(findings['look']['level'])} intervals",
        f"{numbers.minutes(findings['machine_minutes'])} of machine time",
        f"holds for {findings['scope']}",
    ]
    return join(
        [
            element("h1", findings["title"]),
            element("p", findings["question"], class_="question"),
            element("ul", *(element("li", item) for item in basis), class_="basis"),
        ]
    )


def _order(turns: Mapping[str, Any] | None) -> list[str]:
    """Say how arms took turns; nothing of whole runs one after the other."""
    if not turns:
        return []
    lengths = numbers.listing(turns["turn_ms"], "or") if turns["turn_ms"] else "some"
    many = f" ({numbers.count(turns['turns'], 'turn')} of each arm in a block)" if turns["turns"] else ""
    return [f"arms took turns of {lengths} ms inside the same second{many}"]


def answer(findings: Mapping[str, Any]) -> Html:
    """Write the answer: a line to quote, one sentence a finding, and where the reader may stop."""
    if findings["findings"]:
        shown = [
            element("p", *headline(findings, with_levels=False), class_="verdict"),
            *_ladder(findings.get("ladder")),
            element("ul", *map(_answer, findings["findings"]), class_="answers"),
        ]
    else:
        shown = [element("p", "No finding could be computed; the reasons are below.", class_="verdict")]
    heading = element("h2", "The answer", id="answer")
    stop = element("p", "Stop here if all you want is the answer.", class_="stop")
    return element("section", heading, *shown, stop, class_="answer")


def _ladder(found: Mapping[str, Any] | None) -> list[Html]:
    """Say of each workload which arm of a ladder is the best up to its end."""
    told = [one["sentence"] for one in (found or {}).get("workloads", ())]
    return (
        [element("p", " ".join(told), " ", element("a", "the ladder", href="#ladder", class_="way"))]
        if told
        else []
    )


def _answer(found: Finding) -> Html:
    name = f"evidence for {words.of(found, 'treatment')} on {words.of(found, 'workload')}"
    way = element("a", "evidence", href=f"#finding-{slug(found['id'])}", class_="way", aria_label=name)
    return element("li", badge(found["label"]), " ", sentence(found), " ", way, _claim(found))


def _claim(found: Finding) -> Html:
    if not found.get("claim"):
        return Html("")
    band = f" ({numbers.span(*found['band'])})" if found.get("band") else ""
    more = found.get("more_blocks") if found.get("verdict") == "inconclusive" else None
    rest = more and (
        f" About {numbers.count(more['blocks'], 'more block', 'more blocks')} "
        f"({numbers.minutes(more['minutes'])}) would narrow the interval to "
        f"{numbers.percent(more['for_half_width'], 0, False)} on either side."
    )
    judged = badge(found["verdict"] or "not judged")
    source, _, short = found["claim"].partition("/")
    claimed = element("a", found["claim"], href=f"../sources/{slug(source)}.html#claim-{slug(short)}")
    return element("span", "Claim ", claimed, f"{band}: ", judged, rest or "", class_="claim")


def headline(findings: Mapping[str, Any], with_levels: bool = True) -> list[object]:
    """Write one sentence for each treatment and metric, workload by workload; `Html` and plain parts.

    Before the first look there is nothing to say but that, or what single runs did where a study plans no
    more. Without levels it leaves out how an effect
    differs between thread counts, for a page whose next lines say that.
    """
    blocks, look = findings["blocks"], findings["look"]
    if not look["n"] and look["next"]:
        needed = numbers.count(look["next"], "block")
        if blocks["planned"] < look["next"]:
            told = "".join(f"{sentence} " for sentence in findings.get("described", ()))
            return [f"{told}This describes runs and decides nothing: {_too_few(blocks['planned'], needed)}."]
        shown = f"{blocks['complete']} of the {needed} that the first look needs are complete"
        return [f"Nothing is decided yet: {shown}."]
    groups: dict[tuple[str, str, str], dict[object, Finding]] = {}
    for found in findings["findings"]:
        key = found["baseline"], found["treatment"], found["metric"]
        # A second claim about the same comparison tells nothing new here.
        groups.setdefault(key, {}).setdefault((found["workload"], *found["threads"]), found)
    parts: list[object] = []
    for own in groups.values():
        parts += [
            " " if parts else "",
            *_named(sentences.headline(list(own.values()), with_levels), own.values()),
        ]
    return parts


def _too_few(planned: int, needed: str) -> str:
    verb = "is" if planned == 1 else "are"
    return f"{numbers.count(planned, 'block')} {verb} planned, and a decision needs {needed}"


def _named(text: str, group: Iterable[Finding]) -> list[object]:
    """Split a sentence so that the arms' names stand out where each is first named."""
    parts: list[object] = [text]
    for name in dict.fromkeys(words.of(found, role) for found in group for role in ("treatment", "baseline")):
        for place, part in enumerate(parts):
            if isinstance(part, str) and (found := _place(name, part)):
                marked = element("b", part[found.start() : found.end()])
                parts[place : place + 1] = [part[: found.start()], marked, part[found.end() :]]
                break
    return [part for part in parts if part != ""]


def _place(name: str, text: str) -> re.Match[str] | None:
    """Find a name in a text, also where it begins a sentence with a capital."""
    return re.search(
        rf"(?<!\w)[{re.escape(name[0])}{re.escape(name[0].upper())}]{re.escape(name[1:])}(?!\w)", text
    )


def sentence(found: Finding) -> str:
    """Give a finding's own sentence, with a real minus before negative numbers."""
    return re.sub(r"(?<![\w-])-(?=\d)", "\N{MINUS SIGN}", found["sentence"])
