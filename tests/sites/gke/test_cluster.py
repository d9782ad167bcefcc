"""A GKE cluster up to the exact commands: a recorder stands where `gcloud` would, which is not run here."""

import json
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from pydantic import ValidationError

from benchbook.commands import lab
from benchbook.core.errors import SiteError
from benchbook.core.study import Study
from benchbook.core.study_kubernetes import Gke
from benchbook.sites.arms import clean
from benchbook.sites.gke import cluster, nodes
from benchbook.sites.kube import layout
from tests.sites import kubernetes_study

ID = "0123abcd"
NAMES = layout.names("tidb", ID * 4)
ZONES = ("us-central1-a", "us-central1-b", "us-central1-c")


def asked(zones: tuple[str, ...] = ZONES[:1], **other: object) -> Gke:
    pools = {
        "pd": {"machine": "n1-standard-4", "nodes": 3},
        "tikv": {"machine": "c2-standard-16", "image": "UBUNTU_CONTAINERD", "nodes": 3, "local_ssds": 2},
    }
    whole = {"name": "tidb", "project": "my-project", "zones": zones, "pools": pools, "version": "1.31"}
    whole |= {"ssd_options": "defaults,nodelalloc,noatime,discard,nobarrier"}
    return Gke.model_validate(whole | {"sysctls": {"net.core.somaxconn": 32768}} | other)


class Recorder:
    """Stands in for `gcloud`: remembers what was asked, and what it has been told to have made."""

    def __init__(self, there: tuple[str, ...] = (), owner: str = ID, fails: str = "") -> None:
        self.there, self.owner, self.fails = set(there), owner, fails
        self.calls: list[tuple[str, ...]] = []
        self.environments: list[dict[str, str]] = []

    def __call__(self, argv: Sequence[str], env: dict[str, str]) -> tuple[int, str]:
        self.calls.append(tuple(argv))
        self.environments.append(env)
        if argv[0] in ("helm", "kubectl"):
            return self._operator(tuple(argv))
        verb, name = argv[3], argv[4]
        if self.fails and verb == self.fails:
            return 1, "ERROR: quota exceeded"
        if verb == "describe" and f"--format=value(resourceLabels.{cluster.LABEL})" in argv:
            return 0, f"{self.owner}\n"
        if verb == "describe":
            return (0, "RUNNING\n") if name in self.there else (1, "ERROR: not found")
        if verb == "create":
            self.there.add(name)
            labels = [word for word in argv if word.startswith(f"--labels={cluster.LABEL}=")]
            self.owner = labels[0].rpartition("=")[2] if labels else self.owner
        if verb == "delete":
            self.there.discard(name)
        return 0, ""

    def _operator(self, argv: tuple[str, ...]) -> tuple[int, str]:
        if argv[:2] == ("helm", "list"):
            charts = [{"name": "tidb-operator", "chart": name} for name in self.there if "operator" in name]
            return 0, json.dumps(charts)
        if argv[1] == "upgrade":
            self.there.add(f"tidb-operator-{argv[argv.index('--version') + 1]}")
        return (1, "not found") if argv[1] == "get" else (0, "")

    def verbs(self, verb: str) -> list[str]:
        return [shlex.join(call) for call in self.calls if call[0] == "gcloud" and call[3] == verb]


