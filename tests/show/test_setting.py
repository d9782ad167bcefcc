"""A page says in a line each what was measured: programs, machines, data."""

from __future__ import annotations

from benchbook.core.applied import digest
from benchbook.show import setting

MACHINE = {"cores": 2, "cpu_model": "Xeon", "sysbench": "1.0.20"}
DIRECT = {"engine": {"name": "mariadb", "version": "10.11.19-MariaDB-0+deb12u1"}, "machine": MACHINE}
PROXIED = {**DIRECT, "proxy": {"name": "haproxy", "version": "2.6.12-1+deb12u4"}}
DATA = {"tables": 1, "table_size": 20000}


def told(facts, dataset):
    return [line.replace("\xa0", " ") for line in setting.of(facts, dataset)]


def test_it_names_programs_once_with_their_versions():
    assert told({"arms": {"direct": {**DIRECT, "proxy": None}, "haproxy": PROXIED}}, DATA) == [
        "MariaDB 10.11.19, HAProxy 2.6.12, sysbench 1.0.20",
        "2 cores of Xeon",
        "1 table of 20,000 rows",
    ]


def test_an_upgrade_has_both_versions_and_tidb_its_own():
    """TiDB calls itself a version of MySQL first."""
    old, new = ({"engine": {"name": "tidb", "version": f"8.0.11-TiDB-v{one}"}} for one in ("7.5.1", "8.5.0"))
    assert told({"arms": {"old": old, "new": new}}, None) == ["TiDB 7.5.1 and 8.5.0"]


def test_what_is_not_known_is_left_out():
    assert told(None, None) == []
    assert told({"arms": {"a": {"engine": {"name": "mariadb", "version": None}, "machine": None}}}, {}) == []
    many = {str(cores): {"machine": {**MACHINE, "cores": cores}} for cores in (1, 2, 4)}
    assert told({"arms": many}, None) == ["sysbench 1.0.20", "3 kinds of machine"]


def test_settings_of_two_engines_stand_side_by_side_by_what_they_are_about():
    def engine(name, **settings):
        return {
            "engine": {"name": name, "settings": {key: {"asked": said} for key, said in settings.items()}}
        }

    arms = {
        "maria": engine(
            "mariadb", innodb_buffer_pool_size="268435456", transaction_isolation="READ-COMMITTED"
        ),
        "postgres": engine("postgresql", shared_buffers="256MB", fsync="on", synchronous_commit="on"),
    }
    arms["maria"]["engine"]["unstated"] = {"innodb_doublewrite": "ON"}
    (table,) = setting.beside({"arms": arms}, {"maria": "MariaDB"})
    assert [one.label for one in table.columns[1:]] == ["MariaDB", "postgres"]
    found = {row[0]: row[1:] for row in table.rows}
    assert found["memory for pages"] == ["innodb_buffer_pool_size = 268435456", "shared_buffers = 256MB"]
    left = "not stated: as its package has it"
    assert found["torn pages are mended"] == ["not stated: innodb_doublewrite = ON", left]
    assert found["a commit waits for the disk"] == [left, "fsync = on; synchronous_commit = on"]
    assert found["isolation"] == ["transaction_isolation = READ-COMMITTED", left]
    # What is stated on both sides comes last: it is what compares.
    assert table.rows[-1][0] == "memory for pages"
    assert setting.beside({"arms": {"maria": arms["maria"], "again": arms["maria"]}}, {}) == []


def test_each_file_is_folded_under_its_name_with_its_arms_and_is_only_text():
    common, own = "x=<b>1</b>", "frontend client"
    engine = {"config_hash": digest(common)}
    facts = {"arms": {"direct": {"engine": engine}, "haproxy": {"engine": engine, "proxy": {}}}}
    facts["arms"]["haproxy"]["proxy"] = {"config_hash": digest(own)}
    kept = {"my-1.cnf": common, "haproxy-2.cfg": own, "store-3.toml": "y"}
    (block,) = setting.files(kept, facts, {"direct": "direct connections"})
    assert "<summary>my-1.cnf: direct connections, haproxy</summary>" in block.text
    assert "<summary>haproxy-2.cfg: haproxy</summary>" in block.text
    # A store's digest is in the runs alone.
    assert "<summary>store-3.toml</summary>" in block.text
    assert block.text.count("<details>") == 3 and "x=&lt;b&gt;1" in block.text


def test_where_none_was_kept_nothing_is_shown():
    assert setting.files({}, {"arms": {}}, {}) == []
