"""Which part is on which host and port, from a study and an inventory alone; nothing is connected to."""

from dataclasses import replace
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any

from ruamel.yaml import YAML

from benchbook.core.study.inventory import Target
from benchbook.core.study.study import StudySpec
from benchbook.core.study.study_hosts import Tiup
from benchbook.sites import workspace as labs
from benchbook.sites.hosts import load_client, placement, roles
from benchbook.sites.hosts.runtime import HostsRuntime
from benchbook.sites.proxies import haproxy
from tests import small
from tests.goldens import assert_golden

DATA = Path(__file__).parents[2] / "data"


def target(name: str, *roles: str) -> Target:
    """A host whose name is its address."""
    paths = {"key_file": None, "known_hosts": Path("known"), "folder": None}
    return Target(name, name, name, roles, 22, "root", **paths, lease_s=9.0, patience_s=5.0, timeout_s=1.0)


ROLES = {"db1": ["server"], "db2": ["server"], "lb1": ["proxy"], "gen1": ["client"]}
HOSTS = {name: target(name, *held) for name, held in ROLES.items()}
HOSTS["all1"] = target("all1", "server", "proxy", "client")


def test_a_client_is_the_program_that_the_inventory_names():
    """Its version is asked of that one, too."""
    named = replace(target("gen1", "client"), programs={"sysbench": "/opt/bin/sysbench"})
    asked = ["sysbench", "oltp_read_only", "run"]
    told = load_client.carry_arguments(SimpleNamespace(target=named), asked)
    assert told == ["/opt/bin/sysbench", *asked[1:]]
    assert load_client.carry_arguments(SimpleNamespace(target=HOSTS["gen1"]), asked) == asked


def study(arms: dict[str, Any], **engine: Any) -> StudySpec:
    return small.study(
        site={"kind": "ssh", "inventory": "rack", "port": 4000},
        engine=engine,
        arms=arms,
        dataset={"tables": 1, "table_size": 10},
        workloads={"oltp_point_select": {}},
        threads=(4,),
        plan={"seed": 1, "blocks": 1, "discard_s": 0, "run_s": 2},
    )


def test_parts_are_on_their_hosts_and_what_hosts_do_not_make_is_said_by_name():
    lines = []
    for name, given in YAML(typ="safe").load(DATA / "arm_places.yaml")["hosts"].items():
        hosts = {host: HOSTS[host] for host in given.get("hosts", HOSTS)}
        asked = study(given["arms"], **given.get("engine", {}))
        lines.append(f"\n{name}")
        for arm, chain in placement.build_chains(asked, hosts).items():
            parts = [f"{part.name} {part.where.host}:{part.port}" for part in chain.parts]
            clients = ", ".join(part.where.host for part in chain.clients)
            lines.append(f"  {arm}: {', '.join(parts)}; from {clients}")
        reasons = {arm: "; ".join(roles.infeasible_reasons(asked, arm, hosts)) for arm in asked.arms}
        lines += [f"  {arm}: not made: {said}" for arm, said in reasons.items() if said]
    assert_golden("host_places.txt", "\n".join(lines).lstrip() + "\n")


def test_a_load_needs_files_and_room_in_the_proxy_and_no_tls():
    load, roomy = {"idle_connections": 5000}, {"settings": {"max_connections": 6000}}
    asked = study({"direct": {}, "held": {"access": "tiproxy", "load": load}}, **roomy)
    # A file for each connection, two in a proxy, and 1,024 for everything else.
    assert roles.short_of_files(asked.arms["held"], "server", 6024) is None
    few = roles.short_of_files(asked.arms["held"], "server", 6023) or ""
    behind = roles.short_of_files(asked.arms["held"], "proxy", 10000) or ""
    assert roles.short_of_files(asked.arms["held"], "proxy", -1) is None
    assert roles.short_of_files(asked.arms["direct"], "server", 100) is None
    # Where no arm says how many, every proxy of the study takes them, as on one machine: 5000 and 1024.
    held = {"access": "haproxy", "load": load}
    rising = study({"direct": {}, "plain": {"access": "haproxy"}, "held": held}, **roomy)
    assert list(roles.infeasible_reasons(rising, "held", HOSTS)) == []
    lab = labs.Lab(Path("lab"), "token")
    most = HostsRuntime(rising, lab, placement.build_chains(rising, HOSTS), HOSTS).connections
    limits = [haproxy.limit_connections(*pair) for pair in ((most, -1), (5000, 8200), (0, -1))]
    assert limits == [6024, 4000, 4096]
    wide = {"access": "haproxy", "load": load, "proxy": {"settings": {"maxconn": 6024}}}
    assert list(roles.infeasible_reasons(study({"direct": {}, "held": wide}, **roomy), "held", HOSTS)) == []
    tls = asked.model_copy(update={"site": asked.site.model_copy(update={"tls": "required"})})
    reasons = roles.infeasible_reasons(tls, "held", HOSTS)
    assert_golden("hosts/load.txt", "\n".join([few, behind, *reasons, ""]))


def test_a_cluster_needs_root_where_its_parts_are_and_not_where_clients_are():
    tiup = {part: {"hosts": 1} for part in ("pd", "tikv", "tidb")}
    asked = study({"direct": {}, "other": {"access": "haproxy"}}, name="tidb", version="8.0.0")
    asked = asked.model_copy(update={"site": asked.site.model_copy(update={"tiup": Tiup(**tiup)})})
    told = {role: roles.of_root(asked, "direct", role) for role in ("server-2", "tikv", "client", "control")}
    assert_golden("hosts/root.txt", "".join(f"{role}: {what}\n" for role, what in told.items()))


def test_haproxy_on_a_host_names_every_server_with_the_arms_settings_in_place_of_ours():
    hosts = dict(HOSTS)
    asked = study({"direct": {}, "proxy": {"access": "haproxy", "proxy": {"settings": {"maxconn": 500}}}})
    part = placement.build_chains(asked, hosts)["proxy"].proxy
    its = {"cores": 2, "open_files": -1, "account": str, "socket": "/lab/{}".format}
    machine: Any = SimpleNamespace(folder=PurePosixPath("/lab"), **its)
    server = placement.reached_at(part.to)[0]
    place = labs.PartLocation(part.name, part.where.address, part.port)
    made = haproxy.HAProxy(machine, place, [f"{server.address}:{server.port}"], asked.arms["proxy"].proxy)
    text = made.text()
    assert f"backend server\n    server db {server.address}:{server.port}\n" in text
    assert text.count("    maxconn 500\n") == 2 and f"bind {part.where.address}:{part.port}" in text
    assert haproxy.server_lines(["a:1", "b:2"]) == "    server db a:1\n    server db2 b:2"
