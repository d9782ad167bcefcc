"""A made-up repository with run folders that are valid, analysed and rendered as the pipeline does it."""

import contextlib
import datetime
import functools
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import nbformat
import pytest

from benchbook.commands import pages
from benchbook.compare.stats import steady_state
from benchbook.core.artifacts import applied_config, run_folder
from benchbook.core.study.model import Endpoint, PlannedRun, compute_fingerprint
from benchbook.core.study.study import StudySpec
from benchbook.core.study.validation_errors import validate_document
from benchbook.core.util import files, paths, yaml_file
from benchbook.measure import sysbench
from benchbook.plan import schedule
from benchbook.read import evidence, tidy
from benchbook.show import page
from tests import once
from tests.read import corpus, synthetic
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
plan: {seed: 7, blocks: 5, discard_s: 2, run_s: 5, order: runs}
warm_up: {pilot_s: 5}
claims: []
"""
SOURCES = ("mysql-kubernetes", "tidb-kubernetes")
PARAMS = "studies: [made]\nsources: [mysql-kubernetes, tidb-kubernetes]\nanalysis: {}\nlimits: {}\n"
ARMS = {"direct": 1000, "direct_again": 1001, "haproxy": 900}
ENDPOINT = Endpoint("127.0.0.1", 33060, "sbtest", Path("sysbench.cnf"))
NOISE = (0, 12, -9, 5, -4)
FACTS = {
    "access": None,
    "engine": {
        "name": "mariadb", "version": "10.11.6",
        "config_hash": corpus.WHO["config_hash"], "variables_sha256": "d" * 64,
        "started_with": corpus.WHO["started_with"],
        "settings": {"max_connections": {"asked": "1024", "from": "benchbook", "got": "1024"}},
    },
    "machine": {"cores": 2, "cpu_model": "made up", "python": "3.12.1"},
    "moment": {"load_1min": 0.1},
}  # fmt: skip
DATA = {
    "tables": 4, "table_size": 10000, "seed": 1, "rows": {f"sbtest{one}": 10000 for one in range(1, 5)},
    "indexes": {f"sbtest{one}": ["PRIMARY", f"k_{one}"] for one in range(1, 5)}, "checksums": None,
}  # fmt: skip


@contextlib.contextmanager
def edited(file: Path, content: bytes) -> Iterator[None]:
    """Have a file hold something else while the block runs."""
    before = file.read_bytes()
    file.write_bytes(content)
    try:
        yield
    finally:
        file.write_bytes(before)


@contextlib.contextmanager
def moved(path: Path, to: Path) -> Iterator[None]:
    """Have a file or folder somewhere else while the block runs."""
    path.rename(to)
    try:
        yield
    finally:
        to.rename(path)


def study() -> StudySpec:
    """The made-up study as a type."""
    return validate_document(yaml_file.parse_mapping(STUDY.encode(), "studies/made.yaml"), StudySpec)


def fact_file() -> dict:
    """What provision would have found of both arms."""
    return {"study": "made", "arms": {arm: {**FACTS, "access": arm} for arm in ("direct", "haproxy")}}


def data_file() -> dict:
    """What prepare would have loaded."""
    return {**DATA, "fingerprint": compute_fingerprint(DATA), "loads": {}}


def run(into: Path, planned: PlannedRun, began: str, tps: int, attempt: int = 1) -> run_folder.RunFolder:
    """Leave the folder of one valid run that agrees with its plan in every word."""
    plan, lasts = planned.to_dict(), planned.discard_s + planned.run_s
    end = datetime.datetime.fromisoformat(began) + datetime.timedelta(seconds=lasts)
    seen = {
        "attempt": attempt, "started_utc": began, "ended_utc": end.isoformat(timespec="milliseconds"),
        "machine_cores": 2, "argv": sysbench.run_argv(ENDPOINT, planned),
    }  # fmt: skip
    out = synthetic.output(tps=tps, seed=planned.seed, discard_s=planned.discard_s, run_s=planned.run_s)
    return synthetic.folder(into, plan, out, seen, attempt)


def measure(root: Path) -> None:
    """Leave what run-matrix leaves: a schedule, valid runs, pilots and one voided attempt."""
    where, spec, facts, data = paths.StudyPaths("made", root), study(), fact_file(), data_file()
    runs = schedule.plan_runs("made", spec, schedule.run_conditions(facts["arms"], data))
    for number, planned in enumerate(runs):
        tps = ARMS[planned.arm] + NOISE[planned.block - 1] + number % 3
        # The second run has one attempt behind it.
        run(where.raw, planned, f"2026-01-05T10:{number:02d}:00.000+00:00", tps, 2 if number == 1 else 1)
    pilots = schedule.pilot_runs("made", spec)
    for number, planned in enumerate(pilots):
        run(where.pilots, planned, f"2026-01-05T09:{number:02d}:00.000+00:00", ARMS[planned.arm])
    files.write_csv(where.schedule, schedule.schedule_table(runs))
    spoilt = {"exit_code": 1, "started_utc": "2026-01-05T10:00:30.000+00:00"}
    aside = synthetic.folder(
        root / "aside", runs[1].to_dict(), "FATAL: <script>alert(1)</script>\n", spoilt, 1
    )
    run_folder.void_folder(aside.path, where.void, "invalid", ["V1 exit code: exit code 1"])
    files.write_json(where.facts, facts)
    applied_config.write_texts(where.applied, [("my.cnf", corpus.CONFIG), ("mariadbd.argv", corpus.ARGV)])
    files.write_json(where.dataset, data)
    series = tidy.pilot_series(run_folder.list_folders(where.pilots))
    files.write_json(
        where.warm_up, {"analyze": [], **asdict(steady_state.discard_advice(series)), "rates": []}
    )


def contents(folder: Path) -> dict[Path, bytes]:
    """Return the bytes of all files below a folder."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def commit(root: Path, *argv: str) -> None:
    """Add what git does not know yet in a made-up repository, with some options, and commit it."""
    dated = dict.fromkeys(("GIT_COMMITTER_DATE", "GIT_AUTHOR_DATE"), "2026-01-01T00:00:00+00:00")
    git = ["git", "-C", str(root), "-c", "user.name=t", "-c", "user.email=t@t"]
    for words in (["add", *argv], ["commit", "-qam", "Made up"]):
        subprocess.run([*git, *words], check=True, capture_output=True, env=os.environ | dated)


