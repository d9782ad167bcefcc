"""What every column of every table of the API means, and tables that fit a terminal.

What all rows share stands above them, fractions are shown in per cent.
"""

from __future__ import annotations

import shutil

import pandas as pd

from benchbook.core.errors import NotThere, did_you_mean
from benchbook.read.schemas import SCHEMAS, Column
from benchbook.show.shape import shaped

_INTERVAL = "end of the interval, as a fraction"
_ENDS: dict[str, Column] = {
    "low": ("float", "", f"lower {_INTERVAL}"),
    "high": ("float", "", f"upper {_INTERVAL}"),
}
_CONTRAST: dict[str, Column] = {
    "workload": ("str", "", "workload"),
    "treatment": ("str", "", "arm in question"),
    "baseline": ("str", "", "arm compared against"),
    "metric": ("str", "", "what is compared, a column of `runs`"),
}

MORE: dict[str, dict[str, Column]] = {
    "schedule": {
        "position": ("int", "", "place in the order of the whole schedule, from 0"),
        "run_id": ("str", "", "the run"),
        "block": ("int", "", "block of the run, from 1"),
        "group": ("str", "", "the adjacent arms of one block at one workload and thread count"),
        "arm": ("str", "", "arm"),
        "workload": ("str", "", "workload"),
        "threads": ("int", "", "threads of sysbench"),
        "seed": ("int", "", "seed of sysbench's random numbers"),
        "discard_s": ("float", "s", "asked length of the discard"),
        "run_s": ("float", "s", "asked length of the measured window"),
    },
    "findings": {
        "id": ("str", "", "the finding; also its anchor on the study's page"),
        **_CONTRAST,
        "effect": ("float", "", "treatment over baseline, less one: -0.12 is 12 % less"),
        **_ENDS,
        "label": (
            "str",
            "",
            "what is shown: higher, lower, no practical difference, not shown, depends on "
            "threads, no useful interval, or not decided yet",
        ),
        "level": ("float", "", "confidence of the interval"),
        "n": ("int", "blocks", "complete blocks that it rests on"),
        "claim": ("str", "", "the claim it answers, `source/claim`"),
        "verdict": ("str", "", "confirmed, contradicted or inconclusive; only with a claim"),
    },
    "effects": {
        "study": ("str", "", "name of the study"),
        **_CONTRAST,
        "threads": ("Int", "", "thread level; missing over all of them"),
        "session": ("str", "", "recorded session; `here` for what was measured in this clone"),
        "effect": ("float", "", "treatment over baseline, less one: -0.12 is 12 % less"),
        **_ENDS,
        "label": ("str", "", "what it shows by itself, as in `findings`"),
        "level": ("float", "", "confidence of the interval"),
        "n": ("int", "blocks", "complete blocks"),
    },
    "between": {
        "workload": ("str", "", "a workload, or one over the other"),
        "effect": ("float", "", "treatment over baseline, less one; at last that of one over the other's"),
        **_ENDS,
        "level": ("float", "", "confidence of the interval"),
        "n": ("int", "blocks", "complete blocks that both workloads have"),
        "label": ("str", "", "as in `findings`, without correction for several questions"),
    },
    "levels": {
        "threads": ("int", "", "threads of sysbench"),
        "effect": ("float", "", "as in `findings`, at this thread level alone"),
        **_ENDS,
        "level": ("float", "", "confidence of the interval, that of the look"),
        "n": ("int", "blocks", "complete blocks"),
        "label": ("str", "", "as in `findings`, with Holm's correction over the levels of a question"),
        "note": ("str", "", "what kept a decision back"),
    },
    "by_threads": {
        "threads": ("int", "", "threads of sysbench"),
        "effect": ("float", "", "as in `findings`, at this thread level alone"),
        **_ENDS,
        "level": ("float", "", "confidence of the interval; exploratory, one interval each"),
        "n": ("int", "blocks", "complete blocks"),
        "q": ("float", "", "expected share of false discoveries if this and all smaller ones are believed"),
    },
    "run_checks": {
        "id": ("str", "", "the check, V1 to V22"),
        "name": ("str", "", "what it looks at"),
        "passed": ("bool", "", "None where the evidence is missing"),
        "is_excused": ("bool", "", "the site cannot give this evidence and says so"),
        "detail": ("str", "", "what was found"),
    },
    "checks": {
        "check": ("str", "", "which law of arithmetic"),
        "passed": ("bool", "", "None where there was nothing to check"),
        "where": ("str", "", "the cells looked at"),
        "detail": ("str", "", "the arithmetic"),
    },
    "claim_cells": {
        "where": ("str", "", "the cell of the document's table"),
        "arithmetic": ("str", "", "how the number follows from what is printed"),
        "is_inside": ("bool", "", "whether this cell supports the claim; None where it decides nothing"),
    },
    "stages": {
        "stage": ("str", "", "stage of the pipeline"),
        "notebook": ("str", "", "notebook that does it"),
        "leaves": ("str", "", "what it leaves, below the clone"),
        "is_done": ("bool", "", "whether that is there"),
        "detail": ("str", "", "how much of it"),
    },
    "studies": {
        "study": ("str", "", "name of the file in studies/"),
        "question": ("str", "", "the question it answers"),
        "runs": ("int", "", "runs that are there"),
        "planned": ("Int", "", "runs of the schedule; nothing before it is written"),
        "findings": ("int", "", "findings, the A/A pair not counted"),
        "next": ("str", "", "what to do next; empty when all is done"),
    },
    "record": {
        "study": ("str", "", "name of the recorded study"),
        "sessions": ("int", "", "recorded sessions; what follows is the newest one's"),
        "answer": ("str", "", "its answer in a sentence"),
        "measured": ("str", "", "UTC date of the first run"),
        "machine": ("str", "", "where it was measured"),
        "runs": ("int", "", "valid runs"),
        "doubts": ("int", "", "what spoke against it when it was recorded"),
        "next": ("str", "", "what to do next; empty when all is done"),
    },
    "pooled": {
        **_CONTRAST,
        "threads": ("Int", "", "thread level; missing over all of them"),
        "effect": ("float", "", "mean over occasions: treatment over baseline, less one"),
        "prediction_low": ("float", "", "from here a further session is expected, in nine of ten"),
        "prediction_high": ("float", "", "up to here; missing with fewer than four occasions"),
        "label": (
            "str",
            "",
            "holds elsewhere, same direction, depends on the machine, on average, one session, "
            "not shown, or not computed",
        ),
        "low": ("float", "", f"lower {_INTERVAL}, of the mean at 90 %"),
        "high": ("float", "", f"upper {_INTERVAL}"),
        "range_low": ("float", "", "smallest effect of a session"),
        "range_high": ("float", "", "largest effect of a session"),
        "occasions": ("int", "", "sessions, those within 6 hours on one model of processor counted once"),
        "sessions": ("int", "", "sessions that are pooled"),
        "processors": ("int", "", "models of processor that are certainly different"),
        "tau": ("float", "", "standard deviation between occasions, of logarithms of ratios"),
        "q": ("float", "", "Cochran's Q of the occasions"),
        "i_squared": ("float", "", "share of the scatter that the errors of blocks don't explain"),
        "id": ("str", "", "the contrast, workload.treatment.metric"),
        "headline": ("str", "", "all of it in one sentence"),
    },
    "pooled_sessions": {
        "id": ("str", "", "the contrast, as in `pooled`"),
        "threads": ("Int", "", "thread level; missing over all of them"),
        "session": ("str", "", "the session"),
        "processor": ("str", "", "processor of the machine"),
        "label": ("str", "", "what the session shows by itself, as in `findings`"),
        "effect": ("float", "", "treatment over baseline in this session, less one"),
        "low": ("float", "", f"lower {_INTERVAL} over its blocks"),
        "high": ("float", "", f"upper {_INTERVAL}"),
        "level": ("float", "", "confidence of that interval"),
        "n": ("int", "blocks", "complete blocks"),
        "standard_error": ("float", "", "of the mean log ratio of its blocks"),
        "reason": ("str", "", "why it is not pooled; missing where it is"),
        "measured": ("str", "", "UTC time of its first run"),
        "cores": ("float", "", "cores that programs could use"),
        "kernel": ("str", "", "release of the kernel"),
        "steal_pct": ("float", "%", "share of time that the host took for others"),
        "hour": ("int", "", "hour of day of its first run, UTC"),
        "engine": ("str", "", "database server and version"),
        "proxies": ("str", "", "proxies and their versions"),
    },
    "left_out": {
        "session": ("str", "", "the session"),
        "reason": ("str", "", "why it is not pooled"),
    },
    "campaigns": {
        "name": ("str", "", "the campaign; also its folder"),
        "kind": (
            "str",
            "",
            "same: equal arms; known: a known effect; lengths: equal arms at a length of turns",
        ),
        "what": ("str", "", "the known effect; empty for equal arms"),
        "engine": ("str", "", "database server"),
        "workload": ("str", "", "workload; both where the effect lies between two"),
        "threads": ("int", "", "threads of sysbench"),
        "order": ("str", "", "`turns` of arms that are connected at once, or whole `runs`"),
        "turn_ms": ("int", "ms", "length of a turn; 0 in whole runs"),
        "blocks": ("int", "", "planned blocks"),
        "run_s": ("float", "s", "asked length of a run's measured window"),
        "seed": ("int", "", "seed of order and random numbers"),
        "began_utc": ("str", "", "when it began, ISO 8601"),
        "seconds": ("float", "s", "how long it took, server's start included"),
        "load_1min": ("float", "", "load of the machine at its start, mean of a minute"),
        "active_s": ("float", "s", "measured seconds of all its valid runs"),
        "runs": ("int", "", "valid runs"),
        "voids": ("int", "", "voided attempts"),
        "n": ("int", "blocks", "complete blocks"),
        "effect": ("float", "", "the other arm over the one, less one"),
        "low": ("float", "", f"lower {_INTERVAL}, at a level of 98 %"),
        "high": ("float", "", f"upper {_INTERVAL}"),
        "log_ratios": ("str", "", "log ratio of each block, in order"),
        "machine": ("str", "", "where it was measured"),
    },
    "sources": {
        "source": ("str", "", "name of the folder in data/published/"),
        "title": ("str", "", "title of the document"),
        "publisher": ("str", "", "who published it"),
        "tables": ("int", "", "tables that are carried"),
        "claims": ("int", "", "claims that it makes"),
    },
    "claims": {
        "claim": ("str", "", "name of the claim within its source"),
        "verdict": ("str", "", "holds, does not hold, or not derivable"),
        "published": ("str", "", "the number as published"),
        "recomputed": ("str", "", "what follows from the document's own tables"),
        "says": ("str", "", "what is claimed, in our words"),
    },
}


