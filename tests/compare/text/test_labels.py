"""Names that a stranger reads without knowing this project's words."""

import pytest

from benchbook.compare.text import labels


@pytest.mark.parametrize(
    ("name", "access", "said"),
    [
        ("tiproxy-2", "tiproxy", "TiProxy-2"),
        ("direct", "service", "direct"),
        ("haproxy_again", "haproxy", "HAProxy again"),
    ],
)
def test_an_arm_is_called_by_what_it_is_known_to_be(name, access, said):
    assert labels.label_arm(name, access) == said
