"""Benchbook: reproducible database benchmarks, and a small way to look at their results by hand.

    import benchbook as bb

    bb.effects()                     every effect that was measured or recorded, one row each
    bb.studies()                     every study: what it asks, how far it has come
    bb.pooled("quick")               what all its recorded sessions say together, and each beside it
    bb.record()                      the measured record: studies whose evidence came with the clone
    s = bb.study("quick")            one of them, your own if it is measured, else the recorded one
    s.runs, s.intervals, s.voids     tidy tables, one row a run, a second, a voided attempt …
    bb.columns("runs")               what each column means, with its unit
    s.runs.query("arm == 'haproxy'")  the runs of one arm
    s.findings, s.aa                 effects with interval, n, label and verdict
    s.why                            what a query cost each part, where that explains an effect
    s.plot(), s.findings[0].plot()   as pictures, as is bb.pooled("quick").plot()
    s.run("b01-oltp_point")          one run by the start of its id: log, evidence, checks
    bb.calibration()                 campaigns whose answer is known: how often and how far measuring errs
    bb.source("tidb-kubernetes")     a published document: cells, claims beside what was measured, audit

Everything is read from what the pipeline left and nothing is written. Names complete with Tab, also those
with hyphens: `bb.sources().tidb_kubernetes`, or `bb.sources()["tidb-…`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["calibration", "columns", "effects", "pooled", "record", "source", "sources", "studies", "study"]

# Loaded when asked for, so that `import benchbook` takes no time in a program that wants only a floor of it.
_TYPES = {
    "Calibration": "api.calibration",
    "Claim": "api.source",
    "Finding": "api.study",
    "NotThere": "api.names",
    "Pooled": "api.pooled",
    "Run": "api.run",
    "Source": "api.source",
    "Study": "api.study",
}


def study(name: str) -> Any:
    """Return one study by the name of its file in `studies/`; see `benchbook.api.study.Study`.

    It is the one measured in this clone, or the recorded one where there are no findings of one's own.
    """
    return _module("api.catalogue").study(name)


def studies() -> Any:
    """Return all studies: by name, by Tab, or one after the other in a loop."""
    return _module("api.catalogue").studies()


def record() -> Any:
    """Return the recorded studies, whose evidence came with the clone: by name, by Tab, or in a loop."""
    return _module("api.catalogue").record()


def effects(study: str | None = None) -> Any:
    """Return all effects, or those of one study: a row for each contrast, session and thread level.

    Effects and both ends of their intervals are fractions (-0.12 is 12 % less), shown in per cent.
    """
    return _module("api.catalogue").effects(study)


def pooled(name: str) -> Any:
    """Return what the recorded sessions of a study say together; see `benchbook.api.pooled.Pooled`."""
    return _module("api.pooled").Pooled(name)


def calibration(is_recorded: bool = False) -> Any:
    """Return the calibration made in this clone, or the recorded one where there is none or it is asked for;
    see `benchbook.api.calibration.Calibration`."""
    return _module("api.calibration").calibration(is_recorded)


def source(name: str) -> Any:
    """Return one published document by its folder in `data/published/`; see `benchbook.api.source.Source`."""
    return sources()[name]


def sources() -> Any:
    """Return all published documents: by name, by Tab, or one after the other in a loop."""
    return _module("api.catalogue").sources()


def columns(table: Any = None) -> Any:
    """Return what the columns of a table mean, with type and unit: of a table by name, of one that you
    have, or of all."""
    return _module("api.columns").columns(table)


def _module(name: str) -> Any:
    return import_module(f"benchbook.{name}")


def __getattr__(name: str) -> Any:
    if name in _TYPES:
        return getattr(_module(_TYPES[name]), name)
    if name == "__version__":
        return import_module("importlib.metadata").version("benchbook")
    raise AttributeError(f"benchbook has no {name}; it has {', '.join(__dir__())}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_TYPES, "__version__"])
