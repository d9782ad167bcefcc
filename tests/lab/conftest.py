"""A made-up study with run folders, tables and findings, as the pipeline leaves them, without a server."""

from collections.abc import Iterator
from pathlib import Path

import jedi
import pytest

from benchbook.compare.claims import consistency
from benchbook.compare.inference import findings
from benchbook.core.study import load
from benchbook.core.util import files, paths
from benchbook.plan import schedule
from benchbook.read import tidy
from tests import rooms
from tests.lab.made_up import PARAMS, STUDY, measure, voided


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the root of a clone with one study that was measured and one that was not."""
    root = tmp_path_factory.mktemp("clone")
    (root / "studies").mkdir()
    (root / "studies" / "two-arms.yaml").write_text(STUDY, encoding="utf-8")
    (root / "studies" / "not_yet.yaml").write_text(STUDY, encoding="utf-8")
    (root / "params.yaml").write_text(PARAMS, encoding="utf-8")
    (root / "data").mkdir()
    (root / "data" / "published").symlink_to(Path(__file__).parents[2] / "data" / "published")
    with paths.use_root(root):
        _measure()
    return root


@pytest.fixture(scope="session", autouse=True)
def _own_cache() -> Iterator[None]:
    """Keep jedi's cache, which what completes reads, from other processes that are just writing it."""
    with pytest.MonkeyPatch.context() as patch:
        own = Path(jedi.settings.cache_directory) / f"benchbook-tests-{rooms.number()}"
        patch.setattr(jedi.settings, "cache_directory", str(own))
        yield


@pytest.fixture(autouse=True)
def _here(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENCHBOOK_ROOT", str(made))


def _measure() -> None:
    where, study, params = paths.study_paths("two-arms"), load.load_study("two-arms"), load.load_params()
    where.raw.mkdir(parents=True)
    facts = {arm: {"access": arm, "engine": {"version": "10.11"}} for arm in study.arms}
    files.write_json(where.facts, {"study": "two-arms", "arms": facts})
    runs = schedule.plan_runs("two-arms", study, {})
    files.write_csv(where.schedule, schedule.schedule_table(runs))
    for run in runs:
        measure(where.raw, run)
    voided(where.void, runs[0])
    tidy.parse_study(where.raw, where.void, schedule.schedule_table(runs), where.tidy, params.limits)
    frames = tidy.load_tables(where.tidy)
    checks = consistency.of_runs(frames["runs"])
    made = findings.build_findings("two-arms", study, frames, params.analysis, (), checks, facts)
    made.write(where.findings)
