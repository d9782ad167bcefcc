"""Benchbook: reproducible database benchmarks, and a small way to look at their results by hand.

    import benchbook as bb

    bb.effects()                     every effect that was measured or recorded, one row each
    bb.studies()                     every study: what it asks, how far it has come
    bb.pooled("quick")               what all its recorded sessions say together, and each beside it
    bb.record()                      the measured record: studies whose evidence came with the clone
    s = bb.study("quick")            one of them, your own if it is measured, else the recorded one
    bb.study("quick", session="20261126T2251")   one recorded session; s.sessions lists them
    s.runs, s.intervals, s.voids     tidy tables, one row a run, a second, a voided attempt …
    bb.columns("runs")               what each column means, with its unit
    s.runs.query("arm == 'haproxy'")  the runs of one arm
    s.findings, s.aa                 effects with interval, n, label and verdict
    s.why                            what a query cost each part, where that explains an effect
    s.plot(), s.findings[0].plot()   as pictures, as is bb.pooled("quick").plot()
    s.run("b01-oltp_point")          one run by the start of its id: log, evidence, checks
    bb.logs("FOLDER")                logs of sysbench that you have: .runs, .effects, .caveats, .plot()
    bb.source("tidb-kubernetes")     a published document: cells, claims beside what was measured, audit

Everything is read from what the pipeline left and nothing is written. Names complete with Tab, also those
with hyphens: `bb.sources().tidb_kubernetes`, or `bb.sources()["tidb-…`.
"""

from importlib import import_module
from typing import Any

# Where each name lies: it is loaded when it is asked for, so that `import benchbook` takes no time in a
# program that wants only a floor of it. `__init__.pyi` tells editors what each takes and returns.
_FUNCTIONS = {
    "columns": "api.columns",
    "effects": "api.catalogue",
    "logs": "api.logs",
    "pooled": "api.meta_analysis",
    "record": "api.catalogue",
    "source": "api.catalogue",
    "sources": "api.catalogue",
    "studies": "api.catalogue",
    "study": "api.catalogue",
    "use_recorded_where_unmeasured": "api.sessions",
}
_TYPES = {
    "Claim": "api.source",
    "Finding": "api.study",
    "Logs": "api.logs",
    "NotThere": "api.lookup",
    "Pooled": "api.meta_analysis",
    "Run": "api.run",
    "Source": "api.source",
    "Study": "api.study",
}
__all__ = [*_FUNCTIONS]


def __getattr__(name: str) -> Any:
    if name in (modules := _FUNCTIONS | _TYPES):
        return getattr(import_module(f"benchbook.{modules[name]}"), name)
    if name == "__version__":
        return import_module("importlib.metadata").version("benchbook")
    raise AttributeError(f"benchbook has no {name}; it has {', '.join(__dir__())}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_TYPES, "__version__"])
