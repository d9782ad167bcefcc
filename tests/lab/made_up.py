"""Runs made up so that the effect is known: the proxy serves 80 % of the baseline, more or less."""

from dataclasses import replace
from pathlib import Path

from benchbook.core.artifacts import run_folder
from benchbook.core.study.model import PlannedRun
from tests.read import synthetic

PARAMS = """
studies: [two-arms]
sources: []
analysis: {looks: [5, 10, 20]}
limits: {}
"""
STUDY = """
title: What does a <b>proxy</b> cost?
question: Is it a fifth?
site: {kind: local}
engine: {name: mariadb}
arms:
  direct: {access: direct}
  haproxy: {access: haproxy}
aa: {}
dataset: {tables: 2, table_size: 500}
workloads:
  oltp_read_write: {}
threads: [4]
plan: {seed: 7, blocks: 5, discard_s: 2, run_s: 5, order: runs}
warm_up: {pilot_s: 0}
claims: []
"""
# Transactions a second of the baseline in blocks 1 to 5; the proxy has four fifths, its twin about the same.
BASELINE = (100, 110, 120, 130, 140)
TWIN = (101, 110, 119, 131, 139)
PROXY = (80, 88, 97, 103, 112)


def measure(raw: Path, run: PlannedRun, tps: int | None = None) -> run_folder.RunFolder:
    """Write the folder of one run."""
    arm = {"direct": BASELINE, "direct_again": TWIN, "haproxy": PROXY}[run.arm]
    out = synthetic.output(tps=tps or arm[run.block - 1], seed=run.seed)
    return synthetic.folder(raw, run.to_dict() | {"histogram": True, "ps_mode": "auto"}, out)


def voided(into: Path, run: PlannedRun) -> None:
    """Write an earlier attempt of a run, set aside because the ledger disagreed."""
    into.mkdir(parents=True)
    elsewhere = into.parent / "elsewhere"
    elsewhere.mkdir()
    folder = measure(elsewhere, replace(run))
    run_folder.void_folder(folder.path, into, "invalid", ["V10 ledger: 41 more than <counted>"])
    elsewhere.rmdir()
