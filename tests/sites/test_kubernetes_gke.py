"""A GKE cluster up to the exact commands: a recorder stands where `gcloud` would, which is not run here."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest
from pydantic import ValidationError

from benchbook import cluster
from benchbook.core.errors import SiteError
from benchbook.core.study_gke import Gke
from benchbook.sites import clean
from benchbook.sites.gke import commands, disks, steps
from benchbook.sites.kube import layout
from tests.sites import kubernetes_study

ID = "0123abcd"
NAMES = layout.names("benchbook", "tidb", ID * 4)
ZONES = ("us-central1-a", "us-central1-b", "us-central1-c")


def asked(zones: tuple[str, ...] = ZONES[:1], **other: object) -> Gke:
    pools = {
        "pd": {"machine": "n1-standard-4", "nodes": 3},
        "tikv": {"machine": "c2-standard-16", "image": "UBUNTU_CONTAINERD", "nodes": 3, "local_ssds": 1},
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
        verb, name = argv[3], argv[4]
        if self.fails and verb == self.fails:
            return 1, "ERROR: quota exceeded"
        if verb == "describe" and f"--format=value(resourceLabels.{steps.LABEL})" in argv:
            return 0, f"{self.owner}\n"
        if verb == "describe":
            return (0, "RUNNING\n") if name in self.there else (1, "ERROR: not found")
        if verb == "create":
            self.there.add(name)
            labels = [word for word in argv if word.startswith(f"--labels={steps.LABEL}=")]
            self.owner = labels[0].rpartition("=")[2] if labels else self.owner
        if verb == "delete":
            self.there.discard(name)
        return 0, ""

    def verbs(self, verb: str) -> list[str]:
        return [shlex.join(call) for call in self.calls if call[3] == verb]


def test_a_cluster_in_one_zone_is_these_commands_exactly(tmp_path: Path):
    recorder = Recorder()
    steps.Gcloud(asked(), ID, tmp_path, recorder).up(lambda said: None)
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
        "--node-taints=benchbook=tikv:NoSchedule --local-nvme-ssd-block=count=1 "
        f"--system-config-from-file={file} --no-enable-autoupgrade --no-enable-autorepair",
    ]
    assert file.read_text() == "linuxConfig:\n  sysctl:\n    net.core.somaxconn: '32768'\n"
    # The credentials go into a file of the lab, and never into the home folder's.
    assert recorder.calls[-1][3] == "get-credentials"
    assert recorder.environments[-1] == {"KUBECONFIG": str(tmp_path / "kubeconfig")}


def test_several_zones_are_a_cluster_of_their_region_with_nodes_in_each():
    made = steps.steps(asked(ZONES), ID, Path("f"))[0].make
    assert "--location=us-central1" in made
    assert "--node-locations=us-central1-a,us-central1-b,us-central1-c" in made


def test_what_is_there_is_not_made_again(tmp_path: Path):
    recorder = Recorder(("tidb", "pd"))
    steps.Gcloud(asked(), ID, tmp_path, recorder).up(lambda said: None)
    assert [call.split()[4] for call in recorder.verbs("create")] == ["tikv"]
    steps.Gcloud(asked(), ID, tmp_path, recorder).up(lambda said: None)
    assert len(recorder.verbs("create")) == 1


def test_every_command_is_shown_before_it_is_run(tmp_path: Path):
    recorder, shown = Recorder(), []

    def say(text: str) -> None:
        shown.append((text, len(recorder.verbs("create"))))

    steps.Gcloud(asked(), ID, tmp_path, recorder).up(say)
    for number, command in enumerate(recorder.verbs("create")):
        text, made_before = shown[number]
        assert command in text and made_before == number


def test_somebody_elses_cluster_is_neither_used_nor_removed(tmp_path: Path):
    recorder = Recorder(("tidb",), owner="ffffffff")
    with pytest.raises(SiteError, match="not of this lab"):
        steps.Gcloud(asked(), ID, tmp_path, recorder).up(lambda said: None)
    with pytest.raises(SiteError, match="not of this lab"):
        steps.Gcloud(asked(), ID, tmp_path, recorder).down("tidb", lambda said: None)
    assert not recorder.verbs("create") and not recorder.verbs("delete")


def test_a_cluster_goes_only_when_its_name_is_given(tmp_path: Path):
    recorder = Recorder(("tidb",))
    tool = steps.Gcloud(asked(), ID, tmp_path, recorder)
    assert tool.down("", lambda said: None) is False
    assert tool.down("yes", lambda said: None) is False
    assert not recorder.verbs("delete")
    assert tool.down("tidb", lambda said: None) is True
    assert recorder.verbs("delete") == [
        "gcloud container clusters delete tidb --project=my-project --location=us-central1-a --quiet"
    ]
    assert steps.Gcloud(asked(), ID, tmp_path, Recorder()).down("", lambda said: None) is True


def test_what_the_provider_says_is_told_and_nothing_more_is_made(tmp_path: Path):
    recorder = Recorder(fails="create")
    with pytest.raises(SiteError, match="quota exceeded"):
        steps.Gcloud(asked(), ID, tmp_path, recorder).up(lambda said: None)
    assert len(recorder.verbs("create")) == 1


def test_without_the_tool_the_error_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SiteError, match="gcloud: No such file"):
        steps.Gcloud(asked(), ID, tmp_path).up(lambda said: None)


def test_the_plan_shows_every_pool_and_command_and_no_price():
    lines = steps.summary(asked(ZONES), ID)
    assert any("tikv: 9 × c2-standard-16, UBUNTU_CONTAINERD" in line for line in lines)
    shown = "\n".join(lines)
    for step in steps.steps(asked(ZONES), ID, Path("nodes.yaml")):
        assert shlex.join(step.make) in shown
    assert shlex.join(steps.delete(asked(ZONES))) in shown


def test_zones_of_another_region_are_refused():
    with pytest.raises(ValidationError, match="europe-west1-b"):
        asked(("us-central1-a", "europe-west1-b"))


def test_local_ssds_are_mounted_with_the_sources_options_on_their_pools_alone():
    made = disks.mounting(asked(), NAMES, "busybox:1")
    template = made["spec"]["template"]["spec"]
    assert "-o defaults,nodelalloc,noatime,discard,nobarrier" in template["containers"][0]["command"][-1]
    terms = template["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert terms["nodeSelectorTerms"][0]["matchExpressions"][0]["values"] == ["tikv"]
    volumes = disks.volumes(asked(), NAMES, {"tikv": ["node-b", "node-a"], "pd": ["node-c"]}, 300)
    assert [one["metadata"]["name"] for one in volumes] == [
        "benchbook-tidb-0123abcd-node-a-0",
        "benchbook-tidb-0123abcd-node-b-0",
    ]
    assert {one["spec"]["storageClassName"] for one in volumes} == {
        disks.storage_class(NAMES)["metadata"]["name"]
    }


def test_down_asks_for_each_cluster_by_its_name_and_keeps_it_otherwise(open_folder: Path):
    recorder = Recorder()
    study = kubernetes_study.make(("pod", "host"), {"gke": asked().model_dump()})
    root = open_folder / "clusters"
    folder = root / "my-study"
    kubeconfig = commands.up(study, folder, recorder)
    assert kubeconfig.parent == folder / "run"
    # What stops everything on this machine must not lose the only record of what costs money elsewhere.
    assert clean.down(root, purge=True).is_clean and folder.is_dir()
    asked_for: list[str] = []

    def answer(said: str, name: str) -> str:
        asked_for.append(said)
        return name

    left = cluster.left(root, lambda said: answer(said, "no"), run=recorder)
    assert len(left) == 1 and "benchbook cluster my-study down" in left[0]
    assert "Remove the cluster tidb" in asked_for[0] and not recorder.verbs("delete")
    assert cluster.left(root, lambda said: answer(said, "tidb"), run=recorder) == []
    assert len(recorder.verbs("delete")) == 1
    assert cluster.left(root, lambda said: answer(said, "tidb"), run=recorder) == []
    assert len(recorder.verbs("delete")) == 1