def test_a_cluster_in_one_zone_is_these_commands_exactly(tmp_path: Path):
    recorder = Recorder()
    cluster.Gcloud(asked(), ID, tmp_path, recorder).up(lambda said: None)
    file = tmp_path / "nodes.yaml"
    assert recorder.verbs("create") == [
        "gcloud container clusters create tidb --project=my-project --location=us-central1-a --quiet "
        "--enable-ip-alias --node-locations=us-central1-a --cluster-version=1.31 "
        "--labels=benchbook-lab=0123abcd --release-channel=None --num-nodes=1 --machine-type=e2-standard-4 "
        "--no-enable-autoupgrade --no-enable-autorepair",
        "gcloud container node-pools create pd --cluster tidb --project=my-project --location=us-central1-a "
        "--quiet --machine-type=n1-standard-4 --image-type=COS_CONTAINERD --num-nodes=3 "
        "--node-locations=us-central1-a --node-labels=benchbook-pool=pd "
        f"--node-taints=benchbook=pd:NoSchedule --system-config-from-file={file} "
        "--no-enable-autoupgrade --no-enable-autorepair",
        "gcloud container node-pools create tikv --cluster tidb --project=my-project "
        "--location=us-central1-a --quiet --machine-type=c2-standard-16 --image-type=UBUNTU_CONTAINERD "
        "--num-nodes=3 --node-locations=us-central1-a --node-labels=benchbook-pool=tikv "
        "--node-taints=benchbook=tikv:NoSchedule --local-nvme-ssd-block=count=2 "
        f"--system-config-from-file={file} --no-enable-autoupgrade --no-enable-autorepair",
    ]
    assert file.read_text() == "linuxConfig:\n  sysctl:\n    net.core.somaxconn: '32768'\n"
    # The credentials go into a file of the lab, and never into the home folder's.
    assert recorder.calls[-1][3] == "get-credentials"
    own = {"KUBECONFIG": str(tmp_path / "kubeconfig")}
    assert recorder.environments == [own] * len(recorder.calls)


def test_several_zones_are_a_cluster_of_their_region_with_nodes_in_each():
    made = cluster.steps(asked(ZONES), ID, Path("f"))[0].make
    assert "--location=us-central1" in made
    assert "--node-locations=us-central1-a,us-central1-b,us-central1-c" in made


def test_what_is_there_is_not_made_again(tmp_path: Path):
    recorder = Recorder(("tidb", "pd"))
    cluster.Gcloud(asked(), ID, tmp_path, recorder).up(lambda said: None)
    assert [call.split()[4] for call in recorder.verbs("create")] == ["tikv"]
    cluster.Gcloud(asked(), ID, tmp_path, recorder).up(lambda said: None)
    assert len(recorder.verbs("create")) == 1


def test_every_command_is_shown_before_it_is_run(tmp_path: Path):
    recorder, shown = Recorder(), []

    def say(text: str) -> None:
        shown.append((text, len(recorder.verbs("create"))))

    cluster.Gcloud(asked(), ID, tmp_path, recorder).up(say)
    for number, command in enumerate(recorder.verbs("create")):
        text, made_before = shown[number]
        assert command in text and made_before == number


def test_somebody_elses_cluster_is_neither_used_nor_removed(tmp_path: Path):
    recorder = Recorder(("tidb",), owner="ffffffff")
    with pytest.raises(SiteError, match="not of this lab"):
        cluster.Gcloud(asked(), ID, tmp_path, recorder).up(lambda said: None)
    with pytest.raises(SiteError, match="not of this lab"):
        cluster.Gcloud(asked(), ID, tmp_path, recorder).down("tidb", lambda said: None)
    assert not recorder.verbs("create") and not recorder.verbs("delete")


def test_a_cluster_goes_only_when_its_name_is_given(tmp_path: Path):
    recorder = Recorder(("tidb",))
    tool = cluster.Gcloud(asked(), ID, tmp_path, recorder)
    assert tool.down("", lambda said: None) is False
    assert tool.down("yes", lambda said: None) is False
    assert not recorder.verbs("delete")
    assert tool.down("tidb", lambda said: None) is True
    assert recorder.verbs("delete") == [
        "gcloud container clusters delete tidb --project=my-project --location=us-central1-a --quiet"
    ]
    assert cluster.Gcloud(asked(), ID, tmp_path, Recorder()).down("", lambda said: None) is True


def test_what_the_provider_says_is_told_and_nothing_more_is_made(tmp_path: Path):
    recorder = Recorder(fails="create")
    with pytest.raises(SiteError, match="quota exceeded"):
        cluster.Gcloud(asked(), ID, tmp_path, recorder).up(lambda said: None)
    assert len(recorder.verbs("create")) == 1


