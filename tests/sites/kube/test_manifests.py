"""What a study asks of a cluster, read before any cluster is asked."""

import os
import tomllib
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


def test_arms_share_the_server_that_they_ask_for_alike():
    chains = placement.build_chains(kubernetes_study.make())
    servers = {name: chain.server.name for name, chain in chains.items()}
    assert servers == {
        "pod": "server",
        "host": "server-2",
        "service": "server",
        "haproxy": "server",
        "balancer": "server",
        "best-effort": "server",
        "guaranteed": "server-3",
    }
    ports = [part.port for part in {chain.server for chain in chains.values()}]
    # On the host's network two servers of one node would meet on one port.
    assert len(set(ports)) == 3
    # A client in the cluster would never reach the balancer: this arm has one outside, and no pod for it.
    assert chains["balancer"].clients == () and count_outside(chains["balancer"]) == 1
    assert len({chain.clients[0] for name, chain in chains.items() if name != "balancer"}) == 1


def test_clients_and_servers_of_an_arm_are_pods_of_their_own_and_the_first_are_shared():
    arms = {"one": {}, "three": {"clients": 4, "servers": 2}, "two": {"clients": 2}}
    in_pods = {name: {"network": "pod"} | asked for name, asked in arms.items()}
    study = kubernetes_study.make(in_pods, threads=(4,))
    chains = placement.build_chains(study)
    assert [part.name for part in chains["three"].clients] == ["client", "client-2", "client-3", "client-4"]
    assert [part.name for part in chains["three"].servers] == ["server", "server-2"]
    assert chains["two"].clients == chains["three"].clients[:2]
    assert chains["one"].servers == chains["two"].servers
    made = arm("three", study)
    assert ("StatefulSet", "server-2") in made and ("StatefulSet", "client-4") in made
    ports = {part.port for part in chains["three"].servers}
    assert len(ports) == 2


def test_nobody_enters_a_tidb_without_a_password():
    class Said(list[str]):
        def execute(self, statement: str, given: tuple[str, ...] | None = None) -> None:
            self.append(statement if given is None else statement % tuple(map(repr, given)))

    said = Said()
    data.secure_admin(said, PASSWORD, ("127.0.0.1",))  # type: ignore[arg-type]
    # Each can be said twice: an interruption between them leaves no door open.
    assert said[0] == f"CREATE USER IF NOT EXISTS 'root'@'127.0.0.1' IDENTIFIED BY '{PASSWORD}'"
    assert said[-1] == "DROP USER IF EXISTS 'root'@'%'"


def test_the_network_of_an_arm_is_that_of_its_pod():
    assert "hostNetwork" not in pod(arm("pod")["StatefulSet", "server"])
    host = pod(arm("host")["StatefulSet", "server-2"])
    # A port that is named would be the node's: a server that sleeps would keep another study's pod away.
    assert "ports" not in host["containers"][0]
    assert host["hostNetwork"] is True and host["dnsPolicy"] == "ClusterFirstWithHostNet"


def test_ways_of_access_are_services_of_their_kind_or_a_proxy():
    assert arm("service")["Service", "server"]["spec"]["type"] == "ClusterIP"
    assert arm("balancer")["Service", "server-balancer"]["spec"]["type"] == "LoadBalancer"
    proxied = arm("haproxy")
    leads_to = "server db server.benchbook-my-study-01234567.svc:3306"
    assert leads_to in proxied["ConfigMap", "proxy"]["data"]["haproxy.cfg"]
    assert pod(proxied["StatefulSet", "proxy"])["containers"][0]["command"][0] == "haproxy"


def test_engine_and_proxy_of_another_package_are_made_in_pods(tmp_path: Path):
    with package(tmp_path):
        arms = {"direct": {"network": "pod"}, "behind": {"network": "pod", "access": "socat"}}
        made = arm("behind", kubernetes_study.make(arms, engine={"name": "small"}))
        assert ("StatefulSet", "server") in made
        leads_to = "TCP:server.benchbook-my-study-01234567.svc:3306"
        assert leads_to in made["ConfigMap", "proxy"]["data"]["lead.sh"]
        assert pod(made["StatefulSet", "proxy"])["containers"][0]["command"][0] == "sh"


def test_best_effort_asks_for_nothing_and_guaranteed_for_as_much_as_it_is_limited_to():
    assert pod(arm("best-effort")["StatefulSet", "server"])["containers"][0]["resources"] == {}
    asked = pod(arm("guaranteed")["StatefulSet", "server-3"])["containers"][0]["resources"]
    same = {"cpu": "500m", "memory": "384Mi"}
    assert asked == {"requests": same, "limits": same}


