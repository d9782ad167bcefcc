"""Figures, tables, sentences and pages, all made from findings.json and the tidy tables.

from benchbook.show import forest, load, study_answer, tables
seen = load("quick")
forest.of_findings(seen.findings.findings, seen.findings.aa)
"""

from benchbook.show.evidence import ReportInputs as Evidence
from benchbook.show.evidence import load_evidence as load

__all__ = ["Evidence", "load"]
