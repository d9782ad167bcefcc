"""Names that a stranger reads without knowing this project's words."""

import pytest

from benchbook.compare.text import labels


@pytest.mark.parametrize(
    ("name", "access", "said"),
    [
        ("haproxy", "haproxy", "HAProxy"),
        ("haproxy", "direct", "haproxy"),  # an arm of this name that has no proxy
        ("tiproxy-2", "tiproxy", "TiProxy-2"),
        ("direct", "direct", "direct connections"),
        ("direct", "service", "direct"),
        ("pod", "direct", "pod"),
        ("haproxy_again", "haproxy", "HAProxy again"),
    ],
)
def test_an_arm_is_called_by_what_it_is_known_to_be(name, access, said):
    assert labels.label_arm(name, access) == said


def test_a_workload_of_another_name_keeps_it_beside_what_its_script_does():
    assert labels.label_workload("rows_10", "select_random_ranges") == "selects of random ranges (rows_10)"
    assert labels.label_workload("own_script", "own_script") == "own_script"
