"""What a study asks of a cluster, read before any cluster is asked."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from benchbook.commands import cli
from benchbook.core.study.study import StudySpec
from benchbook.sites.kube import manifests, placement, plan_output, tidb_manifests
from benchbook.sites.kube.placement import count_inside, count_outside
from benchbook.sites.kube.tidb_cluster import PodPlacementDriver
from benchbook.sites.tidb import data
from tests.goldens import assert_golden
from tests.installed import package
from tests.sites import kubernetes_study

NAMES = placement.build_names("my_study", "0123456789abcdef0123456789abcdef")
PASSWORD = "pa55-of-the-test"
CRD = "BENCHBOOK_TIDB_CRD"


def arm(name: str, study: StudySpec | None = None) -> dict[tuple[str, str], dict[str, Any]]:
    study = study or kubernetes_study.make()
    made = manifests.build_arm(study, NAMES, placement.build_chains(study)[name])
    return {(one["kind"], one["metadata"]["name"]): one for one in made}


def pod(manifest: dict[str, Any]) -> dict[str, Any]:
    return manifest["spec"]["template"]["spec"]


def test_the_names_of_two_labs_never_meet_and_fit():
    long = placement.build_names("a_study-" * 5, "f" * 32)
    assert NAMES.namespace == "benchbook-my-study-01234567"
    assert len(long.namespace) <= 63 and long.namespace.endswith("-ffffffff")
    assert dict(NAMES.labels)["benchbook/lab"] != dict(long.labels)["benchbook/lab"]


def test_nobody_enters_a_tidb_without_a_password():
    class Said(list[str]):
        def execute(self, statement: str, given: tuple[str, ...] | None = None) -> None:
            self.append(statement if given is None else statement % tuple(map(repr, given)))

    said = Said()
    data.secure_admin(said, PASSWORD, ("127.0.0.1",))  # type: ignore[arg-type]
    # Each can be said twice: an interruption between them leaves no door open.
    assert_golden("kube/secure-admin.txt", "\n".join([*said, ""]))


def test_engine_and_proxy_of_another_package_are_made_in_pods(tmp_path: Path):
    with package(tmp_path):
        arms = {"direct": {"network": "pod"}, "behind": {"network": "pod", "access": "socat"}}
        made = arm("behind", kubernetes_study.make(arms, engine={"name": "small"}))
        assert ("StatefulSet", "server") in made
        leads_to = "TCP:server.benchbook-my-study-01234567.svc:3306"
        assert leads_to in made["ConfigMap", "proxy"]["data"]["lead.sh"]
        assert pod(made["StatefulSet", "proxy"])["containers"][0]["command"][0] == "sh"


def test_no_pod_is_given_an_account_and_what_is_kept_is_what_was_applied():
    study = kubernetes_study.make()
    everything = [*manifests.build_study(NAMES), *(one for name in study.arms for one in arm(name).values())]
    for manifest in everything:
        assert manifest["kind"] != "Secret"
        if manifest["kind"] == "StatefulSet":
            assert all("env" not in container for container in pod(manifest)["containers"])
    text = manifests.render_yaml(everything)
    assert [one["kind"] for one in YAML(typ="safe").load_all(text)] == [one["kind"] for one in everything]


ARMS = YAML(typ="safe").load(Path(__file__).parents[2] / "data" / "cluster_arms.yaml")
POD_AND_SPREAD = "a TiDB cluster has three of each part with their own settings and nodes"


def study_of(name: str) -> StudySpec:
    """Return a study of the list."""
    return kubernetes_study.make(**ARMS[name])


def flat(value: Any, path: str = "") -> dict[str, str]:
    """Return each value of a manifest by its path."""
    if not isinstance(value, dict | list) or not value:
        return {path: repr(value)}
    items = value.items() if isinstance(value, dict) else enumerate(value)
    found = [flat(one, f"{path}.{key}" if isinstance(key, str) else f"{path}[{key}]") for key, one in items]
    return {path: one for each in found for path, one in each.items()}


class Told:
    """Manifests in words: by what each differs from the first of its part, or else of its kind."""

    def __init__(self) -> None:
        self.seen: dict[str, dict[str, str]] = {}
        self.digests: list[str] = []

    def differences(self, manifest: dict[str, Any]) -> Iterator[str]:
        kind, name = manifest["kind"], manifest["metadata"]["name"]
        text = json.dumps(manifest).replace(f'"{name}"', '"ITS NAME"')
        text = text.replace(kubernetes_study.IMAGE, "localhost/bb:1")
        known = flat(json.loads(re.sub(r"\b[0-9a-f]{64}\b", self.count, text)))
        part = f"{kind} {name.rstrip('-0123456789')}"
        was = self.seen.get(part) or self.seen.get(kind, {})
        self.seen = {kind: known, part: known} | self.seen
        yield f"    {kind} {name}"
        yield from (f"      -{path}" for path in was if path not in known)
        yield from (f"      {path} = {one}" for path, one in known.items() if was.get(path) != one)

    def count(self, found: re.Match[str]) -> str:
        """Return a digest's number: which are alike is told, not what they are."""
        self.digests += [found[0]] if found[0] not in self.digests else []
        return f"DIGEST {self.digests.index(found[0]) + 1}"


