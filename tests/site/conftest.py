"""A made-up repository with run folders that are valid, analysed and rendered as the pipeline does it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import nbformat
import pandas as pd
import pytest

from benchbook import publish
from benchbook.core import files, paths, runfolder
from benchbook.show import page
from tests.read import synthetic
from tests.show import notebooks

ROOT = Path(__file__).parents[2]
STUDY = """
title: What does a made-up proxy cost?
question: Does the site lead from every number to its raw log?
site: {kind: local}
engine: {name: mariadb}
arms:
  direct: {access: direct}
  haproxy: {access: haproxy}
aa: {threads: [4]}
dataset: {tables: 4, table_size: 10000}
workloads: {read: {script: oltp_read_write}}
threads: [4]
plan: {seed: 7, blocks: 5, discard_s: 2, run_s: 5}
warm_up: {pilot_s: 5}
claims: []
"""
PARAMS = "studies: [made]\nsources: [mysql-kubernetes]\nanalysis: {}\nlimits: {}\n"
ARMS = {"direct": 1000, "direct_again": 1001, "haproxy": 900}
NOISE = (0, 12, -9, 5, -4)
KEYS = ("run_id", "block", "position", "group", "arm", "workload", "threads", "seed")


def measure(root: Path) -> None:
    """Leave what run-matrix leaves: a schedule, valid runs and one voided attempt."""
    where, plans = paths.StudyPaths("made", root), []
    for block in range(1, 6):
        for arm, tps in ARMS.items():
            at = len(plans)
            plan = synthetic.planned(
                run_id=f"b{block:02d}-read-t0004-{arm}-{at:010x}", position=at, block=block, arm=arm,
                group=f"b{block:02d}-read-t0004", study="made",
            )  # fmt: skip
            seen = {"started_utc": f"2026-01-05T10:{at:02d}:00.000+00:00", "machine_cores": 2}
            out = synthetic.output(tps=tps + NOISE[block - 1] + at % 3)
            synthetic.folder(where.raw, plan, out, seen)
            plans.append(plan)
    files.write_csv(where.schedule, pd.DataFrame([{key: plan[key] for key in KEYS} for plan in plans]))
    spoilt = {**plans[1], "run_id": plans[1]["run_id"]}
    aside = synthetic.folder(root / "aside", spoilt, "FATAL: <script>alert(1)</script>\n", {"exit_code": 1})
    runfolder.void(aside.path, where.void, "invalid", ["V1 exit code: exit code 1"])
    files.write_json(
        where.facts, {"study": "made", "arms": {arm: {"access": arm} for arm in ("direct", "haproxy")}}
    )
    files.write_json(where.dataset, {"tables": 4})
    files.write_json(where.warm_up, {"discard_s": 2, "is_steady": True})


def make(root: Path) -> Path:
    """Write a repository with one study and one source, measured."""
    for name in ("studies", "data", "reports"):
        (root / name).mkdir(parents=True)
    (root / "studies" / "made.yaml").write_text(STUDY)
    (root / "params.yaml").write_text(PARAMS)
    (root / "notebooks").symlink_to(ROOT / "notebooks")
    shutil.copytree(
        ROOT / "data" / "published" / "mysql-kubernetes", root / "data" / "published" / "mysql-kubernetes"
    )
    measure(root)
    return root


def render(root: Path) -> None:
    """Run every notebook from parse on in this process, and render the pages as the stages do."""
    reports = root / "reports"
    steps = [
        ("05_parse", {"study": "made"}, None),
        ("06_analyze", {"study": "made"}, None),
        ("07_report", {"study": "made"}, reports / "studies" / "made.html"),
        ("runs", {"study": "made"}, reports / "runs" / "made" / "index.html"),
        ("audit", {"source": "mysql-kubernetes"}, reports / "sources" / "mysql-kubernetes.html"),
        ("method", {}, reports / "method.html"),
        ("findings", {}, reports / "index.html"),
    ]
    for name, given, into in steps:
        executed = notebooks.execute(ROOT / "notebooks" / f"{name}.ipynb", root, **given)
        if into:
            copy = root / "data" / f".{name}.ipynb"
            nbformat.write(executed, copy)
            page.render(copy, into, study=given.get("study"), root=root)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The root of the made-up repository with all its pages."""
    root = make(tmp_path_factory.mktemp("site") / "repository")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BENCHBOOK_ROOT", str(root))
        render(root)
        subprocess.run(["git", "init", "-q", root], check=True)
    return root


@pytest.fixture(scope="session")
def public(site: Path) -> Path:
    """The site as `make publish` leaves it."""
    publish.publish(site, site / "public")
    return site / "public"
