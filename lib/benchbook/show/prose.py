"""Sentences of a report. Every number in them is read from findings or from the runs table, and every name is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from benchbook.show import numbers
from benchbook.show.markup import Html, element, escape, join, slug
from benchbook.show.tables import label

Finding = Mapping[str, Any]

_METRICS = {"qps": "queries per second", "tps": "transactions per second"}


def opening(findings: Mapping[str, Any]) -> Html:
    """Write the title, the question, and on what the answer rests."""
    blocks, look = findings["blocks"], findings["look"]
    facts = [f"{blocks['complete']} of {numbers.count(blocks['planned'], 'block')}",
             f"{numbers.level(look['level'])} intervals",
             f"{numbers.minutes(findings['machine_minutes'])} of machine time", f"holds for {findings['scope']}"]
    items = element("ul", *(element("li", fact) for fact in facts), class_="basis")
    return join([element("h1", findings["title"]), element("p", findings["question"], class_="question"), items])


def answer(findings: Mapping[str, Any]) -> Html:
    """Write the answer: one line that can be quoted, one sentence a finding, and where the reader may stop."""
    stop = element("p", "Stop here if all you want is the answer.", class_="stop")
    if not findings["findings"]:
        told = element("p", "No finding could be computed; the reasons are below.", class_="verdict")
    else:
        items = (element("li", label(found["label"]), " ", sentence(found), " ", _claim(found), " ",
                         element("a", "evidence", href=f"#finding-{slug(found['id'])}", class_="way",
                                 aria_label=f"evidence for {found['workload']}, {found['treatment']}"))
                 for found in findings["findings"])
        told = join([element("p", *headline(findings), class_="verdict"), element("ul", *items, class_="answers")])
    return element("section", element("h2", "The answer", id="answer"), told, stop, class_="answer")


def headline(findings: Mapping[str, Any]) -> list[object]:
    """Write one line for each treatment: what it did to each metric, workload by workload."""
    parts: list[object] = []
    for treatment, metric in dict.fromkeys((found["treatment"], found["metric"]) for found in findings["findings"]):
        own = [found for found in findings["findings"] if (found["treatment"], found["metric"]) == (treatment, metric)]
        told = numbers.listing([_short(found) for found in own])
        parts += [" " if parts else "", "Against ", element("b", own[0]["baseline"]), ", ", element("b", treatment),
                  f" in {_METRICS.get(metric, metric)}: {told}."]
    return parts


def _short(found: Finding) -> str:
    where = f"on {found['workload']}"
    if not found["headline"]:
        return f"depends on the number of threads {where}"
    if found["label"] == "not shown":
        return f"no difference shown {where}"
    if found["label"] == "no practical difference":
        return f"no practical difference {where}"
    return f"{numbers.percent(found['effect'])} {where}"


def sentence(found: Finding) -> str:
    """Give a finding's own sentence, with a real minus before negative numbers."""
    return re.sub(r"(?<![\w-])-(?=\d)", "\N{MINUS SIGN}", found["sentence"])


def _claim(found: Finding) -> Html:
    if not found.get("claim"):
        return Html("")
    band = f" ({numbers.span(*found['band'])})" if found.get("band") else ""
    more = found.get("more_blocks")
    rest = (f" About {numbers.count(more['blocks'], 'more block', 'more blocks')} "
            f"({numbers.minutes(more['minutes'])}) would settle it."
            if found.get("verdict") == "inconclusive" and more else "")
    return join(["The claim ", element("i", found["claim"]), f"{band}: ", label(found["verdict"] or "not judged"), ".", rest], "")


def doubts(findings: Mapping[str, Any], runs: pd.DataFrame) -> Html:
    """Write what speaks against the answer: A/A, blocks, lengths of runs, voids, checks, scope, every warning."""
    items = (element("li", element("b", name, "."), " ", text, class_=None if is_fine else "care")
             for name, text, is_fine in _doubts(findings, runs))
    return element("ul", *items, class_="doubts")


