"""What stands in for what is said in the report, and so is every arm that was left out."""

from types import SimpleNamespace

import pytest

from benchbook.compare.inference import setup_notes
from benchbook.core.artifacts.artifact import Facts
from benchbook.core.study.study_arm import Arm

CLAIM = SimpleNamespace(claim="Pods are 7 % slower.")


def notes(arms: dict[str, dict], facts: dict | None = None, **rest) -> list[str]:
    study = SimpleNamespace(arms={name: Arm.model_validate(arm) for name, arm in arms.items()})
    found = Facts.model_validate({"study": "s", "arms": {name: {} for name in arms}} | (facts or {}))
    return [one.text for one in setup_notes.setup_caveats(study, found, {"a/b": CLAIM}, **rest)]


def test_a_server_on_loopback_needs_no_words() -> None:
    assert notes({"direct": {}, "proxy": {"access": "haproxy"}}) == []


def test_a_skipped_arm_is_named_with_its_reason_and_nothing_else_is_said_of_it() -> None:
    skipped = {"arms": {"direct": {}}, "skipped": {"pod": "veth and bridge: refused; run as root"}}
    found = notes({"direct": {}, "pod": {"network": "pod"}}, skipped)
    assert found == ["Arm pod was skipped on this machine: veth and bridge: refused; run as root."]


def test_a_claim_that_is_only_illustrated_is_quoted_and_said_not_to_be_judged() -> None:
    arm = {"illustrates": ["a/b"], "stands_in_for": "a pod of a cluster."}
    assert notes({"pod": arm}) == [
        "Arm pod represents a pod of a cluster.",
        "Arm pod illustrates a/b and doesn't judge it: “Pods are 7 % slower.”",
    ]


def test_an_arm_that_has_a_name_keeps_its_key_beside_it_where_it_is_introduced() -> None:
    arm = {"name": "the c2 machine", "stands_in_for": "c2-standard-16"}
    assert notes({"c2": arm}) == ["Arm c2 machine (c2) represents c2-standard-16."]
    found = notes({"n1": {"network": "pod"}, "c2": arm | {"network": "pod"}})
    assert [note for note in found if note.startswith("Arms n1, c2 machine: ")]


@pytest.mark.parametrize(
    ("arm", "words"),
    [
        ({"cpu": {"server": {"quota": 0.5}}}, "not another processor"),
        ({"network": "pod"}, "without wire"),
        ({"access": "service"}, "one DNAT rule"),
        ({"access": "load_balancer"}, "HAProxy on the client's cores"),
        ({"neighbour": {"processes": 2}}, "computes in 2 threads"),
        ({"zones": {"latency_ms": 0.5}}, "0.5 ms each way is made by a relay"),
        ({"kernel": {"somaxconn": 9}}, "the whole machine"),
        ({"load": {"idle_connections": 5000}}, "holds 5,000 idle connections"),
        ({"load": {"new_connections_per_s": 200}}, "logs in and leaves 200 times a second"),
        ({"access": "tiproxy", "capture": True}, "nothing is replayed"),
        ({"clients": 3}, "3 clients share the threads and begin together"),
    ],
)
def test_what_an_arrangement_is_made_of_is_said_once_for_all_arms_that_have_it(arm: dict, words: str) -> None:
    found = [note for note in notes({"one": arm, "two": arm}) if words in note]
    assert len(found) == 1 and found[0].startswith("Arms one, two: ")


def test_servers_that_share_a_machine_are_not_sold_as_machines() -> None:
    facts = {"arms": {"one": {"site": {"kind": "local"}}, "three": {"site": {"kind": "local"}}}}
    found = notes({"one": {}, "three": {"clients": 3, "servers": 3}}, facts)
    assert "Arm three: 3 servers, each with its own data, share the cores that one server has" in found[0]
    hosts = {"arms": {name: {"site": {"kind": "ssh"}} for name in ("one", "three")}}
    assert "share the cores" not in " ".join(notes({"one": {}, "three": {"clients": 3, "servers": 3}}, hosts))


def test_cores_of_client_and_server_are_told_when_they_are_kept_apart() -> None:
    facts = {"arms": {"one": {"site": {"cpus": {"server": [0, 1], "proxy": [2], "client": [2]}}}}}
    assert "on cores 2 and server on cores 0, 1" in notes({"one": {}}, facts)[0]
    facts["arms"]["one"]["site"]["cpus"] = {"server": None, "proxy": None, "client": None}
    assert notes({"one": {}}, facts) == []


def test_hosts_of_their_own_are_named_and_sharing_one_is_told() -> None:
    hosts = {role: {"name": f"{role}1", "cpu_model": "Xeon"} for role in ("server", "client")}
    kernel = {"kernel": {"somaxconn": 9}}
    apart = {"arms": {"direct": {"site": {"kind": "ssh"}, "hosts": hosts}}}
    assert notes({"direct": kernel}, apart) == [
        "On hosts of their own, with the network between them: client client1 (Xeon), server server1 (Xeon)."
    ], "and the kernel's settings are not the client's there"
    hosts["client"]["name"] = "server1"
    assert "parts that share a host compete for it" in notes({"direct": {}}, apart)[0]


def test_a_site_elsewhere_need_not_tell_of_cores() -> None:
    assert notes({"direct": {}}, {"arms": {"direct": {"site": {"kind": "kubernetes"}}}}) == []


def test_what_tidb_is_here_and_is_not_is_said_once_and_only_where_it_is() -> None:
    tidb = {"engine": {"name": "tidb", "storage": "unistore, embedded: one process, writes not synced"}}
    mariadb, cluster = {"engine": {"name": "mariadb"}}, {"engine": {"name": "tidb", "storage": "tikv"}}
    assert notes({"whole": {}}, {"arms": {"whole": cluster}}) == []
    found = notes({"old": {}, "new": {}, "other": {}}, {"arms": {"old": tidb, "new": tidb, "other": mariadb}})
    assert len(found) == 1 and found[0].startswith("Arms old, new: TiDB is one process")
    assert "no TiKV, no replication" in found[0]


def test_a_cluster_is_not_taken_for_what_stands_in_for_it_on_one_machine() -> None:
    arms = {"pod": {"network": "pod"}, "service": {"network": "pod", "access": "service"}}
    beside = {"kind": "kubernetes", "client": "on the server's node"}
    found = notes(arms, {"arms": {name: {"site": beside} for name in arms}})
    assert len(found) == 1 and "no wire between them" in found[0]
    assert found[0].startswith("Arms pod, service:")
    apart = {"kind": "kubernetes", "client": "on another node"}
    assert notes(arms, {"arms": {name: {"site": apart} for name in arms}}) == []