def publish(root: Path, to: Path) -> str:
    """Put the site of a repository together in a folder."""
    with paths.use_root(root):
        return pages.publish_site(to)


def make(root: Path) -> Path:
    """Write a repository with one study and two sources, measured."""
    for name in ("studies", "data", "reports"):
        (root / name).mkdir(parents=True)
    (root / "studies" / "made.yaml").write_text(STUDY)
    (root / "params.yaml").write_text(PARAMS)
    (root / "notebooks").symlink_to(ROOT / "notebooks")
    for name in SOURCES:
        shutil.copytree(ROOT / "data" / "published" / name, root / "data" / "published" / name)
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
        *(("audit", {"source": name}, reports / "sources" / f"{name}.html") for name in SOURCES),
        ("method", {}, reports / "method.html"),
        ("claims", {}, reports / "claims.html"),
        ("story", {}, reports / "story.html"),
        ("findings", {}, reports / "index.html"),
    ]
    for name, given, into in steps:
        executed = notebooks.execute(ROOT / "notebooks" / f"{name}.ipynb", root, **given)
        if into:
            copy = root / "data" / f".{name}.ipynb"
            nbformat.write(executed, copy)
            page.render_page(copy, into, study=given.get("study"), root=root)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The root of the made-up repository with all its pages, a copy of this process's own."""
    first = once.made(tmp_path_factory, "site", _site) / "repository"
    return shutil.copytree(first, tmp_path_factory.mktemp("site") / "repository", symlinks=True)


def _site(folder: Path) -> None:
    root = make(folder / "repository")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BENCHBOOK_ROOT", str(root))
        render(root)
    subprocess.run(["git", "init", "-q", root], check=True)


@pytest.fixture(scope="session")
def public(site: Path) -> Path:
    """The site as `make publish` leaves it."""
    publish(site, site / "public")
    return site / "public"


@pytest.fixture(scope="module")
def logs_parsed_once() -> Iterator[None]:
    """A forger changes a file or two; the other logs say what they said of the forgery before."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evidence, "parse_log", functools.cache(evidence.parse_log))
        yield
