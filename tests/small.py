"""A study of seconds: two arms, two tiny tables, one run each. Tests give what matters to them."""

from typing import Any

from benchbook.core.study.study import StudySpec


def sections(**changes: Any) -> dict[str, Any]:
    """Return the sections of the study file, some as given."""
    return {
        "title": "Test",
        "question": "Does the walk hold?",
        "site": {},
        "engine": {},
        "arms": {"direct": {}, "proxy": {"access": "haproxy"}},
        "aa": None,
        "dataset": {"tables": 2, "table_size": 200},
        "workloads": {"oltp_read_write": {}},
        "threads": [2],
        "plan": {"seed": 3, "blocks": 1, "discard_s": 0, "run_s": 2, "order": "runs"},
        "warm_up": {"pilot_s": 2},
        "claims": [],
    } | changes


def study(**changes: Any) -> StudySpec:
    """Return the study with other sections as given."""
    return StudySpec.model_validate(sections(**changes), strict=False)
