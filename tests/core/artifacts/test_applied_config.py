"""Settings files are kept once a content, under a name that begins with their digest."""

from pathlib import Path

from benchbook.core.artifacts import applied_config
from benchbook.core.util import files


def test_a_text_is_kept_once_and_what_an_earlier_provision_left_goes(tmp_path: Path):
    applied_config.write_texts(tmp_path, [("old.cnf", "x=0\n")])
    applied_config.write_texts(
        tmp_path, [("my.cnf", "x=1\n"), ("again.cnf", "x=1\n"), ("server.conf", "x=2")]
    )
    kept = {file.name: file.read_text() for file in tmp_path.iterdir()}
    assert sorted(kept.values()) == ["x=1\n", "x=2"]
    for name, text in kept.items():
        assert files.digest_file(tmp_path / name) == applied_config.digest_text(text)
        assert applied_config.is_named_for(name, applied_config.digest_text(text))
    assert not any(name.startswith(("again", "old")) for name in kept)


def test_digests_are_found_wherever_facts_and_identities_have_them():
    facts = {
        "engine": {"config_hash": "a", "started_with": {"mariadbd.argv": "v"}, "version": "1"},
        "proxy": None,
        "servers": {"server-2": {"config_hash": "b"}},
        "moment": {"manifests": {"study.yaml": "c", "server.yaml": "d"}, "load": "0"},
    }
    assert dict(applied_config.find_digests(facts)) == {
        "engine.config_hash": "a",
        "engine.started_with.mariadbd.argv": "v",
        "servers.server-2.config_hash": "b",
        "moment.manifests.study.yaml": "c",
        "moment.manifests.server.yaml": "d",
    }
    identity = {"config_hash": "a", "proxy_config_hash": "p", "cluster": {"store-1": {"config_hash": "s"}}}
    assert [digest for _, digest in applied_config.find_digests(identity)] == ["a", "p", "s"]
    # Archives made before have one digest of all manifests of an arm.
    assert list(applied_config.find_digests({"moment": {"manifests": "m"}})) == [("moment.manifests", "m")]


def test_settings_are_the_same_however_a_file_writes_them(tmp_path: Path):
    texts = {
        "my.cnf": "[mariadbd]\nmax_connections=1024\nskip_log_bin=ON\nsocket=SERVER/m.sock",
        "postgresql.conf": "fsync='on'\nmax_wal_size='4GB'",
        "pd.toml": 'tick-interval="100ms"\n[log]\nlevel="error"\n[schedule]\nmerge=false\nratio=1.0\n',
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    found = {name: applied_config.read_settings(tmp_path / name) for name in texts}
    assert found["my.cnf"] == {"max_connections": "1024", "skip_log_bin": "on", "socket": "server/m.sock"}
    assert found["postgresql.conf"] == {"fsync": "on", "max_wal_size": "4gb"}
    assert found["pd.toml"] == {
        "tick-interval": "100ms", "log.level": "error", "schedule.merge": "off", "schedule.ratio": "1",
    }  # fmt: skip
    assert [applied_config.format_value(one) for one in ("ON", "True", 1, "1.0", "OFF")] == [
        "on",
        "on",
        "1",
        "1",
        "off",
    ]
