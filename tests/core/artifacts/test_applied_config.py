"""Settings files are kept once a content, under a name that begins with their digest."""

from pathlib import Path

from benchbook.core.artifacts import applied_config
from benchbook.core.util import files


def test_a_text_is_kept_once_and_what_an_earlier_provision_left_goes(tmp_path: Path):
    applied_config.write_texts(tmp_path, [("old.cnf", "x=0\n")])
    texts = [("my.cnf", "x=1\n"), ("again.cnf", "x=1\n"), ("server.conf", "x=2")]
    applied_config.write_texts(tmp_path, texts)
    kept = {file.name: file.read_text() for file in tmp_path.iterdir()}
    assert sorted(kept.values()) == ["x=1\n", "x=2"]
    for name, text in kept.items():
        assert files.digest_file(tmp_path / name) == applied_config.digest_text(text)
        assert Path(name).stem.endswith(f"-{applied_config.digest_text(text)[:12]}")
    assert not any(name.startswith(("again", "old")) for name in kept)


def test_digests_are_found_wherever_facts_and_identities_have_them():
    facts = {
        "engine": {"config_hash": "a", "started_with": {"mariadbd.argv": "v"}, "version": "1"},
        "proxy": None,
        "servers": {"server-2": {"config_hash": "b"}},
        "moment": {"manifests": {"study.yaml": "c", "server.yaml": "d"}, "load": "0"},
    }
    of_servers = {"engine.config_hash": "a", "servers.server-2.config_hash": "b"}
    others = {"engine.started_with.mariadbd.argv": "v"}
    others |= {"moment.manifests.study.yaml": "c", "moment.manifests.server.yaml": "d"}
    assert dict(applied_config.find_digests(facts)) == of_servers | others
    identity = {"config_hash": "a", "proxy_config_hash": "p", "cluster": {"store-1": {"config_hash": "s"}}}
    assert [digest for _, digest in applied_config.find_digests(identity)] == ["a", "p", "s"]
    # Archives made before have one digest of all manifests of an arm.
    assert list(applied_config.find_digests({"moment": {"manifests": "m"}})) == [("moment.manifests", "m")]
