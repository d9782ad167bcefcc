"""A cluster on GKE: its script runs with stand-ins for gcloud, kubectl and helm, which keep what was made."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from benchbook.commands import site_commands
from benchbook.core.study.study import StudySpec
from benchbook.core.study.study_kubernetes import Gke
from benchbook.sites.gke import cluster
from benchbook.sites.topology import teardown
from tests.goldens import assert_golden
from tests.sites import kubernetes_study

ZONES = ("us-central1-a", "us-central1-b", "us-central1-c")
# Each writes its command down; what it made is a file of that name, and `describe` finds it.
STAND_IN = """#!/bin/sh
echo "$(basename "$0") $*" >>$CALLS/calls
case "$(basename "$0") $*" in
  *resourceLabels*) cat $CALLS/owner ;;
  *clusters\\ describe*|*node-pools\\ describe*) [ -e "$CALLS/made-$4" ] && echo RUNNING ;;
  *clusters\\ create*) touch $CALLS/made-$4; o=${*#*benchbook-lab=}; echo ${o%% *} >$CALLS/owner ;;
  *node-pools\\ create*) touch $CALLS/made-$4 ;;
  *clusters\\ delete*) rm $CALLS/made-$4 ;;
  helm\\ list*) cat $CALLS/helm ;;
  *apply\\ -f\\ -) { cat; echo; echo ---; } >>$CALLS/applied ;;
  *get\\ nodes*) echo node-a node-b ;;
