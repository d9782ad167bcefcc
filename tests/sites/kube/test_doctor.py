"""What the doctor says of clusters where there is none, and one that does not answer."""

import json
from pathlib import Path

import pytest

from benchbook.core.util.errors import SiteError
from benchbook.sites import workspace as labs
from benchbook.sites.kube import doctor, wait
from benchbook.sites.kube.api import KubernetesCluster, find_kubeconfig
from benchbook.sites.topology import teardown

CONFIG = """
apiVersion: v1
kind: Config
clusters: [{name: one, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: me, user: {}}]
contexts: [{name: here, context: {cluster: one, user: me}}]
current-context: here
"""


@pytest.fixture
def unreachable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "config"
    file.write_text(CONFIG)
    monkeypatch.setenv("BENCHBOOK_KUBECONFIG", str(file))
    return file


def test_the_kubeconfig_is_the_named_one_then_the_common_one_then_that_of_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("BENCHBOOK_KUBECONFIG", "KUBECONFIG"):
        monkeypatch.delenv(name, raising=False)
    assert find_kubeconfig() == tmp_path / ".kube" / "config"
    monkeypatch.setenv("KUBECONFIG", "/one:/two")
    assert find_kubeconfig() == Path("/one")
    monkeypatch.setenv("BENCHBOOK_KUBECONFIG", "/three")
    assert find_kubeconfig() == Path("/three")


def test_no_kubeconfig_is_no_fault_of_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("BENCHBOOK_KUBECONFIG", str(tmp_path / "none"))
    (found,) = doctor.examine()
    assert not found.ok and not found.is_needed
    assert "BENCHBOOK_KUBECONFIG" in found.remedy


def test_a_cluster_that_does_not_answer_is_told_with_its_file(unreachable: Path):
    (found,) = doctor.examine()
    assert not found.ok and str(unreachable) in found.detail + found.remedy
    with pytest.raises(SiteError, match="can't be reached"):
        wait.find_pod(KubernetesCluster(), "space", "pod")


def test_a_context_that_is_not_there_is_told_with_the_remedy(unreachable: Path):
    with pytest.raises(SiteError, match=r"site\.kubernetes\.context"):
        KubernetesCluster("elsewhere").version()


def test_a_cluster_that_is_gone_keeps_its_record_and_is_told_by_down(unreachable: Path, open_folder: Path):
    folder = open_folder / "gone"
    lab = labs.open_lab(folder)
    record = {"kubeconfig": str(unreachable), "context": None, "namespace": "benchbook-x", "token": lab.token}
    (folder / "cluster.json").write_text(json.dumps(record))
    (lab.run / "owner.json").write_text("{}")
    report = teardown.tear_down(folder, purge=True)
    assert not report.is_clean and str(folder / "cluster.json") in str(report)
    # All that is on this machine is removed all the same.
    assert not (lab.run / "owner.json").exists() and (folder / "cluster.json").exists()
    (folder / "cluster.json").unlink()
    assert teardown.tear_down(folder, purge=True).is_clean
