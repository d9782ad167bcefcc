"""A page says in a line each what was measured: programs, machines, data."""

from types import SimpleNamespace

import pandas as pd

from benchbook.core.artifacts.applied_config import digest_text
from benchbook.show import setup_section
from tests.found import findings

MACHINE = {"cores": 2, "cpu_model": "Xeon", "sysbench": "1.0.20"}
DIRECT = {"engine": {"name": "mariadb", "version": "10.11.19-MariaDB-0+deb12u1"}, "machine": MACHINE}
PROXIED = {**DIRECT, "proxy": {"name": "haproxy", "version": "2.6.12-1+deb12u4"}}
DATA = {"tables": 1, "table_size": 20000}


RUNS = pd.DataFrame({"workload": ["rw", "rw"], "reads": [14, 14], "writes": [4, 4], "other": [2, 2]})


def inputs(arms, dataset=None, names=None, applied=None, runs=RUNS[:0]):
    """Evidence of a study, as far as this page's part needs it."""
    return SimpleNamespace(
        facts={"arms": arms},
        dataset=dataset or {},
        named=names or {},
        applied=applied or {},
        runs=runs,
        findings=findings(names={"arms": {}, "workloads": {"rw": "read and write"}}),
    )


def describe(arms, dataset=None, **more):
    return [line.replace("\xa0", " ") for line in setup_section.describe_setup(inputs(arms, dataset, **more))]


def test_the_first_lines_have_what_an_expert_asks_for_first():
    """Twice 500,000 rows of 206 bytes at the least are 196 MiB; 14 + 4 + 2 statements a transaction."""

    def server(pool: str) -> dict:
        settings = {"innodb_buffer_pool_size": pool, "innodb_flush_log_at_trx_commit": "1"}
        asked = {name: {"asked": value, "got": value} for name, value in settings.items()}
        return {"engine": {"name": "mariadb", "settings": asked, "tls": "DISABLED"}}

    arms = {"small": server("64M"), "large": server("268435456")}
    assert describe(arms, {"tables": 2, "table_size": 500_000}, runs=RUNS) == [
        "2 tables of 500,000 rows (at least 196 MiB) against 64 MiB and 256 MiB of memory for pages",
        "read and write: 70 % reads, 20 % writes, 10 % other",
        "durability: innodb_flush_log_at_trx_commit = 1; no TLS",
    ]
    arms["large"]["engine"]["tls"] = None
    assert describe(arms)[-1] == "durability: innodb_flush_log_at_trx_commit = 1", "a server did not say"


def test_it_names_programs_once_with_their_versions():
    assert describe({"direct": {**DIRECT, "proxy": None}, "haproxy": PROXIED}, DATA) == [
        "MariaDB 10.11.19, HAProxy 2.6.12, sysbench 1.0.20",
        "2 cores of Xeon",
        "1 table of 20,000 rows",
    ]


def test_an_upgrade_has_both_versions_and_tidb_its_own():
    """TiDB calls itself a version of MySQL first."""
    old, new = ({"engine": {"name": "tidb", "version": f"8.0.11-TiDB-v{one}"}} for one in ("7.5.1", "8.5.0"))
    assert describe({"old": old, "new": new}) == ["TiDB 7.5.1 and 8.5.0"]


