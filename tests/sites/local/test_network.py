"""Namespaces, links and rules carry the lab's id; only those are found, and the subnet is nobody else's."""

import json
import os
import uuid

import pytest

from benchbook.core.util.errors import SiteError
from benchbook.sites.local import network
from benchbook.sites.machine import capabilities

ABLE = os.geteuid() == 0 and all(ability.ok for ability in capabilities.check_network()[:3])
needs_root = pytest.mark.skipif(not ABLE, reason="needs root, network namespaces and iptables")


def test_a_subnet_in_use_is_left_alone(monkeypatch) -> None:
    routes = ["default", "192.0.2.0/24", "10.0.5.0/24", "10.1.0.0/16"]
    told = json.dumps([{"dst": route} for route in routes] + [{"type": "local"}])
    monkeypatch.setattr(network, "run_tool", lambda *_: told)
    assert str(network.find_subnet(4)) == "10.0.4.0/24"
    # 10.0.5 and 10.1.6 are taken; 257 further is 10.2.7.
    assert str(network.find_subnet(5)) == "10.2.7.0/24"


def test_a_tool_that_fails_is_quoted() -> None:
    with pytest.raises(SiteError, match=r"ls /no/such: .*No such file.*doctor"):
        network.run_tool("ls", "/no/such")


def test_netem_holds_back_both_ends_of_a_cable(monkeypatch) -> None:
    """This asks for what tc(8) documents; a kernel with netem is not needed to read it."""
    said: list[str] = []
    monkeypatch.setattr(network, "run_tool", lambda *argv: said.append(" ".join(argv)) or "")
    network.LabNetwork("abcdef0123").delay(2, 1.5)
    delay = "root netem delay 1.5ms limit 100000"
    cable, inside = "tc qdisc replace dev bv-abcdef01-2", "tc -n bb-abcdef01-2 qdisc replace dev eth0"
    assert said == [f"{cable} {delay}", f"{inside} {delay}"]


@needs_root
def test_what_one_lab_clears_is_its_own() -> None:
    one, two = (network.LabNetwork(uuid.uuid4().hex) for _ in range(2))
    try:
        for lab in (one, two):
            path, address = lab.pod(1)
            assert path.exists() and address.rpartition(".")[0] == lab.gateway.rpartition(".")[0]
            assert lab.pod(1) == (path, address)
            lab.service("service", 0, 3306, address, 3307)
            lab.service("service", 0, 3306, address, 3307)
            assert len(lab.named("service")) == 2, "one in OUTPUT, one in PREROUTING, however often asked"
        assert one.gateway != two.gateway
        assert len(network.remove_objects(one.id)) == 5
        assert network.list_objects(one.id) == [] and len(network.list_objects(two.id)) == 5
    finally:
        network.remove_objects(one.id)
        network.remove_objects(two.id)
