"""An inventory says which host is what, and every mistake in it is told with its place and remedy."""

from pathlib import Path

import pytest

from benchbook.core.study import inventory
from benchbook.core.study.study_sections import SiteSection
from benchbook.core.util import yaml_file
from benchbook.core.util.errors import InputErrors
from tests.goldens import assert_golden

DATA = Path(__file__).parents[2] / "data"
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


def test_a_host_takes_from_the_defaults_what_it_does_not_say(written):
    base = written(GOOD).parent
    hosts = inventory.load_hosts("rack")
    db, gen = hosts["db1"], hosts["gen1"]
    assert (db.user, db.port, db.address) == ("root", 2222, "10.0.0.10")
    assert (db.key_file, db.folder) == (None, "/mnt/nvme")
    assert (gen.user, gen.port, gen.address) == ("bench", 22, "gen1.example.org")
    assert gen.key_file == base / "keys" / "gen"
    assert db.known_hosts == gen.known_hosts == base / "known"
    assert gen.roles == ("client", "proxy")


def test_a_file_anywhere_can_be_named_instead(written, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    said = r"inventories/rack\.yaml: no such inventory; .*BENCHBOOK_INVENTORY"
    with pytest.raises(InputErrors, match=said):
        inventory.load_hosts("rack")
    elsewhere = tmp_path / "elsewhere.yaml"
    elsewhere.write_text(GOOD)
    monkeypatch.setenv(inventory.VARIABLE, str(elsewhere))
    assert set(inventory.load_hosts("whatever")) == {"db1", "gen1"}


def test_mistakes_are_told_with_place_and_remedy(written):
    answers = []
    for name, text in (("hosts", GOOD), ("jump hosts", JUMP)):
        answers.append(f"\n{name}")
        for changes in yaml_file.read_mapping(DATA / "refused_inventories.yaml").data[name]:
            changed = text
            for old, new in changes.items():
                assert old in changed
                changed = changed.replace(old, new)
            written(changed)
            with pytest.raises(InputErrors) as caught:
                inventory.load_hosts("rack")
            lines = [line.removeprefix("inventories/") for line in caught.value.errors]
            answers.append("  - " + "\n    ".join(lines))
    assert_golden("refused_inventories.txt", "\n".join(answers).lstrip() + "\n")


def test_precedence_is_of_the_kinds_whose_programs_run_on_this_machine():
    theirs = {"kind": "existing", "existing": {"host": "db", "account_file": "x"}}
    assert SiteSection.model_validate(theirs | {"priority": "ordinary"}).precedence == "ordinary"
    assert (SiteSection.model_validate(theirs).precedence, SiteSection().precedence) == ("raised", "raised")
    assert SiteSection(kind="kubernetes").precedence is None


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
    gate = db.gateway
    assert (gate.host, gate.user, gate.port) == ("198.51.100.7", "me", 22)
    assert gate.known_hosts == base / "known-outside" and gate.gateway is None
    assert db.programs == {"tiup": "/opt/tiup/tiup", "tidb-server": "/opt/tidb/tidb-server"}


def test_one_address_at_two_ports_or_behind_two_gateways_is_two_hosts(written):
    written(GOOD.replace("gen1.example.org", "192.0.2.10"))
    assert set(inventory.load_hosts("rack")) == {"db1", "gen1"}
    text = JUMP.replace("  bastion:", "  other: {host: 198.51.100.8}\n  bastion:")
    text += "  db2: {host: 10.0.0.10, roles: [server], gateway: other}\n"
    written(text)
    assert set(inventory.load_hosts("rack")) == {"db1", "gen1", "db2"}
