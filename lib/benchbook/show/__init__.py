"""Figures, tables, sentences and pages, all made from findings.json and the tidy tables.

from benchbook.show import figures, load, prose, tables
seen = load("quick")
figures.forest(seen.findings, seen.arms)
"""

from benchbook.show.evidence import Evidence, load

__all__ = ["Evidence", "load"]