esac
"""


def asked(zones: tuple[str, ...] = ZONES[:1], **other: object) -> Gke:
    pools = {
        "pd": {"machine": "n1-standard-4", "nodes": 3},
        "tikv": {"machine": "c2-standard-16", "image": "UBUNTU_CONTAINERD", "nodes": 3, "local_ssds": 2},
    }
    whole = {"name": "tidb", "project": "my-project", "zones": zones, "pools": pools, "version": "1.31"}
    whole |= {"ssd_options": "defaults,nodelalloc,noatime,discard,nobarrier"}
    return Gke.model_validate(whole | {"sysctls": {"net.core.somaxconn": 32768}} | other)


def gke_study(tidb: dict[str, object] | None = None, **other: object) -> StudySpec:
    site = {"gke": asked(**other).model_dump(), "storage": {"size_gib": 300}}  # type: ignore[arg-type]
    return kubernetes_study.make(
        ("pod", "host"),
        site | ({"tidb": {"version": "v3.0.1", **tidb}} if tidb is not None else {}),
        **({"engine": {"name": "tidb"}} if tidb is not None else {}),
    )


class Cloud:
    """What stands in for the provider, in a folder, and the lab of a study."""

    def __init__(self, folder: Path, lab_folder: Path) -> None:
        self.folder, self.lab = folder, lab_folder
        (folder / "helm").write_text("[]")

    def calls(self, word: str = "") -> list[str]:
        file = self.folder / "calls"
        return [line for line in file.read_text().splitlines() if word in line] if file.exists() else []

    def applied(self) -> list[dict[str, object]]:
        return [made for made in YAML(typ="safe").load_all((self.folder / "applied").read_text()) if made]

    def answer(self, act: str, typed: str = "") -> subprocess.CompletedProcess[str]:
        """Run the kept script with what somebody types."""
        command = ["sh", str(self.lab / cluster.RECORD), act]
        return subprocess.run(command, input=typed, capture_output=True, text=True, check=False)


@pytest.fixture
def cloud(tmp_path: Path, open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Cloud:
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("gcloud", "gke-gcloud-auth-plugin", "kubectl", "helm"):
        (programs / name).write_text(STAND_IN)
        (programs / name).chmod(0o755)
    # Whoever has the real ones must not meet them here.
    for name in ("sh", "sed", "cat", "touch", "basename", "rm", "mkdir", "readlink"):
        (programs / name).symlink_to(str(shutil.which(name)))
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setenv("CALLS", str(tmp_path))
    return Cloud(tmp_path, open_folder / "clusters" / "my-study")


STUDIES = {"one zone": {}, "three zones": {"zones": ZONES, "open_files": 1_000_000}}
STUDIES["three zones"]["sysctls"] = {"net.core.somaxconn": 32768, "vm.swappiness": 0}


@pytest.mark.parametrize("name", STUDIES)
def test_a_cluster_is_made_by_these_commands_and_manifests_exactly(name: str, cloud: Cloud):
    study = gke_study(tidb={}, **STUDIES[name])
    told = ["\n".join(cluster.summarize_cluster(study))]
    assert cluster.make_cluster(study, cloud.lab) == 0
    calls = (*cloud.calls(" create "), *cloud.calls("helm upgrade"))
    told += [call.replace(" --", "\n  --") for call in calls]
    told += [(cloud.lab / "run" / "nodes-none.yaml").read_text(), (cloud.folder / "applied").read_text()]
    owner = (cloud.folder / "owner").read_text().strip()
    text = re.sub(rf"{owner}[0-9a-f]*", "OWNER", "\n\n".join(told)).replace(str(cloud.lab), "LAB")
    assert_golden(f"gke-{name.replace(' ', '-')}.txt", text)


def test_a_pool_that_is_gone_is_made_again_alone(cloud: Cloud):
    assert cluster.make_cluster(gke_study(), cloud.lab) == 0
    (cloud.folder / "made-pd").unlink()
    assert cluster.make_cluster(gke_study(), cloud.lab) == 0
    assert [call.split()[4] for call in cloud.calls(" create ")] == ["tidb", "pd", "tikv", "pd"]


def test_a_setting_that_a_node_does_not_take_is_told(cloud: Cloud):
    """The node keeps what it has, whatever is written: what is read back must be what was asked for."""
    assert cluster.make_cluster(gke_study(**STUDIES["three zones"]), cloud.lab) == 0
    settings = next(one for one in cloud.applied() if one["kind"] == "DaemonSet")
    command = settings["spec"]["template"]["spec"]["containers"][0]["command"]  # type: ignore[index]
    stand_in = 'sysctl() { [ "$2" = -w ] || case $2 in *somaxconn) echo 32768 ;; *) echo 60 ;; esac; }\n'
    run = subprocess.run(["sh", "-c", stand_in + command[3]], capture_output=True, text=True, check=False)
    assert run.returncode == 1 and "vm.swappiness is 60, not 0" in run.stderr


def _script(daemon_set: dict) -> str:  # type: ignore[type-arg]
    return str(daemon_set["spec"]["template"]["spec"]["containers"][0]["command"][3])


# Names under which nodes of each interface show their disks, from Google's pages: GKE, "Provision Local
# SSD-backed raw block storage", and Compute Engine, "Symbolic links for disks".
SHOWN = {
    "nvme": ["google-local-ssd-block0", "google-local-ssd-block1", "google-local-nvme-ssd-0"],
    "scsi": ["google-local-ssd-0", "google-local-ssd-1", "google-local-ssd-0-part1"],
}
STAND_INS = """
blkid() { true; }
findmnt() { false; }
mountpoint() { false; }
mount() { echo "mount $*"; }
"""


@pytest.mark.parametrize("interface", SHOWN)
def test_disks_of_an_interface_are_found_by_the_names_that_google_documents(interface: str, cloud: Cloud):
    pools = {"tikv": {"machine": "c2-standard-16", "local_ssds": 2, "ssd_interface": interface}}
    assert cluster.make_cluster(gke_study(pools=pools), cloud.lab) == 0
    flag = {"nvme": "--local-nvme-ssd-block=count=2", "scsi": "--local-ssd-count=2"}[interface]
    assert flag in cloud.calls("node-pools create")[0]
    disks = next(one for one in cloud.applied() if one["metadata"]["name"] == "disks-tikv")  # type: ignore[index]
    devices = cloud.folder / "devices"
    devices.mkdir()
    script = _script(disks).replace("/dev/disk/by-id", str(devices)).replace("/mnt/disks", str(devices / "m"))
    script = STAND_INS + script.replace("[ -b", "[ -e")
    (devices / "google-persistent-disk-0").touch()
    run = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)
    assert run.returncode == 1 and "0 local SSDs, 2 were" in run.stderr
    for name in SHOWN[interface]:
        (devices / name).touch()
    run = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    mounted = [line.split()[-2].rpartition("/")[2] for line in run.stdout.splitlines()]
    assert mounted == SHOWN[interface][:2]


def test_somebody_elses_cluster_is_neither_used_nor_removed(cloud: Cloud):
    assert cluster.make_cluster(gke_study(), cloud.lab) == 0
    (cloud.folder / "owner").write_text("ffffffff")
    for act in ("up", "down"):
        done = cloud.answer(act, "tidb\n")
        assert done.returncode == 1 and "not of this lab" in done.stderr
    assert len(cloud.calls(" create ")) == 3 and not cloud.calls(" delete ")


def test_a_cluster_goes_only_when_its_name_is_typed(cloud: Cloud, monkeypatch: pytest.MonkeyPatch):
    assert cluster.make_cluster(gke_study(), cloud.lab) == 0
    # What stops everything on this machine must not lose the only record of what costs money elsewhere.
    assert teardown.tear_down(cloud.lab.parent, purge=True).is_clean and cloud.lab.is_dir()
    for typed in ("", "yes\n"):
        assert cloud.answer("down", typed).returncode == 1
    # Nobody is at the terminal.
    (left,) = site_commands.clusters_left(cloud.lab.parent)
    assert "benchbook cluster my-study down" in left and not cloud.calls(" delete ")
    assert cloud.answer("down", "tidb\n").returncode == 0
    assert_golden("gke-delete.txt", "\n".join([*cloud.calls(" delete "), ""]))
    assert site_commands.clusters_left(cloud.lab.parent) == [] and not (cloud.lab / cluster.RECORD).exists()


@pytest.mark.parametrize("absent", ["gcloud", "gke-gcloud-auth-plugin", "helm"])
def test_without_a_program_nothing_is_made(cloud: Cloud, absent: str, capfd: pytest.CaptureFixture[str]):
    (cloud.folder / "programs" / absent).unlink()
    assert cluster.make_cluster(gke_study(tidb={}), cloud.lab) == 1
    assert f": {absent}; nothing was made" in capfd.readouterr().err
    assert cloud.calls() == []


def test_the_operator_that_supports_this_tidb_is_installed_and_another_refused(cloud: Cloud):
    assert cluster.make_cluster(gke_study(tidb={}), cloud.lab) == 0
    assert len(cloud.calls("helm upgrade")) == 1
    (cloud.folder / "helm").write_text('[{"name": "tidb-operator", "chart": "tidb-operator-v1.4.7"}]')
    done = cloud.answer("up")
    assert done.returncode == 1 and re.search(r"1\.4\.7 is .* 1\.3\.10 was ", done.stderr)
    assert len(cloud.calls("helm upgrade")) == 1


def test_the_script_of_a_lab_that_is_not_there_is_shown(tmp_path: Path):
    shown = cluster.render_script(gke_study(zones=ZONES), tmp_path / "none")
    assert "cluster=tidb\n" in shown and "id=00000000\n" in shown and not (tmp_path / "none").exists()


def test_disks_of_other_families_and_none_at_all_are_left_to_gke():
    pools = {"a": {"machine": "c2-standard-16"}, "b": {"machine": "z9-standard-7", "local_ssds": 3}}
    assert asked(pools=pools | {"c": {"machine": "n1-standard-4", "local_ssds": 1}}).pools