class Meanings(pd.DataFrame):
    """A table of columns that shows every meaning whole."""

    def _repr_html_(self) -> str:
        return frame_html(self.reset_index())


def columns(table: str | pd.DataFrame | None = None) -> pd.DataFrame:
    """Return type, unit and meaning by column; for all tables at once also the table's name in front."""
    known = {**SCHEMAS, **MORE}
    if table is None:
        parts = [columns(name).reset_index().assign(table=name) for name in known]
        return pd.concat(parts, ignore_index=True)[["table", "column", "type", "unit", "meaning"]]
    if isinstance(table, pd.DataFrame):
        name = table.attrs.get("table")
        if name is None:
            raise NotThere(f"there is no such table; the tables are {', '.join(known)}")
        return Meanings(columns(name).reindex([column for column in table.columns if column in known[name]]))
    if table not in known:
        raise NotThere(f"{table}: no such table; {did_you_mean(str(table), known)}")
    meanings = pd.DataFrame.from_dict(known[table], orient="index", columns=["type", "unit", "meaning"])
    return Meanings(meanings.rename_axis("column"))


def documented(name: str, frame: pd.DataFrame) -> pd.DataFrame:
    """Put a table's columns in their documented order and let it remember its name and fit a terminal."""
    ordered = Table(frame.reindex(columns=list(MORE[name])) if name in MORE else frame)
    ordered.attrs["table"] = name
    return ordered


