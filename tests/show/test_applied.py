"""The settings files on a study's page: each folded, with the arms that were started with it."""

from __future__ import annotations

from benchbook.core.applied import digest
from benchbook.show import applied


def test_each_file_is_folded_under_its_name_with_its_arms_and_is_only_text():
    common, own = "x=<b>1</b>", "frontend client"
    engine = {"config_hash": digest(common)}
    facts = {"arms": {"direct": {"engine": engine}, "haproxy": {"engine": engine, "proxy": {}}}}
    facts["arms"]["haproxy"]["proxy"] = {"config_hash": digest(own)}
    kept = {"my-1.cnf": common, "haproxy-2.cfg": own, "store-3.toml": "y"}
    (block,) = applied.shown(kept, facts, {"direct": "direct connections"})
    assert "<summary>my-1.cnf: direct connections, haproxy</summary>" in block.text
    assert "<summary>haproxy-2.cfg: haproxy</summary>" in block.text
    # A store's digest is in the runs alone.
    assert "<summary>store-3.toml</summary>" in block.text
    assert block.text.count("<details>") == 3 and "x=&lt;b&gt;1" in block.text


def test_where_none_was_kept_nothing_is_shown():
    assert applied.shown({}, {"arms": {}}, {}) == []
