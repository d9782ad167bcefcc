"""A cluster, and a lab of each test's own, for the tests that need a real cluster."""

from pathlib import Path

import pytest

from benchbook.sites.kube.api import KubernetesCluster
from benchbook.sites.topology import teardown


@pytest.fixture(scope="module")
def cluster() -> KubernetesCluster:
    return KubernetesCluster()


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root of the test's own, so that what is kept beside a study is not in this checkout."""
    monkeypatch.setenv("BENCHBOOK_ROOT", str(tmp_path))
    return tmp_path


@pytest.fixture
def folder(open_folder: Path, request: pytest.FixtureRequest):
    """A lab of the test's own; whatever it has in the cluster is removed, and that it is gone is proven."""
    where = open_folder / f"k-{abs(hash(request.node.name)) % 10**8}"
    yield where
    report = teardown.tear_down(where)
    assert report.is_clean, report.left