# Columns that hold fractions: shown with a sign and in per cent, kept as they are.
FRACTIONS = frozenset(
    {"effect", "low", "high", "prediction_low", "prediction_high", "range_low", "range_high", "tau"}
)
_SHORTEST, _LONGEST = 16, 60


class Table(pd.DataFrame):
    """A frame whose text is as wide as the terminal; what does not fit is named below it."""

    @property
    def _constructor(self) -> type[Table]:
        return Table

    def __repr__(self) -> str:
        if self.empty or self.columns.nlevels > 1:
            return str(pd.DataFrame(self))
        width = shutil.get_terminal_size((100, 24)).columns
        head, shown = _shared(_in_per_cent(self))
        left_out: list[str] = []
        while (text := _fitted(shown, width)) is None and len(shown.columns) > 1:
            left_out.insert(0, str(shown.columns[-1]))
            shown = shown.iloc[:, :-1]
        more = f"and {len(left_out)} more columns: {', '.join(left_out)}" if left_out else ""
        return "\n".join(part for part in (_cut(head, width), text, _cut(more, width)) if part)


def _in_per_cent(frame: Table) -> pd.DataFrame:
    shown = pd.DataFrame(frame)
    for name in FRACTIONS & set(shown.columns):
        shown[name] = [f"{100 * one:+.1f} %" if pd.notna(one) else "" for one in shown[name]]
    return shown


def _shared(shown: pd.DataFrame) -> tuple[str, pd.DataFrame]:
    """Take out the columns that say the same of every row, and say it once."""
    if len(shown) < 3:
        return "", shown
    same = [name for name in shown if shown[name].map(str).nunique() == 1]
    if len(same) == len(shown.columns):
        return "", shown
    known = [f"{name} {one}" for name in same if pd.notna(one := shown[name].iloc[0]) and one != ""]
    return "every row: " + ", ".join(known) if known else "", shown.drop(columns=same)


def _fitted(shown: pd.DataFrame, width: int) -> str | None:
    """Return the table with names whole and sentences as long as they may be; None where it is wider."""
    has_name = shown.index.name is not None
    for longest in range(_LONGEST, _SHORTEST - 1, -4):
        cut = shown.map(lambda one, most=longest: _cut(str(one), most) if " " in str(one) else one)
        text = cut.to_string(index=has_name, max_rows=100, na_rep="", float_format="{:.6g}".format)
        if max(map(len, text.splitlines())) <= width:
            return text
    return text if len(shown.columns) == 1 else None


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def frame_html(frame: pd.DataFrame) -> str:
    """Write a small table of texts as HTML, every cell escaped, long ones wrapped and set left."""
    rows = [[_cell(value) for value in row] for row in frame.itertuples(index=False)]
    return shaped("frame.html.j2", columns=list(frame.columns), rows=rows).text


def _cell(value: object) -> object:
    if value is None or value is pd.NA or value != value:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else value
