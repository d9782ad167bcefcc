"""An inventory says which host is what, and every mistake in it is told with its place and remedy."""

from pathlib import Path

import pytest

from benchbook.core.study import inventory, load
from benchbook.core.study.study_sections import SiteSection
from benchbook.core.util.errors import InputErrors

GOOD = """
defaults: {user: bench, port: 2222, known_hosts: known}
hosts:
  db1: {host: 192.0.2.10, address: 10.0.0.10, roles: [server], user: root, folder: /mnt/nvme}
  gen1: {host: gen1.example.org, roles: [client, proxy], key_file: keys/gen, port: 22}
"""


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Return a function that makes a text the inventory of this clone, named `rack`."""
    (tmp_path / "inventories").mkdir()
    monkeypatch.setenv("BENCHBOOK_ROOT", str(tmp_path))
    monkeypatch.delenv(inventory.VARIABLE, raising=False)

    def write(text: str) -> Path:
        path = tmp_path / "inventories" / "rack.yaml"
        path.write_text(text)
        return path

    return write


def mistakes(text: str, written) -> list[str]:
    written(text)
    with pytest.raises(InputErrors) as caught:
        inventory.load_hosts("rack")
    return caught.value.errors


def test_a_host_takes_from_the_defaults_what_it_does_not_say(written):
    base = written(GOOD).parent
    hosts = inventory.load_hosts("rack")
    db, gen = hosts["db1"], hosts["gen1"]
    assert (db.user, db.port, db.address, db.key_file, db.folder) == (
        *("root", 2222, "10.0.0.10"),
        *(None, "/mnt/nvme"),
    )
    assert (gen.user, gen.port, gen.address, gen.key_file) == (
        *("bench", 22, "gen1.example.org"),
        base / "keys" / "gen",
    )
    assert db.known_hosts == gen.known_hosts == base / "known"
    assert gen.roles == ("client", "proxy")


def test_a_file_anywhere_can_be_named_instead(written, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    elsewhere = tmp_path / "elsewhere.yaml"
    elsewhere.write_text(GOOD)
    monkeypatch.setenv(inventory.VARIABLE, str(elsewhere))
    assert set(inventory.load_hosts("whatever")) == {"db1", "gen1"}


def test_a_missing_inventory_says_where_it_is_looked_for(written):
    with pytest.raises(
        InputErrors, match=r"inventories/rack\.yaml: no such inventory; .*BENCHBOOK_INVENTORY"
    ):
        inventory.load_hosts("rack")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("user: root", "password: x", "hosts.db1.password: unknown key; a secret never stands in a file"),
        ("user: root", "usr: root", "hosts.db1.usr: unknown key; did you mean user?"),
        ("host: 192.0.2.10", "host: localhost", "hosts.db1.host: 'localhost': leads to a socket"),
        ("host: 192.0.2.10", "host: 'a; rm -rf x'", "hosts.db1.host: 'a; rm -rf x': must match"),
        ("folder: /mnt/nvme", "folder: '/mnt/$(id)'", "hosts.db1.folder: '/mnt/$(id)': must match"),
        ("roles: [server]", "roles: [sever]", "hosts.db1.roles.0: 'sever': unknown; write 'server'"),
        ("roles: [server]", "roles: [client]", "hosts: no host has the role server"),
        ("port: 2222", "port: 99999", "defaults.port: 99999: must be <= 65535"),
        ("\nhosts:", "\npatience_s: 900.0\nhosts:", "patience_s: 900: not less than lease_s 900"),
        ("gen1.example.org", "192.0.2.10", None),
    ],
)
def test_a_mistake_is_told_with_its_place(old: str, new: str, said: str | None, written):
    """The last row is no mistake: the hosts share an address, but not the port."""
    text = GOOD.replace(old, new)
    if said is None:
        written(text)
        assert inventory.load_hosts("rack")
    else:
        assert any(said in error for error in mistakes(text, written)), mistakes(text, written)


def test_two_names_for_one_host_are_refused(written):
    text = GOOD.replace("gen1.example.org", "192.0.2.10").replace(", port: 22}", "}")
    assert "hosts.gen1: the same host as db1" in mistakes(text, written)[0]


STUDY = Path(__file__).parents[3] / "studies" / "quick.yaml"


def test_precedence_is_of_the_kinds_whose_programs_run_on_this_machine():
    theirs = {"kind": "existing", "existing": {"host": "db", "account_file": "x"}}
    assert SiteSection.model_validate(theirs | {"priority": "ordinary"}).precedence == "ordinary"
    assert (SiteSection.model_validate(theirs).precedence, SiteSection().precedence) == ("raised", "raised")
    assert SiteSection(kind="kubernetes").precedence is None


@pytest.mark.parametrize(
    ("site", "said"),
    [
        ("kind: ssh", "inventory: missing for kind ssh"),
        ("kind: local\n  inventory: rack", "inventory: no key of kind local"),
        ("kind: ssh\n  inventory: rack\n  cpus: split", "cpus: no key of kind ssh"),
        ("kind: ssh\n  inventory: rack\n  priority: ordinary", "priority: no key of kind ssh"),
        ("kind: ssh\n  inventory: ../rack", "site.inventory: '../rack': must match"),
    ],
)
def test_a_study_says_which_inventory_and_nothing_that_hosts_do_not_know(site, said, tmp_path):
    text = STUDY.read_text()
    start, end = text.index("  kind: local"), text.index("engine:")
    path = tmp_path / "quick.yaml"
    path.write_text(f"{text[:start]}  {site}\n\n{text[end:]}")
    with pytest.raises(InputErrors) as caught:
        load.study_file(path)
    assert any(said in error for error in caught.value.errors), caught.value.errors


JUMP = """
defaults: {user: bench, gateway: bastion, programs: {tiup: /opt/tiup/tiup}}
gateways:
  bastion: {host: 198.51.100.7, user: me, known_hosts: known-outside}
hosts:
  db1: {host: 10.0.0.10, roles: [server, pd, tikv], programs: {tidb-server: /opt/tidb/tidb-server}}
  gen1: {host: 10.0.0.11, roles: [client, control]}
"""


def test_a_jump_host_has_an_account_and_keys_of_its_own(written):
    base = written(JUMP).parent
    db = inventory.load_hosts("rack")["db1"]
    assert db.gateway is not None and (db.gateway.host, db.gateway.user, db.gateway.port) == (
        *("198.51.100.7", "me", 22),
    )
    assert db.gateway.known_hosts == base / "known-outside" and db.gateway.gateway is None
    assert db.programs == {"tiup": "/opt/tiup/tiup", "tidb-server": "/opt/tidb/tidb-server"}


def test_a_gateway_that_is_not_written_down_is_told(written):
    said = mistakes(JUMP.replace("gateway: bastion", "gateway: other"), written)
    assert len(said) == 2 and all("other: no such name under gateways" in text for text in said)


def test_one_address_behind_two_gateways_is_two_hosts(written):
    text = JUMP.replace("  bastion:", "  other: {host: 198.51.100.8}\n  bastion:")
    text += "  db2: {host: 10.0.0.10, roles: [server], gateway: other}\n"
    written(text)
    assert set(inventory.load_hosts("rack")) == {"db1", "gen1", "db2"}
    assert "the same host as" in mistakes(text.replace(", gateway: other", ""), written)[0]