def test_without_the_tool_the_error_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SiteError, match="gcloud: No such file"):
        cluster.Gcloud(asked(), ID, tmp_path).up(lambda said: None)


def test_the_plan_shows_every_pool_and_command_and_no_price():
    study = kubernetes_study.make(("pod", "host"), {"gke": asked(ZONES).model_dump()})
    lines = cluster.summary(study)
    assert any("tikv: 9 × c2-standard-16, UBUNTU_CONTAINERD" in line for line in lines)
    shown = "\n".join(lines)
    for step in cluster.steps(asked(ZONES), "0" * 8, Path()):
        assert shlex.join(step.make) in shown
    assert shlex.join(cluster.delete(asked(ZONES))) in shown


def test_zones_of_another_region_are_refused():
    with pytest.raises(ValidationError, match="europe-west1-b"):
        asked(("us-central1-a", "europe-west1-b"))


def test_local_ssds_are_mounted_with_the_sources_options_on_their_pools_alone():
    (made,) = nodes.mounting(asked(), NAMES, "busybox:1")
    template = made["spec"]["template"]["spec"]
    assert "-o defaults,nodelalloc,noatime,discard,nobarrier" in template["containers"][0]["command"][-1]
    terms = template["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert terms["nodeSelectorTerms"][0]["matchExpressions"][0]["values"] == ["tikv"]
    volumes = nodes.volumes(asked(), NAMES, {"tikv": ["node-b", "node-a"], "pd": ["node-c"]}, 300)
    assert [one["metadata"]["name"] for one in volumes] == [
        "benchbook-tidb-0123abcd-node-a-0",
        "benchbook-tidb-0123abcd-node-a-1",
        "benchbook-tidb-0123abcd-node-b-0",
        "benchbook-tidb-0123abcd-node-b-1",
    ]
    assert {one["spec"]["storageClassName"] for one in volumes} == {
        nodes.storage_class(NAMES)["metadata"]["name"]
    }


@pytest.mark.parametrize(
    ("machine", "count", "told"),
    [
        ("c2-standard-16", 1, "c2-standard-16 takes 2, 4 or 8"),
        ("c2-standard-60", 4, "c2-standard-60 takes 8;"),
        ("n2-standard-8", 3, "n2-standard-8 takes 1, 2, 4, 8, 16 or 24"),
    ],
)
def test_disks_that_a_machine_does_not_take_are_refused_before_money_is_spent(machine, count, told):
    with pytest.raises(ValidationError, match=told):
        asked(pools={"tikv": {"machine": machine, "local_ssds": count}})


def test_disks_of_other_families_and_none_at_all_are_left_to_gke():
    pools = {"a": {"machine": "c2-standard-16"}, "b": {"machine": "z9-standard-7", "local_ssds": 3}}
    assert asked(pools=pools | {"c": {"machine": "n1-standard-4", "local_ssds": 1}}).pools


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
mount() { echo "mount $*"; echo "d FOLDER/benchbook-0 ext4" >>FOLDER/mounts; }
"""


@pytest.mark.parametrize("interface", SHOWN)
def test_disks_of_an_interface_are_found_by_the_names_that_google_documents(interface: str, tmp_path: Path):
    for name in SHOWN[interface] + ["google-persistent-disk-0"]:
        (tmp_path / name).touch()
    run = _script(tmp_path, interface, 2)
    assert run.returncode == 0, run.stderr
    mounted = [line.split()[-2].rpartition("/")[2] for line in run.stdout.splitlines() if "mount " in line]
    assert mounted == SHOWN[interface][:2]


def test_a_node_with_another_number_of_disks_is_refused(tmp_path: Path):
    (tmp_path / "google-local-ssd-0").touch()
    run = _script(tmp_path, "nvme", 2)
    assert run.returncode == 1 and "0 local SSDs" in run.stderr and "2 were asked for" in run.stderr


def _script(folder: Path, interface: str, count: int) -> subprocess.CompletedProcess[str]:
    """Run the disks' script on files in a folder, with the tools that need a real disk stood in for."""
    pools = {"tikv": {"machine": "c2-standard-16", "local_ssds": count, "ssd_interface": interface}}
    (made,) = nodes.mounting(asked(pools=pools), NAMES, "busybox:1")
    script = made["spec"]["template"]["spec"]["containers"][0]["command"][-1]
    for before, after in (
        ("/dev/disk/by-id", str(folder)),
        ("/mnt/disks", str(folder)),
        ("/proc/mounts", f"{folder}/mounts"),
        ("[ -b", "[ -e"),
    ):
        script = script.replace(before, after)
    whole = STAND_INS.replace("FOLDER", str(folder)) + script
    return subprocess.run(["sh", "-c", whole], capture_output=True, text=True, check=False)


def test_the_interface_is_asked_for_by_the_flag_that_gives_it():
    pools = {"tikv": {"machine": "c2-standard-16", "local_ssds": 2, "ssd_interface": "scsi"}}
    made = cluster.steps(asked(pools=pools), ID, Path("f"))[1].make
    assert "--local-ssd-count=2" in made and "--local-nvme-ssd-block=count=2" not in made


def test_settings_that_gke_does_not_take_are_made_on_the_nodes_and_all_are_read_back(tmp_path: Path):
    sysctls = {"net.core.somaxconn": 32768, "vm.swappiness": 0, "net.ipv4.tcp_syncookies": 0}
    whole = asked(sysctls=sysctls, open_files=1_000_000)
    assert "swappiness" not in cluster.node_settings(whole, whole.pools["pd"])
    assert "net.core.somaxconn: '32768'" in cluster.node_settings(whole, whole.pools["pd"])
    made = nodes.settings(whole, NAMES, "busybox:1")
    assert made is not None
    script = made["spec"]["template"]["spec"]["containers"][0]["command"][-1]
    # The node keeps what it has, whatever is written: what is read back must be what was asked for.
    stand_in = 'sysctl() { [ "$2" = -w ] || case $2 in *somaxconn) echo 32768 ;; *) echo 60 ;; esac; }\n'
    run = subprocess.run(["sh", "-c", stand_in + script], capture_output=True, text=True, check=False)
    assert run.returncode == 1 and "net.ipv4.tcp_syncookies is 60, not 0" in run.stderr
    only_gke = nodes.settings(asked(), NAMES, "busybox:1")
    assert only_gke is not None
    script = only_gke["spec"]["template"]["spec"]["containers"][0]["command"][-1]
    assert "-w" not in script and "net.core.somaxconn" in script


def test_a_static_cpu_manager_is_asked_of_its_pools_alone(tmp_path: Path):
    pools = {
        "db": {"machine": "c2-standard-16", "cpu_manager": "static"},
        "load": {"machine": "c2-standard-16"},
    }
    recorder = Recorder()
    cluster.Gcloud(asked(pools=pools), ID, tmp_path, recorder).up(lambda said: None)
    by_pool = {command.split()[4]: command for command in recorder.verbs("create")}
    assert f"--system-config-from-file={tmp_path}/nodes-static.yaml" in by_pool["db"]
    assert f"--system-config-from-file={tmp_path}/nodes.yaml" in by_pool["load"]
    assert (
        (tmp_path / "nodes-static.yaml")
        .read_text()
        .startswith("kubeletConfig:\n  cpuManagerPolicy: static\n")
    )


def tidb_study(**tidb: object) -> Study:
    site = {"gke": asked().model_dump(), "tidb": {"version": "v3.0.1", **tidb}}
    return kubernetes_study.make(("pod", "host"), site, engine={"name": "tidb"})


def test_the_operator_that_supports_this_tidb_is_installed_once(open_folder: Path):
    recorder = Recorder()
    cluster.up(tidb_study(), open_folder / "study", recorder, which=lambda name: name)
    helm = [shlex.join(call) for call in recorder.calls if call[:2] == ("helm", "upgrade")]
    assert helm == [
        "helm upgrade --install tidb-operator tidb-operator --repo https://charts.pingcap.org/ "
        "--version v1.3.10 --namespace tidb-admin --create-namespace --set scheduler.create=false --wait"
    ]
    kubectl = [call for call in recorder.calls if call[0] == "kubectl"]
    assert all("v1.3.10/manifests/crd.yaml" in shlex.join(call) for call in kubectl)
    again = len(recorder.calls)
    cluster.up(tidb_study(), open_folder / "study", recorder, which=lambda name: name)
    assert not [call for call in recorder.calls[again:] if call[:2] == ("helm", "upgrade")]
    again = len(recorder.calls)
    with pytest.raises(SiteError, match=r"1\.3\.10 is in the cluster and 1\.4\.7 was asked for"):
        cluster.up(tidb_study(operator="1.4.7"), open_folder / "study", recorder, which=lambda name: name)
    assert [call[:2] for call in recorder.calls[again:] if call[0] != "gcloud"] == [("helm", "list")]


def test_what_can_not_be_installed_is_refused_before_anything_costs_money(open_folder: Path):
    recorder = Recorder()
    with pytest.raises(SiteError, match=r"helm: not found on this machine.*nothing was made"):
        cluster.up(tidb_study(), open_folder / "study", recorder, which=lambda name: name != "helm" or None)
    assert recorder.calls == []


@pytest.mark.parametrize("absent", ["gcloud", "gke-gcloud-auth-plugin"])
def test_a_cluster_that_could_not_be_reached_is_not_made(open_folder: Path, absent: str):
    recorder = Recorder()
    study = kubernetes_study.make(("pod", "host"), {"gke": asked().model_dump()})
    with pytest.raises(SiteError, match=rf"^{absent}: not found on this machine.*nothing was made"):
        cluster.up(study, open_folder / "study", recorder, which=lambda name: None if name == absent else "")
    assert recorder.calls == []


@pytest.mark.parametrize(
    ("version", "operator", "said"),
    [
        ("v3.0.1", "1.6.5", "does not support TiDB v3.0.1 with it; write a version of 1.3, 1.4, 1.2, 1.1"),
        ("v8.0.0", "1.3.10", "write a version of 1.6, 1.5"),
        ("v2.1.8", None, "no TidbCluster supports it"),
    ],
)
def test_an_operator_that_its_maker_does_not_name_is_refused(version: str, operator: str | None, said: str):
    with pytest.raises(ValidationError, match=said):
        tidb_study(version=version, operator=operator)


def test_down_asks_for_each_cluster_by_its_name_and_keeps_it_otherwise(open_folder: Path):
    recorder = Recorder()
    study = kubernetes_study.make(("pod", "host"), {"gke": asked().model_dump()})
    root = open_folder / "clusters"
    folder = root / "my-study"
    kubeconfig = cluster.up(study, folder, recorder, which=lambda name: name)
    assert kubeconfig.parent == folder / "run"
    # What stops everything on this machine must not lose the only record of what costs money elsewhere.
    assert clean.down(root, purge=True).is_clean and folder.is_dir()
    asked_for: list[str] = []

    def answer(said: str, name: str) -> str:
        asked_for.append(said)
        return name

    left = lab.clusters_left(root, lambda said: answer(said, "no"), run=recorder)
    assert len(left) == 1 and "benchbook cluster my-study down" in left[0]
    assert "Remove the cluster tidb" in asked_for[0] and not recorder.verbs("delete")
    assert lab.clusters_left(root, lambda said: answer(said, "tidb"), run=recorder) == []
    assert len(recorder.verbs("delete")) == 1
    assert lab.clusters_left(root, lambda said: answer(said, "tidb"), run=recorder) == []
    assert len(recorder.verbs("delete")) == 1