def test_what_is_not_known_is_left_out():
    assert describe({"a": {"engine": {"name": "mariadb", "version": None}, "machine": None}}) == []
    many = {str(cores): {"machine": {**MACHINE, "cores": cores}} for cores in (1, 2, 4)}
    assert describe(many) == ["sysbench 1.0.20", "3 kinds of machine"]
    assert describe({key: many[key] for key in "12"})[-1] == "1 core of Xeon; 2 cores of Xeon"


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
    arms["maria"]["engine"]["unstated"] = {"innodb_doublewrite": "OFF"}
    arms["postgres"]["engine"]["unstated"] = {"full_page_writes": "on", "max_wal_size": "1024MB"}
    text = {"maria": {"character set": "latin1", "order of text": "utf8mb4_bin"}}
    text["postgres"] = {"character set": "UTF8", "order of text": "C"}
    loads = {"loads": {arm: {"text": of_arm} for arm, of_arm in text.items()}}
    (table,) = setup_section.compare_engines(inputs(arms, loads, {"maria": "MariaDB"}))
    assert [one.label for one in table.columns] == ["What it is about", "Alike", "MariaDB", "postgres"]
    left = "not stated: as its package has it"
    # What is not alike comes first, then what can't be said; sizes and words are compared, not spellings.
    assert table.rows == [
        ["torn pages are mended", "no", "not stated: innodb_doublewrite = OFF",
         "not stated: full_page_writes = on"],
        ["character set", "no", "columns = latin1", "columns = UTF8"],
        ["a commit waits for the disk", "can't be said", left, "fsync = on; synchronous_commit = on"],
        ["size of the log", "can't be said", left, "not stated: max_wal_size = 1024MB"],
        ["isolation", "can't be said", "transaction_isolation = READ-COMMITTED", left],
        ["memory for pages", "yes", "innodb_buffer_pool_size = 268435456", "shared_buffers = 256MB"],
        ["order of text", "yes", "columns = utf8mb4_bin", "columns = C"],
    ]  # fmt: skip
    assert (
        setup_section.describe_setup(inputs(arms, loads))[0]
        == "not alike: torn pages are mended and character set"
    )
    # What was measured before columns were read does not say what they held.
    (table,) = setup_section.compare_engines(inputs(arms))
    assert ["order of text", "can't be said", left, "not read"] in table.rows


def test_an_engine_with_other_memory_is_not_alike_and_one_that_has_no_pages_does_not_compare():
    def memory(first, second):
        arms = {}
        for arm, (name, key, asked, got) in {"a": first, "b": second}.items():
            arms[arm] = {"engine": {"name": name, "settings": {key: {"asked": asked, "got": got}}}}
        (table,) = setup_section.compare_engines(inputs(arms))
        return next(row[1] for row in table.rows if row[0] == "memory for pages")

    maria = ("mariadb", "innodb_buffer_pool_size", "512M", "536870912")
    assert memory(maria, ("postgresql", "shared_buffers", "512MB", "65536 x 8kB")) == "yes"
    assert memory(maria, ("postgresql", "shared_buffers", "256MB", "32768 x 8kB")) == "no"
    assert memory(maria, ("tidb", "skip_name_resolve", "ON", "ON")) == "can't be said"


def test_one_engine_alone_has_a_table_where_servers_differ_in_what_nobody_stated():
    def engine(flush, **engine):
        return {
            "engine": {"name": "mariadb", "unstated": {"innodb_flush_log_at_trx_commit": flush}, **engine}
        }

    (table,) = setup_section.compare_engines(inputs({"old": engine("1"), "new": engine("2")}))
    name = "not stated: innodb_flush_log_at_trx_commit"
    assert table.rows == [["a commit waits for the disk", "no", f"{name} = 1", f"{name} = 2"]]
    asked = {"settings": {"innodb_flush_log_at_trx_commit": {"asked": "1"}}}
    for alike in (engine("1"), engine("2", **asked)):
        assert setup_section.compare_engines(inputs({"old": engine("1"), "new": alike})) == []
    assert setup_section.compare_engines(inputs({"old": engine("1")})) == []


def test_each_file_is_folded_under_its_name_with_its_arms_and_is_only_text():
    common, own = "x=<b>1</b>", "frontend client"
    engine = {"config_hash": digest_text(common)}
    arms = {"direct": {"engine": engine}, "haproxy": {"engine": engine}}
    arms["haproxy"]["proxy"] = {"config_hash": digest_text(own)}
    kept = {"my-1.cnf": common, "haproxy-2.cfg": own, "store-3.toml": "y"}
    (block,) = setup_section.render_files(inputs(arms, names={"direct": "direct connections"}, applied=kept))
    assert "<summary>my-1.cnf: direct connections, haproxy</summary>" in block.text
    assert "<summary>haproxy-2.cfg: haproxy</summary>" in block.text
    # A store's digest is in the runs alone.
    assert "<summary>store-3.toml</summary>" in block.text
    assert block.text.count("<details>") == 3 and "x=&lt;b&gt;1" in block.text


def test_where_none_was_kept_nothing_is_shown():
    assert setup_section.render_files(inputs({})) == []