def describe(name: str, told: Told) -> Iterator[str]:
    """Tell where each arm's parts are, and what is made for it."""
    study = study_of(name)
    yield f"\n{name}"
    for arm_name, chain in placement.build_chains(study).items():
        places = [f"{part.name}:{part.port}" for part in (*chain.parts, *chain.clients)]
        clients = f"{count_inside(chain)} client in the server's container, {count_outside(chain)} outside"
        qos = chain.server.where.resources.qos_class
        yield f"  {arm_name}: {', '.join(places)}; {clients}; {qos}"
        if study.site.kubernetes.tidb is None:
            made = manifests.build_arm(study, NAMES, chain)
        else:
            made = tidb_manifests.build_arm(study, NAMES, arm_name, chain)
        for manifest in made:
            yield from told.differences(manifest)


def test_each_arm_is_made_of_these_parts_and_manifests():
    told = Told()
    lines = [line for name in ARMS for line in describe(name, told)]
    assert_golden("cluster_arms.txt", "\n".join(lines).lstrip() + "\n")


@pytest.mark.parametrize(
    ("version", "takes_it"),
    [("v3.0.1", False), ("v3.1.2", False), ("v4.0.0", False), ("v4.0.1", True), ("v7.5.1", True)],
)
def test_tikv_is_passed_its_status_address_where_its_version_takes_one(version: str, takes_it: bool):
    """TiKV before 4.0.1 has no `--advertise-status-addr`, and ends where the operator passes it."""
    study = kubernetes_study.make(("pod", "host"), {"tidb": {"version": version}}, engine={"name": "tidb"})
    assert tidb_manifests.build_cluster(study, NAMES, "pod")["spec"]["enableDynamicConfiguration"] is takes_it


def test_the_operators_own_schema_takes_our_tidb_clusters():
    """The schema that TiDB Operator publishes; it is not ours, so it is read where it is at hand."""
    file = os.environ.get(CRD)
    if not file:
        pytest.skip(f"{CRD} does not name the operator's pingcap.com_tidbclusters.yaml")
    definition = YAML(typ="safe").load(Path(file).read_text(encoding="utf-8"))
    version = next(one for one in definition["spec"]["versions"] if one["name"] == "v1alpha1")
    schema = closed(version["schema"]["openAPIV3Schema"])
    study = study_of(POD_AND_SPREAD)
    for name in study.arms:
        jsonschema.validate(tidb_manifests.build_cluster(study, NAMES, name), schema)
    wrong = tidb_manifests.build_cluster(study, NAMES, "pod")
    wrong["spec"]["tikv"]["replica"] = 3
    with pytest.raises(jsonschema.ValidationError, match="replica"):
        jsonschema.validate(wrong, schema)


def closed(node: Any) -> Any:
    """Return a schema that refuses unknown keys, as the API server drops them."""
    if isinstance(node, list):
        return [closed(item) for item in node]
    if not isinstance(node, dict):
        return node
    found = {key: closed(item) for key, item in node.items()}
    is_open = node.get("x-kubernetes-preserve-unknown-fields") or "additionalProperties" in node
    is_object = isinstance(node.get("properties"), dict) and node.get("type") == "object"
    if is_object and not is_open:
        found["additionalProperties"] = False
    return found


def test_the_manifests_that_are_printed_can_be_given_to_another_program_as_they_are(capsys):
    assert cli.main(["plan", "tidb-kubernetes-network", "--manifests"]) == 0
    documents = list(YAML(typ="safe").load_all(capsys.readouterr().out))
    assert [one["kind"] for one in documents][:1] == ["Namespace"]
    assert all({"apiVersion", "kind", "metadata"} <= one.keys() for one in documents)


def test_a_plan_names_every_resource_and_no_price():
    study = kubernetes_study.make()
    text = plan_output.render_plan("my_study", study)
    for kind, name in {key for one in study.arms for key in arm(one)}:
        assert any(kind in line and name in line for line in text.splitlines())
    assert "localhost/bb:1" in text
    assert "$" not in text and "USD" not in text


def test_halves_of_a_nodes_cores_are_for_servers_and_for_clients():
    halves = [[*map(placement.format_cores, placement.halve_cores(cores).values())] for cores in (2, 5)]
    # Of five the client has three: what is odd goes to it, as on one machine; a proxy is where the client is.
    assert halves == [["0-0", "1-1", "1-1"], ["0-1", "2-4", "2-4"]]


def test_stores_of_an_operators_cluster_are_named_by_their_pods_or_else_by_their_addresses() -> None:
    addresses = ["server-tikv-0.server-tikv-peer.ns.svc:20160", "10.88.0.7:20160", "10.88.0.9:20160"]
    stores = [
        {"store": {"id": number, "address": address, "state_name": "Up"}}
        for number, address in enumerate(addresses, 1)
    ]
    regions = [{"id": 4, "peers": [{}, {}, {}], "leader": {"store_id": 2}}]
    told = {"stores": {"stores": stores}, "regions": {"regions": regions}, "operators": []}

    class Told(PodPlacementDriver):
        def _ask(self, what: str, said: Any = None) -> Any:
            return told[what]

    state = Told("server-pd-0", 2379, {"10.88.0.7": "server-tikv-1"}, None).state()
    assert list(state.stores) == ["server-tikv-0", "server-tikv-1", "10.88.0.9"]
    assert (state.leaders, state.replicas) == ({"4": "server-tikv-1"}, {"3": 1})