def test_a_limit_of_cores_alone_is_neither():
    study = kubernetes_study.make(("pod", "host"))
    half = study.model_copy(
        update={
            "arms": study.arms
            | {
                "host": study.arms["host"].model_validate(
                    {"network": "host", "cpu": {"server": {"quota": 0.25}}}
                )
            }
        }
    )
    server = placement.build_chains(half)["host"].server
    assert server.where.resources.qos_class == "Burstable"
    asked = pod(arm("host", half)["StatefulSet", "server-2"])["containers"][0]["resources"]
    assert asked == {"requests": {"cpu": "250m"}, "limits": {"cpu": "250m"}}


def test_the_neighbour_is_on_the_node_of_its_server():
    neighbour = pod(arm("guaranteed")["StatefulSet", "neighbour-2"])
    needed = neighbour["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]
    assert needed["labelSelector"]["matchExpressions"][0]["values"] == ["server-3"]


def test_selectors_of_an_arm_go_before_those_of_the_study_and_taints_are_put_up_with():
    site = {
        "nodes": {"server": {"pool": "cos"}, "client": {"pool": "load"}},
        "tolerations": ({"key": "benchbook", "effect": "NoSchedule"}, {"key": "pool", "value": "cos"}),
    }
    study = kubernetes_study.make(("pod", "host"), site)
    elsewhere = {"network": "host", "placement": {"nodes": {"server": {"pool": "ubuntu"}}}}
    other = study.arms["host"].model_validate(elsewhere)
    study = study.model_copy(update={"arms": {**study.arms, "host": other}})
    assert pod(arm("pod", study)["StatefulSet", "server"])["nodeSelector"] == {"pool": "cos"}
    made = arm("host", study)
    assert pod(made["StatefulSet", "server-2"])["nodeSelector"] == {"pool": "ubuntu"}
    assert pod(made["StatefulSet", "client"])["nodeSelector"] == {"pool": "load"}
    assert pod(made["StatefulSet", "server-2"])["tolerations"] == [
        {"key": "benchbook", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "pool", "operator": "Equal", "value": "cos"},
    ]


def test_another_image_or_node_is_another_pod():
    """A pod must be told from the one that is about to be replaced; settings are no part of it."""
    study = kubernetes_study.make()
    other = kubernetes_study.make(site={"images": {**kubernetes_study.IMAGES, "server": "own/server:2"}})
    settings = kubernetes_study.make(engine={"settings": {"innodb_buffer_pool_size": "65M"}})
    digests = {
        made["StatefulSet", "server"]["spec"]["template"]["metadata"]["annotations"]["benchbook/digest"]
        for made in (arm("pod", study), arm("pod", other), arm("pod", settings), arm("service", study))
    }
    assert len(digests) == 2
    elsewhere = kubernetes_study.make(site={"nodes": {"server": {"pool": "other"}}})
    moved = arm("pod", elsewhere)["StatefulSet", "server"]["spec"]["template"]["metadata"]["annotations"]
    assert moved["benchbook/digest"] not in digests


def test_no_pod_is_given_an_account_and_what_is_kept_is_what_was_applied():
    study = kubernetes_study.make()
    everything = [*manifests.build_study(NAMES), *(one for name in study.arms for one in arm(name).values())]
    for manifest in everything:
        assert manifest["kind"] != "Secret"
        if manifest["kind"] == "StatefulSet":
            assert all("env" not in container for container in pod(manifest)["containers"])
    text = manifests.render_yaml(everything)
    assert [one["kind"] for one in YAML(typ="safe").load_all(text)] == [one["kind"] for one in everything]


def tidb_study(**arms: dict[str, Any]) -> StudySpec:
    parts = {
        "version": "v3.0.1",
        "pd": {"config": {"log.level": "info", "replication.location-labels": ("region", "zone")}},
        "tikv": {"config": {"server.grpc-concurrency": 6, "rocksdb.defaultcf.block-cache-size": "14GB"}},
        "tidb": {"config": {"prepared-plan-cache.enabled": True}},
    }
    site = {
        "tidb": parts,
        "storage": {"storage_class": "local-storage", "size_gib": 300},
        "nodes": {"server": {"pool": "tidb"}, "tikv": {"pool": "tikv"}, "pd": {"pool": "pd"}},
    }
    study = kubernetes_study.make(("pod", "host"), site, engine={"name": "tidb"})
    made = {name: study.arms["pod"].model_validate(arm) for name, arm in arms.items()}
    return study.model_copy(update={"arms": made})


def test_a_tidb_cluster_has_three_of_each_part_with_their_own_settings_and_nodes():
    study = tidb_study(
        pod={"network": "pod", "access": "service"},
        spread={"network": "host", "access": "load_balancer", "placement": {"spread": True}},
    )
    plain, spread = (tidb_manifests.build_cluster(study, NAMES, name)["spec"] for name in ("pod", "spread"))
    assert [plain[part]["replicas"] for part in ("pd", "tikv", "tidb")] == [3, 3, 3]
    assert plain["hostNetwork"] is False and spread["hostNetwork"] is True
    assert plain["tidb"]["service"]["type"] == "ClusterIP"
    assert "topologySpreadConstraints" not in plain
    assert spread["topologySpreadConstraints"] == [{"topologyKey": "topology.kubernetes.io/zone"}]
    # As tables: the operator's own reader stops at a name with dots, and then sees no cluster at all.
    assert plain["tikv"]["config"] == (
        '[rocksdb.defaultcf]\nblock-cache-size="14GB"\n[server]\ngrpc-concurrency=6\n'
    )
    assert plain["pd"]["config"] == (
        '[log]\nlevel="info"\n[replication]\nlocation-labels=["region", "zone"]\n'
    )
    written = tomllib.loads(plain["tidb"]["config"])
    assert written["prepared-plan-cache"] == {"enabled": True}
    # What a benchmark on one machine starts from holds here too.
    assert written["log"]["level"] == "error"
    assert [plain[part]["nodeSelector"]["pool"] for part in ("pd", "tikv", "tidb")] == ["pd", "tikv", "tidb"]
    assert plain["tikv"]["storageClassName"] == "local-storage"
    assert plain["tikv"]["requests"] == {"storage": "300Gi"}
    assert "storageClassName" not in plain["tidb"]
    term = plain["tikv"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]
    terms = term["labelSelector"]["matchExpressions"]
    kept_apart = {one["key"].rpartition("/")[2]: one["values"] for one in terms}
    # Pods of one part of one arm; those of another arm may share its nodes.
    assert kept_apart == {"instance": ["server"], "component": ["tikv"]}


@pytest.mark.parametrize(
    ("version", "takes_it"),
    [("v3.0.1", False), ("v3.1.2", False), ("v4.0.0", False), ("v4.0.1", True), ("v7.5.1", True)],
)
def test_tikv_is_passed_its_status_address_where_its_version_takes_one(version: str, takes_it: bool):
    """TiKV before 4.0.1 has no `--advertise-status-addr`, and ends where the operator passes it."""
    study = kubernetes_study.make(("pod", "host"), {"tidb": {"version": version}}, engine={"name": "tidb"})
    assert tidb_manifests.build_cluster(study, NAMES, "pod")["spec"]["enableDynamicConfiguration"] is takes_it


def test_pods_of_the_operators_tell_what_they_were_made_of_but_not_how_many_they_are():
    def made_as(change: str | None = None, value: Any = None) -> dict[str, str]:
        study = tidb_study(pod={"network": "pod", "access": "service"})
        if change == "settings":
            study.site.kubernetes.tidb.tikv.config["server.grpc-concurrency"] = value
        elif change is not None:
            whole = study.site.kubernetes.tidb
            object.__setattr__(whole.tikv if change == "replicas" else whole, change, value)
        spec = tidb_manifests.build_cluster(study, NAMES, "pod")["spec"]
        for part in tidb_manifests.PARTS:
            assert [one["name"] for one in spec[part]["env"]] == [tidb_manifests.MADE_AS]
        return {part: spec[part]["env"][0]["value"] for part in tidb_manifests.PARTS}

    first = made_as()
    assert len(set(first.values())) == 3
    assert made_as("replicas", 5) == first
    other = made_as("settings", 7)
    assert other["tikv"] != first["tikv"] and other | {"tikv": ""} == first | {"tikv": ""}
    newer = made_as("version", "v5.0.1")
    assert not any(newer[part] == first[part] for part in tidb_manifests.PARTS)


def test_arms_that_differ_in_access_alone_share_a_tidb_cluster():
    """On the host's network two clusters would meet on their ports."""
    study = tidb_study(
        service={"network": "host", "access": "service"},
        outside={"network": "host", "access": "load_balancer"},
        pod={"network": "pod", "access": "service"},
    )
    listed = plan_output.list_manifests(study, NAMES)
    made = [one for one in listed if one["kind"] in ("TidbCluster", "Service")]
    assert [(one["kind"], one["metadata"]["name"]) for one in made] == [
        ("TidbCluster", "server"),
        ("Service", "server-balancer"),
        ("TidbCluster", "server-2"),
    ]
    assert made[1]["spec"]["type"] == "LoadBalancer"
    assert made[1]["spec"]["selector"] == {
        "app.kubernetes.io/instance": "server",
        "app.kubernetes.io/component": "tidb",
    }


def test_the_operators_own_schema_takes_our_tidb_clusters():
    """The schema that TiDB Operator publishes; it is not ours, so it is read where it is at hand."""
    file = os.environ.get(CRD)
    if not file:
        pytest.skip(f"{CRD} does not name the operator's pingcap.com_tidbclusters.yaml")
    definition = YAML(typ="safe").load(Path(file).read_text(encoding="utf-8"))
    version = next(one for one in definition["spec"]["versions"] if one["name"] == "v1alpha1")
    schema = closed(version["schema"]["openAPIV3Schema"])
    study = tidb_study(
        pod={"network": "pod", "access": "service"},
        host={"network": "host", "access": "load_balancer", "placement": {"spread": True}},
    )
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


def test_settings_of_tikv_and_pd_for_one_arm_make_a_cluster_of_its_own():
    study = tidb_study(
        shared={"network": "pod", "access": "service"},
        apart={
            "network": "pod",
            "access": "service",
            "parts": {"tikv": {"rocksdb.defaultcf.block-cache-size": "24GB", "raftstore.sync-log": False}},
        },
    )
    chains = placement.build_chains(study)
    assert chains["shared"].server.name != chains["apart"].server.name
    first, second = (
        tidb_manifests.build_cluster(study, NAMES, name)["spec"]["tikv"]["config"] for name in study.arms
    )
    server = {"server": {"grpc-concurrency": 6}}
    assert tomllib.loads(first) == {"rocksdb": {"defaultcf": {"block-cache-size": "14GB"}}, **server}
    assert tomllib.loads(second) == {
        "raftstore": {"sync-log": False},
        "rocksdb": {"defaultcf": {"block-cache-size": "24GB"}},
        "server": {"grpc-concurrency": 6},
    }


def test_arms_whose_pd_or_tikv_are_on_other_nodes_have_clusters_of_their_own():
    """Else the second arm would be measured on the first one's TiKV."""
    study = tidb_study(
        one={"network": "pod", "access": "service", "placement": {"nodes": {"tikv": {"pool": "a"}}}},
        two={"network": "pod", "access": "service", "placement": {"nodes": {"tikv": {"pool": "b"}}}},
    )
    assert len({chain.server.name for chain in placement.build_chains(study).values()}) == 2


def test_sysbench_in_the_servers_container_has_no_pod():
    study = kubernetes_study.make(("pod", "guaranteed"), {"client_in": "server"})
    chain = placement.build_chains(study)["guaranteed"]
    assert chain.clients == () and count_inside(chain) == 1 and chain.arm.clients == 1
    made = {one["metadata"]["name"]: one for one in manifests.build_arm(study, NAMES, chain)}
    assert not any(name.startswith("client") for name in made)


def test_halves_of_a_nodes_cores_are_for_servers_and_for_clients():
    assert {part: placement.format_cores(cores) for part, cores in placement.halve_cores(2).items()} == {
        "server": "0-0",
        "client": "1-1",
        "proxy": "1-1",
    }
    # Of five the client has three: what is odd goes to it, as on one machine.
    halves = placement.halve_cores(5)
    assert (list(halves["server"]), list(halves["client"])) == ([0, 1], [2, 3, 4])


def test_stores_of_an_operators_cluster_are_named_by_their_pods_or_else_by_their_addresses() -> None:
    addresses = ["server-tikv-0.server-tikv-peer.ns.svc:20160", "10.88.0.7:20160", "10.88.0.9:20160"]
    told = {
        "stores": {
            "stores": [
                {"store": {"id": number, "address": address, "state_name": "Up"}}
                for number, address in enumerate(addresses, 1)
            ]
        },
        "regions": {"regions": [{"id": 4, "peers": [{}, {}, {}], "leader": {"store_id": 2}}]},
        "operators": [],
    }

    class Told(PodPlacementDriver):
        def _ask(self, what: str, said: Any = None) -> Any:
            return told[what]

    state = Told("server-pd-0", 2379, {"10.88.0.7": "server-tikv-1"}, None).state()
    assert list(state.stores) == ["server-tikv-0", "server-tikv-1", "10.88.0.9"]
    assert (state.leaders, state.replicas) == ({"4": "server-tikv-1"}, {"3": 1})