def _doubts(findings: Mapping[str, Any], runs: pd.DataFrame) -> Iterator[tuple[str, object, bool]]:
    yield _aa(findings.get("aa"))
    yield _blocks(findings)
    yield _lengths(runs)
    yield _voids(findings["voids"])
    failed = [check for check in findings["checks"] if not check["passed"]]
    total = numbers.count(len(findings["checks"]), "consistency check")
    yield ("Checks", f"{numbers.listing([check['check'] for check in failed])} failed, of {total}." if failed else
           f"{total}, all passed." if findings["checks"] else "No consistency check was made.",
           bool(findings["checks"]) and not failed)
    differ = [entry["fact"] for entry in findings["facts_differ"]]
    yield ("Differences", f"The arms differ in {numbers.listing(differ[:6])}"
           f"{f' and {len(differ) - 6} more facts' if len(differ) > 6 else ''}; whether that is what was meant to differ is "
           "for the reader to judge." if differ else "The arms reported no fact that differs.", True)
    yield "Scope", f"These numbers hold for {findings['scope']}; another machine is another study.", True
    for found in findings["findings"]:
        second = found.get("second_opinion")
        if second and not second["agrees"]:
            yield "Second opinion", (f"For {found['workload']}, {found['treatment']}, the {second['method']} interval "
                                     f"{numbers.span(second['low'], second['high'])} leads elsewhere."), False
    said = [*findings["warnings"], *(text for found in findings["findings"] for text in found["warnings"])]
    for text in dict.fromkeys(said):
        yield "Warning", text, False


def _aa(found: Finding | None) -> tuple[str, object, bool]:
    if found is None:
        return "A/A", "No arm was measured against itself, so how much this set-up sees where there is nothing is unknown.", False
    is_fine = found["label"] in ("not shown", "no practical difference")
    told = (f"One arm under two names, on {found['workload']}: {numbers.percent(found['effect'])}, "
            f"{numbers.level(found['level'])} interval {numbers.span(found['low'], found['high'])}, n = {found['n']}. ")
    return "A/A", told + ("No difference was shown where there is none, as it should be." if is_fine else
                          "A difference was shown where there is none: read every effect of about this size as noise."), is_fine


def _blocks(findings: Mapping[str, Any]) -> tuple[str, object, bool]:
    blocks, look = findings["blocks"], findings["look"]
    is_whole = blocks["complete"] >= blocks["planned"]
    told = f"{blocks['complete']} of {numbers.count(blocks['planned'], 'planned block')} complete"
    note = f"; {look['note']}" if look.get("note") else ""
    then = f". The next look is at {numbers.count(look['next'], 'block')}" if look.get("next") else ""
    return "Blocks", f"{told}{note}{then}.", is_whole


def _lengths(runs: pd.DataFrame) -> tuple[str, object, bool]:
    if runs.empty:
        return "Runs", "No run was valid.", False
    lengths = [numbers.decimal(length, 0) for length in sorted(runs["run_s"].unique())]
    discards = [numbers.decimal(length, 0) for length in sorted(runs["discard_s"].unique())]
    return ("Runs", f"{numbers.count(len(runs), 'run')}, each measured for {numbers.listing(lengths, 'or')} s after "
            f"{numbers.listing(discards, 'or')} s that were discarded. The shorter a run, the more of its noise is left.", True)


def _voids(voids: Mapping[str, Any]) -> tuple[str, object, bool]:
    total = sum(arm["voided"] for arm in voids["by_arm"].values())
    if not total:
        return "Voids", "No run was voided.", True
    by_arm = numbers.listing([f"{name} {arm['voided']} of {arm['runs']}" for name, arm in voids["by_arm"].items()])
    p = voids.get("fisher_p")
    tested = f" ({numbers.p_value(p)} for equal rates, Fisher's exact test)" if numbers.is_known(p) else ""
    note = f" {voids['note'][0].upper()}{voids['note'][1:].rstrip('.')}." if voids.get("note") else ""
    return "Voids", f"Voided and run again: {by_arm}{tested}.{note}", not (numbers.is_known(p) and p < 0.05)


def summary(findings: Mapping[str, Any]) -> str:
    """Write the answer and the A/A result as Markdown, to be pasted into an issue."""
    def safe(text: str) -> str:
        return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", escape(text))

    lines = [f"### {safe(findings['title'])}", "", safe(findings["question"]), ""]
    lines += [f"- **{safe(found['label'])}**: {safe(sentence(found))}" for found in findings["findings"]]
    _, told, _ = _aa(findings.get("aa"))
    return "\n".join([*lines, "", f"A/A: {safe(str(told))} Scope: {safe(findings['scope'])}.", ""])
