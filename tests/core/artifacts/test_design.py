"""What changes what is measured is the design; what names it, repeats it or moves it is not."""

from pathlib import Path
from typing import Any

import pytest

from benchbook.core.artifacts import design
from benchbook.core.study import load
from benchbook.core.study.study import StudySpec
from tests.goldens import assert_golden_case

ROOT = Path(__file__).parents[3]
METHODS = {"local": 2, "pod": 1, "turns": 2}


def facts(engine: str = "10.11.19-MariaDB", haproxy: str = "2.6.12-1+deb12u4") -> dict[str, Any]:
    """Return the facts of the arms of `quick` with these versions."""
    server = {"name": "mariadb", "version": engine}
    proxy = {"name": "haproxy", "version": haproxy}
    direct = {"engine": server, "machine": {"cpu_model": "any"}}
    return {"direct": direct, "haproxy": {"engine": server, "proxy": proxy}, "pod": direct}


def study(change: dict[str, Any] | None = None) -> StudySpec:
    """Return the shipped study `quick`, with sections changed."""
    plain = load.study_file(ROOT / "studies" / "quick.yaml").model_dump(mode="json")
    for section, keys in (change or {}).items():
        plain[section] = plain[section] | keys if isinstance(keys, dict) else keys
    return StudySpec.model_validate(plain)


def _assert_differences(case: str, before: dict[str, Any], after: dict[str, Any]) -> None:
    told = "\n".join(design.describe_differences(before, after))
    assert_golden_case("design_differences.txt", case, told)


def test_words_names_blocks_and_seeds_are_no_part_of_a_design():
    one = design.compute_digest(study(), facts(), METHODS)
    assert len(one) == 12
    other = study({"title": "Another", "question": "Another question?", "aa": None, "claims": []})
    repeats = {"blocks": 5, "seed": 77, "max_repeats": 1, "budget_minutes": 60}
    more = study({"plan": repeats, "dataset": {"seed": 9}})
    port = study({"site": {"port": 24000}})
    named = study().model_dump(mode="json")
    named["arms"]["haproxy"] |= {"name": "the proxy", "stands_in_for": "something else"}
    for same in (other, more, port, StudySpec.model_validate(named)):
        assert design.compute_digest(same, facts(), METHODS) == one
    patch = facts("10.11.20-MariaDB", "2.6.13")
    patch["direct"]["machine"] = {"cpu_model": "another"}
    assert design.compute_digest(study(), patch, METHODS) == one, "a patch release and a processor"


def test_whole_runs_that_were_asked_for_are_those_that_pilots_chose_on_a_slower_machine():
    """Which it was stands in the session's methods; otherwise each speed of machine had its own design."""
    asked, chosen = (
        study({"workloads": {"oltp_point_select": order}, "plan": {"run_s": 2, "discard_s": 1}})
        for order in ({"order": "runs"}, {})
    )
    whole = {"local": 2, "pod": 1, "runs": 1}
    assert design.compute_digest(asked, facts(), whole) == design.compute_digest(chosen, facts(), whole)
    assert design.compute_digest(chosen, facts(), METHODS) != design.compute_digest(asked, facts(), whole)


@pytest.mark.parametrize(
    "change",
    [
        {"plan": {"run_s": 2}},
        {"threads": [1, 4]},
        {"dataset": {"table_size": 100}},
        {"site": {"cpus": "shared"}},
    ],
)
def test_what_changes_what_is_measured_is_another_design_and_is_told(change: dict[str, Any]):
    both = study(), study(change)
    before, after = (design.describe_design(each, facts(), METHODS) for each in both)
    assert len({design.compute_digest(each, facts(), METHODS) for each in both}) == 2
    _assert_differences(str(change), before, after)
    assert design.describe_differences(before, before) == []


def test_methods_and_versions_make_another_design():
    before = design.describe_design(study(), facts(), METHODS)
    after = design.describe_design(study(), facts("11.4.2"), METHODS | {"turns": 1})
    _assert_differences("methods and versions", before, after)


def test_offered_rates_differ_together_whichever_workload_has_which():
    def design_at(*shares: float) -> dict[str, Any]:
        rates = {f"load{number}": {"share": share} for number, share in enumerate(shares)}
        workloads = {name: {"script": "oltp_point_select", "rate": rate} for name, rate in rates.items()}
        whole = {"plan": {"run_s": 2, "discard_s": 1}, "warm_up": {"pilot_s": 5}}
        return design.describe_design(study({"workloads": workloads, **whole}), facts(), METHODS)

    _assert_differences("offered rates", design_at(0.5, 0.2), design_at(0.25, 0.1))


def test_a_study_uses_its_own_methods():
    assert design.methods_used(study(), {"turns"}) == ["local", "pod", "turns"]
    cold = load.study_file(ROOT / "studies" / "howto" / "lab-disk.yaml")
    assert design.methods_used(cold, {"runs"}) == ["cold", "local", "runs"]
