"""What can't be made is known before anything starts; without anything to compare nothing starts."""

from types import SimpleNamespace

import pytest

from benchbook.core.util.errors import BenchbookError
from benchbook.sites import provision


@pytest.mark.parametrize("lacking", [{}, {"service": "no iptables"}])
def test_an_arm_is_skipped_with_its_reason_while_another_treatment_is_left(make_study, lacking) -> None:
    study = make_study()
    arms = {**study.arms, "service": study.arms["direct"].model_copy(update={"access": "service"})}
    study = study.model_copy(update={"arms": arms})
    assert provision.find_skipped(SimpleNamespace(missing=lacking.get), study) == lacking


@pytest.mark.parametrize("arm", ["direct", "relay"])
def test_without_baseline_or_any_treatment_the_study_stops_with_the_reason(make_study, arm: str) -> None:
    site = SimpleNamespace(missing={arm: "no rights"}.get)
    with pytest.raises(BenchbookError, match=f"to compare: {arm}: no rights"):
        provision.find_skipped(site, make_study())


def test_each_arm_is_shown_with_its_own_engine_and_version(make_study) -> None:
    study = make_study()
    changed = study.arms["direct"].model_validate({"engine": {"name": "tidb", "version": "6.6"}})
    study = study.model_copy(update={"arms": {**study.arms, "other": changed}})
    table = provision.tabulate_arms(study).set_index("arm")
    assert dict(table["engine"]) == {"direct": "mariadb", "relay": "mariadb", "other": "tidb 6.6"}
    assert dict(table["access"]) == {"direct": "direct", "relay": "haproxy", "other": "direct"}


@pytest.mark.parametrize(
    ("asked", "found", "is_taken"),
    [
        ("1.0.17", "1.0.17", True),
        ("1.0", "1.0.20 (using system LuaJIT 2.1.0)", True),
        ("1.0.17", "1.0.20", False),
        ("1.1", "1.0.20", False),
        ("1.0", None, False),
        (None, None, True),
    ],
)
def test_another_sysbench_than_was_asked_for_is_refused(make_study, asked, found, is_taken) -> None:
    study = make_study()
    study = study.model_copy(update={"site": study.site.model_copy(update={"sysbench": asked})})
    facts = {"machine": {"sysbench": found}}
    if is_taken:
        return provision.must_have_sysbench(study, "direct", facts)
    with pytest.raises(BenchbookError, match=r"site.sysbench: .*arm direct "):
        provision.must_have_sysbench(study, "direct", facts)
